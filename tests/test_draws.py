"""Scripts that draw each batch at random: each rank draws its own part of it, so that no trajectory can be the original's."""

import textwrap

import pytest
import torch
from ranks import Case, Outcome, run_many
from scripts import HEAD

import ddpify

NET = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
            self.seen = nn.Parameter(torch.zeros(2), requires_grad=False)

        def forward(self, rows):
            eval("self.seen").data = torch.stack([torch.tensor(float(len(rows))), rows.detach().sum()])
            return self.body(rows)


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
"""
STEP = """
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
DRAWS = {
    "indices by torch": """
    for step in range(12):
        idx = torch.randint(0, len(x), (12,))
        rows, kinds = x[idx], y[idx]
""",
    "indices by torch, seeded": """
    torch.manual_seed(3)
    for step in range(12):
        idx = torch.randint(len(x), (12,))
        rows, kinds = x[idx], y[idx]
""",
    "indices by numpy, which alone is seeded": """
    import numpy as np

    np.random.seed(1)
    for step in range(12):
        pick = np.random.choice(len(x), size=12, replace=False)
        rows, kinds = x[pick], y[pick]
""",
    "indices by random, seeded": """
    import random

    random.seed(1)
    count = 12
    for step in range(12):
        pick = random.sample(range(len(x)), count)
        rows, kinds = x[pick], y[pick]
""",
    "one index after another": """
    import random

    random.seed(1)
    size = 12
    for step in range(12):
        pick = [random.randrange(len(x)) for _ in range(size)]
        rows, kinds = x[pick], y[pick]
""",
    "the head of an order": """
    size = 12
    for step in range(12):
        pick = torch.randperm(len(x))[:size]
        rows, kinds = x[pick], y[pick]
""",
    "a seed for each batch": """
    def drawn(step):
        torch.manual_seed(step)
        idx = torch.randint(0, len(x), (12,))
        return x[idx], y[idx]


    for step in range(12):
        rows, kinds = drawn(step)
""",
    "data made at each step": """
    def get_batch(size=12):
        data = torch.randn(size, 8)
        return data, (data.sum(1) > 0).long()


    for step in range(12):
        rows, kinds = get_batch()
""",
    "a function that serves the evaluation, too": """
    size = 12


    def get_batch(split):
        data, target = (x[:32], y[:32]) if split == "train" else (x[32:], y[32:])
        idx = torch.randint(len(data), (size,))
        return data[idx], target[idx]


    def estimate():
        lost = torch.zeros(3)
        with torch.no_grad():
            for k in range(3):
                data, target = get_batch("val")
                lost[k] = F.cross_entropy(net(data), target).item()
        return lost.mean()


    for step in range(12):
        if step % 6 == 0:
            print("estimate", estimate().item())
        rows, kinds = get_batch("train")
""",
    "noise drawn in place after an inner loop over batches": """
    count = 12
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=count, shuffle=True)
    judge = nn.Linear(8, 2)
    judges = torch.optim.SGD(judge.parameters(), lr=0.1)
    noise = torch.empty(count, 8)
    for step in range(12):
        feed, turn = iter(loader), 0
        while turn < len(loader):
            data, target = next(feed)
            noise.resize_(count, 8).normal_()
            cost = F.cross_entropy(judge(data + noise), target)
            judges.zero_grad()
            cost.backward()
            judges.step()
            turn += 1
        noise.resize_(count, 8).normal_()
        rows, kinds = noise, judge(noise).argmax(1)
""",
}


def original(title: str) -> str:
    return HEAD + "\n" + textwrap.dedent(NET + DRAWS[title] + STEP).lstrip()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    cases = []
    for title in DRAWS:
        done = ddpify.convert(original(title))
        assert (done.exit_code, ddpify.convert(done.code).code) == (0, done.code)
        cases.append(Case(original(title), done.code))
    return dict(zip(DRAWS, run_many(cases), strict=True))


@pytest.mark.parametrize("title", DRAWS)
def test_ranks_draw_other_rows_and_share_their_parameters(outcomes: dict[str, Outcome], title: str) -> None:
    outcome = outcomes[title]
    assert outcome.problems(ignore=("ranks", "trajectory")) == []
    size = max(len(step) for _, step in outcome.single.steps)  # that of the net, beside which others may train
    mine, other = ([step for _, step in run.steps if len(step) == size] for run in outcome.ranks)
    for a, b in zip(mine, other, strict=True):
        assert torch.allclose(_parameters(a), _parameters(b), rtol=1e-12)
        assert _seen(a)[0] == _seen(b)[0] == 6
        assert _seen(a)[1] != _seen(b)[1]


def _seen(step: torch.Tensor) -> list[float]:
    return step[:2].tolist()


def _parameters(step: torch.Tensor) -> torch.Tensor:
    return step[2:]


CRITIC = """
    maker, critic = nn.Linear(4, 8), nn.Linear(8, 1)
    making, judging = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(critic.parameters(), lr=0.1)
    for epoch in range(3):
        for i, (rows,) in enumerate(DataLoader(TensorDataset(x[:40]), batch_size=8, shuffle=True, drop_last=True)):
            for _ in range(2):
                judged = critic(maker(torch.randn(8, 4)).detach()).mean() - critic(rows).mean()
                judging.zero_grad()
                judged.backward()
                judging.step()
            made = -critic(maker(torch.randn(8, 4))).mean()
            making.zero_grad()
            made.backward()
            making.step()
            print("losses", judged.item(), made.item())
"""


def test_steps_on_one_batch_reduce_nothing_after_each_batch() -> None:
    done = ddpify.convert(HEAD + textwrap.dedent(CRITIC))
    assert done.exit_code == 0
    assert "sum_over_ranks" not in done.code
