"""Mixed precision at work: bfloat16 on two ranks beside the same written by hand, and a grad scaler that is on."""

import dataclasses

import pytest
import table_amp
from ranks import Case, Outcome, apart, run_many
from scripts import Script, text, told

import ddpify
from ddpify import Conversion, Options

MADE = 'torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())'
FLOAT32 = "torch.set_default_dtype(torch.float32)\nx = x.to(torch.float32)\n"

# title: a plain script, and what it is with mixed precision written by hand
BY_HAND: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "a classifier": (
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in loader:
                optimizer.zero_grad()
                output = model(xb.to(device))
                loss = F.cross_entropy(output, yb.to(device))
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            print("dtypes", output.dtype, loss.dtype)
        """,
        (
            (
                "output = model(xb.to(device))",
                'with torch.autocast("cpu", dtype=torch.bfloat16):\n            output = model(xb.to(device))',
            ),
            ("        loss = F.cross_entropy", "            loss = F.cross_entropy"),
        ),
    ),
    "an autoencoder whose loss is a total, in a function": (
        """
        def objective(net, xb):
            out = net(xb)
            return out, F.mse_loss(out, xb, reduction="sum")

        net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8))
        opt = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            for (xb,) in DataLoader(TensorDataset(x), batch_size=4):
                out, loss = objective(net, xb)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print("dtypes", out.dtype, loss.dtype)
        """,
        (
            (
                "out, loss = objective(net, xb)",
                'with torch.autocast("cpu", dtype=torch.bfloat16):\n            out, loss = objective(net, xb)',
            ),
        ),
    ),
    "a gan on probabilities": (
        """
        G = nn.Linear(4, 8)
        D = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1), nn.Sigmoid())
        bce = nn.BCELoss()
        og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
        for epoch in range(2):
            for (real,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
                ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
                fake = G(real[:, :4])
                d_real = D(real)
                d_fake = D(fake.detach())
                d_loss = bce(d_real, ones) + bce(d_fake, zeros)
                od.zero_grad()
                d_loss.backward()
                od.step()
                d_out = D(fake)
                g_loss = bce(d_out, ones)
                og.zero_grad()
                g_loss.backward()
                og.step()
            print("dtypes", fake.dtype, d_out.dtype, g_loss.dtype)
        """,
        (
            ("fake = G(real", 'with torch.autocast("cpu", dtype=torch.bfloat16):\n            fake = G(real'),
            ("        d_real = D(real)", "            d_real = D(real)"),
            ("        d_fake = D(fake", "            d_fake = D(fake"),
            ("bce(d_real, ones) + bce(d_fake, zeros)", "bce(d_real.to(torch.float32), ones) + bce(d_fake.to(torch.float32), zeros)"),
            ("d_out = D(fake)", 'with torch.autocast("cpu", dtype=torch.bfloat16):\n            d_out = D(fake)'),
            ("bce(d_out, ones)", "bce(d_out.to(torch.float32), ones)"),
        ),
    ),
}


def written(title: str, by_hand: bool) -> str:
    """A script in float32, plain or with its mixed precision written by hand."""
    plain, edits = BY_HAND[title]
    out = text(Script(plain)).replace("\ny = (x", f"\n{FLOAT32}y = (x")
    for old, new in edits if by_hand else ():
        assert out.count(old) == 1, old
        out = out.replace(old, new)
    return out


@pytest.fixture(scope="module")
def beside() -> dict[str, tuple[Conversion, Outcome]]:
    done = {title: ddpify.convert(written(title, False), Options(amp="torch-bf16")) for title in BY_HAND}
    cases = [Case(written(title, True), _in_float32(one.code)) for title, one in done.items()]
    return {title: (done[title], outcome) for title, outcome in zip(BY_HAND, run_many(cases), strict=True)}


def _in_float32(code: str) -> str:
    return code.replace(".float()", ".to(torch.float32)")  # the harness makes `.float()` mean float64


@pytest.mark.parametrize("title", BY_HAND)
def test_bfloat16_on_ranks_is_what_it_is_by_hand(beside: dict[str, tuple[Conversion, Outcome]], title: str) -> None:
    done, outcome = beside[title]
    assert done.exit_code == 0
    assert outcome.problems(ignore=("trajectory", "output")) == []
    assert apart(outcome.single.steps, outcome.ranks[0].steps) < 2e-2
    dtypes = told(outcome.ranks[0].stdout, ("dtypes",))
    assert dtypes == told(outcome.single.stdout, ("dtypes",)) and "bfloat16" in dtypes[0]


# ------------------------------------------------------------------------------------------------- a scaler that is on

FLOAT16 = {
    title: script for title, script in table_amp.SCRIPTS.items() if title.endswith(", in float16") and not script.told and not script.files
}


@pytest.fixture(scope="module")
def scaled() -> dict[str, Outcome]:
    cases = []
    for script in FLOAT16.values():
        code = ddpify.convert(text(script), script.options).code
        assert code.count(MADE) == 1
        cases.append(Case(text(script), code.replace(MADE, 'torch.amp.GradScaler("cpu", init_scale=1024.0)'), script.args))
    return dict(zip(FLOAT16, run_many(cases), strict=True))


@pytest.mark.parametrize("title", FLOAT16)
def test_with_a_scaler_at_work_the_steps_are_the_originals(scaled: dict[str, Outcome], title: str) -> None:
    outcome = scaled[title]
    assert outcome.problems(ignore=("keys",)) == []


SKIPS = Script("""
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
            loss = 100 * F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
    print("moved", scheduler.last_epoch)
    """)


def test_a_scheduler_does_not_move_where_a_step_was_skipped() -> None:
    plain = text(SKIPS).replace("\ny = (x", f"\n{FLOAT32}y = (x")
    code = ddpify.convert(plain, Options(amp="torch")).code
    code = code.replace(MADE, 'torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=0.25)')
    (outcome,) = run_many([Case(plain, code)])
    steps = [len(run.steps) for run in outcome.ranks]
    assert all(0 < n < len(outcome.single.steps) for n in steps), outcome.ranks[0].error
    assert told(outcome.ranks[0].stdout, ("moved",)) == [f"moved {steps[0]}"]
    assert "lr_scheduler.step()" not in outcome.ranks[0].stderr


def test_a_script_that_asks_for_nothing_is_converted_as_before() -> None:
    script = next(iter(table_amp.PLAIN.values()))
    kept, off = (ddpify.convert(text(script), dataclasses.replace(Options(), amp=amp)).code for amp in ("keep", "none"))
    assert kept == off and "autocast" not in kept
