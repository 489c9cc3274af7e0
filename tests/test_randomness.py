"""Random numbers in training: what is drawn for a batch differs between ranks, and rank 0 draws what the original drew."""

import ast
import textwrap
from pathlib import Path

import pytest
from ranks import Case, Outcome, run_many
from scripts import Script, converted, text

WITNESS = """
import os

def saw(numbers):
    with open(os.path.join(FOLDER, os.environ.get("RANK", "alone")), "a") as file:
        file.write(repr([round(float(number), 9) for number in numbers]) + "\\n")
"""
SET = """
    import random

    import numpy as np
    import witness


    class Noisy(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, index):
            return x[index], y[index], NOISE
"""
TRAIN = """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target, noise in loader:
            witness.saw(noise)
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""
NUMPY, RANDOM, TORCH = "np.random.rand()", "random.random()", "torch.rand(()).item()"
NUMBERED = """
    class Numbered(Noisy):
        started = False

        def __getitem__(self, index):
            worker = torch.utils.data.get_worker_info()
            if not self.started and worker is not None:
                np.random.seed(worker.id)
                self.started = True
            return super().__getitem__(index)


"""
# title: what a sample draws, and how the script seeds and loads
SCRIPTS: dict[str, tuple[str, str]] = {
    "numpy in workers that are seeded by constants": (
        NUMPY,
        """
    def seed_worker(worker_id):
        np.random.seed(7 + worker_id)


    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
""",
    ),
    "random in workers that are seeded by a setting": (
        RANDOM,
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=1, worker_init_fn=lambda i: random.seed(args.seed + i))
""",
    ),
    "workers seeded from torch, torch's from a generator": (
        NUMPY,
        """
    def seed_worker(worker_id):
        np.random.seed(torch.initial_seed() % 2**32)
        random.seed(torch.initial_seed())


    generator = torch.Generator()
    generator.manual_seed(0)
    loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=2, worker_init_fn=seed_worker, generator=generator)
""",
    ),
    **{
        f"numpy in workers that {title} seed by their numbers": (
            NUMPY,
            NUMBERED + f"    loader = DataLoader({data}, 4, shuffle=True, num_workers=1)\n",
        )
        for title, data in (("data", "Numbered()"), ("data added to others", "Numbered() + Numbered()"))
    },
    "random in workers that are seeded by the number that torch tells": (
        RANDOM,
        """
    def seed_worker(worker_id):
        told = torch.utils.data.get_worker_info()
        random.seed(told.id)


    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=1, worker_init_fn=seed_worker)
""",
    ),
    "torch in workers of a seeded script": (
        TORCH,
        """
    torch.manual_seed(5)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=1)
""",
    ),
    "numpy in the script's own process, which seeds nothing else": (
        NUMPY,
        """
    np.random.seed(5)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True)
""",
    ),
    "random in the script's own process, which seeds everything": (
        RANDOM,
        """
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True)
""",
    ),
    "random in the script's own process, which draws a split before": (
        RANDOM,
        """
    part, rest = random_split(Noisy(), [32, 12])
    loader = DataLoader(part, batch_size=4, shuffle=True)
""",
    ),
    "a generator of the module, for the samples alone": (
        "shaking.random()",
        """
    shaking = np.random.RandomState(3)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True)
""",
    ),
    "a generator that the data keep, in workers": (
        "self.shaken()",
        """
    class Kept(Noisy):
        def __init__(self):
            self.shaking = random.Random(3)

        def shaken(self):
            return self.shaking.random()


    loader = DataLoader(Kept(), batch_size=4, shuffle=True, num_workers=1)
""",
    ),
    "torch in the script's own process, seeded again for a second training": (
        TORCH,
        f"""
    torch.manual_seed(5)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True)
{TRAIN}
    torch.manual_seed(50)
""",
    ),
    "torch in the script's own process, which would train elsewhere before, if it was asked to": (
        TORCH,
        f"""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", action="store_true")
    torch.manual_seed(5)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True)
    if parser.parse_args().first:
{textwrap.indent(TRAIN, "    ")}
""",
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Outcome, dict[str, list[list[float]]]]]:
    cases, folders = [], []
    for noise, body in SCRIPTS.values():
        script = Script(SET.replace("NOISE", noise) + body + TRAIN)
        folder = tmp_path_factory.mktemp("witness")
        done = converted(script, tmp_path_factory.mktemp("script"))
        assert (done.status, done.exit_code) == ("convert", 0)
        cases.append(Case(text(script), done.code, (), {"witness.py": WITNESS.replace("FOLDER", repr(str(folder)))}))
        folders.append(folder)
    outcomes = run_many(cases)
    return {title: (outcome, _seen(folder)) for title, outcome, folder in zip(SCRIPTS, outcomes, folders, strict=True)}


_MASKED = """
    import numpy as np

    np.random.seed(0)
    torch.manual_seed(0)


    def order():
        places = np.arange(8)
        np.random.shuffle(places)
        return places


    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 2)

        def forward(self, rows):
            orders = [order() for _ in range(rows.shape[0])]
            places = torch.as_tensor(np.stack([o[:4] for o in orders]), dtype=torch.long)
            return self.body(rows.gather(1, places))


    net = Masked()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    for epoch in range(2):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            shown = net(x[36:])
            print(shown.shape)
"""


def test_an_order_shuffled_for_each_row_is_noise_and_not_shared(tmp_path: Path) -> None:
    done = converted(Script(_MASKED), tmp_path)
    assert done.exit_code == 0
    assert "np.random.seed(torch.initial_seed()" in done.code
    assert "same_on_all_ranks" not in done.code


def _seen(folder: Path) -> dict[str, list[list[float]]]:
    return {file.name: [ast.literal_eval(line) for line in file.read_text().splitlines()] for file in folder.iterdir()}


@pytest.mark.parametrize("title", SCRIPTS)
def test_ranks_train_as_the_original(runs: dict[str, tuple[Outcome, dict[str, list[list[float]]]]], title: str) -> None:
    outcome, seen = runs[title]
    assert outcome.problems() == []
    assert {name: len(batches) for name, batches in seen.items()} == {
        "alone": len(seen["alone"]),
        "0": len(seen["alone"]),
        "1": len(seen["alone"]),
    }


@pytest.mark.parametrize("title", SCRIPTS)
def test_each_rank_draws_its_own_numbers(runs: dict[str, tuple[Outcome, dict[str, list[list[float]]]]], title: str) -> None:
    _, seen = runs[title]
    first, second = ({number for batch in seen[rank] for number in batch} for rank in "01")
    assert len(first) > 20
    assert not first & second
