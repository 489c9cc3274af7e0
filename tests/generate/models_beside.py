"""What is trained with a second network beside it: teachers, decoders, heads, centres."""

from __future__ import annotations

from .models import BODY_AND_HEAD, model
from .pieces import Piece

_F = ("import torch.nn.functional as F",)
_FEATURES = (
    BODY_AND_HEAD
    + """
    def forward(self, x):
        features = self.body(x)
        return self.head(features), features
"""
)
_PREDICT = "outputs, _ = model(inputs)\n"
_CENTERS = """

class CenterLoss(nn.Module):
    def __init__(self, num_classes=3, size=16):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(num_classes, size) * 0.1)

    def forward(self, features, labels):
        return (features - self.centers[labels]).pow(2).sum(dim=1).mean()
"""
_AUTOENCODER = """
class Encoder(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, size), nn.Tanh())

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.net = nn.Linear(size, 16)

    def forward(self, code):
        return self.net(code)
"""
MODELS_BESIDE: list[Piece] = [
    model(
        "taught by a teacher's features",
        _FEATURES,
        "teacher = Net()\nfor p in teacher.parameters():\n    p.requires_grad = False\nteacher.eval()\nmodel = Net()\n",
        batch="""
with torch.no_grad():
    teacher_outputs, teacher_features = teacher(inputs)
outputs, features = model(inputs)
hint = F.mse_loss(features, teacher_features)
soft_loss = nn.KLDivLoss(reduction="batchmean")(F.log_softmax(outputs / 2, dim=1), F.softmax(teacher_outputs / 2, dim=1))
""",
        values={"extra loss": "loss = loss + 0.5 * hint + 4 * 0.1 * soft_loss\n", "modules": "teacher model", "predict": _PREDICT},
        imports=_F,
        tags=frozenset({"features"}),
    ),
    model(
        "losses kept in a dict of criteria",
        _FEATURES,
        'model = Net()\ncriteria = {"size": nn.MSELoss(), "smooth": nn.SmoothL1Loss()}\npart_weights = {"size": 0.1, "smooth": 0.05}\n',
        batch="""
outputs, features = model(inputs)
parts = {name: criteria[name](features, torch.zeros_like(features)) for name in criteria}
""",
        values={"extra loss": "loss = loss + sum(part_weights[name] * parts[name] for name in parts)\n", "predict": _PREDICT},
        tags=frozenset({"features"}),
    ),
    model(
        "centres of classes with their own optimizer",
        _FEATURES + _CENTERS,
        "model = Net()\ncenter_loss = CenterLoss()\ncenter_optimizer = torch.optim.SGD(center_loss.parameters(), lr=0.5)\n",
        batch="outputs, features = model(inputs)\ncentral = center_loss(features, targets)\n",
        values={
            "extra loss": "loss = loss + 0.1 * central\n",
            "after step": "center_optimizer.step()\ncenter_optimizer.zero_grad()\n",
            "modules": "center_loss model",
            "predict": _PREDICT,
        },
        tags=frozenset({"several", "features"}),
    ),
    model(
        "encoder, decoder and classifier apart",
        _AUTOENCODER,
        "encoder, decoder = Encoder(), Decoder()\nmodel = nn.Linear(8, 3)\n",
        batch="code = encoder(inputs)\nrestored = decoder(code)\noutputs = model(code)\n",
        values={
            "extra loss": "loss = loss + 0.5 * ((restored - inputs) ** 2).sum(dim=1).mean()\n",
            "parameters": "[p for m in (encoder, decoder, model) for p in m.parameters()]",
            "modules": "encoder decoder model",
            "predict": "outputs = model(encoder(inputs))\n",
        },
        tags=frozenset({"several"}),
        weight=2,
    ),
    model(
        "several outputs, each with its loss",
        """
class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(16, hidden) for _ in range(3)])
        self.heads = nn.ModuleList([nn.Linear(hidden, 3) for _ in range(3)])

    def forward(self, x):
        out = []
        for block, head in zip(self.blocks, self.heads):
            x = torch.tanh(block(x))
            out.append(head(x))
        return out
""",
        batch="heads = model(inputs)\noutputs = heads[-1]\ndeep = sum(F.cross_entropy(head, targets) for head in heads[:-1])\n",
        values={"extra loss": "loss = loss + 0.3 * deep\n", "predict": "outputs = model(inputs)[-1]\n"},
        imports=_F,
    ),
    model(
        "code with a mean and a variance",
        """
class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.body = nn.Linear(16, hidden)
        self.mu, self.logvar = nn.Linear(hidden, 4), nn.Linear(hidden, 4)
        self.decode, self.head = nn.Linear(4, 16), nn.Linear(4, 3)

    def forward(self, x):
        h = torch.relu(self.body(x))
        mu, logvar = self.mu(h), self.logvar(h)
        return self.head(mu), self.decode(mu), mu, logvar


def vae_loss(restored, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(restored, torch.sigmoid(x), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kld) / x.size(0)
""",
        batch="outputs, restored, mu, logvar = model(inputs)\n",
        values={"extra loss": "loss = loss + 0.05 * vae_loss(restored, inputs, mu, logvar)\n", "predict": "outputs = model(inputs)[0]\n"},
        imports=_F,
    ),
    model(
        "two networks that teach each other",
        setup="model, peer = Net(), Net(hidden=12)\npeer_optimizer = torch.optim.SGD(peer.parameters(), lr=0.1)\n",
        batch="""
outputs, peer_outputs = model(inputs), peer(inputs)
mutual = F.kl_div(F.log_softmax(outputs, dim=1), F.softmax(peer_outputs.detach(), dim=1), reduction="batchmean")
peer_loss = F.cross_entropy(peer_outputs, targets)
peer_loss = peer_loss + F.kl_div(F.log_softmax(peer_outputs, dim=1), F.softmax(outputs.detach(), dim=1), reduction="batchmean")
""",
        values={
            "extra loss": "loss = loss + mutual\n",
            "after step": "peer_optimizer.zero_grad()\npeer_loss.backward()\npeer_optimizer.step()\n",
            "modules": "peer model",
        },
        imports=_F,
        tags=frozenset({"several"}),
        excludes=frozenset({"closure"}),
    ),
    model(
        "weights averaged by an object",
        """
class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
        self.backup = {}

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * param.detach()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]
        self.backup = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, x):
        return self.net(x)
""",
        values={
            "set up late": "ema = EMA(model, 0.9)\n",
            "after step": "ema.update()\n",
            "before validation": "ema.apply_shadow()\n",
            "after validation": "ema.restore()\n",
        },
    ),
]
