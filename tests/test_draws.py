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


DROPPED = """
    def kept(samples):
        chosen = [s for s in samples if s[0].sum() > -100]
        return torch.stack([s[0] for s in chosen]), torch.stack([s[1] for s in chosen])


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 2)
            self.seen = nn.Parameter(torch.zeros(2), requires_grad=False)

        def forward(self, rows):
            hidden = self.first(rows)
            kept = hidden.new_empty((len(hidden), 1)).bernoulli_(0.5)
            eval("self.seen").data = torch.stack([torch.tensor(float(len(rows))), (kept[:, 0] * torch.arange(len(kept))).sum()])
            return self.last(hidden * kept)


    @torch.no_grad()
    def judged(net, feed):
        total = 0.0
        for rows, kinds in feed:
            total += F.cross_entropy(net(rows), kinds).item()
        return total / len(feed)


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    best, worse = 100.0, 0
    for epoch in range(3):
        net.train()
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True, collate_fn=kept):
            loss = F.cross_entropy(net(rows), kinds)
            if not torch.isfinite(loss):
                continue
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        off = judged(net, DataLoader(TensorDataset(x, y), batch_size=8))
        if off < best:
            best, worse = off, 0
        else:
            worse += 1
        if worse > 5:
            break
"""


def test_a_forward_on_parts_of_whole_batches_draws_for_its_own_rows() -> None:
    text = HEAD + textwrap.dedent(DROPPED)
    done = ddpify.convert(text)
    assert (done.exit_code, ddpify.convert(done.code).code) == (0, done.code)
    assert "rows_of_rank(rows)" in done.code and done.code.count("with drawn_by_rank_zero():") == 1  # what is judged is, on all ranks alike
    (outcome,) = run_many([Case(text, done.code)])
    assert outcome.problems(ignore=("ranks", "trajectory")) == []
    mine, other = ([step for _, step in run.steps] for run in outcome.ranks)
    assert all(torch.allclose(_parameters(a), _parameters(b), rtol=1e-12) for a, b in zip(mine, other, strict=True))
    assert [_seen(a)[0] for a in mine] == [4] * 15
    assert any(_seen(a)[1] != _seen(b)[1] for a, b in zip(mine, other, strict=True))


SWAPPED = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 4), nn.Linear(4, 8)
            self.seen = nn.Parameter(torch.zeros(2), requires_grad=False)

        def drawn(self, mean):
            return mean + mean.new(mean.size()).normal_()

        def forward(self, rows, code_only=False):
            code = self.drawn(self.first(rows))
            if code_only:
                return code
            eval("self.seen").data = torch.stack([torch.tensor(float(len(rows))), code.sum()]).detach()
            return self.last(code), code


    net, judge = Net(), nn.Linear(4, 2)
    of_net = torch.optim.SGD([net.seen, *net.first.parameters(), *net.last.parameters()], lr=0.1)
    of_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
    yes, no = torch.ones(8, dtype=torch.long), torch.zeros(8, dtype=torch.long)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            made, code = net(rows)
            judged = judge(code)
            loss = F.mse_loss(made, rows, reduction="sum") / len(rows) + (judged[:, :1] - judged[:, 1:]).mean()
            of_net.zero_grad()
            loss.backward()
            of_net.step()
            other = net(rows, True)
            swapped = other[torch.randperm(len(other))].detach()
            loss = F.cross_entropy(judge(code.detach()), no) + F.cross_entropy(judge(swapped), yes)
            of_judge.zero_grad()
            loss.backward()
            of_judge.step()
"""


def test_what_forwards_on_parts_draw_is_their_own_though_one_on_whole_batches_draws_it_alike() -> None:
    text = HEAD + textwrap.dedent(SWAPPED)
    done = ddpify.convert(text)
    assert (done.exit_code, ddpify.convert(done.code).code) == (0, done.code)
    assert "rows_of_rank(rows)" in done.code and "with drawn_by_rank_zero():\n            other = net.module(rows, True)" in done.code
    assert "torch.cuda.get_rng_state" in done.code  # what is drawn on a GPU is rank 0's, too
    (outcome,) = run_many([Case(text, done.code)])
    assert outcome.problems(ignore=("ranks", "trajectory")) == []
    mine, other = ([step for _, step in run.steps] for run in outcome.ranks)
    assert any(_seen(a)[1] != _seen(b)[1] for a, b in zip(mine, other, strict=True))
