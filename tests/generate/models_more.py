"""What is trained with losses, weights or averages of its own: heads, adversaries, views, pre-trained parts."""

from __future__ import annotations

from .models import BODY_AND_HEAD, MLP, model
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
_CRITIC = """

class Critic(nn.Module):
    def __init__(self, size=19):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def forward(self, x, y):
        return self.net(torch.cat([x, y], dim=1))
"""
MODELS_MORE: list[Piece] = [
    model(
        "a dict of losses from its own forward",
        BODY_AND_HEAD.replace("        self.head", "        self.restore = nn.Linear(hidden, 16)\n        self.head")
        + """
    def forward(self, x, y=None):
        features = torch.tanh(self.body(x))
        logits = self.head(features)
        if y is None:
            return logits
        losses = {"ce": F.cross_entropy(logits, y), "restored": F.mse_loss(self.restore(features), x)}
        return losses, logits
""",
        imports=_F,
        batch="loss_dict, outputs = model(inputs, targets)\nloss = sum(value for value in loss_dict.values())\n",
        tags=frozenset({"own loss"}),
    ),
    model(
        "several heads in a dict, a criterion for each",
        """
class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, hidden), nn.Tanh())
        self.heads = nn.ModuleDict({"label": nn.Linear(hidden, 3), "first": nn.Linear(hidden, 2)})

    def forward(self, x):
        features = self.body(x)
        return {name: head(features) for name, head in self.heads.items()}
""",
        "model = Net()\ntask_weights = {'first': 0.3}\n",
        batch="""
by_task = model(inputs)
outputs = by_task["label"]
task_labels = {"first": (targets == 0).long()}
task_losses = {}
for task in task_labels:
    task_losses[task] = task_weights[task] * F.cross_entropy(by_task[task], task_labels[task])
""",
        values={"extra loss": "loss = loss + sum(task_losses.values())\n", "predict": 'outputs = model(inputs)["label"]\n'},
        imports=_F,
    ),
    model(
        "tasks weighed by trained uncertainties",
        _FEATURES
        + """

class UncertaintyWeights(nn.Module):
    def __init__(self, tasks=2):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(tasks))

    def forward(self, losses):
        total = 0
        for i, loss in enumerate(losses):
            total = total + torch.exp(-self.log_vars[i]) * loss + self.log_vars[i]
        return total
""",
        "model = Net()\nweighting = UncertaintyWeights()\n",
        batch="outputs, features = model(inputs)\n",
        values={
            "extra loss": "loss = weighting([loss, F.mse_loss(features, inputs)])\n",
            "parameters": "list(model.parameters()) + list(weighting.parameters())",
            "modules": "weighting model",
            "predict": _PREDICT,
        },
        imports=_F,
        tags=frozenset({"several", "features"}),
    ),
    model(
        "a trained number beside the model",
        _FEATURES,
        "model = Net()\nlog_sigma = nn.Parameter(torch.zeros(1))\n",
        batch="outputs, features = model(inputs)\n",
        values={
            "extra loss": "loss = loss * torch.exp(-log_sigma[0]) + 0.5 * log_sigma[0]\n",
            "parameters": "[*model.parameters(), log_sigma]",
            "predict": _PREDICT,
        },
        tags=frozenset({"several", "features"}),
        excludes=frozenset({"fake gpu"}),
        weight=0.5,
    ),
    model(
        "an averaged copy kept by an object",
        MLP
        + """

class ModelEMA:
    def __init__(self, model, decay=0.9):
        self.module = copy.deepcopy(model)
        self.module.eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        state = model.state_dict()
        for key, value in self.module.state_dict().items():
            if value.dtype.is_floating_point:
                value.mul_(self.decay).add_(state[key].detach(), alpha=1 - self.decay)
""",
        imports=("import copy",),
        values={
            "set up late": "averaged = ModelEMA(model)\n",
            "after step": "averaged.update(model)\n",
            "predict": "outputs = averaged.module(inputs)\n",
        },
    ),
    model(
        "weights averaged by torch",
        MLP,
        imports=("from torch.optim.swa_utils import AveragedModel",),
        values={
            "set up late": "swa_model = AveragedModel(model)\n",
            "predict": "outputs = swa_model(inputs)\n",
            "before validation": "swa_model.update_parameters(model)\n",
        },
        tags=frozenset({"swa"}),
    ),
    model(
        "weights read in where names and shapes fit",
        MLP
        + """

def load_pretrained(model, path):
    pretrained = torch.load(path, map_location="cpu")
    state = model.state_dict()
    pretrained = {k: v for k, v in pretrained.items() if k in state and v.size() == state[k].size()}
    state.update(pretrained)
    model.load_state_dict(state)
    print(f"read {len(pretrained)} of {len(state)} tensors")
    return model
""",
        'torch.save(Net(num_classes=5).state_dict(), "pretrained.pt")\nmodel = load_pretrained(Net(), "pretrained.pt")\n',
    ),
    model(
        "layers from a list of sizes",
        """
def make_layers(sizes, batch_norm=False):
    layers = []
    for size_in, size_out in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(size_in, size_out)]
        if batch_norm:
            layers += [nn.BatchNorm1d(size_out)]
        layers += [nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Net(nn.Module):
    def __init__(self, features, width, num_classes=3):
        super().__init__()
        self.features = features
        self.classifier = nn.Linear(width, num_classes)
        self._initialize()

    def forward(self, x):
        x = self.features(x)
        return self.classifier(x.view(x.size(0), -1))

    def _initialize(self):
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.2)
                nn.init.zeros_(m.bias)


def small_net(pretrained=False, **kwargs):
    return Net(make_layers([16, 16, 12], **kwargs), 12)
""",
        "model = small_net(batch_norm=False)\n",
        weight=1.5,
    ),
    model(
        "spectral norm",
        "",
        "model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(16, 16)), nn.LeakyReLU(0.2), nn.utils.spectral_norm(nn.Linear(16, 3)))\n",
        weight=0.5,
    ),
    model(
        "an adversary with its own steps, switched off for the model",
        MLP
        + _CRITIC
        + """

def set_requires_grad(net, value):
    for p in net.parameters():
        p.requires_grad = value
""",
        """
model, critic = Net(), Critic()
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.05)
adversarial = nn.BCEWithLogitsLoss()
""",
        batch="""
outputs = model(inputs)
real, fake = F.one_hot(targets, 3).to(inputs.dtype), outputs.softmax(dim=1)
set_requires_grad(critic, True)
critic_optimizer.zero_grad()
on_real, on_fake = critic(inputs, real), critic(inputs, fake.detach())
critic_loss = 0.5 * (adversarial(on_real, torch.ones_like(on_real)) + adversarial(on_fake, torch.zeros_like(on_fake)))
critic_loss.backward()
critic_optimizer.step()
set_requires_grad(critic, False)
judged = critic(inputs, fake)
fooling = adversarial(judged, torch.ones_like(judged))
""",
        values={"extra loss": "loss = loss + 0.2 * fooling\n", "modules": "critic model"},
        imports=_F,
        tags=frozenset({"several"}),
        excludes=frozenset({"closure"}),
        weight=1.5,
    ),
    model(
        "a critic whose weights are clipped",
        MLP + _CRITIC,
        "model, critic = Net(), Critic()\ncritic_optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.005)\n",
        batch="""
outputs = model(inputs)
real, fake = F.one_hot(targets, 3).to(inputs.dtype), torch.softmax(outputs, dim=1)
for _ in range(2):
    critic.zero_grad()
    wasserstein = critic(inputs, fake.detach()).mean() - critic(inputs, real).mean()
    wasserstein.backward()
    critic_optimizer.step()
    for p in critic.parameters():
        p.data.clamp_(-0.1, 0.1)
fooling = -critic(inputs, fake).mean()
""",
        values={"extra loss": "loss = loss + 0.2 * fooling\n", "modules": "critic model"},
        imports=_F,
        tags=frozenset({"several"}),
        excludes=frozenset({"closure"}),
    ),
    model(
        "two views contrasted over the batch",
        _FEATURES
        + """

def info_nce(first, second, temperature=0.5):
    first, second = F.normalize(first, dim=1), F.normalize(second, dim=1)
    scores = first @ second.t() / temperature
    labels = torch.arange(scores.size(0), device=scores.device)
    return 0.5 * (F.cross_entropy(scores, labels) + F.cross_entropy(scores.t(), labels))
""",
        batch="outputs, features = model(inputs)\n_, other_view = model(0.9 * inputs)\ncontrast = info_nce(features, other_view)\n",
        values={"extra loss": "loss = loss + 0.3 * contrast\n", "predict": _PREDICT},
        imports=_F,
        tags=frozenset({"features"}),
        weight=1.5,
    ),
    model(
        "both views in one batch, pairs of their own masked",
        _FEATURES
        + """

class NTXent(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, z):
        n = z.shape[0] // 2
        z = F.normalize(z, dim=1)
        similarity = torch.matmul(z, z.T) / self.temperature
        itself = torch.eye(2 * n, dtype=torch.bool, device=z.device)
        similarity = similarity.masked_fill(itself, -1e9)
        labels = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
        return F.cross_entropy(similarity, labels)
""",
        "model = Net()\ncontrastive = NTXent()\n",
        batch="""
both_outputs, both_features = model(torch.cat([inputs, 0.9 * inputs], dim=0))
outputs, features = both_outputs[:len(inputs)], both_features[:len(inputs)]
contrast = contrastive(both_features)
""",
        values={"extra loss": "loss = loss + 0.3 * contrast\n", "predict": _PREDICT},
        imports=_F,
        tags=frozenset({"features"}),
    ),
    model(
        "a teacher that follows by averages, made consistent",
        MLP
        + """

def update_teacher(model, teacher, alpha, step):
    alpha = min(1 - 1 / (step + 1), alpha)
    for teacher_p, p in zip(teacher.parameters(), model.parameters()):
        teacher_p.data.mul_(alpha).add_(p.data, alpha=1 - alpha)
""",
        "model = Net()\nteacher = Net()\nfor p in teacher.parameters():\n    p.detach_()\nteacher_step = 0\n",
        batch="""
outputs = model(inputs)
with torch.no_grad():
    teacher_logits = teacher(0.9 * inputs)
consistency = F.mse_loss(outputs.softmax(dim=1), teacher_logits.softmax(dim=1))
""",
        values={
            "extra loss": "loss = loss + min(1.0, 0.1 * teacher_step) * consistency\n",
            "after step": "teacher_step += 1\nupdate_teacher(model, teacher, 0.9, teacher_step)\n",
            "modules": "teacher model",
        },
        imports=_F,
        tags=frozenset({"ema"}),
        excludes=frozenset({"closure"}),
    ),
    model(
        "a memory of features by sample kept in a queue",
        _FEATURES,
        "model = Net()\nqueue, queue_at = F.normalize(torch.sin(torch.arange(24 * 16.0)).view(24, 16), dim=1), 0\n",
        batch="""
outputs, features = model(inputs)
keys = F.normalize(features.detach(), dim=1).cpu()
against = F.normalize(features, dim=1) @ queue.to(features.device).t()
spread = torch.logsumexp(against / 0.5, dim=1).mean()
queue = torch.cat([keys, queue])[:24]
""",
        values={"extra loss": "loss = loss + 0.1 * spread\n", "predict": _PREDICT},
        imports=_F,
        tags=frozenset({"features"}),
        excludes=frozenset({"closure"}),
        weight=0.7,
    ),
]
