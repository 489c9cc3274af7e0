"""What is trained: modules, their parts, and how their outputs are computed."""

from __future__ import annotations

from .pieces import Piece

MLP = """
class Net(nn.Module):
    def __init__(self, hidden=16, num_classes=3):
        super().__init__()
        self.fc1 = nn.Linear(16, hidden)
        self.fc2 = nn.Linear(hidden, num_classes)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))
"""
BODY_AND_HEAD = """
class Net(nn.Module):
    def __init__(self, hidden=16, num_classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, hidden), nn.Tanh(), nn.Linear(hidden, hidden))
        self.head = nn.Linear(hidden, num_classes)
"""
_PREDICT = "outputs = model(inputs)\n"


def model(feature: str, definitions: str = MLP, setup: str = "model = Net()\n", task: str = "rows", **kw: object) -> Piece:
    return Piece(f"model: {feature}", definitions=definitions, setup=setup, task=task, **kw)  # type: ignore[arg-type]


MODELS = [
    model("plain module", weight=4),
    model("sequential", "", "model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))\n", weight=2),
    model("hidden size among the settings", setup="model = Net(hidden_size, num_classes=3)\n", settings={"hidden_size": 16}),
    model(
        "convolutions with batch norm and dropout",
        """
class ConvBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self, width=4, num_classes=3):
        super().__init__()
        self.blocks = nn.Sequential(ConvBlock(1, width), ConvBlock(width, width), nn.AdaptiveAvgPool2d(2))
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(4 * width, num_classes)

    def forward(self, x):
        x = self.blocks(x.view(-1, 1, 4, 4))
        return self.fc(self.dropout(x.flatten(1)))
""",
        imports=("import torch.nn.functional as F",),
        weight=2,
    ),
    model(
        "recurrent",
        """
class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.lstm = nn.LSTM(4, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 3)

    def forward(self, x):
        x = x.view(x.size(0), 4, 4)
        h0 = torch.zeros(1, x.size(0), 8)
        c0 = torch.zeros(1, x.size(0), 8)
        out, _ = self.lstm(x, (h0.to(x.device), c0.to(x.device)))
        return self.fc(out[:, -1])
""",
    ),
    model(
        "encoder and head apart",
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 16), nn.Tanh())

    def forward(self, x):
        return self.net(x)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc(x)
""",
        "encoder = Encoder()\nmodel = Head()\n",
        batch="outputs = model(encoder(inputs))\n",
        values={
            "parameters": "list(encoder.parameters()) + list(model.parameters())",
            "modules": "encoder model",
            "predict": "outputs = model(encoder(inputs))\n",
        },
        tags=frozenset({"several"}),
    ),
    model(
        "parts in a dict",
        """
def build_models():
    return {"backbone": nn.Sequential(nn.Linear(16, 16), nn.Tanh()), "head": nn.Linear(16, 3)}
""",
        'models = build_models()\nencoder, model = models["backbone"], models["head"]\n',
        batch="outputs = model(encoder(inputs))\n",
        values={
            "parameters": "itertools.chain(encoder.parameters(), model.parameters())",
            "modules": "encoder model",
            "predict": "outputs = model(encoder(inputs))\n",
        },
        imports=("import itertools",),
        tags=frozenset({"several"}),
    ),
    model(
        "encoder with an optimizer of its own",
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 16), nn.Tanh())

    def forward(self, x):
        return self.net(x)
""",
        "encoder = Encoder()\nmodel = nn.Linear(16, 3)\nencoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05)\n",
        batch="outputs = model(encoder(inputs))\n",
        values={
            "modules": "encoder model",
            "after step": "encoder_optimizer.step()\nencoder_optimizer.zero_grad()\n",
            "predict": "outputs = model(encoder(inputs))\n",
        },
        tags=frozenset({"several"}),
    ),
    model(
        "a part that thaws",
        BODY_AND_HEAD
        + """
    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))
""",
        start="for p in model.body.parameters():\n    p.requires_grad = epoch > 0\n",
        tags=frozenset({"no gradient of inputs"}),
        weight=0.5,
    ),
    model(
        "frozen part",
        BODY_AND_HEAD
        + """
    def forward(self, x):
        return self.head(self.body(x))
""",
        "model = Net()\nfor p in model.body.parameters():\n    p.requires_grad = False\n",
        values={"parameters": "filter(lambda p: p.requires_grad, model.parameters())"},
    ),
    model(
        "frozen part, optimizer over the rest",
        BODY_AND_HEAD
        + """
    def forward(self, x):
        with torch.no_grad():
            x = self.body(x)
        return self.head(x)
""",
        "model = Net()\nmodel.body.requires_grad_(False)\n",
        values={"parameters": "model.head.parameters()"},
        tags=frozenset({"no gradient of inputs"}),
    ),
    model(
        "own initialisation",
        MLP
        + """

def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        nn.init.constant_(m.bias, 0.01)
""",
        "model = Net()\nmodel.apply(init_weights)\n",
    ),
    model(
        "registry",
        MLP
        + """

class Wide(Net):
    def __init__(self):
        super().__init__(hidden=24)


MODELS = {"net": Net, "wide": Wide}
""",
        "model = MODELS[arch]()\n",
        settings={"arch": "wide"},
    ),
    model(
        "registered by a decorator",
        """
REGISTRY = {}


def register(name):
    def add(cls):
        REGISTRY[name] = cls
        return cls

    return add


@register("mlp")"""
        + MLP,
        'model = REGISTRY["mlp"](hidden=12)\n',
    ),
    model(
        "features beside outputs",
        BODY_AND_HEAD
        + """
    def forward(self, x):
        features = self.body(x)
        return self.head(features), features
""",
        batch="outputs, features = model(inputs)\n",
        values={"predict": "outputs, _ = model(inputs)\n"},
        tags=frozenset({"features"}),
    ),
    model(
        "outputs in a dict",
        BODY_AND_HEAD
        + """
    def forward(self, x):
        features = torch.tanh(self.body(x))
        return {"logits": self.head(features), "features": features}
""",
        batch='result = model(inputs)\noutputs, features = result["logits"], result["features"]\n',
        values={"predict": 'outputs = model(inputs)["logits"]\n'},
        tags=frozenset({"features"}),
    ),
    model(
        "loss from its own forward",
        BODY_AND_HEAD
        + """
    def forward(self, x, y=None):
        logits = self.head(torch.tanh(self.body(x)))
        if y is None:
            return logits
        return logits, F.cross_entropy(logits, y)
""",
        imports=("import torch.nn.functional as F",),
        batch="outputs, loss = model(inputs, targets)\n",
        tags=frozenset({"own loss"}),
        weight=2,
    ),
    model(
        "a method that computes the loss",
        BODY_AND_HEAD
        + """
    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))

    def loss(self, outputs, y):
        return F.cross_entropy(outputs, y) + 1e-3 * self.head.weight.pow(2).sum()
""",
        imports=("import torch.nn.functional as F",),
        batch="outputs = model(inputs)\nloss = model.loss(outputs, targets)\n",
        tags=frozenset({"own loss", "method"}),
    ),
    model(
        "methods other than forward",
        BODY_AND_HEAD
        + """
    def encode(self, x):
        return torch.tanh(self.body(x))

    def classify(self, features):
        return self.head(features)

    def forward(self, x):
        return self.classify(self.encode(x))
""",
        batch="features = model.encode(inputs)\noutputs = model.classify(features)\n",
        tags=frozenset({"features", "method"}),
    ),
    model(
        "shared weights",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 16, bias=False)
        self.down = nn.Linear(16, 16, bias=False)
        self.down.weight = self.up.weight
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc(torch.tanh(self.down(torch.tanh(self.up(x)))))
""",
    ),
    model(
        "a part that is never used",
        MLP.replace("        self.fc2", "        self.auxiliary = nn.Linear(hidden, 2)\n        self.fc2"),
    ),
    model(
        "own parameters",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 3) * 0.1)
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("shift", torch.linspace(-0.1, 0.1, 3))

    def forward(self, x):
        return self.scale * (x @ self.weight) + self.shift
""",
    ),
    model(
        "a buffer with a running mean",
        MLP.replace("    def forward(self, x):\n", "    def forward(self, x):\n        x = self.center(x)\n").replace(
            "        self.fc2", '        self.register_buffer("mean", torch.zeros(16))\n        self.fc2'
        )
        + """
    def center(self, x):
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * x.mean(0).detach())
        return x - self.mean
""",
        weight=1.5,
    ),
    model(
        "exponential moving average of the weights",
        MLP
        + """

@torch.no_grad()
def update_ema(ema_model, model, decay=0.9):
    for ema_p, p in zip(ema_model.parameters(), model.parameters()):
        ema_p.mul_(decay).add_(p.detach(), alpha=1 - decay)
""",
        "model = Net()\nema_model = copy.deepcopy(model)\nfor p in ema_model.parameters():\n    p.requires_grad_(False)\n",
        imports=("import copy",),
        values={"after step": "update_ema(ema_model, model)\n", "predict": "outputs = ema_model(inputs)\n"},
        tags=frozenset({"ema"}),
    ),
    model(
        "distilled from a frozen teacher",
        MLP,
        "teacher = Net(hidden=20)\nteacher.eval()\nmodel = Net()\n",
        imports=("import torch.nn.functional as F",),
        batch="""
with torch.no_grad():
    soft = teacher(inputs).softmax(dim=1)
outputs = model(inputs)
distilled = F.kl_div(outputs.log_softmax(dim=1), soft, reduction="batchmean")
""",
        values={"extra loss": "loss = loss + 0.5 * distilled\n", "modules": "teacher model", "predict": _PREDICT},
    ),
    model(
        "data parallel",
        setup="model = nn.DataParallel(Net())\n",
        tags=frozenset({"parallel"}),
        weight=2,
    ),
    model(
        "data parallel over listed devices",
        setup="model = Net()\nmodel = torch.nn.DataParallel(model, device_ids=[0])\n",
        tags=frozenset({"parallel"}),
    ),
    model(
        "data parallel with several GPUs",
        setup="model = Net()\nif torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)\n",
        apart=("keys",),  # which keys it writes depends on the machine
    ),
    model(
        "tagger of tokens",
        """
class Tagger(nn.Module):
    def __init__(self, vocabulary=20, tags=6, size=12):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size, padding_idx=0)
        self.gru = nn.GRU(size, size, batch_first=True)
        self.out = nn.Linear(size, tags)

    def forward(self, words):
        hidden, _ = self.gru(self.embedding(words))
        return self.out(hidden)
""",
        "model = Tagger()\n",
        task="tokens",
    ),
    model(
        "tagger with attention and a mask",
        """
class Tagger(nn.Module):
    def __init__(self, vocabulary=20, tags=6, size=12):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.attention = nn.MultiheadAttention(size, 2, batch_first=True)
        self.out = nn.Linear(size, tags)

    def forward(self, words):
        x = self.embedding(words)
        mixed, _ = self.attention(x, x, x, key_padding_mask=words == 0)
        return self.out(x + mixed)
""",
        "model = Tagger()\n",
        task="tokens",
        tags=frozenset({"zero gradients"}),  # of the keys' bias: Adam would make steps of rounding errors
    ),
]
