"""Scripts that are left as they are, each with its reason, and many more that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.project import Project, load, of_source
from ddpify.rules.refuse import RULES, verdict
from ddpify.rules.refuse.framework import FRAMEWORKS
from ddpify.rules.refuse.resolve import Resolver
from ddpify.source import from_text

LOOP = """\
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
"""

STARTED = "import torch.distributed as dist\ndist.init_process_group('nccl')\n"


def project(folder: Path, entry: str, **modules: str) -> Project:
    """A project on disk: `entry` is its train.py, the others are its modules (`a__b` is `a/b.py`)."""
    for name, text in modules.items():
        path = folder / f"{name.replace('__', '/')}.py" if name != "package" else folder / "package" / "__init__.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = folder / "train.py"
    script.write_text(entry)
    return load(script)


def told(folder: Path, entry: str, **modules: str) -> tuple[str, str] | None:
    """The status and the code of the verdict."""
    spoken = verdict(project(folder, entry, **modules))
    return spoken and (spoken.status, spoken.code)


def expected(title: str) -> str | None:
    return {"refused": "refuse", "nothing to do": "nothing"}.get(title.partition(":")[0])


@pytest.mark.parametrize(
    ("rule", "example"),
    [pytest.param(rule, example, id=f"{rule.CODE} {example.title}") for rule in RULES for example in rule.EXAMPLES],
)
def test_examples(tmp_path: Path, rule, example) -> None:
    spoken = rule.check(project(tmp_path, example.before))
    assert example.after is None
    assert (spoken and spoken.status) == expected(example.title)


def test_every_rule_is_documented() -> None:
    assert len({rule.CODE for rule in RULES}) == len(RULES)
    for rule in RULES:
        silent = [expected(example.title) is None for example in rule.EXAMPLES]
        assert silent == sorted(silent, reverse=True), "no-op cases come first"
        assert any(silent) and not all(silent)


CONVERTED = {
    "a plain loop": LOOP,
    "an unused --local_rank": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--local_rank', type=int)\n" + LOOP,
    "torch.distributed imported for nothing": "import torch.distributed as dist\n" + LOOP,
    "DDP imported and unused": "from torch.nn.parallel import DistributedDataParallel as DDP\n" + LOOP,
    "a type check on DDP": "from torch.nn.parallel import DistributedDataParallel\nisinstance(model, DistributedDataParallel)\n" + LOOP,
    "DataParallel": LOOP.replace("optimizer =", "model = torch.nn.DataParallel(model)\noptimizer ="),
    "DataParallel from torch.nn.parallel": "import torch.nn as nn\nmodel = nn.parallel.DataParallel(model)\n" + LOOP,
    "DDP in a function that nobody calls": LOOP + "\n\ndef wrap(m):\n    import torch.distributed as dist\n"
    "    dist.init_process_group('nccl')\n    return torch.nn.parallel.DistributedDataParallel(m)\n",
    "DDP in a dead branch": "import torch.distributed as dist\nif False:\n    dist.init_process_group('nccl')\n"
    "    model = torch.nn.parallel.DistributedDataParallel(model)\n" + LOOP,
    "a local class of DDP's name": "class DistributedDataParallel:\n    pass\n\n\nmodel = DistributedDataParallel()\n" + LOOP,
    "DDP's name rebound": "from torch.nn.parallel import DistributedDataParallel as DDP\nDDP = str\nDDP(model)\n" + LOOP,
    "DDP's name is a parameter": "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef wrap(DDP):\n"
    "    return DDP(1)\n\n\n"
    "wrap(str)\n" + LOOP,
    "frameworks in a comment and a string": "# accelerate.Accelerator() and deepspeed.initialize()\n"
    "help = 'hvd.init() pl.Trainer().fit()'\n" + LOOP,
    "a docstring about Lightning": '"""import lightning as L; L.Trainer().fit(model)"""\n' + LOOP,
    "optional horovod": "try:\n    import horovod.torch as hvd\nexcept ImportError:\n    hvd = None\n" + LOOP,
    "optional apex": "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n" + LOOP,
    "accelerate imported and unused": "from accelerate import Accelerator\n" + LOOP,
    "a framework used in a function that nobody calls": "import deepspeed\n\n\ndef never():\n    deepspeed.initialize(model=1)\n" + LOOP,
    "a local Trainer with fit": "class Trainer:\n    def fit(self):\n        pass\n\n\nTrainer().fit()\n" + LOOP,
    "a framework's name shadowed by a parameter": "import ray\n\n\ndef trace(ray):\n    ray.init()\n\n\ntrace(object())\n" + LOOP,
    "a class named as a framework's": "import transformers\n\n\nclass transformers:\n    Trainer = dict\n\n\n"
    "transformers.Trainer()\n" + LOOP,
    "a transformers model in a loop of its own": "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('x')\n" + LOOP,
    "a Lightning module trained by hand": "import lightning as L\n\n\nclass Net(L.LightningModule):\n    pass\n\n\nnet = Net()\n" + LOOP,
    "a Lightning module trained by hand beside a scaler": "import lightning as L\n\n\nclass Net(L.LightningModule):\n    pass\n\n\n"
    "net = Net()\nscaler.fit(x)\n" + LOOP,
    "ignite's metrics": "from ignite.metrics import Accuracy\nAccuracy().update((1, 2))\n" + LOOP,
    "DeepSpeed's Adam": "from deepspeed.ops.adam import FusedAdam\noptimizer = FusedAdam(model.parameters())\n" + LOOP,
    "TensorFlow for its summaries": "import tensorflow as tf\ntf.summary.create_file_writer('x')\nscaler.fit(x)\n" + LOOP,
    "JAX beside torch": "import jax\ngradient = jax.grad(str)\n" + LOOP,
    "a pool that prepares data": "from multiprocessing import Pool\n\n\ndef prepare(name):\n    return name\n\n\n"
    "Pool(2).map(prepare, 'ab')\n" + LOOP,
    "a process that watches": "from torch.multiprocessing import Process\n\n\ndef watch():\n    pass\n\n\n"
    "Process(target=watch).start()\n" + LOOP,
    "a start method": "import torch.multiprocessing as mp\nmp.set_start_method('spawn')\n" + LOOP,
    "an environment beside a loader": "import gym\nenv = gym.make('A')\nenv.reset()\no, r, d, i = env.step(1)\n" + LOOP,
    "a schedule that steps": LOOP.replace("DataLoader(data, batch_size=8)", "data") + "meter.reset()\nscheduler.step(loss)\n",
    "something that is reset and steps": "import torch\nscheduler.reset()\nrate = scheduler.step(1)\nmodel(x).backward()\n",
    "a loop over slices": "import torch\nfor i in range(0, 99, 9):\n    loss = f(model(x[i:i + 9], h), y[i:i + 9])\n    loss.backward()\n",
    "a full batch that is no graph": "import torch\nfor e in range(9):\n    loss = f(model(x), y)\n    loss.backward()\n",
    "one input and a training part": "import torch\nfor e in range(9):\n    out = model(x)\n    loss = f(out[rows], y[rows])\n"
    "    loss.backward()\n",
    "rows that only a metric picks": "import torch\nfor e in range(9):\n    out = model(x, t)\n    loss = f(out, y)\n"
    "    loss.backward()\n"
    "    accuracy(out[rows], y[rows])\n",
    "graphs one by one": "import torch\nfor g, x, rows, y in graphs:\n    out = model(g, x)\n    f(out[rows], y[rows]).backward()\n",
    "graphs one by one, in a function": "import torch\n\n\ndef step(g, x, rows, y):\n    out = model(g, x)\n"
    "    f(out[rows], y[rows]).backward()\n\n\nfor g, x, rows, y in graphs:\n    step(g, x, rows, y)\n",
    "a closure": "import torch\n\n\ndef closure():\n    loss = model(x)\n    loss.backward()\n    return loss\n\n\nopt.step(closure)\n",
    "gradients by hand": "import torch\nfrom torch.autograd import grad\nfor e in range(9):\n    g = grad(loss, w)\n    w = w - g[0]\n",
    "a scaled loss": "import torch\nscaler.scale(model(x)).backward()\n",
    "the loop in a command": "import click\nimport torch\n\ncli = click.Group()\n\n\n@cli.command()\ndef train():\n"
    "    model(x).backward()\n\n\n"
    "cli()\n",
    "a function chosen by its name": "import torch\n\n\ndef train():\n    model(x).backward()\n\n\nglobals()['train']()\n",
}


@pytest.mark.parametrize("entry", CONVERTED.values(), ids=CONVERTED.keys())
def test_is_converted(tmp_path: Path, entry: str) -> None:
    assert told(tmp_path, entry) is None


DISTRIBUTED = {
    "torch DDP": STARTED + "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model)\n" + LOOP,
    "DDP under another name": STARTED + "from torch.nn.parallel import DistributedDataParallel as Wrap\nmodel = Wrap(model)\n" + LOOP,
    "DDP by its module": STARTED + "import torch.nn.parallel as P\nmodel = P.distributed.DistributedDataParallel(model)\n" + LOOP,
    "DDP bound to a name": STARTED + "import torch\nDDP = torch.nn.parallel.DistributedDataParallel\nmodel = DDP(model)\n" + LOOP,
    "DDP through partial": STARTED + "from functools import partial\nimport torch\n"
    "wrap = partial(torch.nn.parallel.DistributedDataParallel, device_ids=[0])\n" + LOOP,
    "apex or torch, as available": STARTED + "try:\n    from apex.parallel import DistributedDataParallel as DDP\nexcept ImportError:\n"
    "    from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)\n" + LOOP,
    "apex DDP": "import torch\nfrom apex.parallel import DistributedDataParallel\ntorch.distributed.init_process_group('nccl')\n"
    "model = DistributedDataParallel(model, delay_allreduce=True)\n" + LOOP,
    "a switch": "import torch\nif args.local_rank != -1:\n    torch.distributed.init_process_group('nccl')\n"
    "    model = torch.nn.parallel.DistributedDataParallel(model)\n" + LOOP,
    "in the main block": "import torch\n\n\ndef wrap(m):\n    return torch.nn.parallel.DistributedDataParallel(m)\n\n\n"
    "if __name__ == '__main__':\n    torch.distributed.init_process_group('gloo')\n    wrap(net)(x).backward()\n",
    "in the worker of a spawn": "import torch\nimport torch.multiprocessing as mp\n\n\ndef worker(rank):\n"
    "    torch.distributed.init_process_group('gloo')\n    torch.nn.parallel.DistributedDataParallel(net)(x).backward()\n\n\n"
    "mp.spawn(worker, nprocs=2)\n",
    "a subclass": STARTED + "from torch.nn.parallel import DistributedDataParallel\n\n\nclass Open(DistributedDataParallel):\n"
    "    pass\n\n\n"
    "model = Open(model)\n" + LOOP,
    "FSDP": STARTED + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = FSDP(model)\n" + LOOP,
    "fully_shard": STARTED + "from torch.distributed.fsdp import fully_shard\nfully_shard(model)\n" + LOOP,
    "gradients averaged one by one": STARTED + LOOP + "for p in model.parameters():\n    dist.all_reduce(p.grad.data)\n",
    "gradients averaged in one piece": STARTED + LOOP + "grads = [p.grad for p in model.parameters()]\nflat = torch.cat(grads)\n"
    "dist.all_reduce(flat)\n",
    "gradients collected in a list": STARTED + LOOP + "grads = []\nfor p in ps:\n    grads.append(p.grad.view(-1))\n"
    "flat = torch.cat(grads)\ndist.all_reduce(flat)\n",
    "the group is started out of sight": "import torch\nfrom somewhere import start\nstart()\n"
    "model = torch.nn.parallel.DistributedDataParallel(model)\n" + LOOP,
}


@pytest.mark.parametrize("entry", DISTRIBUTED.values(), ids=DISTRIBUTED.keys())
def test_is_distributed_already(tmp_path: Path, entry: str) -> None:
    assert told(tmp_path, entry) == ("nothing", "DDP911")


def test_a_verdict_names_both_lines(tmp_path: Path) -> None:
    spoken = verdict(project(tmp_path, STARTED + "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model)\n" + LOOP))
    assert spoken is not None
    assert (spoken.line, spoken.file) == (4, str(tmp_path / "train.py"))
    assert "train.py:4," in spoken.reason and "train.py:2)" in spoken.reason


WRAP = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef wrap(model):\n    return DDP(model)\n"
START = "import torch.distributed as dist\n\n\ndef start():\n    dist.init_process_group('nccl')\n"


def test_helpers_in_modules_are_followed(tmp_path: Path) -> None:
    entry = "from package import wrap\nfrom tools.group import start\nstart()\nmodel = wrap(model)\n" + LOOP
    found = told(tmp_path, entry, package="from .models import wrap\n", package__models=WRAP, tools__group=START)
    assert found == ("nothing", "DDP911")


def test_helpers_reached_through_a_star_import(tmp_path: Path) -> None:
    entry = "from models import *\nimport tools\ntools.start()\nmodel = wrap(model)\n" + LOOP
    assert told(tmp_path, entry, models=WRAP, tools=START) == ("nothing", "DDP911")


def test_helpers_reached_through_a_trainer(tmp_path: Path) -> None:
    trainer = (
        WRAP + START + "\n\nclass Trainer:\n    def __init__(self):\n        self.net = wrap(1)\n\n    def run(self):\n        start()\n"
    )
    assert told(tmp_path, "from engine import Trainer\nTrainer().run()\n" + LOOP, engine=trainer) == ("nothing", "DDP911")


def test_helpers_that_are_imported_and_not_called(tmp_path: Path) -> None:
    assert told(tmp_path, "from models import wrap, other\nfrom tools import start\n" + LOOP, models=WRAP, tools=START) is None


def test_a_method_that_nobody_calls(tmp_path: Path) -> None:
    trainer = (
        WRAP + START + "\n\nclass Trainer:\n    def distribute(self):\n        start()\n        wrap(1)\n\n"
        "    def run(self):\n        pass\n"
    )
    assert told(tmp_path, "from engine import Trainer\nTrainer().run()\n" + LOOP, engine=trainer) is None


def test_a_wrap_that_is_never_switched_on(tmp_path: Path) -> None:
    assert told(tmp_path, "from models import wrap\nmodel = wrap(model)\n" + LOOP, models=WRAP) is None


def test_the_main_block_of_an_imported_module_does_not_run(tmp_path: Path) -> None:
    models = WRAP + START + "\n\nif __name__ == '__main__':\n    start()\n    wrap(1)\n"
    assert told(tmp_path, "import models\n" + LOOP, models=models) is None


def test_a_module_is_judged_by_all_it_defines(tmp_path: Path) -> None:
    assert told(tmp_path, WRAP + START + "\n\ndef train(model):\n    model(1).backward()\n") == ("nothing", "DDP911")


DRIVEN = {
    "Hugging Face Accelerate": "from accelerate import Accelerator\na = Accelerator()\nfor x in a.prepare(loader):\n"
    "    a.backward(model(x))\n",
    "Accelerate under another name": "import accelerate as acc\naccelerator = acc.Accelerator()\n",
    "torchnet": "import torchnet as tnt\nengine = tnt.engine.Engine()\nengine.train(network, loader, maxepoch=2, optimizer=optimizer)\n",
    "torchnet's engine by its name": "from torchnet.engine import Engine\nEngine().train(network, loader, 2, optimizer)\n",
    "segmentation models' own epoch": "import segmentation_models_pytorch as smp\nepoch = smp.utils.train.TrainEpoch(model, loss=loss)\n"
    "epoch.run(loader)\n",
    "SpeechBrain": "import speechbrain as sb\n\n\nclass ASR(sb.Brain):\n    pass\n\n\nASR(modules).fit(epochs, train_set)\n",
    "Lightning": "import lightning as L\nL.Trainer(max_epochs=2).fit(model, loader)\n",
    "Lightning by its old name": "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n    pass\n\n\n"
    "trainer = pl.Trainer()\ntrainer.fit(Net())\n",
    "Lightning made by hydra": "import hydra\nfrom lightning import Trainer\ntrainer: Trainer = hydra.utils.instantiate(cfg)\n"
    "trainer.fit(m)\n",
    "a Lightning module whose trainer is made elsewhere": "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n"
    "    pass\n\n\n"
    "make_trainer().fit(Net())\n",
    "Lightning Fabric": "from lightning.fabric import Fabric\nfabric = Fabric()\nfabric.backward(model(x))\n",
    "Lightning's command line": "from lightning.pytorch.cli import LightningCLI\nLightningCLI(Net)\n",
    "PyTorch Ignite": "from ignite.engine import create_supervised_trainer as create\ntrainer = create(model, optimizer, loss)\n"
    "trainer.run(data)\n",
    "Ignite's engine": "import torch\nfrom ignite.engine import Engine\n\n\ndef step(engine, batch):\n    model(batch).backward()\n\n\n"
    "Engine(step).run(data)\n",
    "Horovod": "import horovod.torch as hvd\nhvd.init()\n" + LOOP,
    "DeepSpeed": "import deepspeed\nengine, *_ = deepspeed.initialize(model=model)\nengine.backward(engine(x))\n",
    "DeepSpeed that starts a process group": STARTED + "import deepspeed\nengine, *_ = deepspeed.initialize(model=model)\n"
    "engine.backward(1)\n",
    "Colossal-AI": "import colossalai\ncolossalai.launch_from_torch()\n" + LOOP,
    "Ray": "import ray\nfrom ray.train.torch import TorchTrainer\nTorchTrainer(loop).fit()\n",
    "Ray Tune": "from ray import tune\ntune.run(train)\n" + LOOP,
    "a Ray actor": "import ray\n\n\n@ray.remote\nclass Actor:\n    pass\n" + LOOP,
    "pytorch_metric_learning's trainers": "import torch\nfrom pytorch_metric_learning import trainers\n"
    "t = trainers.MetricLossOnly(models, optimizers, 32, losses, data)\nt.train(num_epochs=2)\n",
    "MONAI's engines": "import torch\nfrom monai.engines import SupervisedTrainer\n"
    "trainer = SupervisedTrainer(network=net)\ntrainer.run()\n",
    "the Hugging Face Trainer": "from transformers import Trainer\ntrainer = Trainer(model=model)\ntrainer.train()\n",
    "a subclass of the Hugging Face Trainer": "from transformers import Trainer\n\n\nclass Mine(Trainer):\n"
    "    def compute_loss(self, model, inputs):\n        return model(inputs)\n\n\nMine(model=1).train()\n",
    "fastai": "from fastai.vision.all import *\nlearn = vision_learner(dls, resnet18)\nlearn.fine_tune(1)\n",
    "a fastai Learner": "from fastai.learner import Learner\nLearner(dls, model).fit(1)\n",
    "TensorFlow": "import tensorflow as tf\n\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)\n",
    "Keras": "from keras.models import Sequential\nmodel = Sequential()\nmodel.fit(x, y)\n",
    "a gradient tape": "import tensorflow as tf\nwith tf.GradientTape() as tape:\n    loss = model(x)\ntape.gradient(loss, w)\n",
    "JAX": "import jax\nstep = jax.jit(jax.value_and_grad(loss))\n",
    "Flax": "from flax.training.train_state import TrainState\nimport jax\nstate = TrainState.create(params=p)\njax.grad(loss)(state)\n",
    "PaddlePaddle": "import paddle\nmodel = paddle.nn.Linear(2, 2)\nmodel(x).backward()\n",
    "Sentence Transformers": "from sentence_transformers import SentenceTransformer as Net\nmodel = Net('x')\nmodel.fit(data)\n",
    "Composer": "from composer import Trainer\ntrainer = Trainer(model=model)\ntrainer.fit()\n",
    "MMEngine": "from mmengine.runner import Runner\nrunner = Runner.from_cfg(cfg)\nrunner.train()\n",
    "Catalyst": "from catalyst import dl\nrunner = dl.SupervisedRunner()\nrunner.train(model=model, loaders=loaders)\n",
    "Poutyne": "from poutyne import Model\nmodel = Model(network, 'sgd', 'mse')\nmodel.fit(x, y)\n",
    "torchbearer": "from torchbearer import Trial\ntrial = Trial(model).with_generators(loader)\ntrial.run(2)\n",
    "skorch": "from skorch import NeuralNetClassifier\nnet = NeuralNetClassifier(Net)\nnet.fit(x, y)\n",
    "Stable-Baselines3": "from stable_baselines3 import PPO\nagent = PPO('MlpPolicy', 'CartPole-v1')\nagent.learn(99)\n",
    "PyTorch/XLA": "import torch_xla.core.xla_model as xm\nmodel(x).backward()\nxm.optimizer_step(optimizer)\n",
    "MXNet": "import mxnet as mx\nmodule = mx.mod.Module(symbol)\nmodule.fit(data)\n",
    "MindSpore": "import mindspore as ms\nmodel = ms.Model(network)\nmodel.train(2, data)\n",
    "torch's remote calls": "import torch.distributed.rpc as rpc\nrpc.init_rpc('trainer')\n" + LOOP,
    "an optional framework that is used": "try:\n    import horovod.torch as hvd\nexcept ImportError:\n    hvd = None\nif hvd:\n"
    "    hvd.init()\n" + LOOP,
}


@pytest.mark.parametrize("entry", DRIVEN.values(), ids=DRIVEN.keys())
def test_is_driven_by_a_framework(tmp_path: Path, entry: str) -> None:
    assert told(tmp_path, entry) == ("refuse", "DDP912")


@pytest.mark.parametrize(("name", "line"), [("Hugging Face Accelerate", 2), ("Lightning", 2), ("Ray", 3), ("TensorFlow", 4)])
def test_a_refusal_names_the_framework_and_the_line(tmp_path: Path, name: str, line: int) -> None:
    spoken = verdict(project(tmp_path, DRIVEN[name]))
    assert spoken is not None
    assert name in spoken.reason and spoken.line == line and f"train.py:{line}" in spoken.reason


def test_every_framework_says_what_it_offers() -> None:
    assert all(framework.offers and not framework.offers.endswith(".") for framework in FRAMEWORKS)
    assert all(framework.makes or framework.runs or framework.name == "Ray" for framework in FRAMEWORKS)


def test_a_framework_behind_a_local_module(tmp_path: Path) -> None:
    engine = "from accelerate import Accelerator\n\n\nclass Engine:\n    def __init__(self):\n        self.accelerator = Accelerator()\n"
    assert told(tmp_path, "from engine import Engine\nEngine()\n" + LOOP, engine=engine) == ("refuse", "DDP912")


def test_a_framework_re_exported_by_a_local_module(tmp_path: Path) -> None:
    assert told(tmp_path, "from tools import Accelerator\nAccelerator()\n" + LOOP, tools="from accelerate import Accelerator\n") == (
        "refuse",
        "DDP912",
    )


def test_a_local_module_of_a_frameworks_name(tmp_path: Path) -> None:
    tracer = "def init():\n    return 1\n\n\nclass Accelerator:\n    pass\n"
    assert (
        told(tmp_path, "import ray\nimport accelerate\nray.init()\naccelerate.Accelerator()\n" + LOOP, ray=tracer, accelerate=tracer)
        is None
    )


def test_the_source_of_a_framework_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "accelerate").mkdir()
    (tmp_path / "accelerate" / "__init__.py").write_text("class Accelerator:\n    pass\n")
    script = project(tmp_path / "examples", "from accelerate import Accelerator\nAccelerator()\n" + LOOP, tools="")
    spoken = verdict(script)
    assert spoken is not None and spoken.code == "DDP912"


UNTRAINED = {
    "an empty file": "",
    "a docstring": '"""loss.backward()"""\n',
    "a model": "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n",
    "an evaluation": "import torch\nmodel = torch.load('m.pt')\nmodel.eval()\nwith torch.no_grad():\n    print(model(x))\n",
    "a Lightning trainer that only tests": "import lightning as L\nL.Trainer().test(model)\n",
    "an own autograd function": "import torch\n\n\nclass Double(torch.autograd.Function):\n    @staticmethod\n"
    "    def backward(ctx, g):\n"
    "        return 2 * g\n\n\nprint(Double.apply(x))\n",
    "an environment and no training": "import gym\nenv = gym.make('A')\nenv.reset()\no, r, d, i = env.step(model(1))\n",
    "a backward without torch": "from micrograd import Value\nValue(1).backward()\n",
}


@pytest.mark.parametrize("entry", UNTRAINED.values(), ids=UNTRAINED.keys())
def test_there_is_nothing_to_train(tmp_path: Path, entry: str) -> None:
    assert told(tmp_path, entry) == ("nothing", "DDP913")


def test_a_backward_in_a_module(tmp_path: Path) -> None:
    solver = "import torch\n\n\nclass Solver:\n    def train(self):\n        self.net(1).backward()\n"
    assert told(tmp_path, "from solver import Solver\nSolver().train()\n", solver=solver) is None


def test_a_backward_in_a_command_of_a_module(tmp_path: Path) -> None:
    commands = "import click\nimport torch\n\ncli = click.Group()\n\n\n@cli.command()\ndef train():\n    model(x).backward()\n"
    assert told(tmp_path, "from commands import cli\ncli()\n", commands=commands) is None


def test_an_evaluation_that_borrows_from_the_training(tmp_path: Path) -> None:
    trainer = "import torch\n\n\ndef train():\n    model(x).backward()\n\n\ndef evaluate():\n    return 1\n"
    assert told(tmp_path, "from trainer import evaluate\nprint(evaluate())\n", trainer=trainer) == ("nothing", "DDP913")


def test_a_method_chosen_by_its_name(tmp_path: Path) -> None:
    solver = "import torch\n\n\nclass Solver:\n    def train(self):\n        self.net(1).backward()\n"
    assert told(tmp_path, "import sys\nfrom solver import Solver\ngetattr(Solver(), sys.argv[1])()\n", solver=solver) is None


def test_the_reason_says_what_was_read(tmp_path: Path) -> None:
    spoken = verdict(project(tmp_path, "import torch\nimport tools\nfrom secret.engine import run\nrun()\n", tools="print(1)\n"))
    assert spoken is not None
    assert "no backward call was found in the 2 files read" in spoken.reason
    assert "secret.engine could not be read" in spoken.reason


def test_a_folder_without_init_is_read(tmp_path: Path) -> None:
    spoken = verdict(project(tmp_path, "from tools import group\ngroup.start()\n", tools__group="def start():\n    pass\n"))
    assert spoken is not None and spoken.reason.endswith("(no backward call was found in the 2 files read)")


def test_the_training_may_be_in_a_module_that_does_not_parse(tmp_path: Path) -> None:
    assert verdict(project(tmp_path, "import old\nold.train()\n", old="print 'python 2'\n")) is None


def test_text_without_a_path() -> None:
    assert verdict(of_source(from_text(LOOP), None, "<stdin>")) is None
    spoken = verdict(of_source(from_text("from solver import train\ntrain()\n"), None, "<stdin>"))
    assert spoken is not None and spoken.file == "<stdin>" and "solver could not be read" in spoken.reason


REFUSED = {
    "Hogwild": (
        "DDP914",
        "import torch.multiprocessing as mp\n\n\ndef train(model):\n    model(x).backward()\n\n\nmodel.share_memory()\n"
        "for rank in range(4):\n    mp.Process(target=train, args=(model,)).start()\n",
    ),
    "a process class": (
        "DDP914",
        "import torch.multiprocessing as mp\n\n\nclass Worker(mp.Process):\n    def run(self):\n        model(x).backward()\n\n\n"
        "Worker().start()\n",
    ),
    "a spawn without a group": (
        "DDP914",
        "import torch\n\n\ndef train(rank):\n    model(x).backward()\n\n\ntorch.multiprocessing.spawn(train)\n",
    ),
    "a pool that trains": (
        "DDP914",
        "import torch\nfrom multiprocessing import Pool\n\n\ndef train(lr):\n    model(x).backward()\n\n\nwith Pool(2) as pool:\n"
        "    pool.map(train, [1, 2])\n",
    ),
    "a group and no wrap": ("DDP915", STARTED + LOOP),
    "a group and an averaged metric": ("DDP915", STARTED + LOOP + "dist.all_reduce(correct)\n"),
    "a group and DataParallel": ("DDP915", STARTED + LOOP + "model = torch.nn.DataParallel(model)\n"),
    "gym": (
        "DDP916",
        "import gym\nimport torch\nenv = gym.make('A')\nstate = env.reset()\nstate, reward, done, _ = env.step(1)\n"
        "model(state).backward()\n",
    ),
    "gymnasium's vectors": (
        "DDP916",
        "import gymnasium as gym\nimport torch\nenvs = gym.vector.SyncVectorEnv([])\nenvs.reset()\ntransition = envs.step(1)\n"
        "model(1).backward()\n",
    ),
    "an environment of its own": (
        "DDP916",
        "import torch\nfrom game import Game\ngame = Game()\ns = game.reset()\ns, r, done, info = game.step(1)\nmodel(s).backward()\n",
    ),
    "an adjacency matrix": (
        "DDP917",
        "import torch\n\n\ndef train(epoch):\n    out = model(features, adj)\n    loss = f(out[idx_train], labels[idx_train])\n"
        "    loss.backward()\n\n\nfor epoch in range(9):\n    train(epoch)\n",
    ),
    "a graph passed to its loop": (
        "DDP917",
        "import torch\n\n\ndef train(model, inputs, y, rows):\n    out = model(*inputs)\n    loss = f(out[rows], y[rows])\n"
        "    loss.backward()\n\n\ndef main():\n    x, a, y, rows = read()\n    for epoch in range(9):\n"
        "        train(net, (x, a), y, rows)\n\n\n"
        "main()\n",
    ),
    "a PyG data object": (
        "DDP917",
        "import torch\nfrom torch_geometric.datasets import Planetoid\ndata = Planetoid('x', 'Cora')[0]\nfor epoch in range(9):\n"
        "    out = model(data.x, data.edge_index)\n    loss = f(out[data.train_mask], data.y[data.train_mask])\n    loss.backward()\n",
    ),
    "a model that takes the data object": (
        "DDP917",
        "import torch\nfrom torch_geometric.datasets import Planetoid\ndata = Planetoid('x', 'Cora')[0]\nfor epoch in range(9):\n"
        "    f(model(data)[data.train_mask], data.y[data.train_mask]).backward()\n",
    ),
    "a DGL graph": (
        "DDP917",
        "import dgl\nimport torch\n\n\ndef train(g, x, y, masks):\n    rows = masks[0]\n    g = g.to('cuda')\n"
        "    for epoch in range(9):\n"
        "        logits = model(g, x)\n        loss = f(logits[rows], y[rows])\n        loss.backward()\n\n\ntrain(g, x, y, masks)\n",
    ),
}


@pytest.mark.parametrize(("code", "entry"), REFUSED.values(), ids=REFUSED.keys())
def test_is_refused(tmp_path: Path, code: str, entry: str) -> None:
    assert told(tmp_path, entry) == ("refuse", code)


def test_hogwild_is_called_by_its_name(tmp_path: Path) -> None:
    spoken = verdict(project(tmp_path, REFUSED["Hogwild"][1]))
    assert spoken is not None and spoken.reason.startswith("Hogwild") and spoken.line == 10


def test_a_package_that_looks_for_itself_ends(tmp_path: Path) -> None:
    script = tmp_path / "text" / "symbols.py"
    script.parent.mkdir()
    (script.parent / "__init__.py").write_text("from text.symbols import symbols\nprint(symbols.first)\n")
    script.write_text("from text import symbols\nprint(symbols.first.second)\n")
    assert verdict(load(script)) is not None


def test_names_that_stand_for_each_other_end(tmp_path: Path) -> None:
    assert told(tmp_path, "a = b\nb = a\na.c()\nb.d()\n" + LOOP) is None


def test_the_code_is_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Resolver] = []
    before = Resolver.__post_init__
    monkeypatch.setattr(Resolver, "__post_init__", lambda self: (made.append(self), before(self))[1])
    script = project(tmp_path, LOOP)
    assert verdict(script) is None and verdict(script) is None
    assert len(made) == 1
