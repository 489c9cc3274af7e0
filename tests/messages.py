"""Small examples that show the messages which no example of a rule shows, nor a script of a table named here.

A piece stands in a place of the script of `rule_examples.py`; a whole script may have modules beside it. `KEPT` is the first line of one
that is not to be edited.
"""

from dataclasses import dataclass, field

from rule_examples import script

from ddpify import Options

KEPT = "# ddpify: skip-file\n"


@dataclass(frozen=True)
class Shown:
    """A script and the modules beside it, and what the conversion is asked for."""

    text: str
    options: Options
    files: dict[str, str] = field(default_factory=dict)


def piece(place: str, text: str, **options: object) -> Shown:
    """A piece of a script in its place."""
    return Shown(script(text, place), Options(**options))  # type: ignore[arg-type]


def whole(text: str, files: dict[str, str] | None = None, **options: object) -> Shown:
    """A whole script, with modules beside it."""
    return Shown(text, Options(**options), files or {})  # type: ignore[arg-type]


HEAD = """\
import copy
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.ones(640, 8), torch.ones(640, 1))
"""
SET_UP = """\
loader = DataLoader(train_set, batch_size=32, shuffle=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
EPOCHS = """\
for epoch in range(9):
    for x, y in loader:
"""
BATCH = """\
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOOP = EPOCHS + BATCH
STEP = """\
loss = criterion(model(x), y)
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""
ENGINE = (
    KEPT
    + """\
import torch.nn.functional as F


def update(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
)
WITH_ENGINE = "from engine import update\n" + HEAD + SET_UP + EPOCHS + "        update(model, optimizer, x, y)\n"

LAUNCHED = """\
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
dist.init_process_group("nccl")
torch.cuda.set_device(args.local_rank)
model = DistributedDataParallel(nn.Linear(8, 1).cuda())
model(torch.ones(4, 8)).mean().backward()
"""

PRECISION = {
    "apex: a compiled model": piece("model", "model = torch.compile(Net())\n", amp="apex-O1"),
    "apex: a backward call in a larger statement": piece(
        "step", "optimizer.zero_grad()\ndone = criterion(model(x), y).backward()\noptimizer.step()\n", amp="apex-O1"
    ),
    "a share that is shown in the batch loop": whole(
        "import torch\nfrom torch.utils.data import DataLoader\n\n"
        "model = torch.nn.Linear(8, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "loader, seen = DataLoader(torch.ones(640, 8), batch_size=32, shuffle=True), 0.0\n"
        "for x in loader:\n    model(x).mean().backward()\n    optimizer.step()\n"
        "    seen += torch.ones(len(x)).sum().item()\n    share = seen / len(loader.dataset)\n    print(share)\n",
    ),
    "a comprehension that trains, and gathers the largest numbers of batches": whole(
        HEAD
        + SET_UP
        + "def update(x, y):\n    scores = model(x)\n    optimizer.zero_grad()\n    nn.functional.mse_loss(scores, y).backward()\n"
        + "    optimizer.step()\n    return scores.max().item()\n\n\n"
        + "for epoch in range(9):\n    print([update(x, y) for x, y in loader])\n",
        whole_batches="never",
    ),
    "a backward call of an object from a library": whole(
        "import engines\n"
        + HEAD
        + SET_UP
        + "engine = engines.Engine()\n"
        + EPOCHS
        + BATCH.replace("loss.backward()", "engine.backward(loss)"),
        amp="torch",
    ),
    "apex: a backward call of an object from a library": whole(
        "import engines\n"
        + HEAD
        + SET_UP
        + "engine = engines.Engine()\n"
        + EPOCHS
        + BATCH.replace("loss.backward()", "engine.backward(loss)"),
        amp="apex-O1",
    ),
    "apex at O2: training by a method of the model": whole(
        HEAD
        + """\


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)

    def forward(self, x):
        return self.fc(x)

    def loss(self, x, y):
        return nn.functional.mse_loss(self.fc(x), y)


"""
        + SET_UP.replace("nn.Linear(8, 1)", "Net()")
        + EPOCHS
        + """\
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
""",
        amp="apex-O2",
    ),
    "apex at O2: a copy of the model": piece(
        "loop", "import copy\nbest = copy.deepcopy(model)\nfor epoch in range(9):\n    train(epoch)\n", amp="apex-O2"
    ),
    "apex at O2: gradients that are read": piece(
        "step", STEP.replace("optimizer.step()", "norm = sum(p.grad.norm() for p in model.parameters())\noptimizer.step()"), amp="apex-O2"
    ),
    "apex: parameters moved by hand": whole(
        HEAD
        + SET_UP.replace("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n", "")
        + EPOCHS
        + """\
        model.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
""",
        amp="apex-O1",
    ),
    "apex: a closure": piece(
        "step",
        "def closure():\n"
        "    optimizer.zero_grad()\n"
        "    loss = criterion(model(x), y)\n"
        "    loss.backward()\n"
        "    return loss\n"
        "\n"
        "optimizer.step(closure)\n",
        amp="apex-O1",
    ),
    "apex: a model of float16": piece("model", "model = Net().cuda().half()\n", amp="apex-O1"),
    "apex: probabilities compared in a module": whole(
        WITH_ENGINE,
        {"engine.py": ENGINE.replace("F.mse_loss(model(x), y)", "F.binary_cross_entropy(model(x).sigmoid(), y)")},
        amp="apex-O1",
    ),
    "probabilities compared in a module": whole(
        WITH_ENGINE,
        {"engine.py": ENGINE.replace("F.mse_loss(model(x), y)", "F.binary_cross_entropy(model(x).sigmoid(), y)")},
        amp="torch",
    ),
    "a model made in a module": whole(
        "from engine import loader, model, optimizer\n" + HEAD + LOOP,
        {"engine.py": KEPT + HEAD + SET_UP},
        amp="apex-O1",
    ),
    "apex: an optimizer made after the training has begun": piece(
        "loop",
        "for epoch in range(9):\n"
        "    train(epoch)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        amp="apex-O1",
    ),
    "apex: an optimizer for each epoch": piece(
        "loop", "for epoch in range(9):\n    optimizer = torch.optim.Adam(model.parameters())\n    train(epoch)\n", amp="apex-O1"
    ),
    "apex taken out: what torch has not": whole(
        "from apex import amp\n"
        "from apex.optimizers import FusedAdam, FusedLAMB, FusedSGD\n"
        "from apex.parallel import DistributedDataParallel\n"
        + HEAD
        + SET_UP
        + """\
flag = len(train_set) > 9
second = FusedAdam(model.parameters(), 0.1, True)
third = FusedAdam(model.parameters(), bias_correction=False)
fourth = FusedAdam(model.parameters(), adam_w_mode=flag)
fifth = FusedSGD(model.parameters(), lr=0.1, wd_after_momentum=True)
sixth = FusedLAMB(model.parameters())
model, optimizer = amp.initialize(model, optimizer, opt_level="O3", cast_model_outputs=torch.float32)
pair = [amp.initialize(model, optimizer), 1]
wrapped = DistributedDataParallel(model, gradient_predivide_factor=2.0)
state = [amp.state_dict()]
known = amp.load_state_dict(state[0])
amp.register_float_function(torch, "sigmoid")
"""
        + EPOCHS
        + """\
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        scale = amp.scale_loss(loss, optimizer)
        with scale as scaled:
            scaled.backward()
        optimizer.step()
""",
        amp="torch",
    ),
    "torch's mixed precision taken out: what apex has not": whole(
        HEAD
        + SET_UP
        + """\
casting = torch.autocast("cuda")
scalers = [torch.amp.GradScaler("cuda")]
scaler = torch.amp.GradScaler("cuda")
print(scaler.get_scale())
"""
        + EPOCHS
        + """\
        with casting:
            loss = nn.functional.mse_loss(model(x), y)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            more = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss + more).backward()
        scaler.step(optimizer)
        scaler.update()
""",
        amp="apex-O1",
    ),
    "mixed precision in a module": whole(
        WITH_ENGINE,
        {
            "engine.py": ENGINE.replace("import torch.nn", "import torch\nimport torch.nn").replace(
                "    loss = F.mse_loss(model(x), y)",
                '    with torch.autocast("cuda", torch.bfloat16):\n        loss = F.mse_loss(model(x), y)',
            )
        },
        amp="torch",
    ),
    "training steps in a module": whole(WITH_ENGINE, {"engine.py": ENGINE}, amp="torch"),
    "an option that FusedAdam has not": piece(
        "loop",
        "optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)\nfor epoch in range(9):\n    train(epoch)\n",
        fused_adam=True,
    ),
    "apex: a model that is wrapped by then": whole(
        "from torch.nn.parallel import DistributedDataParallel\n"
        + HEAD
        + SET_UP.replace("nn.Linear(8, 1)", "DistributedDataParallel(nn.Linear(8, 1))")
        + LOOP,
        amp="apex-O1",
    ),
    "apex: models without names": whole(
        HEAD + "loader = DataLoader(train_set, batch_size=32, shuffle=True)\n"
        "\n"
        "\n"
        "def trained(model, optimizer):\n"
        "    for x, y in loader:\n" + BATCH + "\n"
        "\n"
        "def pair():\n"
        "    model = nn.Linear(8, 1)\n"
        "    return model, torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "\n"
        "\n"
        "trained(*pair())\n",
        amp="apex-O1",
    ),
    "apex left as it is": whole(
        "from apex import amp\n"
        + HEAD
        + SET_UP
        + 'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
        + EPOCHS
        + BATCH.replace("loss.backward()", "with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()"),
        amp="keep",
        ddp="apex",
    ),
    "steps in different places": piece(
        "step",
        "second = torch.optim.Adam(model.parameters())\n"
        + STEP.replace(
            "optimizer.step()", "if len(x) > 3:\n    optimizer.step()\nelse:\n    print(1)\nif len(x) > 4:\n    second.step()\n"
        ),
        amp="torch",
    ),
    "apex: a model for each epoch": whole(
        HEAD + "loader = DataLoader(train_set, batch_size=32)\n"
        "first = nn.Linear(8, 1)\n"
        "optimizer = torch.optim.SGD(first.parameters(), lr=0.1)\n"
        "for epoch in range(9):\n"
        "    model = nn.Linear(8, 1)\n"
        "    optimizer.add_param_group({'params': model.parameters()})\n"
        "    for x, y in loader:\n" + BATCH,
        amp="apex-O1",
    ),
    "apex: gradients averaged by calls": whole(
        LAUNCHED.replace(
            "model = Dist",
            "def average_gradients(optimizer):\n"
            "    for group in optimizer.param_groups:\n"
            "        for p in group['params']:\n"
            "            dist.all_reduce(p.grad)\n"
            "            p.grad /= dist.get_world_size()\n"
            "\n"
            "\n"
            "model = Dist",
        )
        .replace(
            "model(torch.ones(4, 8)).mean().backward()",
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "for x in range(9):\n"
            "    loss = model(torch.ones(4, 8)).mean()\n"
            "    loss.backward()\n"
            "    average_gradients(optimizer)\n"
            "    optimizer.step()",
        )
        .replace("DistributedDataParallel(nn.Linear(8, 1).cuda())", "nn.Linear(8, 1).cuda()"),
        amp="apex-O1",
    ),
    "apex that cannot be taken out": whole(
        "from apex import amp\n" + HEAD + SET_UP + "pair = [amp.initialize(model, optimizer), 1]\n" + LOOP, amp="torch"
    ),
    "probabilities compared in a module, for a loss scaled here": whole(
        "from engine import measure\n" + HEAD + SET_UP + LOOP.replace("nn.functional.mse_loss(model(x), y)", "measure(model(x), y)"),
        {
            "engine.py": KEPT + "import torch.nn.functional as F\n"
            "\n"
            "\n"
            "def measure(out, y):\n"
            "    return F.binary_cross_entropy(out.sigmoid(), y)\n"
        },
        amp="torch",
    ),
    "a clipped gradient far from its optimizer": whole(
        HEAD + SET_UP + "\n"
        "\n"
        "class Stepper:\n"
        "    def __init__(self):\n"
        "        self.hidden = {'o': optimizer}\n"
        "\n"
        "    def step(self):\n"
        "        self.hidden['o'].step()\n"
        "\n"
        "\n"
        "stepper = Stepper()\n"
        + EPOCHS
        + BATCH.replace(
            "        optimizer.step()\n", "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        stepper.step()\n"
        ),
        amp="torch",
    ),
    "steps taken by what a module that is kept calls": whole(
        "from engine import both\n" + HEAD + SET_UP + "second = torch.optim.Adam(model.parameters())\n"
        "\n"
        "\n"
        "def one():\n"
        "    optimizer.step()\n"
        "\n"
        "\n"
        "def two():\n"
        "    second.step()\n"
        "\n"
        "\n" + EPOCHS + BATCH.replace("        optimizer.step()\n", "        both(one, two)\n"),
        {"engine.py": KEPT + "def both(one, two):\n    one()\n    two()\n"},
        amp="torch",
    ),
    "passes over a loader that a module which is kept asks for": whole(
        "from engine import run\n" + HEAD + SET_UP.partition("\n")[2] + "\n"
        "\n"
        "def make():\n"
        "    return DataLoader(train_set, batch_size=32, shuffle=True)\n"
        "\n"
        "\n"
        "run(model, make, optimizer)\n"
        "run(model, make, optimizer)\n",
        {"engine.py": KEPT + "import torch.nn as nn\n\n\ndef run(model, make, optimizer):\n    for x, y in make():\n" + BATCH},
    ),
    "gradients clipped by what a module that is kept calls": whole(
        "from engine import both\n" + HEAD + SET_UP + "\n"
        "\n"
        "def one():\n"
        "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "\n"
        "\n"
        "def two():\n"
        "    optimizer.step()\n"
        "\n"
        "\n" + EPOCHS + BATCH.replace("        optimizer.step()\n", "        both(one, two)\n"),
        {"engine.py": KEPT + "def both(one, two):\n    one()\n    two()\n"},
        amp="torch",
    ),
    "gradients of another optimizer that are clipped": piece(
        "step",
        "second = torch.optim.Adam(nn.Linear(2, 2).parameters())\n"
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "nn.utils.clip_grad_norm_(second.param_groups[0]['params'], 1.0)\n"
        "optimizer.step()\n",
        amp="torch",
    ),
    "torch's mixed precision in a module that is kept, for apex": whole(
        "from engine import scaler, casting\n" + HEAD + SET_UP + EPOCHS + "        with casting():\n"
        "            loss = nn.functional.mse_loss(model(x), y)\n"
        "        optimizer.zero_grad()\n"
        "        scaler.scale(loss).backward()\n"
        "        scaler.step(optimizer)\n"
        "        scaler.update()\n",
        {
            "engine.py": KEPT + "import torch\n"
            "\n"
            "scaler = torch.amp.GradScaler('cuda')\n"
            "\n"
            "\n"
            "def casting():\n"
            "    return torch.autocast('cuda')\n"
        },
        amp="apex-O1",
    ),
    "a step that is handed over from a module": whole(
        "from engine import step\n" + HEAD + SET_UP + "\n"
        "\n"
        "def fit(after):\n"
        "    for epoch in range(9):\n"
        "        for x, y in loader:\n"
        "            loss = nn.functional.mse_loss(model(x), y)\n"
        "            optimizer.zero_grad()\n"
        "            loss.backward()\n"
        "            after(optimizer)\n"
        "\n"
        "\n"
        "fit(step)\n",
        {"engine.py": "def step(optimizer):\n    optimizer.step()\n    print(1)\n"},
        amp="torch",
    ),
}

SPAWNED = """\
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=size)
    model = DistributedDataParallel(nn.Linear(8, 1))
    model(torch.ones(4, 8)).mean().backward()


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)
"""
MAIN = """\


def main():
    loader = DataLoader(train_set, batch_size=32, shuffle=True)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(9):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


"""
CALLED = 'if __name__ == "__main__":\n    main()\n'

JOINED = '''\
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def init_distributed():
    """Join the process group that torchrun describes, or be a group of one."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo")


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    init_distributed()
    model = DistributedDataParallel(nn.Linear(8, 1))
    model(torch.ones(4, 8)).mean().backward()


if __name__ == "__main__":
    main()
'''

PROCESSES = {
    "spawned at two places": whole(SPAWNED + "    mp.spawn(train, args=(1,), nprocs=1)\n", launcher="torchrun"),
    "spawned: with what a variable holds": whole(SPAWNED.replace("args=(2,)", "args=settings"), launcher="torchrun"),
    "spawned: a rank that is computed": whole(SPAWNED.replace("rank=rank", "rank=8 + rank"), launcher="torchrun"),
    "spawned: arguments by position": whole(SPAWNED.replace("rank=rank", '"env://"'), launcher="torchrun"),
    "spawned: a group that a module starts": whole(
        SPAWNED.replace('dist.init_process_group("gloo", rank=rank, world_size=size)', "group.start(rank, size)").replace(
            "import os", "import os\n\nimport group"
        ),
        {
            "group.py": "import torch.distributed as dist\n"
            "\n"
            "\n"
            "def start(rank, size):\n"
            '    dist.init_process_group("gloo", rank=rank, world_size=size)\n'
        },
        launcher="torchrun",
    ),
    "spawned: to torchrun": whole(SPAWNED, launcher="torchrun"),
    "processes of the script's own": whole(
        SPAWNED.replace(
            "mp.spawn(train, args=(2,), nprocs=2)", "for rank in range(2):\n        mp.Process(target=train, args=(rank, 2)).start()"
        ),
        launcher="torchrun",
    ),
    "a local rank that a module declares": whole(
        "from settings import args\n"
        + LAUNCHED.replace("import argparse\n\n", "")
        .replace("parser = argparse.ArgumentParser()\n", "")
        .replace('parser.add_argument("--local_rank", type=int, default=0)\n', "")
        .replace("args = parser.parse_args()\n", ""),
        {
            "settings.py": "import argparse\n\nparser = argparse.ArgumentParser()\n"
            'parser.add_argument("--local_rank", type=int, default=0)\n'
            "args = parser.parse_args()\n"
            "print(args.local_rank)\n"
        },
        launcher="torchrun",
    ),
    "to spawn: an else of the main block": whole(HEAD + MAIN + CALLED + "else:\n    print(1)\n", launcher="spawn"),
    "to spawn: a question": whole(HEAD + MAIN + CALLED.replace("main()", 'input("go? ")\n    main()'), launcher="spawn"),
    "to spawn: exec": whole(HEAD + "exec('rate = 0.1')\n" + MAIN + CALLED, launcher="spawn"),
    "to spawn: devices chosen late": whole(
        HEAD + MAIN.replace("def main():\n", 'def main():\n    print(1)\n    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"\n') + CALLED,
        launcher="spawn",
    ),
    "a generator seeded by the system": piece(
        "data",
        "order = torch.randperm(640, generator=torch.Generator())\n"
        "generator = np.random.default_rng()\n"
        "loader = DataLoader(train_set, batch_size=32, shuffle=True)\n"
        "kept = generator.permutation(640)\n",
    ),
    "a seed of the clock, which only some processes take": piece(
        "start", "if os.getpid() % 2:\n    random.seed(time.time())\norder = random.sample(range(640), 640)\n"
    ),
    "a random state restored during training": piece(
        "batches", "state = torch.get_rng_state()\nfor x, y in loader:\n    update(x, y)\n    torch.set_rng_state(state)\n"
    ),
    "a generator of the data, for their order and their samples": whole(
        HEAD.replace("import os", "import os\nimport random") + "\n\nclass Shaken(torch.utils.data.Dataset):\n"
        "    def __init__(self):\n        self.numbers = random.Random(3)\n        self.order = self.numbers.sample(range(640), 640)\n\n"
        "    def __len__(self):\n        return 640\n\n"
        "    def __getitem__(self, i):\n        x, y = train_set[self.order[i]]\n        return x + self.numbers.random(), y\n\n\n"
        + SET_UP.replace("train_set", "Shaken()")
        + LOOP
    ),
    "a generator of its own that draws noise for the rows of a batch": whole(
        HEAD
        + SET_UP
        + "numbers = torch.Generator().manual_seed(5)\n"
        + EPOCHS
        + BATCH.replace("model(x)", "model(x + torch.rand(x.shape, generator=numbers))")
    ),
    "a GPU as the default device, where orders are drawn": piece(
        "start", 'torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")\n'
    ),
    "devices chosen by default": piece("start", 'os.environ.setdefault("CUDA_VISIBLE_DEVICES", args.gpu)\n'),
    "devices chosen by a call, and counted": piece(
        "start",
        'os.environ["CUDA_VISIBLE_DEVICES"] = input()\nnumber = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))\n',
    ),
    "to spawn: a list of one GPU": whole(
        HEAD.replace("import os", "import argparse\nimport os")
        + 'parser = argparse.ArgumentParser()\nparser.add_argument("--gpus", default="0")\nargs = parser.parse_args()\n'
        + MAIN.replace("nn.Linear(8, 1)", 'nn.DataParallel(nn.Linear(8, 1).cuda(), device_ids=[int(i) for i in args.gpus.split(",")])')
        + CALLED,
        launcher="spawn",
    ),
    "a seed set by a module that is kept": whole(
        WITH_ENGINE,
        {
            "engine.py": ENGINE.replace("import torch.nn", "import torch\nimport torch.nn").replace(
                "    optimizer.zero", "    torch.manual_seed(7)\n    optimizer.zero"
            )
        },
    ),
    "another way to make the replicas of a DataParallel": whole(
        HEAD
        + "def tell(net):\n    make = net.replicate\n    net.replicate = lambda module, devices: make(module, devices)\n\n\n"
        + SET_UP
        + "model = nn.DataParallel(model)\ntell(model)\n"
        + LOOP
    ),
    "another way to make the replicas, in a module that is kept": whole(
        "from engine import tell\n" + HEAD + SET_UP + "model = nn.DataParallel(model)\ntell(model)\n" + LOOP,
        {"engine.py": KEPT + "def told(net, make):\n    net.replicate = make\n\n\ndef tell(net):\n    told(net, net.replicate)\n"},
    ),
    "a question that a module asks which is kept": whole(
        "from console import goes_on\n" + HEAD + SET_UP + EPOCHS + BATCH + "    if not goes_on():\n        break\n",
        {"console.py": KEPT + "def goes_on():\n    return input('go on? ') == 'y'\n"},
    ),
    "workers that a module that is kept seeds": whole(
        "from workers import seeded\n" + HEAD + SET_UP.replace("shuffle=True", "shuffle=True, num_workers=2, worker_init_fn=seeded") + LOOP,
        {"workers.py": KEPT + "import numpy as np\n\n\ndef seeded(worker):\n    np.random.seed(worker)\n"},
    ),
    "passes one after another over a loader that is made in the loop's head": whole(
        HEAD
        + SET_UP
        + "\n\ndef once():\n    for x, y in DataLoader(train_set, batch_size=32, shuffle=True):\n"
        + BATCH
        + "\n\nonce()\nonce()\n"
    ),
    "an order drawn between epochs": whole(
        HEAD
        + """\
import random

from torch.utils.data import Dataset


class Rows(Dataset):
    def __init__(self):
        self.rows = list(range(640))

    def __len__(self):
        return 640

    def __getitem__(self, i):
        return torch.ones(8) * self.rows[i], torch.ones(1)

    def reorder(self):
        random.shuffle(self.rows)
        return self.rows[0]


train_set = Rows()
"""
        + SET_UP
        + LOOP.replace("    for x", "    first = train_set.reorder()\n    for x"),
    ),
    "spawned: a method": whole(
        SPAWNED.replace("mp.spawn(train, args=(2,), nprocs=2)", "mp.spawn(lambda rank: train(rank, 2), nprocs=2)"), launcher="torchrun"
    ),
    "to spawn: devices chosen in a line of other statements": whole(
        HEAD + MAIN.replace("def main():\n", 'def main():\n    gpus = "0,1"; os.environ["CUDA_VISIBLE_DEVICES"] = gpus\n') + CALLED,
        launcher="spawn",
    ),
    "to spawn: a star import": whole(HEAD + MAIN + CALLED.replace("main()", "from tools import *\n    main()"), launcher="spawn"),
    "devices chosen in a module that trains": whole(
        "from engine import train\n" + HEAD + SET_UP + "train(model, optimizer, loader)\n",
        {
            "engine.py": "import os\n"
            "\n"
            "import torch\n"
            "import torch.nn.functional as F\n"
            "\n"
            "\n"
            "def train(model, optimizer, loader):\n"
            "    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"
            "    model = model.to('cuda:0')\n"
            "    for epoch in range(9):\n"
            "        for x, y in loader:\n"
            "            optimizer.zero_grad()\n"
            "            F.mse_loss(model(x.to('cuda:0')), y.to('cuda:0')).backward()\n"
            "            optimizer.step()\n"
            "        print(epoch)\n"
        },
    ),
    "an order in a list of lists, drawn between epochs": whole(
        "from random import shuffle\n" + HEAD + "rows = [list(range(640))]\n" + SET_UP + "for epoch in range(9):\n"
        "    shuffle(rows[0])\n"
        "    for i in rows[0]:\n"
        "        loss = nn.functional.mse_loss(model(train_set[i][0]), train_set[i][1])\n"
        "        optimizer.zero_grad()\n"
        "        loss.backward()\n"
        "        optimizer.step()\n"
        "    for x, y in loader:\n" + BATCH
    ),
    "a buffer whose rows are one": piece("model", "model = Net()\nmodel.register_buffer('mask', torch.ones(1, 8).expand(2, -1))\n"),
    "to spawn: a group that is joined in a function": whole(JOINED, launcher="spawn"),
}

COMMENTS = {
    "a comment about no rule": piece("end", "print(1)  # ddpify: skip[X1]\n"),
    "a comment about a change that is needed": piece("model", "model = Net()  # ddpify: skip\n"),
    "a draft converted again": whole("import torch\n\n# ddpify: MANUAL DDP402: this loss may be a sum\nprint(torch.ones(1))\n"),
    "a comment accepts a finding": piece("step", STEP + "import tools\n\ntools.prune(model)  # ddpify: skip[DDP207]\n"),
    "a sampler that is asked for more in a module that stays": whole(
        "from asking import ask\n" + HEAD + "class Drawn(torch.utils.data.Sampler):\n"
        "    ordered = False\n"
        "    def __iter__(self):\n"
        "        return iter(torch.randperm(640).tolist())\n"
        "    def __len__(self):\n"
        "        return 640\n" + SET_UP.replace("shuffle=True", "sampler=Drawn()") + LOOP + "ask(loader)\n",
        {"asking.py": KEPT + "def ask(loader):\n    loader.sampler.ordered = True\n"},
    ),
    "a script that stays": whole("# ddpify: skip-file\n" + HEAD + SET_UP + LOOP),
    "what a comment says of a value": piece(
        "step", "import tools\n\nrate = tools.rate()  # ddpify: replicate\n" + STEP.replace("loss.backward()", "(loss * rate).backward()")
    ),
    "a module that cannot be read": whole(HEAD + SET_UP + LOOP + "    import old\n", {"old.py": "print 'python 2'\n"}),
    "a draft with a place to be finished": piece("start", 'os.environ.setdefault("CUDA_VISIBLE_DEVICES", args.gpu)\n', draft=True),
    "a value said to differ": piece("step", "import tools\n\nrate = tools.rate()  # ddpify: per-rank\nif rate > 9:\n    return 0\n" + STEP),
    "a script too large to be followed": whole(
        HEAD
        + SET_UP
        + "".join(f"\n\ndef f{i}(x, *more):\n    return f{i + 1}(x, {i}, *more) + f{i + 1}(x, -{i}, *more)\n" for i in range(12))
        + "\n\ndef f12(x, *more):\n    return x * len(more)\n\n\n"
        + LOOP.replace("model(x)", "model(f0(x))")
    ),
    "code nested too deeply": piece("end", "print(" + "-" * 3000 + "1)\n"),
}

ROWS = """\
x_train, y_train = torch.ones(640, 8), torch.zeros(640).long()
"""
RNN = """\
rnn = nn.LSTM(8, 2)
model = rnn
"""

SEQUENCES = """\
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.fc = nn.Embedding(20, 8), nn.GRU(8, 8), nn.Linear(8, 20)

    def forward(self, x, h):
        out, h = self.rnn(self.embed(x), h)
        return self.fc(out), h

    def start(self, size):
        return torch.zeros(1, size, 8)


def side_by_side(words, size):
    steps = words.size(0) // size
    return words[: steps * size].view(size, -1).t().contiguous()


SIZE = 32
words = side_by_side(torch.arange(6400) % 20, SIZE)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def run(trains):
    h = model.start(SIZE)
    for i in range(0, words.size(0) - 1, 10):
        x, y = words[i : i + 10], words[i + 1 : i + 11]
        out, h = model(x, h.detach())
        loss = F.cross_entropy(out.view(-1, 20), y.reshape(-1))
        if trains:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


"""

DATA = {
    "a row that no half of a batch has": piece(
        "data",
        "loader = DataLoader(train_set, batch_size=32, shuffle=True)\n"
        "for x, y in loader:\n    print([int(y[i]) for i in range(20)])\n    break\n",
    ),
    "a row that an eighth of a batch has not": piece(
        "batches", "for x, y in loader:\n    update(x, y)\n    print([int(y[i]) for i in range(9)])\n"
    ),
    "three chosen devices, of which two can share a batch": whole(
        'import os\n\nos.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2"\n' + HEAD + SET_UP + LOOP
    ),
    "arguments of a loader that are not written out": piece("data", "given = (train_set, 32)\nloader = DataLoader(*given)\n"),
    "a data set that is not written out": piece(
        "data", "def options():\n    return {'dataset': train_set, 'batch_size': 32}\n\nloader = DataLoader(**options())\n"
    ),
    "a batch sampler, and batches for each rank": piece(
        "data",
        "class Rows:\n"
        "    def __len__(self):\n"
        "        return 20\n"
        "\n"
        "    def __iter__(self):\n"
        "        return iter([[i] * 32 for i in range(20)])\n"
        "\n"
        "loader = DataLoader(train_set, batch_sampler=Rows())\n",
        batch_size="per-rank",
    ),
    "a batch sampler that evaluates, too": piece(
        "data",
        "from torch.utils.data import BatchSampler, SequentialSampler\n"
        "\n"
        "batches = BatchSampler(SequentialSampler(train_set), 32, False)\n"
        "loader = DataLoader(train_set, batch_sampler=batches)\nother = DataLoader(train_set, batch_sampler=batches)\n"
        "for x, y in other:\n    print(x.sum())\n",
    ),
    "numbers for a batch that are drawn once": whole(
        HEAD
        + "size = 32\nnoise = torch.randn(3, size, 8)\n"
        + SET_UP.replace("=32", "=size")
        + EPOCHS
        + "        x = x + noise.sum(0)\n"
        + BATCH
    ),
    "places of a batch that are written": piece(
        "batches",
        "for x, y in loader:\n    mask = torch.zeros(args.batch_size, 1)\n    mask[0] = 1\n    update(x * mask, y)\n",
    ),
    "rows of a batch counted by the batch size": piece(
        "batches", "for x, y in loader:\n    update(x[: args.batch_size], y[: args.batch_size])\n"
    ),
    "windows of time": piece(
        "batches",
        "out = torch.zeros(32, 8)\n"
        "for i in range(0, 640, 32):\n"
        "    x, y = images[i : i + 32], labels[i : i + 32]\n"
        "    out = model(x + out[:, :1])\n"
        "    loss = criterion(out, y)\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n    out = out.detach()\n",
    ),
    "transposed data": piece(
        "batches",
        "rows = images.t()\nfor i in range(0, 640, 32):\n    update(rows[i : i + 32], labels[i : i + 32])\n",
    ),
    "slices of a data set": piece(
        "batches",
        "for i in range(0, 640, 32):\n    x, y = train_set[i : i + 32]\n    update(x, y)\n",
    ),
    "a table in a random order": piece(
        "batches",
        "import pandas as pd\n"
        "\n"
        "table = pd.read_csv('rows.csv')\n"
        "table = table.sample(frac=1)\n"
        "for i in range(0, 640, 32):\n"
        "    update(images[i : i + 32], labels[i : i + 32])\n"
        "    table.sample(frac=1)\n",
    ),
    "batches made by hand, one for each rank": piece(
        "batches", "for i in range(0, 640, 32):\n    update(images[i : i + 32], labels[i : i + 32])\n", batch_size="per-rank"
    ),
    "batches made by hand in a module": whole(
        "from batches import batches\n"
        + HEAD
        + SET_UP
        + "for epoch in range(9):\n    for x, y in batches(torch.ones(640, 8), torch.ones(640, 1)):\n"
        + BATCH,
        {"batches.py": KEPT + "def batches(x, y):\n    for i in range(0, 640, 32):\n        yield x[i : i + 32], y[i : i + 32]\n"},
    ),
    "a download inside a condition": piece("start", "if not (digits := datasets.MNIST('data', download=True)):\n    print(digits)\n"),
    "a download in a module that is kept": whole(
        "import sets\n" + HEAD + SET_UP + LOOP,
        {"sets.py": KEPT + "from torchvision import datasets\n\ndigits = datasets.MNIST('data', download=True)\n"},
    ),
    "files unpacked in a condition": piece(
        "start", "import zipfile\n\nif zipfile.ZipFile('data.zip').extractall('data') is None:\n    print(1)\n"
    ),
    "a metric over a whole evaluation": piece(
        "end",
        "import torchmetrics\n"
        "\n"
        "metric = torchmetrics.Accuracy(task='binary')\n"
        "model.eval()\n"
        "with torch.no_grad():\n"
        "    for i, (x, y) in enumerate(test_loader):\n"
        "        metric.update(model(x), y)\n"
        "        print(i)\n"
        "print(metric.compute())\n",
    ),
    "batch norm in an evaluation": whole(
        HEAD
        + SET_UP.replace("nn.Linear(8, 1)", "nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))")
        + "test_loader = DataLoader(train_set, batch_size=32)\n"
        + LOOP
        + "    model.eval()\n"
        "    total = 0.0\n"
        "    with torch.no_grad():\n"
        "        for x, y in test_loader:\n"
        "            total += (model(x) - y).abs().sum().item()\n"
        "    print(total)\n"
        "    model.train()\n",
        sync_bn="off",
    ),
    "batch norm and no evaluation mode": whole(
        HEAD
        + SET_UP.replace("nn.Linear(8, 1)", "nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))")
        + "test_loader = DataLoader(train_set, batch_size=32)\n"
        + LOOP
        + "    total = 0.0\n"
        "    with torch.no_grad():\n"
        "        for x, y in test_loader:\n"
        "            total += (model(x) - y).abs().sum().item()\n"
        "    print(total)\n",
    ),
    "an evaluation with an else": piece(
        "end",
        "total = 0.0\n"
        "model.eval()\n"
        "with torch.no_grad():\n"
        "    for x, y in test_loader:\n"
        "        total += model(x).sum().item()\n"
        "    else:\n"
        "        total += 1\n"
        "print(total)\n",
    ),
    "an evaluation that draws from another loader": piece(
        "end",
        "total, more = 0.0, iter(test_loader)\n"
        "model.eval()\n"
        "with torch.no_grad():\n"
        "    for x, y in test_loader:\n"
        "        total += model(x).sum().item() + next(more)[0].sum().item()\n"
        "print(total)\n",
    ),
    "an evaluation that hooks watch": piece(
        "end",
        "total, kept = 0.0, []\n"
        "model.fc.register_forward_hook(lambda module, given, out: kept.append(out))\n"
        "model.eval()\n"
        "with torch.no_grad():\n"
        "    for x, y in test_loader:\n"
        "        total += model(x).sum().item()\n"
        "print(total)\n",
    ),
    "an evaluation of which a function keeps a number that fades": piece(
        "end",
        "class Seen:\n"
        "    last = 0.0\n"
        "\n"
        "\n"
        "def note(seen, loss):\n"
        "    seen.last = 0.9 * seen.last + loss\n"
        "\n"
        "\n"
        "seen = Seen()\n"
        "model.eval()\n"
        "with torch.no_grad():\n"
        "    for x, y in test_loader:\n"
        "        note(seen, criterion(model(x), y).item())\n"
        "print(seen.last)\n",
    ),
    "an evaluation that prints": piece(
        "end", "model.eval()\nwith torch.no_grad():\n    for x, y in test_loader:\n        print(model(x).sum().item())\n"
    ),
    "a loader without a batch size": piece("data", "loader = DataLoader(train_set, shuffle=True)\n"),
    "loaders in a comprehension": piece(
        "data", "loader = [DataLoader(TensorDataset(images, labels), batch_size=32) for _ in range(1)][0]\n"
    ),
    "something else that reads the training loader": piece(
        "loop", "import tools\n\ntools.statistics(loader)\nfor epoch in range(9):\n    train(epoch)\n"
    ),
    "statistics of batch norm from the training loader": piece(
        "loop",
        "network = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))\n"
        "network.train()\n"
        "for x, y in loader:\n"
        "    network(x)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
    ),
    "a data set that ignores its index": piece(
        "data",
        "class Drawn(Dataset):\n"
        "    def __len__(self):\n"
        "        return 640\n"
        "\n"
        "    def __getitem__(self, i):\n"
        "        self.at = getattr(self, 'at', 0) + 1\n"
        "        return images[self.at % 640], labels[self.at % 640]\n"
        "\n"
        "loader = DataLoader(Drawn(), batch_size=32)\n",
    ),
    "a sampler that is not known": piece(
        "data", "import tools\n\nloader = DataLoader(train_set, batch_size=32, sampler=tools.sampler(train_set))\n"
    ),
    "an iterable data set of a library": piece(
        "data",
        "from torch.utils.data import IterableDataset\n"
        "\n"
        "class Lines(IterableDataset):\n"
        "    pass\n"
        "\n"
        "loader = DataLoader(Lines(), batch_size=32)\n",
    ),
    "the length of a loader of an iterable data set": piece(
        "data",
        "from torch.utils.data import IterableDataset\n"
        "\n"
        "class Lines(IterableDataset):\n"
        "    def __iter__(self):\n"
        "        yield from zip(images, labels)\n"
        "\n"
        "loader = DataLoader(Lines(), batch_size=32)\nsteps = len(loader)\n",
    ),
    "a shape of training and of an evaluation": piece(
        "end",
        "def as_it_is(function):\n"
        "    return function\n"
        "\n"
        "@as_it_is\n"
        "def noisy(x):\n"
        "    return model(x + torch.zeros(args.batch_size, 8))\n"
        "\n"
        "for x, y in loader:\n"
        "    criterion(noisy(x), y).backward()\n"
        "    optimizer.step()\n"
        "for x, y in DataLoader(test_set, batch_size=args.batch_size):\n"
        "    print(noisy(x))\n",
    ),
    "a shape computed from the batch size elsewhere": piece(
        "end",
        "half = args.batch_size // 2\n"
        "for x, y in loader:\n"
        "    noise = torch.zeros(half * 2, 8)\n"
        "    criterion(model(x + noise), y).backward()\n"
        "    optimizer.step()\n",
    ),
    "samples counted by a number computed from the batch size": piece(
        "batches",
        "seen, many = 0, args.batch_size * 2\nfor x, y in loader:\n    seen += len(x)\n    print(seen / many)\n    update(x, y)\n",
    ),
    "a total and something more, divided by the batch size": piece(
        "batches",
        "for x, y in loader:\n"
        '    loss = (nn.functional.cross_entropy(model(x), y, reduction="sum") + 1) / args.batch_size\n'
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n",
    ),
    "a state kept from batch to batch": piece(
        "batches",
        "state = torch.zeros(32, 2)\n"
        "for i in range(0, 640, 32):\n"
        "    x, y = images[i : i + 32], labels[i : i + 32]\n"
        "    out = model(torch.cat([x[:, :6], state], 1))\n"
        "    loss = criterion(out, y)\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n    state = out.detach()\n",
    ),
    "batch norm in a model without a name": whole(
        HEAD + "loader = DataLoader(train_set, batch_size=32, shuffle=True)\n"
        "test_loader = DataLoader(train_set, batch_size=32)\n"
        "models = {'a': nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))}\n"
        "optimizer = torch.optim.SGD(models['a'].parameters(), lr=0.1)\n\n\ndef get():\n    return models['a']\n\n\n"
        + LOOP.replace("model(x)", "get()(x)")
        + "    get().eval()\n"
        "    total = 0.0\n"
        "    with torch.no_grad():\n"
        "        for x, y in test_loader:\n"
        "            total += (get()(x) - y).abs().sum().item()\n"
        "    print(total)\n"
        "    get().train()\n",
        sync_bn="off",
    ),
    "a sampler that a setting names": piece("data", "loader = DataLoader(train_set, batch_size=32, sampler=args.sampler)\n"),
    "numbers drawn beside slices": piece(
        "batches",
        "for i in range(0, 640, 32):\n"
        "    x, y = images[i : i + 32], labels[i : i + 32]\n"
        "    keep = torch.rand(1, 8)\n"
        "    update(x * keep, y)\n",
    ),
    "batches of training and evaluation, made by a module that is kept": whole(
        "from engine import fit\n" + HEAD + "model = nn.Linear(8, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "fit(model, optimizer, torch.ones(640, 8), torch.ones(640, 1))\n",
        {
            "engine.py": KEPT + "import torch\n"
            "import torch.nn.functional as F\n"
            "\n"
            "\n"
            "def batches(x, y):\n"
            "    for i in range(0, 640, 32):\n"
            "        yield x[i : i + 32], y[i : i + 32]\n"
            "\n"
            "\n"
            "def fit(model, optimizer, rows, wanted):\n"
            "    for epoch in range(9):\n"
            "        for x, y in batches(rows, wanted):\n"
            "            optimizer.zero_grad()\n"
            "            F.mse_loss(model(x), y).backward()\n"
            "            optimizer.step()\n"
            "        with torch.no_grad():\n"
            "            for x, y in batches(rows, wanted):\n"
            "                print(model(x))\n"
        },
    ),
    "a sampler made by the clock": piece(
        "data",
        "class Rows:\n"
        "    def __init__(self, first):\n"
        "        self.first = first\n"
        "\n"
        "    def __len__(self):\n"
        "        return 320\n"
        "\n"
        "    def __iter__(self):\n"
        "        return iter(range(self.first, 640))\n"
        "\n"
        "loader = DataLoader(train_set, batch_size=32, sampler=Rows(int(time.time()) % 320))\n",
    ),
    "an iterable data set made by the clock": piece(
        "data",
        "from torch.utils.data import IterableDataset\n"
        "\n"
        "class Lines(IterableDataset):\n"
        "    def __init__(self, first):\n"
        "        self.first = first\n"
        "\n"
        "    def __iter__(self):\n"
        "        yield from zip(images[self.first :], labels)\n"
        "\n"
        "loader = DataLoader(Lines(int(time.time())), batch_size=32)\n",
    ),
    "a state that goes on from slice to slice": whole(
        HEAD
        + """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.fc = nn.GRU(8, 8), nn.Linear(8, 1)

    def forward(self, x, h):
        out, h = self.rnn(x, h)
        return self.fc(out), h

    def start(self, size):
        return torch.zeros(1, size, 8)


def batchify(data, size):
    rows = data.size(0) // size
    return data[: rows * size].view(size, -1, 8).transpose(0, 1)


data = batchify(torch.ones(6400, 8), 32)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def run(trains):
    h = model.start(32)
    for i in range(0, data.size(0) - 1, 10):
        x, y = data[i : i + 10], data[i + 1 : i + 11, :, :1]
        out, h = model(x, h.detach())
        loss = nn.functional.mse_loss(out, y)
        if trains:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


for epoch in range(9):
    run(True)
    run(False)
"""
    ),
    "one loop of training and evaluation over batches made by hand": whole(
        HEAD + "rows, wanted = torch.ones(640, 8), torch.ones(640, 1)\n"
        "model = nn.Linear(8, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "\n"
        "\n"
        "def batches(x, y):\n"
        "    for i in range(0, 640, 32):\n"
        "        yield x[i : i + 32], y[i : i + 32]\n"
        "\n"
        "\n"
        "both = {'train': batches(rows, wanted), 'test': batches(rows, wanted)}\n"
        "for epoch in range(9):\n"
        "    for phase in ('train', 'test'):\n"
        "        for x, y in batches(rows, wanted):\n"
        "            loss = nn.functional.mse_loss(model(x), y)\n"
        "            if phase == 'train':\n"
        "                optimizer.zero_grad()\n"
        "                loss.backward()\n"
        "                optimizer.step()\n"
        "            else:\n"
        "                print(loss.item())\n"
    ),
    "predictions of a loader without a name": piece(
        "end",
        "outputs = []\n"
        "model.eval()\n"
        "with torch.no_grad():\n"
        "    for x, y in DataLoader(test_set, batch_size=100):\n"
        "        outputs.extend(model(x).argmax(1).tolist())\n"
        "print(sum(outputs))\n",
    ),
    "a hidden state made for training and evaluation": whole(HEAD + SEQUENCES + "for epoch in range(9):\n    run(True)\n    run(False)\n"),
    "a hidden state of the training in an evaluation": whole(
        HEAD
        + SEQUENCES.replace(
            "def run(trains):\n    h = model.start(SIZE)\n", "start = model.start(SIZE)\n\n\ndef run(trains):\n    h = start\n"
        )
        + "for epoch in range(9):\n    run(True)\n    with torch.no_grad():\n        print(model(words[:10], start))\n"
    ),
}

OUTPUT = {
    "a print inside an expression": piece("step", STEP + "shown = print(loss) or 1\nreturn shown\n"),
    "a bar with settings that are not written out": piece("batches", "for x, y in tqdm(loader, **dict(leave=False)):\n    update(x, y)\n"),
    "a bar in a module that is kept": whole(
        WITH_ENGINE.replace("in loader", "in bar(loader)").replace("import update", "import bar, update"),
        {"engine.py": ENGINE + "\n\ndef bar(items):\n    from tqdm import tqdm\n\n    return tqdm(items)\n"},
    ),
    "a folder that hydra names": whole(
        "import hydra\n\n" + HEAD + MAIN.replace("def main():", "@hydra.main(config_path='conf')\ndef main(settings):") + CALLED
    ),
    "what hydra writes": whole(
        "import hydra\n\n"
        + HEAD
        + MAIN.replace("def main():", "@hydra.main(version_base='1.3', config_path='conf')\ndef main(settings):")
        + CALLED
    ),
    "output of modules that are kept": whole(
        WITH_ENGINE,
        {
            "engine.py": ENGINE.replace(
                "import torch.nn",
                "import logging\nimport os\n\nimport torch\nfrom loguru import logger\n\nimport torch.nn",
            )
            + "    print(loss)\n"
            "    logging.info('%s', loss)\n"
            "    logger.info(loss)\n"
            "    os.makedirs('out')\n"
            "    torch.save(loss, 'out/loss.pt')\n"
        },
    ),
    "a logger that a module that is kept sets up": whole(
        "from log import set_up\n" + HEAD + "log = set_up('out')\n" + SET_UP + LOOP + "    log.info('%s', epoch)\n",
        {
            "log.py": KEPT + "import logging\n"
            "import os\n"
            "\n"
            "\n"
            "def set_up(folder):\n"
            "    os.makedirs(folder, exist_ok=True)\n"
            "    log = logging.getLogger('train')\n"
            "    path = os.path.join(folder, 'log.txt')\n"
            "    log.addHandler(logging.FileHandler(path))\n"
            "    return log\n"
        },
    ),
    "an attribute in a function that nothing calls": piece("start", "def kinds():\n    return model.classes\n"),
    "a sweep": piece("loop", "import wandb\n\nwandb.init()\nfolder = wandb.restore('best.pt')\nfor epoch in range(9):\n    train(epoch)\n"),
    "a file read where some ranks come by": piece(
        "end", "torch.save(model.state_dict(), 'a.pt')\nif time.time() > 9:\n    model.load_state_dict(torch.load('a.pt'))\n"
    ),
    "a bar that has no switch": piece(
        "batches", "import progressbar\n\nfor x, y in progressbar.ProgressBar()(loader):\n    update(x, y)\n"
    ),
    "a name from the clock where a file is read": piece(
        "end",
        "def name():\n"
        "    return f'{os.getpid()}-{time.time()}.pt'\n"
        "\n"
        "if model.training:\n"
        "    torch.save(model.state_dict(), 'a.pt')\n"
        "model.load_state_dict(torch.load(name()))\n",
    ),
    "a temporary folder that is left early": piece(
        "end",
        "import tempfile\n"
        "\n"
        "def keep():\n"
        "    with tempfile.TemporaryDirectory() as folder:\n"
        "        torch.save(model.state_dict(), folder + '/a.pt')\n"
        "        return torch.load(folder + '/a.pt')\n"
        "\n"
        "model.load_state_dict(keep())\n",
    ),
    "a folder of a run": piece(
        "loop",
        "import wandb\n"
        "\n"
        "wandb.init()\n"
        "writer = SummaryWriter(wandb.run.dir)\n"
        "folder = wandb.use_artifact('data').download()\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
    ),
    "a run whose settings are not written out": piece(
        "loop", "import wandb\n\nrun = wandb.init(**vars(args))\nfor epoch in range(wandb.config.epochs):\n    train(epoch)\n"
    ),
    "a free name looked for in an evaluation": piece(
        "end",
        "if loader.batch_size > 9:\n"
        "    with torch.no_grad():\n"
        "        for x, y in test_loader:\n"
        "            if model(x).sum() > 9:\n"
        "                i = 0\n"
        "                while os.path.exists(f'run{i}'):\n"
        "                    i += 1\n"
        "                os.makedirs(f'run{i}')\n"
        "                torch.load(f'run{i}/a.pt')\n",
    ),
}

LOOPS = {
    "scores of the batches that a rank's own losses choose": piece(
        "batches",
        "from sklearn.metrics import f1_score\nscores = []\nfor x, y in loader:\n    if update(x, y) < 1.0:\n"
        "        scores.append(f1_score(y.numpy(), model(x).argmax(1).numpy()))\nprint(sum(scores))\n",
    ),
    "numbers of the batches in an attribute of a function": piece(
        "loop",
        "def note(value):\n    note.total += value\nnote.total = 0.0\n"
        "for epoch in range(args.epochs):\n    for x, y in loader:\n        note(update(x, y))\n    print(note.total)\n",
    ),
    "samples that meet in a collate function": whole(
        HEAD
        + "\n\ndef collate(batch):\n"
        + "    x, y = torch.stack([s[0] for s in batch]), torch.stack([s[1] for s in batch])\n"
        + "    x = x - x.mean(0)\n"
        + "    return x, y\n\n\n"
        + SET_UP.replace("shuffle=True", "shuffle=True, collate_fn=collate")
        + LOOP
    ),
    "parts of a batch in a module": whole(
        WITH_ENGINE,
        {
            "engine.py": ENGINE.replace(
                "    loss = F.mse_loss(model(x), y)", "    loss = sum(F.mse_loss(model(p), q) for p, q in zip(x.split(4), y.split(4))) / 8"
            )
        },
    ),
    "parts of a batch in a module, one after another": whole(
        WITH_ENGINE,
        {
            "engine.py": KEPT + "import torch.nn.functional as F\n"
            "\n"
            "\n"
            "def update(model, optimizer, x, y):\n"
            "    for p, q in zip(x.split(4), y.split(4)):\n"
            "        optimizer.zero_grad()\n"
            "        F.mse_loss(model(p), q).backward()\n"
            "        optimizer.step()\n"
        },
    ),
    "a decision in a module, by the loss": whole(
        WITH_ENGINE, {"engine.py": ENGINE.replace("    loss.backward()", "    if loss > 9:\n        return\n    loss.backward()")}
    ),
    "a decision in a module, by an evaluation": whole(
        "from engine import train\n"
        + HEAD
        + SET_UP
        + "test_loader = DataLoader(train_set, batch_size=32)\ntrain(model, optimizer, loader, test_loader)\n",
        {
            "engine.py": ENGINE + "\n"
            "\n"
            "def train(model, optimizer, loader, test_loader):\n"
            "    best = 9.0\n"
            "    for epoch in range(9):\n"
            "        for x, y in loader:\n"
            "            update(model, optimizer, x, y)\n"
            "        total = sum(F.mse_loss(model(x), y).item() for x, y in test_loader)\n"
            "        if total > best:\n"
            "            break\n"
            "        best = total\n"
        },
    ),
    "an error that a module catches": whole(
        WITH_ENGINE,
        {
            "engine.py": ENGINE.replace(
                "    loss = F.mse_loss(model(x), y)\n    loss.backward()",
                "    try:\n        loss = F.mse_loss(model(x), y)\n        loss.backward()\n    except RuntimeError:\n        return",
            )
        },
    ),
    "a file written where the loss is low": piece("step", STEP + "if loss < 0.1:\n    torch.save(model.state_dict(), 'low.pt')\n"),
    "learning rates by the root of the number of ranks": piece("end", "print(1)\n", batch_size="per-rank", scale_lr="sqrt"),
    "a learning rate that is not written out": piece(
        "loop",
        "options = dict(lr=0.1)\noptimizer = torch.optim.SGD(model.parameters(), **options)\nfor epoch in range(9):\n    train(epoch)\n",
        batch_size="per-rank",
        scale_lr="linear",
    ),
    "an optimizer that a module that is kept makes": whole(
        "from engine import optimizer_of, update\n"
        + HEAD
        + SET_UP.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "optimizer_of(model)")
        + EPOCHS
        + "        update(model, optimizer, x, y)\n",
        {
            "engine.py": ENGINE + "\n"
            "\n"
            "def optimizer_of(model):\n"
            "    import torch\n"
            "\n"
            "    return torch.optim.SGD(model.parameters(), lr=0.1)\n"
        },
        batch_size="per-rank",
        scale_lr="linear",
    ),
    "a number that a module that is kept adds up": whole(
        "from engine import train\n" + HEAD + SET_UP + "for epoch in range(9):\n    print(train(model, optimizer, loader))\n",
        {
            "engine.py": ENGINE.replace("    optimizer.step()\n", "    optimizer.step()\n    return loss.item()\n") + "\n"
            "\n"
            "def train(model, optimizer, loader):\n"
            "    total = 0.0\n"
            "    for x, y in loader:\n"
            "        total += update(model, optimizer, x, y)\n"
            "    return total / len(loader)\n"
        },
    ),
    "a meter of squared losses": piece(
        "batches",
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.sum = self.count = 0\n"
        "\n"
        "    def update(self, value, n):\n"
        "        self.sum += value * n\n"
        "        self.count += n\n"
        "        self.avg = self.sum / self.count\n"
        "\n"
        "meter = Meter()\nfor x, y in loader:\n    meter.update(update(x, y) ** 2, len(x))\nprint(meter.avg)\n",
    ),
    "batches drawn in a module that is kept": whole(
        "from engine import draw, update\n"
        + HEAD
        + SET_UP
        + "for step in range(99):\n    x, y = draw(loader)\n    update(model, optimizer, x, y)\n",
        {
            "engine.py": ENGINE + "\n"
            "\n"
            "kept = {}\n"
            "\n"
            "\n"
            "def draw(loader):\n"
            "    if 'batches' not in kept:\n"
            "        kept['batches'] = iter(loader)\n"
            "    return next(kept['batches'])\n"
        },
    ),
    "a loader in the head of a loop, and no number of the epoch": piece(
        "loop",
        "def once():\n"
        "    for x, y in DataLoader(train_set, batch_size=32, shuffle=True):\n"
        "        update(x, y)\n"
        "\n"
        "while evaluate() < 0.9:\n"
        "    once()\n",
    ),
    "a momentum by the loss": piece("step", STEP + "optimizer.param_groups[0]['momentum'] = loss.item()\n"),
    "a schedule by the loss": piece("step", STEP + "scheduler.step(loss.item())\n"),
    "batches drawn without a loop over the loader": piece(
        "loop",
        "def drawn():\n"
        "    made = DataLoader(train_set, batch_size=32, shuffle=True)\n"
        "    return next(iter(made))\n"
        "\n"
        "for step in range(9):\n"
        "    update(*drawn())\n",
    ),
    "two losses that share an operand": piece(
        "step",
        "each = nn.functional.cross_entropy(model(x), y, reduction='sum')\n"
        "first = each / y.sum()\n"
        "second = first + each / (y > 0).sum()\n"
        "optimizer.zero_grad()\n"
        "first.backward(retain_graph=True)\n"
        "second.backward()\n"
        "optimizer.step()\n",
    ),
    "a loop of training with a batch sampler, and of evaluation": piece(
        "end",
        "class Rows:\n"
        "    def __len__(self):\n"
        "        return 20\n"
        "\n"
        "    def __iter__(self):\n"
        "        return iter([[i] * 32 for i in range(20)])\n"
        "\n"
        "batches = DataLoader(train_set, batch_sampler=Rows())\n"
        "\n"
        "def run(phase, over):\n"
        "    total = 0.0\n"
        "    for x, y in over:\n"
        "        loss = criterion(model(x), y)\n"
        "        if phase == 'train':\n"
        "            optimizer.zero_grad()\n"
        "            loss.backward()\n"
        "            optimizer.step()\n"
        "        total += loss.item() * len(x)\n"
        "    return total\n"
        "\n"
        "for epoch in range(9):\n"
        "    print(run('train', batches))\n"
        "    print(run('test', test_loader))\n",
    ),
    "samples kept of the last batch": piece(
        "batches", "for x, y in loader:\n    update(x, y)\n    shown = x\n\ndef show():\n    print(shown)\n\nshow()\n"
    ),
}

NORMED = "nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))"
PARALLEL = SET_UP.replace("nn.Linear(8, 1)", "nn.DataParallel(nn.Linear(8, 1).cuda())")
PENALTY = """\
        x.requires_grad_()
        optimizer.zero_grad()
        slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        (slope.norm(2, dim=1) - 1).pow(2).mean().backward()
"""

MODELS = {
    "gradients clipped of layers that are freed, and that the optimizer does not hold": whole(
        HEAD
        + SET_UP.replace(
            "model.parameters()",
            "filter(lambda p: p.requires_grad, model.parameters())",
        ).replace(
            "nn.Linear(8, 1)\n",
            "nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))\nfor p in model[0].parameters():\n    p.requires_grad = False\n",
        )
        + EPOCHS.replace(
            "    for x",
            "    if epoch == 5:\n        for p in model[0].parameters():\n            p.requires_grad = True\n    for x",
        )
        + BATCH.replace("        optimizer.step", "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step")
    ),
    "hooks on a parameter that are handed over in a list": piece("end", "hooks = [print]\nmodel.fc.weight.register_hook(*hooks)\n"),
    "the model inside a wrapper, or the model, by a condition": whole(
        HEAD
        + SET_UP
        + "many = torch.cuda.device_count() > 1\nif many:\n    model = nn.DataParallel(model)\n"
        + LOOP
        + "    if many:\n        inner = model.module\n    else:\n        inner = model\n    torch.save(inner.state_dict(), 'last.pt')\n",
    ),
    "an embedding that scales down the rows it is asked for": whole(
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n"
        "words = nn.Embedding(640, 2, max_norm=1.0)\noptimizer = torch.optim.SGD(words.parameters(), lr=0.1)\n"
        "for ids in DataLoader(torch.arange(640), batch_size=32, shuffle=True):\n"
        "    words(ids).square().mean().backward()\n    optimizer.step()\n",
    ),
    "batch norm with a forward of its own": whole(
        HEAD
        + "\n\nclass Scaled(nn.BatchNorm1d):\n    def forward(self, rows):\n        return super().forward(rows) * 2\n\n\n"
        + SET_UP.replace("nn.Linear(8, 1)", "nn.Sequential(nn.Linear(8, 8), Scaled(8), nn.Linear(8, 1))")
        + LOOP
    ),
    "a network in training mode that is not trained": whole(
        HEAD
        + SET_UP.replace("nn.Linear(8, 1)", NORMED)
        + """\


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


teacher = Teacher()
"""
        + LOOP.replace("mse_loss(model(x), y)", "mse_loss(model(x), teacher(x).detach())"),
    ),
    "layers asked whether they are batch norm": whole(
        HEAD
        + SET_UP.replace("nn.Linear(8, 1)", NORMED)
        + EPOCHS.replace(
            "    for x",
            "    for layer in model.modules():\n"
            "        if isinstance(layer, nn.BatchNorm1d):\n"
            "            layer.momentum = 0.1 / (1 + epoch)\n"
            "    for x",
        )
        + BATCH,
    ),
    "batch norm that runs twice": whole(
        HEAD + SET_UP.replace("nn.Linear(8, 1)", NORMED) + LOOP.replace("model(x), y", "model(x) + model(-x), y")
    ),
    "a lazy layer": piece(
        "model",
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.fc = nn.LazyLinear(2)\n"
        "\n"
        "    def forward(self, x):\n"
        "        return self.fc(x)\n"
        "\n"
        "model = Net()\n",
    ),
    "state dicts around a part in DataParallel": whole(
        HEAD
        + """\


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.DataParallel(nn.Linear(8, 8))
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.features(x))


"""
        + SET_UP.replace("nn.Linear(8, 1)", "Net().cuda()")
        + LOOP
        + "torch.save(model.state_dict(), 'model.pt')\n"
    ),
    "a device in a module that is kept": whole(
        WITH_ENGINE, {"engine.py": ENGINE.replace("    optimizer.zero", "    x, y = x.to('cuda:0'), y.to('cuda:0')\n    optimizer.zero")}
    ),
    "inputs that DataParallel moved": whole(
        HEAD + PARALLEL + LOOP + "with torch.no_grad():\n"
        "    for x, y in DataLoader(train_set, batch_size=32):\n"
        "        print(model(x).sum())\n"
    ),
    "gradients of rows in a module that is kept": whole(
        WITH_ENGINE,
        {"engine.py": ENGINE.replace("    loss = ", "    x.requires_grad_()\n    loss = ") + "    print(x.grad.abs().max())\n"},
    ),
    "a layer that is added during training": piece("epoch", "model.extra = nn.Linear(2, 2)\n"),
    "a wrapper by an option that cannot be asked again": whole(
        "import argparse\n"
        + HEAD
        + SET_UP
        + """\
parser = argparse.ArgumentParser()
parser.add_argument("--parallel", action="store_true")
args = parser.parse_args()
if args.parallel and len(os.listdir(".")) > 3:
    model = nn.DataParallel(model)
model.load_state_dict(torch.load("old.pt"))
"""
        + LOOP
        + "torch.save(model.state_dict(), 'model.pt')\n"
    ),
    "a function that is handed DataParallel for its keys": whole(
        "from keep import keep\n" + HEAD + PARALLEL + LOOP + "keep(model)\n",
        {"keep.py": KEPT + "import torch\n\n\ndef keep(model):\n    torch.save(model.state_dict(), 'model.pt')\n"},
    ),
    "a test for DataParallel": whole(
        HEAD
        + PARALLEL
        + "if isinstance(model, nn.DataParallel):\n    print(1)\n"
        + LOOP
        + "    print(isinstance(model, nn.DataParallel))\n"
    ),
    "an attribute of a model that is wrapped on one way": whole(
        HEAD + SET_UP + "other = nn.Linear(8, 1)\n" + LOOP + "for each in (model, other):\n    print(each.in_features)\n"
    ),
    "an attribute of what may be a model that is wrapped": whole(
        HEAD
        + SET_UP
        + "other = nn.Linear(8, 1)\n"
        + LOOP
        + "def either(first):\n    return model if first else other\n\nprint(either(len(train_set) > 9).in_features)\n"
    ),
    "a library that is handed the model": piece("step", STEP + "import tools\n\ntools.prune(model)\n"),
    "parameters written in a module by a library": whole(
        WITH_ENGINE,
        {
            "engine.py": ENGINE.replace("import torch.nn", "import tools\nimport torch.nn")
            + "    for p in model.parameters():\n        p.data.mul_(tools.factor())\n"
        },
    ),
    "keys of a DataParallel that needs no wrapper": whole(
        HEAD
        + """\


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)

    def forward(self, x):
        return self.fc(x)

    def loss(self, x, y):
        return nn.functional.mse_loss(self.fc(x), y)


"""
        + PARALLEL.replace("nn.Linear(8, 1)", "Net()")
        + EPOCHS
        + """\
        optimizer.zero_grad()
        out = model(x)
        out.mean().backward(retain_graph=True)
        nn.functional.mse_loss(out, y).backward()
        optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""
    ),
    "a second backward call in a module that is kept": whole(
        WITH_ENGINE, {"engine.py": ENGINE.replace("    loss.backward()", "    loss.backward(retain_graph=True)\n    loss.backward()")}
    ),
    "apex: a second backward call in a module that is kept": whole(
        WITH_ENGINE,
        {"engine.py": ENGINE.replace("    loss.backward()", "    loss.backward(retain_graph=True)\n    loss.backward()")},
        ddp="apex",
    ),
    "apex: activations computed again": whole(
        HEAD.replace("import torch\n", "import torch\nfrom torch.utils.checkpoint import checkpoint\n")
        + """\


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.fc = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.fc(checkpoint(self.first, x, use_reentrant=True))


"""
        + SET_UP.replace("nn.Linear(8, 1)", "Net()")
        + LOOP,
        ddp="apex",
    ),
    "a gradient penalty in a module that is kept": whole(
        WITH_ENGINE,
        {
            "engine.py": ENGINE.replace("import torch.nn", "import torch\nimport torch.nn").replace(
                "    loss = ",
                "    x.requires_grad_()\n"
                "    slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)\n"
                "    (slope.norm(2, dim=1) - 1).pow(2).mean().backward()\n"
                "    loss = ",
            )
        },
    ),
    "a teacher in DataParallel with more arguments": whole(
        HEAD
        + "teacher = nn.DataParallel(nn.Linear(8, 1).cuda(), [0], 0, 0)\n"
        + SET_UP
        + LOOP.replace("mse_loss(model(x), y)", "mse_loss(model(x), teacher(x).detach())")
        + "torch.save(teacher.state_dict(), 'teacher.pt')\n",
    ),
    "a model turned to half by a module that is kept": whole(
        WITH_ENGINE.replace("import update", "import half, update") + "    half(model)\n",
        {"engine.py": ENGINE + "\n\ndef half(model):\n    model.half()\n"},
    ),
    "a model saved from the CPU by a module that is kept": whole(
        WITH_ENGINE.replace("import update", "import keep, update") + "    keep(model)\n",
        {
            "engine.py": ENGINE + "\n"
            "\n"
            "def keep(model):\n"
            "    import torch\n"
            "\n"
            "    torch.save(model.cpu().state_dict(), 'a.pt')\n"
            "    model.cuda()\n"
        },
    ),
}

EXAMPLES: dict[str, Shown] = {**PRECISION, **PROCESSES, **COMMENTS, **DATA, **OUTPUT, **LOOPS, **MODELS}

# the scripts of the tables that show further messages
FROM_TABLES = (
    "a last batch of two samples, squeezed after the model, of tensors",
    "targets kept for each sample, chosen by numbers that torch counts",
    "a first batch that is drawn before a split and the loop",
    "sequences that are unpacked in a network, and added up",
    "experts whose loads are balanced, by an entropy of the average",
    "counts in an object that adds them up over the ranks itself, which begin with the first batch",
    "a DataParallel of the script's own that gathers in its own way",
    "a penalty on slopes of a critic with batch norm",
    "batch norm layers that the forward takes out of a list",
    "folders that must not be there",
    "models that are trained in a list, in a module",
    "a file named by a model's text, formatted",
    "numbers of numpy as many as a batch is long, from a distribution that has no row",
    "an average over valid targets in a model, evaluated as drawn",
    "the best weights, loaded for a last evaluation, at O1",
    "the best weights, loaded where a test asks whether all fit, at O1",
    "two models with one encoder, at O1",
    "weights that are made smaller after each step, at O2",
    "the rank of the environment, read as a module is imported",
    "a model that is saved as a whole, at O2",
    "an average by its share of the batches that the script averages over the ranks",
    "totals that a function adds up over the ranks, of an evaluation that may end early",
    "a learning rate times the number of ranks",
    "a split drawn by ranks that are seeded apart",
    "an evaluation that is shared out where there are several ranks",
    "a score of the first batch of a loader that trains",
    "what a model gets right of the loader that trains it",
    "a model that computes its loss of the targets that count, in training and in an evaluation",
    "attacks in the training and in a test, until few samples are left",
    "samples that are turned where their average, or the largest of them, is large",
    "a data set that loses samples from epoch to epoch",
    "a hook on a parameter that draws",
    "a hook on what is accumulated",
    "a loss with the size of its gradients",
    "the first few batches set the scales of a layer, one of which may be that of an evaluation",
    "examples of training and of an evaluation, in one loop",
    "all data at once, and noise of NumPy that is added to it",
    "short batches, cut by hand, that are left out",
    "points put into a list one by one, beside noise for all of them",
    "a backward hook that cuts gradients",
    "a backward of its own that cuts",
    "a validation beside the training on what a collate function keeps",
    "a buffer that a validation gives another loader's rows",
    "a buffer that follows the mean of the batches",
    "a closure for every batch",
    "a closure, in float16",
    "a collate function that leaves samples out",
    "a data set that is shuffled in each epoch",
    "a DataParallel in the dict that is saved",
    "a DataParallel that is read back and trained on",
    "a DataParallel that is read back, and put into another one, always",
    "a trainer that may put its model into a DataParallel, and saves it as a whole",
    "a dated folder, named in a module of settings that is read name by name",
    "a recurrence over the samples",
    "rows by the largest of how far they are from their mean",
    "a layer within a Sequential that adds the spread of the batch",
    "a forward fills a list, and each sample has the one before",
    "a file named after the device, read back by all ranks, and one that only rank 0 looks for",
    "a flag, clipping and accumulation, to float16",
    "a generator of batches that evaluates, too",
    "a loader by functools.partial that says the order",
    "a loader that a function of an unknown package may have made",
    "a loader that is not edited: WebLoader",
    "a loader of timm that is not asked to train",
    "a loader that is not edited: LinkNeighborLoader",
    "a logger set up in a local module",
    "a loss divided by the size of the data set",
    "a loss that is given a total as its gradient",
    "a loss that is given itself as its gradient",
    "a loss of each step of a padded batch, by its own count",
    "a meter of the middle one of a batch's numbers",
    "a meter that is reset to more than nothing",
    "a method of the model inside a DataParallel",
    "a model that chooses, at O1",
    "a model in the dict that is saved",
    "a model whose layers get other parameters before each run",
    "a package's loss of labels in a list and in an array",
    "a penalty on slopes, apex O2",
    "a plateau by the largest output",
    "a pool of earlier images that others look into",
    "a pool of earlier images, from which a step draws",
    "a rate by the largest output",
    "a rate that each batch's loss chooses",
    "a trained tensor with a row for each place of a batch, of a number that is the same",
    "a row for each sample, repeated by a tuple",
    "a running total in a file while it grows",
    "a score by sklearn of each batch that is no average, kept in a list",
    "the best model and its optimizer read back where an epoch was no better",
    "the size of a network in DataParallel, by the names that another module asks for",
    "a seed by a library",
    "a shadow's checkpoint with the prefix of DataParallel",
    "a size of one by default, another by the arguments",
    "a split by two subset samplers",
    "batches that a sampler draws, of a loader that is asked how large they are, that all ranks have whole",
    "a step that is made only where there is a writer",
    "a step that may run out of memory",
    "a step's loss in a record that a module saves",
    "a stream that is split where its workers start",
    "a stream whose epoch is set through the loader",
    "a table of hits that is made shares of as it grows",
    "a table of pandas",
    "a tagger's loss of targets that a call makes",
    "one row for each sample that is drawn, again and again",
    "a teacher in DataParallel, whose keys keep its prefix",
    "a total over all epochs of the losses of the batches that have a label",
    "a trainer that trains and saves itself",
    "activations that are computed again, the older way, with a part that rests",
    "amp by a flag, to apex O2",
    "amp by a flag, to none",
    "an accuracy over a bucket sampler's batches",
    "an array of indices shuffled in place",
    "an iteration that ends before its step",
    "an iterator of torchtext",
    "examples that are packed as they are looked up",
    "examples that are split at random, packed, and attended to",
    "states of as many samples as a network is told, which is run in a test, too",
    "states that a network begins itself, in training and in a test",
    "an order that a generator draws which the process seeds",
    "an order that is sorted from draws",
    "an own sampler that learns from the losses",
    "cells that a function counts in evaluation",
    "class weights from each batch's own counts",
    "columns of a number that is written twice",
    "columns of one thing and rows of another",
    "even batches",
    "folders made in every way",
    "folds by samplers, in a function that seeds and resets",
    "gradients asked for and set",
    "gradients clamped by a hook, under a scaler",
    "gradients clipped by the largest output",
    "gradients clipped more often than the optimizer steps",
    "gradients of outputs clamped by a hook",
    "hits divided by the samples seen, counted by steps",
    "keys of a wrapper that a question elsewhere asks for",
    "labels of a batch, kept by a trainer",
    "labels that number a batch's rows",
    "labels that training corrects in its data",
    "layers of batch norm that rest, found by their class",
    "lists of phases in one dict, of batches and of samples",
    "losses of several forwards, apex O2",
    "micro-batches by chunks of a large batch",
    "micro-batches by splits of so many rows",
    "noise of several sizes",
    "one function that saves a model in a wrapper and one in none, both of DataParallel",
    "one of too many networks",
    "one of two kinds of batch norm rests, found by its class",
    "outputs that become numbers of numpy, in float16",
    "parameters in groups by the names that DataParallel gives them",
    "phases, and a best model, in float16",
    "predictions written to a csv file",
    "results that a loop over the training loader writes for each batch",
    "resumed before the wrap, from keys with the prefix of DataParallel",
    "rows beside those of other places, numbered by torch.arange(n - 1, -1, -1)",
    "rows grouped by a number that the sampler is given",
    "rows read by h5py as if to change them",
    "rows that an lstm reads along, less what they have in common",
    "rows that only one of two kinds of heads may combine, and targets that both get",
    "samples moved along gradients of the training, at O1",
    "samples that are written first, and read by the loader",
    "settings of a module by its name",
    "several trainings, seeded once, each with a teacher of its own",
    "slices by the start of each batch",
    "statistics of an averaged model, over the training data",
    "tensors as long as the longest sample",
    "texts that a collate function pads, added up word by word",
    "the folder that a board has chosen, and files in it",
    "the model moved to the CPU to be saved",
    "totals over a window, divided by the samples in it",
    "two branches, with and without, to float16",
    "two models of apex, to torch",
    "updates written out, in float16",
    "weights that a function of the script draws again between two trainings",
    "windows of time",
    "windows of tokens, and the same one later",
    "words numbered in the order of a set",
    "training that a package of a search calls with settings to try",
)

NEVER_SHOWN = {
    "said where ddpify itself fails, or is called with a path in the place of a text": (
        "please report this with the script",
        " is taken as a script's text",
        "to read a file, pass pathlib.Path(...)",
        "the result is not checked; review every line",
        "the file is left as it was",
        "the code is nested too deeply to be analysed",
        "not applied here, so do it by hand: ",
    ),
    "said where what was written does not fit": (
        " arguments by position where it takes ",
        "it has no parameter ",
        " is given twice",
        "functions read {}, which only a part of the script knows",
        "what runs before the processes start needs ",
    ),
    "said where no rule says anything, which is so of no script known": (
        "nothing was found that gives each rank a different part of this loader's data: all ranks may train on the same samples",
        "this loss may not be a mean over the samples of all ranks: the gradients may differ from the original's",
        "nothing was found that sets the epoch of this loader's sampler: every epoch may have the same order",
    ),
    "said of a name that is taken from one of several loaders, which no script known does": (
        "`{}` comes to hold something else: the epoch of its loader's sampler is not set",
        "leave the loader its name, and give what goes through it another one",
    ),
    "no message: a docstring of the text that is written, or a key": (
        "Join the process group that torchrun describes, or be a group of one.",
        '"""What one of the spawned processes does."""',
        "gradients of unequal batches",
    ),
}
