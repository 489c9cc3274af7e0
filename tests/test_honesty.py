"""Scripts whose conversion cannot be proved equal: none may exit with 0, and each is told at the line where the reason stands.

The line that a finding has to point at ends in `# <- here`.
"""

import ast
import textwrap
from pathlib import Path

import pytest

import ddpify
from ddpify.rules.base import Safety

MARK = "# <- here"

SCRIPTS = {
    # --- data -----------------------------------------------------------------------------------------------------------
    "batches drawn by a sampler of the script's own, beside a thread": """
        import threading
        import time

        import torch
        from torch import nn
        from torch.utils.data import DataLoader, Sampler, TensorDataset


        class Pairs(Sampler):
            def __len__(self):
                return 320

            def __iter__(self):
                own = torch.Generator().manual_seed(int(time.time()))
                return iter(torch.randperm(160, generator=own).repeat_interleave(2).tolist())

        x, y = torch.randn(320, 8), torch.randint(0, 2, (320,))
        threading.Thread(target=print, args=("started",)).start()
        loader = DataLoader(TensorDataset(x, y), batch_size=32, sampler=Pairs())  # <- here
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                loss = nn.functional.cross_entropy(model(a), b)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "batches made by a batch sampler": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, Sampler, TensorDataset

        class Hard(Sampler):
            def __init__(self):
                self.weights = torch.ones(320)

            def __len__(self):
                return 10

            def __iter__(self):
                for _ in range(10):
                    yield torch.multinomial(self.weights, 32).tolist()

            def saw(self, loss):
                self.weights = self.weights * loss.item()

        dataset = TensorDataset(torch.randn(320, 8), torch.randint(0, 2, (320,)))
        batches = Hard()
        loader = DataLoader(dataset, batch_sampler=batches)  # <- here
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                loss = nn.functional.cross_entropy(model(a), b)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                batches.saw(loss)
        """,
    "an iterable data set": """
        import random

        import torch
        from torch import nn
        from torch.utils.data import DataLoader, IterableDataset

        class Lines(IterableDataset):
            def __init__(self, path):
                self.path = path

            def __iter__(self):
                lines = open(self.path).readlines()
                random.shuffle(lines)
                for line in lines:
                    *x, y = map(float, line.split())
                    yield torch.tensor(x), torch.tensor([y])

        loader = DataLoader(Lines("train.txt"), batch_size=32)  # <- here
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                loss = nn.functional.mse_loss(model(a), b)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    # --- losses ---------------------------------------------------------------------------------------------------------
    "a contrastive loss over all pairs of a batch": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randn(320, 8)), batch_size=32, shuffle=True)
        encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
        for epoch in range(3):
            for one, two in loader:
                logits = nn.functional.normalize(encoder(one), dim=1) @ nn.functional.normalize(encoder(two), dim=1).t() / 0.1
                loss = nn.functional.cross_entropy(logits, torch.arange(len(logits)))
                optimizer.zero_grad()
                loss.backward()  # <- here
                optimizer.step()
        """,
    "a loss of the hardest samples of a batch": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randint(0, 3, (320,))), batch_size=32, shuffle=True)
        model = nn.Linear(8, 3)
        criterion = nn.CrossEntropyLoss(reduction="none")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                hardest, _ = criterion(model(a), b).topk(8)
                loss = hardest.mean()
                optimizer.zero_grad()
                loss.backward()  # <- here
                optimizer.step()
        """,
    # --- gradients ------------------------------------------------------------------------------------------------------
    "a closure for LBFGS": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randn(320, 1)), batch_size=32, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                def closure():
                    optimizer.zero_grad()
                    loss = nn.functional.mse_loss(model(a), b)
                    loss.backward()
                    return loss.sqrt()

                optimizer.step(closure)  # <- here
        """,
    "parameters that belong to no module, and a step before the backward call": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randn(320, 1)), batch_size=32, shuffle=True)
        model = nn.Linear(8, 1)
        log_sigma = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([*model.parameters(), log_sigma], lr=0.1)  # <- here
        for epoch in range(3):
            for a, b in loader:
                optimizer.step()
                optimizer.zero_grad()
                loss = ((model(a) - b) ** 2 / log_sigma.exp() + log_sigma).mean()
                loss.backward()
        """,
    "a method of the model that is not its forward, and gradients clipped before the last backward call": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 1)

            def forward(self, x):
                return self.fc(x)

            def loss(self, x, y):
                return nn.functional.mse_loss(self.fc(x), y)

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randn(320, 1)), batch_size=32, shuffle=True)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                optimizer.zero_grad()
                model.loss(a, b).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                loss = model.loss(-a, -b) + model.fc(a).pow(2).mean()
                loss.backward()  # <- here
                optimizer.step()
        """,
    "a part that is freed while the model trains, and a step before the backward call": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = nn.Linear(8, 16)
                self.head = nn.Linear(16, 2)

            def forward(self, x):
                return self.head(self.backbone(x).relu())

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randint(0, 2, (320,))), batch_size=32, shuffle=True)
        model = Net()
        for p in model.backbone.parameters():
            p.requires_grad = False
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(6):
            if epoch == 3:
                for p in model.backbone.parameters():
                    p.requires_grad = True  # <- here
            for a, b in loader:
                optimizer.step()
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(a), b)
                loss.backward()
        """,
    # --- decisions ------------------------------------------------------------------------------------------------------
    "a batch skipped for its middle sample": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randn(320, 1)), batch_size=32, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                loss = nn.functional.mse_loss(model(a), b)
                if (model(a) - b).abs().median() > 3:  # <- here
                    continue
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    # --- what is not seen -----------------------------------------------------------------------------------------------
    "a backward that is only reached by a name": """
        import sys

        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randn(320, 1)), batch_size=32, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train():
            for a, b in loader:
                loss = nn.functional.mse_loss(model(a), b)
                optimizer.zero_grad()
                loss.backward()  # <- here
                optimizer.step()

        if __name__ == "__main__":
            exec(sys.argv[1] + "()")
        """,
    "a loader made in another module, by arguments that cannot be seen": {
        "data.py": """
            import torch
            from torch.utils.data import DataLoader, TensorDataset

            def make_loader(batch_size):
                dataset = TensorDataset(torch.randn(320, 8), torch.randint(0, 2, (320,)))
                options = [dataset, batch_size, True]
                return DataLoader(*options)  # <- here
            """,
        "train.py": """
            import torch
            from torch import nn

            from data import make_loader

            def main():
                loader = make_loader(32)
                model = nn.Linear(8, 2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for epoch in range(3):
                    for a, b in loader:
                        loss = nn.functional.cross_entropy(model(a), b)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()

            if __name__ == "__main__":
                main()
            """,
    },
}

PLAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randn(320, 1)), batch_size=32, shuffle=True)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            loss = nn.functional.mse_loss(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """


def test_nothing_is_told_of_a_script_without_any_of_this() -> None:
    done = ddpify.convert(textwrap.dedent(PLAIN).lstrip())
    assert done.exit_code == 0
    assert [finding for finding in done.findings if finding.level >= Safety.REVIEW] == []


@pytest.mark.parametrize("files", SCRIPTS.values(), ids=SCRIPTS)
def test_it_is_told_where_it_stands(files: str | dict[str, str], tmp_path: Path) -> None:
    texts = {name: textwrap.dedent(text).lstrip() for name, text in (files if isinstance(files, dict) else {"train.py": files}).items()}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    ((marked, line),) = [(name, i) for name, text in texts.items() for i, line in enumerate(text.splitlines(), 1) if line.endswith(MARK)]
    done = ddpify.convert(tmp_path / "train.py", ddpify.Options(whole_batches="never"))
    told = [(Path(f.file).name, f.line, f.level.name, f.code, f.message) for f in done.findings if f.level >= Safety.REVIEW]
    told += [(Path(c.file).name, c.line, c.level.name, c.code, c.why) for c in done.changes if c.level >= Safety.REVIEW]
    assert (done.status, done.exit_code) == ("convert", 1), told
    assert (marked, line) in [(name, at) for name, at, *_ in told], told


@pytest.mark.parametrize(
    "setting",
    [
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0"',
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")',
        'os.environ.update(CUDA_VISIBLE_DEVICES="0")',
        'os.environ.update({"CUDA_VISIBLE_DEVICES": "0"})',
        'os.putenv("CUDA_VISIBLE_DEVICES", "0")',
    ],
)
def test_one_visible_device_is_kept_from_the_ranks_or_told(setting: str) -> None:
    done = ddpify.convert(f"import os\n\n{setting}\n{textwrap.dedent(PLAIN).lstrip()}")
    told = [finding.line for finding in done.findings if finding.level >= Safety.REVIEW]
    free = [ast.unparse(statement) for statement in ast.parse(done.code).body]
    assert done.exit_code == (1 if told else 0)
    assert 3 in told or ast.unparse(ast.parse(setting)) not in free


def test_the_operation_that_causes_a_doubt_is_named_once() -> None:
    script = textwrap.dedent(
        """\
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(torch.randn(320, 8)), batch_size=32, shuffle=True)
        for (rows,) in loader:
            out = model(rows)
            loss = out[torch.randperm(len(out))[:4]].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    found = [f for f in ddpify.convert(script, ddpify.Options(whole_batches="never")).findings if f.code == "DDP402"]
    said = "`out[torch.randperm(len(out))[:4]]` (line 10) takes some of the rows that a rank has"
    assert len(found) == 1 and said in found[0].message, found
