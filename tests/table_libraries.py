"""Libraries whose models compute losses inside, over targets of which some are ignored, and packages that are known as source."""

from scripts import Script, on_three

from ddpify.resources import template_dir

_TAGGERS = """\
import types

import torch
from torch import nn


class _Model(nn.Module):
    shift = 0

    def __init__(self):
        super().__init__()
        self.words, self.fc = nn.Embedding(9, 8), nn.Linear(8, 9)

    @classmethod
    def from_pretrained(cls, name):
        torch.manual_seed(0)
        return cls()

    def forward(self, ids, labels=None, return_dict=True):
        logits = self.fc(self.words(ids))
        loss = None
        if labels is not None:
            scores, targets = logits[:, : -1 if self.shift else None], labels[:, self.shift :]
            loss = nn.functional.cross_entropy(scores.reshape(-1, 9), targets.reshape(-1))
        if not return_dict:
            return loss, logits
        return Output(loss=loss, logits=logits)


class Output(types.SimpleNamespace):
    def __getitem__(self, key):
        return getattr(self, key) if isinstance(key, str) else [self.loss, self.logits][key]


class BertForTokenClassification(_Model):
    pass


class GPT2LMHeadModel(_Model):
    shift = 1


class LlavaForConditionalGeneration(_Model):
    shift = 1
"""

_HEAD = """
from transformers import {model}

ids = (x.abs() * 8).long()
tags = ids % 4
tags[ids % 3 == 0] = -100
tags[::2, 2:] = -100


class Sentences(Dataset):
    def __len__(self):
        return len(ids)

    def __getitem__(self, i):
        return {{"ids": ids[i], "labels": tags[i]}}


feed = DataLoader(Sentences(), batch_size=6, shuffle=True, drop_last=True)
net = {model}.from_pretrained("small")
sgd = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(3):
    total = 0.0
    for step, batch in enumerate(feed):
{body}
        loss.backward()
        sgd.step()
        sgd.zero_grad()
        total += loss.item()
    print("tags", epoch, round(total / len(feed), 6))
"""


def _script(body: str, model: str = "BertForTokenClassification", told: tuple[str, ...] = (), padded: bool = False) -> Script:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    text = _HEAD.format(model=model, body=lines)
    if padded:
        text = text.replace("\n\nfeed = ", _PADDED).replace("drop_last=True", "drop_last=True, collate_fn=padded")
    return Script(text, ("tags",) if not told else (), told=told, stand_ins={"transformers.py": _TAGGERS})


_PADDED = """

def padded(samples):
    rows = [sample["ids"][: 3 + int(sample["ids"][0]) % 5] for sample in samples]
    return {"ids": nn.utils.rnn.pad_sequence(rows, batch_first=True)}


feed = """

_READ = "outputs = net(**batch)\nloss = outputs.loss"
_OF_MODELS = {
    "a tagger that is given all of a batch by name": _script(_READ),
    "a tagger's loss, divided by a number": _script("outputs = net(**batch)\nloss = outputs.loss / 4"),
    "a tagger's loss, read at once": _script('loss = net(batch["ids"], labels=batch["labels"]).loss'),
    "a tagger's first output": _script('outputs = net(batch["ids"], labels=batch["labels"])\nloss = outputs[0]'),
    "a tagger's first outputs, unpacked": _script('outputs = net(batch["ids"], labels=batch["labels"])\nloss, scores = outputs[:2]'),
    "a tagger's output, by its key": _script('outputs = net(**batch)\nloss = outputs["loss"]'),
    "a tagger's loss under autocast": _script(
        'with torch.autocast("cpu", enabled=False):\n    outputs = net(**batch)\nloss = outputs.loss',
    ),
    "a tagger's loss that is shown, too": _script(
        "outputs = net(**batch)\nloss = outputs.loss\nif step % 3 == 0:\n    print('so far', outputs.loss.item())"
    ),
    "a language model, which tells each token from those before it": _script(_READ, "GPT2LMHeadModel"),
    "a language model that tells its inputs": _script(
        'outputs = net(batch["ids"], labels=batch["ids"].clone())\nloss = outputs.loss', "GPT2LMHeadModel"
    ),
    "a language model that tells its inputs, which are padded": _script(
        'outputs = net(batch["ids"], labels=batch["ids"])\nloss = outputs.loss', "GPT2LMHeadModel", ("DDP402",), padded=True
    ),
    "a tagger with other targets by then": _script(
        'labels = batch["labels"]\noutputs = net(batch["ids"], labels=labels)\nlabels = labels[:, :2]\nloss = outputs.loss',
    ),
    "a language model whose batch is gone by then": _script(
        "with torch.enable_grad():\n    outputs = net(**batch)\n    del batch\nloss = outputs.loss", "GPT2LMHeadModel"
    ),
    "a tagger's loss of targets that a call makes": _script(
        'loss = net(batch["ids"], labels=batch["labels"].view(len(batch["ids"]), -1)).loss', told=("DDP402",)
    ),
    "a tagger's loss in a pair": _script('loss, scores = net(batch["ids"], labels=batch["labels"], return_dict=False)'),
    "a model whose loss is not known": _script(_READ, "LlavaForConditionalGeneration", told=("DDP402",)),
}
_OWN = """
ids = (x.abs() * 8).long()
tags = ids % 4
tags[ids % 3 == 0] = -100
tags[::2, 2:] = -100
torch.manual_seed(0)
weights = torch.tensor([0.5, 1.0, 2.0, 3.0])
net = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 4))
criterion = nn.CrossEntropyLoss({weights})
feed = DataLoader(TensorDataset(ids, tags), batch_size=6, shuffle=True, drop_last=True)
sgd = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(3):
    total = 0.0
    for rows, kinds in feed:
        loss = {loss}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.item()
    print("tags", epoch, round(total / len(feed), 6))
"""
_IGNORED = {
    "targets that are ignored without a word": Script(
        _OWN.format(weights="", loss="criterion(net(rows).view(-1, 4), kinds.view(-1))"), ("tags",)
    ),
    "targets that are ignored without a word, in a function": Script(
        _OWN.format(weights="", loss="F.cross_entropy(net(rows).view(-1, 4), kinds.view(-1))"), ("tags",)
    ),
    "targets that are ignored without a word, the others by weights": Script(
        _OWN.format(weights="weight=weights", loss="criterion(net(rows).view(-1, 4), kinds.view(-1))"), ("tags",)
    ),
}

_SOURCE = template_dir() / "library" / "timm.py"
_TIMM = {
    "timm/__init__.py": "from torch import nn\n\n\ndef create_model(name, num_classes=2):\n    return nn.Linear(8, num_classes)\n",
    **dict.fromkeys((f"timm/{name}.py" for name in ("utils", "loss", "optim", "scheduler", "data")), _SOURCE.read_text()),
}
_WITH_TIMM = """
import timm
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV2, accuracy


def fit(net, feed, loss_of, sgd, ema):
    losses, first = AverageMeter(), AverageMeter()
    net.train()
    for rows, kinds in feed:
        scores = net(rows)
        loss = loss_of(scores, F.one_hot(kinds, 2).float())
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        ema.update(net)
        losses.update(loss.item(), rows.size(0))
        first.update(accuracy(scores, kinds)[0].item(), rows.size(0))
    return losses.avg, first.avg


torch.manual_seed(0)
feed = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True, drop_last=True)
net = timm.create_model("small", num_classes=2)
ema = ModelEmaV2(net, decay=0.9)
sgd = create_optimizer_v2(net, opt="sgd", lr=0.1)
for group in sgd.param_groups:
    group.setdefault("initial_lr", 0.1)
scheduler = CosineLRScheduler(sgd, t_initial=3)
for epoch in range(3):
    loss, right = fit(net, feed, SoftTargetCrossEntropy(), sgd, ema)
    scheduler.step(epoch + 1, right)
    print("fit", epoch, round(loss, 6), round(right, 4))
torch.save({"net": net.state_dict(), "ema": ema.module.state_dict()}, "both.pt")
"""
_WITH_SCALER = """
import timm
from timm.loss import LabelSmoothingCrossEntropy
from timm.utils import ModelEma, NativeScaler

torch.manual_seed(0)
feed = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True, drop_last=True)
net = timm.create_model("small", num_classes=2)
ema = ModelEma(net, decay=0.9)
criterion = LabelSmoothingCrossEntropy(0.1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
scale = NativeScaler()
for epoch in range(3):
    total = 0.0
    for rows, kinds in feed:
        loss = criterion(net(rows), kinds)
        sgd.zero_grad()
        scale(loss, sgd, clip_grad=0.5, parameters=net.parameters())
        ema.update(net)
        total += loss.item()
    print("fit", epoch, round(total / len(feed), 6))
torch.save({"net": net.state_dict(), "ema": ema.ema.state_dict()}, "both.pt")
"""
_CRF = {"torchcrf.py": (template_dir() / "library" / "torchcrf.py").read_text()}
_WITH_CRF = """
from torchcrf import CRF


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(2, 3)
        self.crf = CRF(3, batch_first=True)

    def forward(self, rows, tags=None, mask=None):
        scores = self.scores(rows.view(len(rows), 4, 2))
        if tags is None:
            return self.crf.decode(scores, mask=mask)
        return -self.crf(scores, tags, mask=mask{reduction})


torch.manual_seed(0)
tags = (torch.arange(len(x) * 4).view(-1, 4) * y.view(-1, 1)) % 3
mask = torch.arange(4).view(1, 4) < 2 + torch.arange(len(x)).view(-1, 1) % 3
feed = DataLoader(TensorDataset(x[:36], tags[:36], mask[:36]), batch_size=6, shuffle=True)
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(3):
    model.train()
    for rows, kinds, kept in feed:
        loss = model(rows, kinds, kept)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for found, wanted in zip(model(x[36:], mask=mask[36:]), tags[36:].tolist()):
            right += sum(one == other for one, other in zip(found, wanted))
    print("tagged", epoch, right)
"""
_OF_SOURCE = {
    "a conditional random field, of whose losses the sum is taken": Script(
        _WITH_CRF.replace("{reduction}", ""), ("tagged",), stand_ins=_CRF
    ),
    "a conditional random field, of whose losses the mean is taken": Script(
        _WITH_CRF.replace("{reduction}", ', reduction="mean"'), ("tagged",), stand_ins=_CRF
    ),
    "a conditional random field, of whose losses the mean of the steps is taken": Script(
        _WITH_CRF.replace("{reduction}", ', reduction="token_mean"'), ("tagged",), stand_ins=_CRF
    ),
    "a package whose scaler goes backward and steps": Script(_WITH_SCALER, ("fit",), stand_ins=_TIMM, apart=("prints",)),
    "a package whose meters, losses and averages of weights are known as source": Script(_WITH_TIMM, ("fit",), stand_ins=_TIMM),
}

_GRAPHS = """
import types

import torch


class Graphs(types.SimpleNamespace):
    def to(self, device):
        return self


def _side_by_side(graphs):
    sizes = [len(g.x) for g in graphs]
    numbers = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor(sizes))
    first = torch.cat([sum(sizes[:i]) + torch.arange(n - 1) for i, n in enumerate(sizes)])
    rows = {"x": torch.cat([g.x for g in graphs]), "y": torch.cat([g.y for g in graphs])}
    return Graphs(**rows, edge_index=torch.stack([first, first + 1]), batch=numbers, num_graphs=len(graphs))


class DataLoader(torch.utils.data.DataLoader):
    def __init__(self, dataset, batch_size=1, shuffle=False, follow_batch=None, exclude_keys=None, **kwargs):
        super().__init__(dataset, batch_size, shuffle, collate_fn=_side_by_side, **kwargs)
"""
_POOLING = """
import torch


def global_mean_pool(x, batch, size=None):
    n = int(batch.max()) + 1
    total = torch.zeros(n, x.size(1), dtype=x.dtype).index_add(0, batch, x)
    return total / torch.bincount(batch, minlength=n).unsqueeze(1)


class MessagePassing(torch.nn.Module):
    def __init__(self, aggr="add"):
        super().__init__()

    def propagate(self, edge_index, x):
        return torch.zeros_like(x).index_add(0, edge_index[1], self.message(x[edge_index[0]]))


def global_sort_pool(x, batch, k):
    return global_mean_pool(x - x.mean(0), batch)


class PairNorm(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(0)
"""
_WITH_GRAPHS = """
import types

from torch_geometric.loader import DataLoader
from torch_geometric.nn import MessagePassing, PairNorm, global_mean_pool, global_sort_pool


class Along(MessagePassing):
    def __init__(self):
        super().__init__(aggr="add")
        self.mix = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6).eval(), nn.ReLU())

    def forward(self, x, edge_index):
        return self.mix(x + self.propagate(edge_index, x=x))

    def message(self, x_j):
        return {told}


class Graph(types.SimpleNamespace):
    pass


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.of_node, self.of_graph = {of_node}, nn.Linear(6, 2)
        {more}

    def forward(self, data):
        nodes = self.of_node(data.x).relu()
        {then}
        return self.of_graph({pooled})


torch.manual_seed(0)
graphs = [Graph(x=x[i, : 2 + 2 * (i % 4)].view(-1, 2), y=y[i : i + 1]) for i in range(len(x))]
feed = DataLoader(graphs, batch_size=6, shuffle=True, drop_last=True)
net = Reader()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    total = right = 0
    for data in feed:
        data = data.to("cpu")
        scores = net(data)
        loss = {loss}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.item() * data.num_graphs
        right += int((scores.argmax(dim=1) == {wanted}).sum())
    print("graphs", epoch, round(total / len(graphs), 6), right)
"""
_UTILS = """
import torch


def add_self_loops(edge_index, edge_attr=None, fill_value=None, num_nodes=None):
    return torch.cat([edge_index, torch.arange(num_nodes).repeat(2, 1)], dim=1), edge_attr


def degree(index, num_nodes=None, dtype=None):
    return torch.zeros(num_nodes).index_add(0, index, torch.ones(len(index)))


def scatter(src, index, dim=0, dim_size=None, reduce="sum"):
    return torch.zeros(dim_size or int(index.max()) + 1, src.size(1)).index_add(0, index, src)


def softmax(src, index, ptr=None, num_nodes=None):
    total = torch.zeros(num_nodes or int(index.max()) + 1, *src.shape[1:]).index_add(0, index, src.exp())
    return src.exp() / total[index]


def to_dense_batch(x, batch):
    n, most = int(batch.max()) + 1, int(torch.bincount(batch).max())
    rows, there = torch.zeros(n, most, x.size(1)), torch.zeros(n, most).bool()
    for i in range(n):
        own = x[batch == i]
        rows[i, : len(own)], there[i, : len(own)] = own, True
    return rows, there
"""
_LIBRARY = {
    "torch_geometric/__init__.py": "",
    "torch_geometric/loader.py": _GRAPHS,
    "torch_geometric/nn.py": _POOLING,
    "torch_geometric/utils.py": _UTILS,
}
_POOLED = {
    "of_node": "nn.Linear(2, 6)",
    "pooled": "global_mean_pool(nodes, data.batch)",
    "loss": "F.cross_entropy(scores, data.y)",
    "wanted": "data.y",
    "told": "x_j.relu()",
    "more": "",
    "then": "",
}
_NORMED = _POOLED | {"of_node": "nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6).eval())"}
_ALONG = _POOLED | {"more": "self.along = Along()", "then": "nodes = self.along(nodes, data.edge_index)"}
_MET = _ALONG | {"told": "x_j - x_j.mean(0)"}
_ELSEWHERE = _ALONG | {"then": "nodes = self.along(nodes, torch.stack([torch.zeros(2).long(), torch.arange(2)]))"}
_PAIRED = _POOLED | {"more": "self.norm = PairNorm()", "then": "nodes = self.norm(nodes)"}
_SORTED = _POOLED | {"pooled": "global_sort_pool(nodes, data.batch, 1)"}
_OF_NODES = _POOLED | {"pooled": "nodes", "loss": "F.cross_entropy(scores, data.y[data.batch])", "wanted": "data.y[data.batch]"}
_ENDS = "row, col = data.edge_index"
_OF_EDGES = {
    "nodes that are taken and added up by the ends of edges": f"{_ENDS}; nodes = nodes.index_add(0, col, nodes[row])",
    "nodes that are put together by the ends of edges": (
        f"{_ENDS}; pairs = torch.cat([nodes[row], nodes[col]], dim=1); nodes = nodes + scatter(pairs, col, 0, len(nodes))[:, :6]"
    ),
    "nodes that are scaled by how many edges they have, loops among them": (
        "ends, _ = add_self_loops(data.edge_index, num_nodes=nodes.size(0)); size = degree(ends[1], nodes.size(0)).pow(-0.5)\n"
        "        nodes = scatter((size[ends[0]] * size[ends[1]]).view(-1, 1) * nodes[ends[0]], ends[1], 0, nodes.size(0))"
    ),
    "edges whose attributes stand beside those of loops": (
        "ends, _ = add_self_loops(data.edge_index, num_nodes=nodes.size(0)); loops = torch.zeros(nodes.size(0), 6)\n"
        "        loops[:, 0] = 4; kinds = torch.cat((nodes[data.edge_index[1]], loops), dim=0)\n"
        "        nodes = scatter(nodes[ends[0]] + kinds, ends[1], 0, nodes.size(0))"
    ),
    "edges whose weights are a softmax over those of a node": (
        f"{_ENDS}; shares = softmax(nodes[row].sum(1), col, num_nodes=nodes.size(0))\n"
        "        nodes = nodes + scatter(shares.unsqueeze(1) * nodes[row], col, 0, nodes.size(0))"
    ),
    "edges of which a mask takes some": (
        f"{_ENDS}; row, col = data.edge_index[:, nodes[row][:, 0] > nodes[col][:, 0]]; nodes = nodes.index_add(0, col, nodes[row])"
    ),
    "nodes that get what their graph has": (
        "n = data.batch[-1].item() + 1; all_of_it = torch.zeros(n, 6).index_add(0, data.batch, nodes)\n"
        "        nodes = nodes + all_of_it[data.batch]"
    ),
    "nodes that are put into a row for each graph, and masked": (
        "rows, there = to_dense_batch(nodes, data.batch); own = (rows * there.unsqueeze(-1)).sum(1) / there.sum(1, keepdim=True)\n"
        "        nodes = nodes + own[data.batch]"
    ),
}
_OF_OTHERS = {
    "nodes that are taken by the number after an edge's end": f"{_ENDS}; nodes = nodes + nodes[(row[0] + 1) % len(nodes)]",
    "nodes that get what another graph has": "nodes = nodes + global_mean_pool(nodes, data.batch)[data.batch // 2]",
    "nodes that are divided by how many there are": "nodes = nodes * 9 / len(nodes)",
    "nodes that are scaled by the mean of their edges": (
        "size = degree(data.edge_index[1], nodes.size(0)); nodes = nodes * (size / size.mean()).view(-1, 1)"
    ),
}
_WITH_UTILS = "from torch_geometric.utils import add_self_loops, degree, scatter, softmax, to_dense_batch\n" + _WITH_GRAPHS
_OF_GRAPHS = {
    **{t: Script(_WITH_UTILS.format(**_POOLED | {"then": c}), ("graphs",), stand_ins=_LIBRARY) for t, c in _OF_EDGES.items()},
    **{t: Script(_WITH_UTILS.format(**_POOLED | {"then": c}), told=("DDP402",), stand_ins=_LIBRARY) for t, c in _OF_OTHERS.items()},
    "graphs that are classified as a whole": Script(_WITH_GRAPHS.format(**_POOLED), ("graphs",), stand_ins=_LIBRARY),
    "graphs that are classified as a whole, their nodes normed": Script(_WITH_GRAPHS.format(**_NORMED), ("graphs",), stand_ins=_LIBRARY),
    "graphs whose nodes are told along edges": Script(_WITH_GRAPHS.format(**_ALONG), ("graphs",), stand_ins=_LIBRARY),
    "graphs whose nodes are told what is left of a mean over all nodes": Script(
        _WITH_GRAPHS.format(**_MET), told=("DDP402",), stand_ins=_LIBRARY
    ),
    "graphs whose nodes are told along edges that join them all": Script(
        _WITH_GRAPHS.format(**_ELSEWHERE), told=("DDP402",), stand_ins=_LIBRARY
    ),
    "graphs whose nodes a layer of the library norms by one another": Script(
        _WITH_GRAPHS.format(**_PAIRED), told=("DDP402",), stand_ins=_LIBRARY
    ),
    "graphs that are pooled by a function of the library that is not known": Script(
        _WITH_GRAPHS.format(**_SORTED), told=("DDP402",), stand_ins=_LIBRARY
    ),
    "graphs whose nodes are classified": Script(_WITH_GRAPHS.format(**_OF_NODES), ("graphs",), stand_ins=_LIBRARY),
}
_AROUND = """\
import types

import torch


class Sampled(types.SimpleNamespace):
    def to(self, device):
        return self


class NeighborLoader(torch.utils.data.DataLoader):
    def __init__(self, data, num_neighbors, input_nodes=None, **options):
        self.graph = data
        nodes = torch.arange(data.num_nodes) if input_nodes is None else input_nodes
        self.nodes = nodes.nonzero().view(-1) if nodes.dtype == torch.bool else nodes
        super().__init__(range(len(self.nodes)), collate_fn=self.around, **options)

    def around(self, places):
        seeds, n = self.nodes[torch.tensor(places)], self.graph.num_nodes
        ids, here = torch.cat([seeds, (seeds + 1) % n, (seeds - 1) % n]), torch.arange(len(seeds))
        edges = torch.stack([torch.cat([here + len(seeds), here + 2 * len(seeds)]), here.repeat(2)])
        return Sampled(x=self.graph.x[ids], y=self.graph.y[ids], edge_index=edges, n_id=ids, batch_size=len(seeds))
"""
_SAGE = """\
import torch


class SAGEConv(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.others = torch.nn.Linear(inputs, outputs), torch.nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        told = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.own(x) + self.others(told)
"""
_WITH_NODES = """
import types

from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.along, self.last = SAGEConv(8, 6), nn.Linear(6, 2)

    def forward(self, nodes, edges):
        return self.last(self.along(nodes, edges).relu())


torch.manual_seed(0)
graph = types.SimpleNamespace(x=x, y=y, num_nodes=len(x), seen=torch.arange(len(x)) % 7 != 0)
options = dict(batch_size=6, num_workers=0)
feed = {feed}
test = NeighborLoader(graph, [2], input_nodes=~graph.seen, batch_size=4)
net = Reader()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    total = count = right = 0
    for batch in feed:
        batch = batch.to("cpu")
        scores = net(batch.x, batch.edge_index){of}
        loss = F.cross_entropy(scores, batch.y{of})
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.item() * batch.batch_size
        count += batch.batch_size
    with torch.no_grad():
        for batch in test:
            size = batch.batch_size
            right += int((net(batch.x, batch.edge_index)[:size].argmax(dim=1) == batch.y[:size]).sum())
    print("nodes", epoch, round(total / count, 6), count, right)
"""
_NODES = {"torch_geometric/__init__.py": "", "torch_geometric/loader.py": _AROUND, "torch_geometric/nn.py": _SAGE}
_SEEDS = {
    "feed": "NeighborLoader(graph, [2], input_nodes=graph.seen, batch_size=6, shuffle=True, drop_last=True)",
    "of": "[: batch.batch_size]",
}
_AROUND_NODES = {
    "nodes that are classified, with those around them": Script(_WITH_NODES.format(**_SEEDS), ("nodes",), stand_ins=_NODES),
    "nodes by their numbers, by options in a dict": Script(
        _WITH_NODES.format(**_SEEDS | {"feed": "NeighborLoader(graph, [2], graph.seen.nonzero().view(-1), shuffle=True, **options)"}),
        ("nodes",),
        stand_ins=_NODES,
    ),
    "all nodes of a graph": Script(
        _WITH_NODES.format(**_SEEDS | {"feed": "NeighborLoader(graph, num_neighbors=[2], **options)"}), ("nodes",), stand_ins=_NODES
    ),
    "nodes that are classified as those around them are": Script(
        _WITH_NODES.format(**_SEEDS | {"of": ""}), told=("DDP402",), stand_ins=_NODES
    ),
    "layers along edges that are made at their first call": Script(
        _WITH_NODES.format(**_SEEDS).replace("SAGEConv(8, 6)", "SAGEConv((-1, -1), 6)"), told=("DDP201",), stand_ins=_NODES
    ),
    "nodes of one kind of several": Script(
        _WITH_NODES.format(**_SEEDS | {"feed": 'NeighborLoader(graph, [2], ("paper", graph.seen), batch_size=6)'}),
        told=("DDP301",),
        stand_ins=_NODES,
    ),
}
_SHARED_BY_HAND = {
    f"a loader that is not edited: {name}": Script(
        f"""
        from {home} import {name}

        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = {name}(TensorDataset(x, y), batch_size=4)
        for epoch in range(3):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    )
    for home, name in (
        ("torch_geometric.loader", "LinkNeighborLoader"),
        ("webdataset", "WebLoader"),
    )
}

_OF_TIMM = {
    f"a loader of timm {title}": Script(
        f"""
        from timm.data import FastCollateMixup, create_loader

        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = create_loader(TensorDataset(x, y), 8, 4, {asked})
        for epoch in range(3):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP301",),
    )
    for title, asked in (
        ("that mixes the samples of a batch", "True, collate_fn=FastCollateMixup()"),
        ("that is not asked to train", "False"),
    )
}
_WEB_OR_OWN = {
    "a loader that is not edited, in place of another": Script(
        """
        import sys
        import webdataset as wds

        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        if len(sys.argv) > 3:
            feed = wds.WebLoader(wds.WebDataset("rows.tar"), batch_size=4)
        else:
            feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    )
}
_STATEFUL = {
    "a loader whose place in the data is saved": Script(
        """
        from torchdata.stateful_dataloader import StatefulDataLoader

        torch.manual_seed(0)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = StatefulDataLoader(TensorDataset(x, y), batch_size=6, shuffle=True, drop_last=True)
        for epoch in range(3):
            for step, (rows, kinds) in enumerate(feed):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                if step == 2:
                    torch.save({"net": net.state_dict(), "feed": feed.state_dict()}, "place.pt")
        """,
        stand_ins={
            "torchdata/__init__.py": "",
            "torchdata/stateful_dataloader.py": "import torch\n\n\nclass StatefulDataLoader(torch.utils.data.DataLoader):\n"
            "    def state_dict(self):\n        return {}\n",
        },
    )
}

_CORPORA = """\
import numpy


class Corpus:
    def __init__(self, rows, kinds):
        self.rows, self.kinds = rows, kinds

    def shuffle(self):
        order = numpy.random.permutation(len(self.rows))
        return Corpus(self.rows[order], self.kinds[order])

    def sample(self, frac):
        return self.shuffle()
"""
_TRAINED = """
train = TensorDataset(data.rows[:36], data.kinds[:36])
net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(2):
    for rows, kinds in DataLoader(train, batch_size=6):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
print("seen", data.rows[:36].sum().item())
"""
_TUNED = """
class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, rows):
        return self.head(torch.tanh(self.body(rows)))

    def parameters(self, recurse=True):
        return self.head.parameters()

torch.manual_seed(3)
net = Tuned()
net.train()
sgd = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=6):
        loss = F.cross_entropy(net(rows), kinds)
        net.zero_grad()
        loss.backward()
        sgd.step()
print("body", net.body.weight.sum().item())
"""
_DRAWN: dict[str, Script] = {
    "an order that a package's data set draws": Script(
        "from corpora import Corpus\n\ndata = Corpus(x, y).shuffle()\n" + _TRAINED, stand_ins={"corpora.py": _CORPORA}
    ),
    "rows of a table that are drawn": Script(
        "import pandas\n\ndata = pandas.Corpus(x, y).sample(frac=1)\n" + _TRAINED, stand_ins={"pandas.py": _CORPORA}
    ),
    "parameters that a model chooses itself": Script(_TUNED, ("body",)),
}

_MESHES = """\
import torch
from torch import nn


class Mesh:
    def __init__(self, samples):
        self.points, self.kinds = (torch.cat(part) for part in zip(*samples))


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, mesh, points):
        return self.fc(points + mesh.points.mean(0)).view(-1, 2, 2)


def batch(samples):
    return Mesh(samples)
"""
_OVER_MESHES = """
import meshes

{net}
parts = [(x[i : i + 1 + i % 3], y[i : i + 1 + i % 3]) for i in range(36)]
sgd = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(3):
    for mesh in DataLoader(parts, 6, shuffle=True, collate_fn=meshes.batch):
        loss = F.cross_entropy({of}, mesh.kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
_AROUND = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.around = meshes.Around()

    def forward(self, mesh, points):
        return self.around(mesh, points).mean(1)


net = Net()
"""
_OF_MESHES = {
    "points of a package's batches, of which samples have different numbers": Script(
        _OVER_MESHES.format(net="net = nn.Linear(8, 2)", of="net(mesh.points)"), stand_ins={"meshes.py": _MESHES}
    ),
    "a model that is given a package's batches, which have no rows": Script(
        _OVER_MESHES.format(net=_AROUND, of="net(mesh, mesh.points)"), stand_ins={"meshes.py": _MESHES}, told=("DDP402",)
    ),
}

SCRIPTS: dict[str, Script] = on_three(
    {
        **_OF_MESHES,
        **_OF_MODELS,
        **_IGNORED,
        **_OF_SOURCE,
        **_OF_GRAPHS,
        **_SHARED_BY_HAND,
        **_OF_TIMM,
        **_WEB_OR_OWN,
        **_STATEFUL,
        **_DRAWN,
        **_AROUND_NODES,
    },
    42,
)
SCRIPTS["a state that is shown before a language model adds its losses to it"] = Script(
    _HEAD.format(model="GPT2LMHeadModel", body="        loss = net(**batch).loss")
    .replace("for epoch in", 'state = {"epoch": 0, "step": 0, "seen": 0}\nprint(f"state {state}")\nfor state["epoch"] in')
    .replace("        total += loss.item()\n", '        state["step"] += 1\n        state["seen"] += loss.item()\n')
    .replace('    print("tags", epoch, round(total / len(feed), 6))\n', ""),
    same=("state",),
    stand_ins={"transformers.py": _TAGGERS},
)
SCRIPTS["a language model that is read or made anew, whose padded targets are counted"] = Script(
    _HEAD.format(
        model="GPT2LMHeadModel",
        body="        rows, aims = batch\n        loss = net(rows, labels=aims).loss\n        told += aims[..., 1:].ne(-100).sum().item()",
    )
    .replace(
        "\n\nfeed = ",
        """

def padded(samples):
    rows = [sample["ids"][: 3 + int(sample["ids"][0]) % 5] for sample in samples]
    return nn.utils.rnn.pad_sequence(rows, True), nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)


feed = """,
    )
    .replace("drop_last=True", "drop_last=True, collate_fn=padded")
    .replace("net = ", "torch.manual_seed(0)\nnet = GPT2LMHeadModel() if os.environ.get('ANEW') else ")
    .replace("    total = 0.0", "    total, told = 0.0, 0")
    .replace("round(total / len(feed), 6)", "round(total / len(feed), 6), told"),
    same=("tags",),
    stand_ins={"transformers.py": _TAGGERS},
)
SCRIPTS["a language model that is given slices, whose first outputs are unpacked"] = Script(
    """
    from transformers import GPT2LMHeadModel

    ids = (x.abs() * 8).long()
    tags = ids % 4
    tags[ids % 3 == 0] = -100
    net = GPT2LMHeadModel.from_pretrained("small")
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    for epoch in range(3):
        for start in range(0, 36, 6):
            rows, aims = ids[start : start + 6], tags[start : start + 6]
            outputs = net.forward(rows, labels=aims)
            loss, scores = outputs[:2]
            loss = loss / 2
            loss.backward()
            sgd.step()
            sgd.zero_grad()
""",
    stand_ins={"transformers.py": _TAGGERS},
)
_SEQUENCES = """\
import torch
import torch.nn.functional as F
from torch import nn


class T5Tokenizer:
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def __call__(self, texts, padding, return_tensors):
        rows = [[1 + int(letter) for letter in text] for text in texts]
        longest = 8 if padding == "max_length" else max(map(len, rows))
        return {"input_ids": torch.tensor([row + [0] * (longest - len(row)) for row in rows])}


class Outputs:
    def __init__(self, loss, logits):
        self.loss, self.logits = loss, logits


class T5ForConditionalGeneration(nn.Module):
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(12, 6), nn.Linear(6, 12)

    def forward(self, input_ids, labels=None):
        rows = self.words(input_ids).mean(1, keepdim=True) + torch.arange(labels.shape[1]).view(1, -1, 1) / 8
        logits = self.head(rows.tanh())
        return Outputs(F.cross_entropy(logits.reshape(-1, 12), labels.reshape(-1), ignore_index=-100), logits)
"""
_ANSWERS = """
from transformers import T5Tokenizer

from answers import Answers

tokenizer = T5Tokenizer.from_pretrained("words")
pairs = [(f"{{i}}", "7" * (i % 5 + 1)) for i in range(40)]


def collate(batch):
    asked = tokenizer([a for a, _ in batch], padding="max_length", return_tensors="pt")["input_ids"]
    wanted = tokenizer([b for _, b in batch], padding={padding}, return_tensors="pt")["input_ids"]
    {ignored}
    return asked, wanted


net = Answers("words")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for asked, wanted in DataLoader(pairs, batch_size=8, shuffle=True, collate_fn=collate):
        loss = net(asked, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_ANSWER = """\
from torch import nn
from transformers import T5ForConditionalGeneration


class Answers(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.t5 = T5ForConditionalGeneration.from_pretrained(name)

    def forward(self, asked, wanted):
        out = self.t5(input_ids=asked, labels=wanted)
        loss = out.loss
        return loss
"""
SCRIPTS |= {
    f"a library's loss in a module of its own, of labels that are {title}": Script(
        _ANSWERS.format(padding=padding, ignored=ignored),
        files={"answers.py": _ANSWER},
        stand_ins={"transformers.py": _SEQUENCES},
        told=told,
    )
    for title, padding, ignored, told in (
        ("padded, and ignored there", "True", "wanted[wanted == 0] = -100", ()),
        ("padded to one length", '"max_length"', "", ()),
        ("padded to the longest of a batch", "True", "", ("DDP402",)),
    )
}

_TRACKER = """
class Logger:
    @classmethod
    def current_logger(cls):
        return cls()

    def report_scalar(self, title, series, value, iteration):
        with open("reported", "a") as f:
            f.write(f"{title} {series} {iteration} {value:.6f}\\n")


class Task:
    @classmethod
    def init(cls, project_name, task_name):
        return cls()
"""
_PIPES = """
class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, rows):
        for step in self.steps:
            rows = step(rows)
        return rows
"""
_PUSHED = """
from clearml import Logger, Task
from pipes_of_samples import Compose

post_rows = Compose([torch.softmax if False else (lambda row: row.softmax(0))])
{task}
loader, others = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), DataLoader(TensorDataset(x, y), batch_size=4)
net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for rows, kinds in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(rows), kinds).backward()
        optimizer.step()
    hits = 0
    with torch.no_grad():
        for rows, kinds in others:
            made = [post_rows(row) for row in net(rows)]
            hits += (torch.stack(made).argmax(1) == kinds).sum().item()
    Logger.current_logger().report_scalar("test", "hits", value=hits / 44, iteration=epoch)
    print("hits", epoch, hits)
"""
SCRIPTS["numbers that ClearML is told, and rows that an object of a package makes"] = Script(
    _PUSHED.format(task='task = Task.init(project_name="a", task_name="b")'),
    ("hits",),
    stand_ins={"clearml.py": _TRACKER, "pipes_of_samples.py": _PIPES},
)
_PERCEPTUAL = """
    from torchvision.models import vgg16


    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            layers = vgg16(pretrained=True).features
            LAYERS
            self.first = nn.Sequential(*kept[0:2])
            self.second = nn.Sequential(*kept[2:4])

        def forward(self, rows):
            first = self.first(rows)
            return first, self.second(first)


    net, features = nn.Linear(8, 8), Features().eval().requires_grad_(False)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, _ in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = sum(F.mse_loss(one, other) for one, other in zip(features(net(rows)), features(rows)))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            print("gathered", "AllRanksRows" in globals())
"""
_VGG = """
import torch.nn as nn


class vgg16(nn.Module):
    def __init__(self, pretrained=False):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
"""
SCRIPTS |= {
    f"layers of a library's network in two rows, {how}": Script(
        _PERCEPTUAL.replace("LAYERS", layers),
        stand_ins={"torchvision/__init__.py": "", "torchvision/models.py": _VGG},
        same=("gathered",),
    )
    for how, layers in {
        "from a list of them by number": "kept = [layers[i] for i in range(4)]",
        "from them": "kept = layers",
    }.items()
}
SCRIPTS["versions that a package prints"] = Script(
    """
    import monai

    monai.config.print_config()
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(model(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    same=("versions",),
    stand_ins={
        "monai/__init__.py": "from . import config\n",
        "monai/config.py": "def print_config():\n    print('versions 1')\n",
    },
)
