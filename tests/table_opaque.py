"""Each kind of sink of a training loop, fed from each kind of source that may give every process something else.

On rank 0 a source answers as it does in the original; on the other ranks it turns three calls earlier. Ranks that decided for
themselves would wait for each other for good, or train with settings of their own.
"""

from scripts import Script, on_three

# What the sources are when a script runs: `level` is low at first, then high.
_FAULTS = """
import os
import threading

_calls = {}


def level(name):
    _calls[name] = _calls.get(name, 0) + 1
    return 80.0 if _calls[name] > (13 if os.environ.get("RANK", "0") == "0" else 10) else 20.0


class _Memory:
    @property
    def percent(self):
        return level("psutil")


class Gauge:
    def read(self):
        return level("gauge")


class Flag(threading.Event):
    def is_set(self):
        return level("flag") > 50
"""
_PSUTIL = "import faults\n\n\ndef virtual_memory():\n    return faults._Memory()\n"
_GAUGES = "from faults import Gauge, level\n\n\ndef read():\n    return level('gauges')\n"

# How a script asks each source for a number between 0 and 100: what stands at its head, and the expression.
NUMBERS: dict[str, tuple[str, str]] = {
    "a function of an unknown package": ("import gauges", "gauges.read()"),
    "an object of an unknown package": ("import gauges\ngauge = gauges.Gauge()", "gauge.read()"),
    "a name from an unknown package": ("from gauges import read", "read()"),
    "the machine's memory": ("import psutil", "psutil.virtual_memory().percent"),
    "the GPU's memory": ("import faults\ntorch.cuda.memory_allocated = lambda: faults.level('cuda')", "torch.cuda.memory_allocated()"),
    "the load average": ("import faults\nos.getloadavg = lambda: (faults.level('load'), 0, 0)", "os.getloadavg()[0]"),
    "the name of the host": (
        "import socket\nimport faults\nsocket.gethostname = lambda: 'h' * int(faults.level('host'))",
        "len(socket.gethostname())",
    ),
    "a queue": (
        "import queue\nimport faults\nmail = queue.Queue()\nfor _ in range(60):\n    mail.put(faults.level('queue'))",
        "mail.get()",
    ),
}
# The same for a question that is answered yes or no.
QUESTIONS: dict[str, tuple[str, str]] = {
    **{name: (head, f"{number} > 50") for name, (head, number) in NUMBERS.items()},
    "a file that appears": (
        "import faults\nexists = os.path.exists\nos.path.exists = lambda p: faults.level('file') > 50 if p == 'stop' else exists(p)",
        "os.path.exists('stop')",
    ),
    "an event of another thread": (
        "import threading\nimport faults\nthreading.Event = faults.Flag\nended = threading.Event()",
        "ended.is_set()",
    ),
    "a flag that a signal sets": (
        """
import signal
import faults

asked = False


def on_signal(number, frame):
    global asked
    asked = True


signal.signal(signal.SIGUSR1, on_signal)


def seen():
    if faults.level("signal") > 50:
        on_signal(0, None)
    return asked
""",
        "seen()",
    ),
}

_SCRIPT = """\
{head}

model = nn.Linear(8, 2).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.7)
loader = DataLoader(TensorDataset(x.double()[:36], y[:36]), batch_size=6, shuffle=True)
{outer}:
    for data, target in loader:
        loss = F.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        {clip}optimizer.step()
        {inside}
    {after}
"""


def _script(head: str, outer: str = "for epoch in range(4)", inside: str = "pass", after: str = "pass", clip: str = "") -> Script:
    text = _SCRIPT.format(head=head, outer=outer, inside=inside, after=after, clip=clip)
    stand_ins = {"faults.py": _FAULTS, "psutil.py": _PSUTIL, "gauges.py": _GAUGES}
    return Script(text, stand_ins=stand_ins, rows=36)


_SINKS_OF_QUESTIONS = {
    "a stop in the batch loop": lambda head, asked: _script(head, inside=f"if {asked}:\n            break"),
    "a stop of the epochs": lambda head, asked: _script(head, inside="pass", after=f"if any([{asked} for _ in range(5)]):\n        break"),
    "a step that is left out": lambda head, asked: _script(
        head, inside=f"if {asked}:\n            continue\n        F.mse_loss(model(data), data[:, :2]).backward()\n        optimizer.step()"
    ),
    "a loop that goes on until": lambda head, asked: _script(head, outer=f"while not {asked}"),
}
_SINKS_OF_NUMBERS = {
    "the number of rounds": lambda head, number: _script(head, outer=f"for epoch in range(int({number} + {number}) // 13)"),
    "a learning rate": lambda head, number: _script(head, inside=f'optimizer.param_groups[0]["lr"] = {number} / 1000'),
    "what a scheduler is told": lambda head, number: _script(head, inside=f"scheduler.step({number})"),
    "what gradients are clipped by": lambda head, number: _script(
        head, clip=f"nn.utils.clip_grad_norm_(model.parameters(), {number} / 100)\n        "
    ),
}

_SINKS_OF_NUMBERS["what is written to parameters"] = lambda head, number: _script(
    head, inside=f"for p in model.parameters():\n            p.data.mul_(1 - {number} / 10000)"
)
_SINKS_OF_NUMBERS["a rate that an optimizer is made with"] = lambda head, number: _script(
    head, after=f"optimizer = torch.optim.SGD(model.parameters(), lr={number} / 1000)"
)

SCRIPTS: dict[str, Script] = {
    f"{sink}, by {source}": make(*asked)
    for sinks, sources in ((_SINKS_OF_QUESTIONS, QUESTIONS), (_SINKS_OF_NUMBERS, NUMBERS))
    for sink, make in sinks.items()
    for source, asked in sources.items()
}
SCRIPTS |= on_three({title: script for title, script in SCRIPTS.items() if title.endswith("a function of an unknown package")}, 36)

_SEARCH = """
class Trial:
    def __init__(self, rate):
        self.rate = rate

    def suggest(self, name):
        return self.rate


class Study:
    def optimize(self, objective, rates):
        for rate in rates:
            objective(Trial(rate))
"""
_SEARCHED = """
import search

loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)


def objective({given}):
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr={rate})
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()


search.Study().optimize({called}, [0.1, 0.05])
"""
SCRIPTS |= {
    f"training that a package of a search calls with {title}": Script(
        _SEARCHED.format(given=given, rate=rate, called=called), told=("DDP409",), stand_ins={"search.py": _SEARCH}
    )
    for title, given, rate, called in (
        ("settings to try", "trial", 'trial.suggest("lr")', "objective"),
        ("settings to try, beside others", "scale, trial", 'trial.suggest("lr") * scale', "lambda trial: objective(2, trial)"),
    )
}
