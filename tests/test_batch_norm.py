"""Batch norm is taken over all ranks where a model may have it: what is no module of the model says nothing of that."""

from dataclasses import replace
from pathlib import Path

import pytest
from scripts import Script, converted, write
from table_wraps import SCRIPTS as WRAPPED

import ddpify
from ddpify import Options

SCRIPT = """
import json
from dataclasses import dataclass


@dataclass
class Settings:
    sizes: int = 8
    hidden: int = 6


class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.parts = nn.ModuleDict(dict(first=nn.Linear(settings.sizes, settings.hidden), last=nn.Linear(settings.hidden, 2)))
        self.parts.first.weight = nn.Parameter(torch.zeros(settings.hidden, settings.sizes))
        {norm}(settings.hidden)

    def forward(self, rows):
        return self.parts.last(self.norm(self.parts.first(rows)))


found = json.loads("{{}}").get("hidden")
net = Net(Settings(hidden=found if found is not None else 6))
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for rows, kinds in feed:
    loss = F.cross_entropy(net(rows), kinds)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
"""


LOADED = 'getattr(importlib.import_module("nets"), choice)'
DEVICE = "self.device = torch.device('cpu')\n        self.norm = nn.LayerNorm"
WIDTH = """self.bert = BertModel.from_pretrained(choice)
        self.width = self.bert.embeddings.word_embeddings.weight.shape[1]
        self.norm = nn.LayerNorm"""
NORMS = [
    ("nn.LayerNorm", False),
    (DEVICE, False),
    (WIDTH, False),
    ("self.sgd = torch.optim.SGD(self.parameters(), lr=0.1)\n        self.norm = nn.LayerNorm", False),
    ("nn.BatchNorm1d", True),
    ("Norm", True),
    ("make_norm", True),
    (LOADED, True),
    ("kinds.get(choice, nn.LayerNorm)", False),
]


@pytest.mark.parametrize(("norm", "synced"), NORMS)
def test_settings_and_parameters_are_no_modules(tmp_path: Path, norm: str, synced: bool) -> None:
    head = "from elsewhere import make_norm\n" if norm == "make_norm" else "import importlib\nimport sys\n\nchoice = sys.argv[1]\n"
    head += "kinds = {}\n" + "from transformers import BertModel\n" * ("Bert" in norm)
    if norm == "Norm":
        head += "import torch.nn as nn\n\n\nclass Norm(nn.BatchNorm1d):\n    pass\n\n\n"
    made = norm if "self.norm" in norm else f"self.norm = {norm}"
    done = converted(Script(head + SCRIPT.format(norm=made)), tmp_path)
    assert ("convert_sync_batchnorm" in done.code) is synced


CHILDREN = """
import torchvision

net = nn.Sequential(*list(torchvision.models.{model}().children())[:-1], nn.Flatten(), nn.Linear(512, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
for rows, kinds in feed:
    loss = F.cross_entropy(net(rows), kinds)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
"""


@pytest.mark.parametrize(("model", "synced"), [("resnet18", True), ("vgg11", False)])
def test_parts_of_another_network_may_hold_it(tmp_path: Path, model: str, synced: bool) -> None:
    done = converted(Script(CHILDREN.format(model=model)), tmp_path)
    assert ("convert_sync_batchnorm" in done.code) is synced


@pytest.mark.parametrize("told", [True, False])
def test_replicas_that_share_statistics_become_ranks_that_do(tmp_path: Path, told: bool) -> None:
    script = WRAPPED["batch norm whose replicas in a DataParallel share their statistics"]
    if not told:
        script = replace(script, text=script.text.replace("        tell_replicas(self.model)\n", ""))
    done = converted(script, tmp_path)
    test = 'is_cuda and any(hasattr(part, "__data_parallel_replicate__") for part in self.model.modules()):'
    assert (test in done.code) is told
    assert ("convert_sync_batchnorm" in done.code) is told
    assert "tell_replicas(self" not in done.code
    assert not done.exit_code


BANK = """
net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
train = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
memory = DataLoader(TensorDataset(x, y), batch_size=4)
test = DataLoader(TensorDataset(x, y), batch_size=4)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)


def fit():
    net.train()
    for rows, kinds in train:
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()


for epoch in range(2):
    fit()
    net.eval()
    bank, right = [], 0
    for rows, _ in memory:
        bank.append(net(rows).detach())
    bank = torch.cat(bank)
    {between}
    for rows, kinds in test:
        nearest = (net(rows) @ bank.t()).argmax(1)
        right += (y[nearest] == kinds).sum().item()
    print("right", right)
"""


@pytest.mark.parametrize(("between", "times"), [("bank = F.normalize(bank)", 1), ("fit()", 2)])
def test_all_evaluation_after_an_epoch_uses_the_same_statistics(tmp_path: Path, between: str, times: int) -> None:
    """Rank 0's statistics are given to the others before the first loop that uses them, and again after more training."""
    done = converted(Script(BANK.format(between=between)), tmp_path)
    assert "sum_over_ranks(right)" in done.code
    assert done.code.count("broadcast(buffer") == times
    assert done.code.index("broadcast(buffer") < done.code.index("in memory:")


STATISTICS = """
def statistics(loader, model):
    model.{mode}()
    for rows, _ in loader:
        model(rows)


net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
average = nn.Sequential(nn.Linear(8, 6), nn.{norm}(6), nn.Linear(6, 2))
train = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in train:
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    for kept, now in zip(average.parameters(), net.parameters()):
        kept.data.mul_(0.5).add_(now.data, alpha=0.5)
    statistics(train, average)
"""


@pytest.mark.parametrize(
    ("mode", "norm", "told"), [("train", "BatchNorm1d", True), ("eval", "BatchNorm1d", False), ("train", "LayerNorm", False)]
)
def test_statistics_of_a_network_that_is_not_trained(tmp_path: Path, mode: str, norm: str, told: bool) -> None:
    shares = Options(whole_batches="never")
    done = converted(Script(STATISTICS.format(mode=mode, norm=norm), options=shares), tmp_path)
    assert any("computes its statistics here" in finding.message for finding in done.findings) is told


PARTS = """
def error(net, loader):
    net.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for rows, kinds in loader:
            total += F.cross_entropy(net(rows), kinds, reduction="sum").item()
            count += len(rows)
    return total / count


data = TensorDataset(x, y)
loader = DataLoader(data, batch_size=4, shuffle=True)
others = DataLoader(data, batch_size=11, shuffle=True)
net = nn.DataParallel(nn.Sequential(nn.Linear(8, 6), nn.{norm}(6), nn.Linear(6, 2)))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for rows, kinds in loader:
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    print(error(net, loader), error(net, others))
"""


@pytest.mark.parametrize(("norm", "times"), [("BatchNorm1d", 1), ("LayerNorm", 0)])
def test_training_data_are_evaluated_with_the_same_statistics_on_all_ranks(tmp_path: Path, norm: str, times: int) -> None:
    done = converted(Script(PARTS.format(norm=norm)), tmp_path)
    assert done.exit_code == 0
    assert done.code.count("in net.buffers():") == times
    assert ddpify.convert(write(Script(""), tmp_path, {"train.py": done.code})).code == done.code


MOMENTUM = """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 6), nn.{norm}(6), nn.Linear(6, 2))

    def forward(self, rows):
        return self.body(rows)


online, target = Encoder(), Encoder()
{mode}
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
sgd = torch.optim.SGD(online.parameters(), lr=0.1)
for epoch in range(2):
    for rows, _ in loader:
        with torch.no_grad():
            wanted = target(rows)
        loss = F.mse_loss(online(rows), wanted)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        for kept, now in zip(target.parameters(), online.parameters()):
            kept.data.mul_(0.5).add_(now.data, alpha=0.5)
"""


@pytest.mark.parametrize(
    ("mode", "norm", "noted"),
    [
        ("target.train()", "BatchNorm1d", True),
        ("print(target)", "BatchNorm1d", True),
        ("target.eval()", "BatchNorm1d", False),
        ("target.train(False)", "BatchNorm1d", False),
        ("target.train()", "LayerNorm", False),
    ],
)
def test_a_target_network_in_training_mode_is_noted(tmp_path: Path, mode: str, norm: str, noted: bool) -> None:
    done = converted(Script(MOMENTUM.format(mode=mode, norm=norm)), tmp_path)
    assert done.exit_code == 0
    assert any("is not trained, but in training mode" in finding.message for finding in done.findings) is noted


@pytest.mark.parametrize(
    ("classes", "changed"), [("nn.BatchNorm1d", True), ("(nn.BatchNorm1d, nn.SyncBatchNorm)", False), ("nn.Linear", False)]
)
def test_training_that_looks_for_layers_of_a_class_that_they_no_longer_are(tmp_path: Path, classes: str, changed: bool) -> None:
    shrink = f"for layer in online.modules():\n    if isinstance(layer, {classes}):\n        layer.weight.grad.mul_(0.5)\n"
    step = "".join(f"        {line}\n" for line in shrink.splitlines()) + "        sgd.step()\n"
    done = converted(Script(MOMENTUM.format(mode="target.eval()", norm="BatchNorm1d").replace("        sgd.step()\n", step)), tmp_path)
    assert any("is a SyncBatchNorm" in change.why for change in done.changes) is changed
    assert ("isinstance(layer, (nn.BatchNorm1d, nn.SyncBatchNorm))" in done.code) is ("BatchNorm1d" in classes)
    assert done.exit_code == 0


REPEATED = """
class Norm(nn.BatchNorm1d):
    def __init__(self, size):
        super().__init__(size, momentum=0.4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.norm, self.far = nn.Linear(8, 6), {norm}(6), nn.Linear(6, 2)
        for layer in self.modules():
            if type(layer) is {norm}:
                layer.float()

    def forward(self, rows):
        return self.far(self.norm(self.near(rows)))

    def begin(self):
        for layer in self.modules():
            if {test}:
                layer.reset_parameters()


def train(net):
    net.begin()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()


loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
net = Net()
train(net){again}
"""


@pytest.mark.parametrize(
    ("norm", "test", "becomes"),
    [
        ("nn.BatchNorm1d", "isinstance(layer, nn.BatchNorm1d)", "isinstance(layer, (nn.BatchNorm1d, nn.SyncBatchNorm))"),
        ("Norm", "type(layer) in (nn.Linear, Norm)", "type(layer) in (nn.Linear, Norm, nn.SyncBatchNorm)"),
        ("Norm", "isinstance(layer, Norm)", "isinstance(layer, (Norm, torch.nn.SyncBatchNorm))"),
        ("nn.BatchNorm1d", "type(layer) == nn.BatchNorm1d", ""),
        ("Norm", "isinstance(layer, nn.BatchNorm1d)", "isinstance(layer, (nn.BatchNorm1d, nn.SyncBatchNorm))"),
        ("Norm", "type(layer) in (nn.Linear, nn.BatchNorm1d)", ""),
    ],
)
def test_a_network_that_is_trained_again_is_asked_for_its_batch_norm(tmp_path: Path, norm: str, test: str, becomes: str) -> None:
    for again, asked in (("\ntrain(net)", True), ("", False)):
        (folder := tmp_path / str(asked)).mkdir()
        done = converted(Script(REPEATED.format(norm=norm, test=test, again=again)), folder)
        told = [f for f in done.findings if "is a SyncBatchNorm" in f.message]
        assert bool(told) is (asked and not becomes)
        assert (becomes in done.code) is asked if becomes else f"if {test}:" in done.code
        assert f"if type(layer) is {norm}:" in done.code


FORWARDS = """
net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in loader:
        {forwards}
        loss = F.cross_entropy(scores, kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""


@pytest.mark.parametrize(
    ("forwards", "noted"),
    [
        ("scores = net(rows) if epoch else net(rows * 0.5)", False),
        ("scores = net(rows) + net(rows * 0.5)", True),
        ("if epoch:\n            scores = net(rows)\n        else:\n            scores = net(rows * 0.5)", False),
        ("if epoch:\n            scores = net(rows)\n        if not epoch:\n            scores = net(rows * 0.5)", True),
    ],
)
def test_two_branches_of_which_one_runs_are_one_forward(tmp_path: Path, forwards: str, noted: bool) -> None:
    done = converted(Script(FORWARDS.format(forwards=forwards)), tmp_path)
    assert any("runs twice before one backward call" in finding.message for finding in done.findings) is noted


LAYERS = """
def momentum_of(layer, momentum):
    if isinstance(layer, nn.BatchNorm2d) or isinstance(layer, nn.BatchNorm1d):
        layer.momentum = momentum


net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.apply(lambda layer: momentum_of(layer, 0.1 * 0.5**epoch))
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
        loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_a_function_applied_to_all_layers_that_asks_for_batch_norm(tmp_path: Path) -> None:
    done = converted(Script(LAYERS), tmp_path)
    assert done.exit_code == 0, done.findings
    assert "if isinstance(layer, (nn.BatchNorm2d, nn.SyncBatchNorm)) or isinstance(layer, nn.BatchNorm1d):" in done.code


TAUGHT = """
def network():
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))


teacher, net = nn.DataParallel(network()), {net}
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
teacher.eval()
for rows, kinds in feed:
    with torch.no_grad():
        soft = teacher(rows).softmax(1)
    loss = F.cross_entropy(net(rows), soft)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
"""


@pytest.mark.parametrize(("net", "synced"), [("network()", True), ("nn.DataParallel(network())", False)])
def test_a_network_that_ran_on_one_gpu_beside_one_that_ran_on_several(tmp_path: Path, net: str, synced: bool) -> None:
    done = converted(Script(TAUGHT.format(net=net)), tmp_path)
    assert done.exit_code == 0
    assert ("convert_sync_batchnorm" in done.code) is synced


FOR_PARTS = """
net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
checks = DataLoader(TensorDataset(x, y), batch_size=4)
for rows, kinds in feed:
    scores = [net(rows)]
    for part in torch.split(torch.cat([rows + 1, rows - 1]), rows.size(0)):
        scores.append(net(part))
    loss = F.cross_entropy(scores[0], kinds) + scores[1].pow(2).mean() + scores[2].pow(2).mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
net.eval()
right = 0
with torch.no_grad():
    for rows, kinds in checks:
        right += (net(rows).argmax(1) == kinds).sum().item()
print(right)
"""


def test_a_model_that_trains_on_parts_of_a_batch_goes_on_with_its_statistics(tmp_path: Path) -> None:
    before, _, after = converted(Script(FOR_PARTS), tmp_path).code.partition("torch.no_grad()")
    assert ("net.buffers()" in before, "net.buffers()" in after) == (False, True)


EITHER = """
import sys

kind = sys.argv[1] if len(sys.argv) > 1 else "deep"
if kind == "deep":
    net = {first}
else:
    net = {second}
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
    out = net(rows)
    sgd.zero_grad()
    F.cross_entropy(out, kinds).backward(retain_graph=True)
    out.pow(2).mean().backward()
    sgd.step()
"""
DEEP = "nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))"


@pytest.mark.parametrize(("first", "second"), [(DEEP, "nn.Linear(8, 2)"), ("nn.Linear(8, 2)", DEEP)])
def test_any_network_that_a_name_may_hold_may_have_it(tmp_path: Path, first: str, second: str) -> None:
    """Also where no wrapper averages the gradients."""
    done = converted(Script(EITHER.format(first=first, second=second)), tmp_path)
    assert "average_gradients(sgd)" in done.code
    assert "convert_sync_batchnorm" in done.code


IN_A_PAIR = """
def ordered(samples):
    samples.sort(key=lambda sample: sample[0][0].item(), reverse=True)
    rows, kinds = zip(*samples)
    return torch.stack(rows), [int(kind) + 1 for kind in kinds]


class Pair:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(8, 6), NORM, nn.Linear(6, 4))
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.001)

    def outputs(self, rows):
        return self.net(rows)

    def step(self, rows):
        out = self.outputs(rows)
        self.sgd.zero_grad()
        F.relu(out @ out.t()).max(1)[0].sum().backward(retain_graph=True)
        out.pow(2).mean().backward()
        self.sgd.step()


pair = Pair()
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, collate_fn=ordered)
others = DataLoader(TensorDataset(x, y), batch_size=44, collate_fn=ordered)
for epoch in range(2):
    pair.net.train()
    for rows, _ in feed:
        pair.step(rows)
    pair.net.eval()
    with torch.no_grad():
        found = torch.cat([pair.outputs(rows) for rows, _ in others])
        print("as by one rank:", torch.allclose(found, pair.net(x[x[:, 0].argsort(descending=True)]), atol=1e-5))
"""


@pytest.mark.parametrize(("norm", "times"), [("nn.BatchNorm1d(6)", 1), ("nn.LayerNorm(6)", 0)])
def test_a_network_without_a_wrapper_evaluates_parts_of_a_batch_with_the_same_statistics(tmp_path: Path, norm: str, times: int) -> None:
    assert converted(Script(IN_A_PAIR.replace("NORM", norm)), tmp_path).code.count("start_alike(self.net.buffers())") == times


_SHOWN = """
from torch.utils.tensorboard import SummaryWriter
from torchsummary import summary

net = nn.Sequential(nn.Linear(8, 6), {norm}(6), nn.Linear(6, 2))
writer = SummaryWriter()
{before}
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for step, (rows, kinds) in enumerate(feed):
    loss = F.cross_entropy(net(rows), kinds)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    {inside}
"""
_GRAPH = "writer.add_graph(net, rows)"


@pytest.mark.parametrize("norm", ["nn.BatchNorm1d", "nn.LayerNorm"])
@pytest.mark.parametrize("shown", [_GRAPH, "summary(net, (8,))"])
def test_rank_zero_runs_no_network_that_waits_for_the_others_to_show_it(tmp_path: Path, norm: str, shown: str) -> None:
    before = converted(Script(_SHOWN.format(norm=norm, before=shown.replace("rows", "x[:4]"), inside="")), tmp_path).code
    assert before.index(shown.replace("rows", "x[:4]")) < before.index("net = DistributedDataParallel(net")
    inside = converted(Script(_SHOWN.format(norm=norm, before="", inside=f"if step == 0:\n        {shown}")), tmp_path).code
    assert shown.replace("net", "copy.deepcopy(net.module).eval()" if "Batch" in norm else "net.module") in inside


_PART = """
net = nn.Sequential(nn.Linear(8, 16), {norm}(16), nn.Linear(16, 2))
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for rows, kinds in feed:
    net.train()
    loss = F.cross_entropy(net(rows), kinds)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    net.{mode}
    large = rows.sum(1) > 0
    if large.any():
        with torch.no_grad():
            print(net(rows[large]).shape[1])
"""


@pytest.mark.parametrize(
    ("norm", "mode", "asked"),
    [
        ("nn.BatchNorm1d", "train()", 1),
        ("nn.BatchNorm1d", "eval()", 0),
        ("nn.BatchNorm1d", "train(False)", 0),
        ("nn.LayerNorm", "train()", 0),
    ],
)
def test_all_ranks_run_a_network_that_waits_for_them_or_none_does(tmp_path: Path, norm: str, mode: str, asked: int) -> None:
    done = converted(Script(_PART.format(norm=norm, mode=mode)), tmp_path)
    assert done.exit_code == 0
    assert done.code.count("if on_any_rank(large.any()):") == asked
