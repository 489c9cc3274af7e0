"""A batch for each rank: two ranks train as one process does with twice the batch, and the learning rate that was asked for."""

import pytest
from ranks import Case, Outcome, run_many
from scripts import Script, text

import ddpify
from ddpify import Options
from ddpify.errors import DdpifyError

# title: the script, with places for the batch size and for the factor of the learning rate
SCRIPTS = {
    "literals": """
    loader = DataLoader(TensorDataset(x, y), batch_size={batch}, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * {factor}, momentum=0.9)
    for epoch in range(3):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
    """,
    "options in a dict, a rate by default": """
    options = {{"batch_size": {batch}, "shuffle": True, "drop_last": True}}
    loader = DataLoader(TensorDataset(x, y), **options)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.Adam(model.parameters(){default})
    for epoch in range(3):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
    """,
    "a sampler, groups of parameters, a rate set by hand": """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default={batch})
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    rows = TensorDataset(x, y)
    loader = DataLoader(rows, args.batch_size, sampler=torch.utils.data.RandomSampler(rows), drop_last=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD([{{"params": model.parameters(), "lr": args.lr * {factor}}}], lr=0.5)
    for epoch in range(3):
        for group in optimizer.param_groups:
            group["lr"] = args.lr * 0.5**epoch * {factor}
        for data, target in loader:
            if len(data) != args.batch_size:
                continue
            noise = torch.zeros(args.batch_size, 8)
            optimizer.zero_grad()
            F.cross_entropy(model(data + noise), target).backward()
            optimizer.step()
            optimizer.param_groups[0]["lr"] *= 0.9
    """,
    "a one-cycle schedule as long as the loader": """
    loader = DataLoader(TensorDataset(x, y), batch_size={batch}, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * {factor})
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2 * {factor}, total_steps=3 * len(loader))
    for epoch in range(3):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
            cycle.step()
    """,
}
FACTORS = {"none": 1.0, "linear": 2.0, "sqrt": 2.0**0.5}
CASES = [(title, scale) for title in SCRIPTS for scale in FACTORS]


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], Outcome]:
    cases = []
    for title, scale in CASES:
        factor, body = FACTORS[scale], SCRIPTS[title]
        small = text(Script(body.format(batch=4, factor=1, default="")))
        large = text(Script(body.format(batch=8, factor=factor, default=f", lr={1e-3 * factor!r}")))
        options = Options(batch_size="per-rank", scale_lr=scale)
        done = ddpify.convert(small, options)
        assert (done.status, done.exit_code) == ("convert", 0)
        assert ddpify.convert(done.code, options).code == done.code
        cases.append(Case(large, done.code))
    return dict(zip(CASES, run_many(cases), strict=True))


@pytest.mark.parametrize(("title", "scale"), CASES)
def test_two_ranks_train_as_one_process_with_twice_the_batch(outcomes: dict[tuple[str, str], Outcome], title: str, scale: str) -> None:
    assert outcomes[title, scale].problems() == []


def test_a_global_batch_keeps_its_learning_rate() -> None:
    with pytest.raises(DdpifyError, match="does not go with a global batch"):
        Options(scale_lr="linear")


def test_batches_of_one_are_no_problem_where_each_rank_has_its_own() -> None:
    script = text(Script(SCRIPTS["literals"].format(batch=1, factor=1)))
    assert ddpify.convert(script).exit_code == 1
    assert ddpify.convert(script, Options(batch_size="per-rank")).exit_code == 0
