"""Two data sets in one loop, labelled and not, and models that learn from both."""

from __future__ import annotations

from .data import SETS, SHUFFLED, loader
from .pieces import Piece

_TARGET = "target_set = TensorDataset(make_samples(num_target, 5)[0] + 0.5)\n"
_LOADER = "target_loader = DataLoader(target_set, batch_size=batch_size, shuffle=True, drop_last=True)\n"


def _domains(feature: str, loop: str, setup: str = "", size: int = 48, **kw: object) -> Piece:
    values = {"also moved": "target_inputs"}
    made = SETS + _TARGET.replace("num_target", str(size)) + SHUFFLED + _LOADER + setup
    tags = frozenset({"domains", "cpu batches"})
    return loader(feature, made, loop=loop, tags=tags, values=values, weight=2, **kw)


DOMAINS = [
    _domains("two domains, zip", "for (inputs, targets), (target_inputs,) in zip(train_loader, target_loader):\n    {body}\n"),
    _domains(
        "two domains, the shorter one restarted",
        """
target_iter = iter(target_loader)
for inputs, targets in train_loader:
    try:
        target_inputs, = next(target_iter)
    except StopIteration:
        target_iter = iter(target_loader)
        target_inputs, = next(target_iter)
    {body}
""",
        size=24,
    ),
    _domains(
        "two domains, an iterator that lasts",
        """
for batch_index, (inputs, targets) in enumerate(train_loader):
    try:
        target_batch = next(target_iter)
    except StopIteration:
        target_iter = iter(target_loader)
        target_batch = next(target_iter)
    target_inputs = target_batch[0]
    {body}
""",
        "target_iter = iter(target_loader)\n",
        size=36,
    ),
    _domains(
        "two domains, iterators of each epoch",
        """
source_iter, target_iter = iter(train_loader), iter(target_loader)
for step in range(min(len(train_loader), len(target_loader))):
    inputs, targets = next(source_iter)
    target_inputs = next(target_iter)[0]
    {body}
""",
        size=36,
    ),
    _domains(
        "two domains, the shorter one cycled",
        "for (inputs, targets), (target_inputs,) in zip(train_loader, itertools.cycle(target_loader)):\n    {body}\n",
        size=24,
        imports=("import itertools", "from torch.utils.data import DataLoader, TensorDataset"),
    ),
]
_NET = """
class Net(nn.Module):
    def __init__(self, hidden=16, num_classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, hidden), nn.Tanh(), nn.Linear(hidden, hidden))
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x):
        features = self.body(x)
        return self.head(features), features


class Discriminator(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, features):
        return self.net(features).squeeze(1)
"""
_REVERSE = """

class GradientReversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.weight * grad, None
"""
_PREDICT = "outputs, _ = model(inputs)\n"


_ALONE = _NET.split("\n\nclass Discriminator")[0]


def _model(feature: str, batch: str, definitions: str = _ALONE, setup: str = "model = Net()\n", **kw: object) -> Piece:
    values = {"predict": _PREDICT, "extra loss": "loss = loss + 0.3 * domain_loss\n"} | dict(kw.pop("values", {}))  # type: ignore[call-overload]
    tags = frozenset({"features"}) | kw.pop("tags", frozenset())  # type: ignore[operator]
    imports = ("import torch.nn.functional as F",)
    return Piece(
        f"model: {feature}",
        definitions=definitions,
        setup=setup,
        batch=batch,
        needs=frozenset({"domains"}),
        weight=40,
        task="rows",
        imports=imports,
        values=values,
        tags=tags,
        **kw,  # type: ignore[arg-type]
    )


DOMAIN_MODELS = [
    _model(
        "a discriminator of domains, gradient reversed",
        """
outputs, features = model(inputs)
_, target_features = model(target_inputs)
domains = torch.cat([torch.zeros(len(inputs)), torch.ones(len(target_inputs))]).to(features)
domain_guesses = discriminator(GradientReversal.apply(torch.cat([features, target_features]), 0.5))
domain_loss = F.binary_cross_entropy_with_logits(domain_guesses, domains)
""",
        _NET + _REVERSE,
        "model = Net()\ndiscriminator = Discriminator()\n",
        values={"parameters": "list(model.parameters()) + list(discriminator.parameters())", "modules": "discriminator model"},
        tags=frozenset({"several"}),
    ),
    _model(
        "a discriminator of domains with its own steps",
        """
outputs, features = model(inputs)
_, target_features = model(target_inputs)
real, fake = discriminator(features.detach()), discriminator(target_features.detach())
d_loss = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
d_loss = d_loss + F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))
d_optimizer.zero_grad()
d_loss.backward()
d_optimizer.step()
fooled = discriminator(target_features)
domain_loss = F.binary_cross_entropy_with_logits(fooled, torch.ones_like(fooled))
""",
        _NET,
        "model = Net()\ndiscriminator = Discriminator()\nd_optimizer = torch.optim.SGD(discriminator.parameters(), lr=0.05)\n",
        values={"modules": "discriminator model"},
        tags=frozenset({"several"}),
    ),
    _model(
        "features' means of two domains drawn together",
        """
outputs, features = model(inputs)
_, target_features = model(target_inputs)
domain_loss = (features.mean(dim=0) - target_features.mean(dim=0)).pow(2).sum()
""",
    ),
    _model(
        "entropy of outputs without labels",
        """
outputs, features = model(inputs)
target_outputs, _ = model(target_inputs)
certainty = target_outputs.softmax(dim=1)
domain_loss = -(certainty * torch.log(certainty + 1e-6)).sum(dim=1).mean()
""",
    ),
    _model(
        "confident pseudo-labels",
        """
outputs, features = model(inputs)
with torch.no_grad():
    confidence, pseudo = model(target_inputs)[0].softmax(dim=1).max(dim=1)
    sure = confidence.ge(0.4).to(confidence.dtype)
noisy_outputs, _ = model(0.9 * target_inputs)
domain_loss = (F.cross_entropy(noisy_outputs, pseudo, reduction="none") * sure).mean()
""",
    ),
    _model(
        "both domains in one forward pass",
        """
both, features = model(torch.cat([inputs, target_inputs], dim=0))
outputs, target_outputs = both[:inputs.size(0)], both[inputs.size(0):]
features = features[:inputs.size(0)]
domain_loss = target_outputs.softmax(dim=1).pow(2).sum(dim=1).mean()
""",
    ),
]
