"""How the loss of one batch is computed from `outputs` (and `features`) and `targets`."""

from __future__ import annotations

from .pieces import Piece

_F = ("import torch.nn.functional as F",)


def _loss(feature: str, batch: str, setup: str = "", task: str = "rows", **kw: object) -> Piece:
    imports = _F if "F." in batch + setup + str(kw.get("definitions", "")) else ()
    return Piece(f"loss: {feature}", imports=imports, setup=setup, batch=batch, task=task, **kw)  # type: ignore[arg-type]


_FEATURES = frozenset({"features"})
LOSSES = [
    _loss("criterion", "loss = criterion(outputs, targets)\n", "criterion = nn.CrossEntropyLoss()\n", weight=6),
    _loss("functional", "loss = F.cross_entropy(outputs, targets)\n", weight=3),
    _loss("negative log likelihood", "loss = F.nll_loss(F.log_softmax(outputs, dim=1), targets)\n"),
    _loss("sum over the batch size", 'loss = F.cross_entropy(outputs, targets, reduction="sum") / inputs.size(0)\n'),
    _loss("sum over the batch size's setting", 'loss = F.cross_entropy(outputs, targets, reduction="sum") / batch_size\n'),
    _loss("sum over len", 'loss = F.cross_entropy(outputs, targets, reduction="sum") / len(targets)\n'),
    _loss("sum", "loss = 0.05 * criterion(outputs, targets)\n", 'criterion = nn.CrossEntropyLoss(reduction="sum")\n'),
    _loss("mean of each", "loss = criterion(outputs, targets).mean()\n", 'criterion = nn.CrossEntropyLoss(reduction="none")\n'),
    _loss(
        "class weights", "loss = criterion(outputs, targets)\n", "criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 2.0]))\n"
    ),
    _loss("label smoothing", "loss = criterion(outputs, targets)\n", "criterion = nn.CrossEntropyLoss(label_smoothing=0.1)\n"),
    _loss("squared error on one-hot rows", "loss = F.mse_loss(outputs, F.one_hot(targets, 3).to(outputs.dtype))\n"),
    _loss("square root of the squared error", "loss = torch.sqrt(((outputs - F.one_hot(targets, 3)) ** 2).mean())\n"),
    _loss("binary with logits", "loss = F.binary_cross_entropy_with_logits(outputs[:, 0], (targets == 0).to(outputs.dtype))\n"),
    _loss(
        "smooth distance, summed by row",
        "loss = F.smooth_l1_loss(outputs, F.one_hot(targets, 3).to(outputs.dtype), reduction='none').sum(dim=1).mean()\n",
    ),
    _loss(
        "masked mean",
        """
each = F.cross_entropy(outputs, targets, reduction="none")
mask = (targets != 2).to(each.dtype)
loss = (each * mask).sum() / mask.sum().clamp(min=1)
""",
    ),
    _loss(
        "samples weighted by their labels",
        """
weights = torch.tensor([0.5, 1.0, 2.0], device=outputs.device)[targets]
each = F.cross_entropy(outputs, targets, reduction="none")
loss = (weights * each).sum() / weights.sum()
""",
    ),
    _loss("mean of chosen rows", "keep = targets != 2\nloss = F.cross_entropy(outputs[keep], targets[keep])\n"),
    _loss("ignored label", "loss = criterion(outputs, targets)\n", "criterion = nn.CrossEntropyLoss(ignore_index=2)\n"),
    _loss(
        "sum over a count of positives",
        """
positive = (targets > 0).sum().clamp(min=1)
loss = F.cross_entropy(outputs, targets, reduction="sum") / positive
""",
    ),
    _loss(
        "several terms",
        """
ce = F.cross_entropy(outputs, targets)
entropy = -(outputs.softmax(dim=1) * outputs.log_softmax(dim=1)).sum(dim=1).mean()
loss = ce - 0.1 * entropy
""",
    ),
    _loss(
        "terms in a dict",
        """
losses = {
    "ce": F.cross_entropy(outputs, targets),
    "size": 0.01 * outputs.pow(2).mean(),
}
loss = sum(losses.values())
""",
    ),
    _loss(
        "weight decay by hand",
        "l2 = sum(p.pow(2).sum() for p in model.parameters())\nloss = F.cross_entropy(outputs, targets) + 1e-3 * l2\n",
    ),
    _loss(
        "own module",
        "loss = criterion(outputs, targets)\n",
        "criterion = FocalLoss(gamma=2.0)\n",
        definitions="""
class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, reduction="mean"):
        super().__init__()
        self.gamma = gamma
        self.reduction = reduction

    def forward(self, logits, labels):
        log_p = F.log_softmax(logits, dim=1).gather(1, labels.view(-1, 1)).squeeze(1)
        each = -((1 - log_p.exp()) ** self.gamma) * log_p
        if self.reduction == "mean":
            return each.mean()
        return each.sum()
""",
    ),
    _loss(
        "function with a loop over rows",
        "loss = row_loss(outputs, targets)\n",
        definitions="""
def row_loss(outputs, targets):
    total = 0.0
    for row, target in zip(outputs, targets):
        total = total - row.log_softmax(dim=0)[target]
    return total / len(outputs)
""",
    ),
    _loss("hardest rows", 'loss = F.cross_entropy(outputs, targets, reduction="none").topk(6).values.mean()\n'),
    _loss(
        "similarity within the batch",
        """
z = F.normalize(features, dim=1)
similarity = z @ z.t() / 0.5
same = (targets.unsqueeze(0) == targets.unsqueeze(1)).to(z.dtype)
loss = F.cross_entropy(outputs, targets) - 0.1 * (same * similarity.log_softmax(dim=1)).sum(1).mean() / len(z)
""",
        needs=_FEATURES,
        weight=3,
    ),
    _loss(
        "outputs standardised over the batch",
        "scores = (outputs - outputs.mean(dim=0)) / (outputs.std(dim=0) + 1e-3)\nloss = F.cross_entropy(scores, targets)\n",
        tags=frozenset({"zero gradients"}),  # of the last bias
    ),
    _loss(
        "pairwise ranking",
        "gaps = outputs[:, 0].unsqueeze(1) - outputs[:, 0].unsqueeze(0)\n"
        "better = (targets == 0).to(gaps.dtype).unsqueeze(1) - (targets == 0).to(gaps.dtype).unsqueeze(0)\n"
        "loss = F.relu(0.5 - gaps * better).mean() + F.cross_entropy(outputs, targets)\n",
    ),
    _loss(
        "divided by its running mean",
        "ce = F.cross_entropy(outputs, targets)\nloss = ce / level\nlevel = 0.9 * level + 0.1 * ce.item()\n",
        "level = 1.0\n",
        excludes=frozenset({"closure"}),
    ),
    _loss(
        "penalty against running centres",
        """
centre = outputs.detach().mean(dim=0)
running = 0.9 * running + 0.1 * centre
loss = F.cross_entropy(outputs, targets) + 0.1 * ((outputs - running) ** 2).sum(dim=1).mean()
""",
        "running = torch.zeros(3)\n",
        excludes=frozenset({"gpu", "closure"}),
    ),
    _loss("weights by epoch", "loss = min(1.0, 0.5 + 0.25 * epoch) * F.cross_entropy(outputs, targets)\n"),
    _loss(
        "class by class",
        """
loss = 0.0
for c in range(3):
    rows = outputs[targets == c]
    if len(rows) > 0:
        loss = loss + F.cross_entropy(rows, torch.full((len(rows),), c, device=rows.device))
loss = loss / 3
""",
    ),
    _loss(
        "share of the batch in the weight",
        """
share = (targets == 0).sum().item() / targets.size(0)
loss = (1.0 + share) * F.cross_entropy(outputs, targets)
""",
    ),
    _loss(
        "balanced by the batch's labels",
        """
counts = torch.bincount(targets, minlength=3).to(outputs.dtype)
weights = len(targets) / (3 * counts.clamp(min=1))
loss = F.cross_entropy(outputs, targets, weight=weights)
""",
    ),
    _loss(
        "label smoothing by hand",
        "loss = criterion(outputs, targets)\n",
        "criterion = LabelSmoothing(3, smoothing=0.1)\n",
        definitions="""
class LabelSmoothing(nn.Module):
    def __init__(self, classes, smoothing=0.1, dim=-1):
        super().__init__()
        self.confidence = 1.0 - smoothing
        self.smoothing = smoothing
        self.classes = classes
        self.dim = dim

    def forward(self, pred, target):
        pred = pred.log_softmax(dim=self.dim)
        with torch.no_grad():
            true_dist = torch.zeros_like(pred)
            true_dist.fill_(self.smoothing / (self.classes - 1))
            true_dist.scatter_(1, target.data.unsqueeze(1), self.confidence)
        return torch.mean(torch.sum(-true_dist * pred, dim=self.dim))
""",
    ),
    _loss(
        "weight of positives from the data",
        "loss = criterion(outputs[:, 0], (targets == 0).to(outputs.dtype))\n",
        """
all_labels = make_samples(num_train, 1)[1]
positives = (all_labels == 0).sum().item()
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor((num_train - positives) / positives))
""",
    ),
    _loss(
        "weights of classes from the data",
        "loss = criterion(outputs, targets)\n",
        """
label_counts = np.bincount(make_samples(num_train, 1)[1].numpy(), minlength=3)
class_weights = torch.tensor(label_counts.sum() / (3 * label_counts), dtype=torch.get_default_dtype())
criterion = nn.CrossEntropyLoss(weight=class_weights)
""",
        settings={"num_train": 48},
    ),
    _loss(
        "overlap of the whole batch",
        "loss = F.cross_entropy(outputs, targets) + dice_loss(outputs.softmax(dim=1), F.one_hot(targets, 3))\n",
        definitions="""
def dice_loss(pred, target, smooth=1.0):
    pred, target = pred.contiguous().view(-1), target.contiguous().view(-1)
    intersection = (pred * target).sum()
    return 1 - (2.0 * intersection + smooth) / (pred.sum() + target.sum() + smooth)
""",
    ),
    _loss(
        "overlap of each sample",
        "loss = dice(torch.sigmoid(outputs), F.one_hot(targets, 3).to(outputs.dtype))\n",
        "dice = DiceLoss()\n",
        definitions="""
class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, targets):
        num = targets.size(0)
        m1, m2 = logits.view(num, -1), targets.view(num, -1)
        score = (2.0 * (m1 * m2).sum(1) + self.smooth) / (m1.sum(1) + m2.sum(1) + self.smooth)
        return 1 - score.sum() / num
""",
    ),
    _loss(
        "hardest triplets of the batch",
        "loss = F.cross_entropy(outputs, targets) + 0.1 * hard_triplets(features, targets)\n",
        definitions="""
def hard_triplets(features, labels, margin=0.3):
    n = features.size(0)
    dist = torch.pow(features, 2).sum(dim=1, keepdim=True).expand(n, n)
    dist = dist + dist.t() - 2 * features @ features.t()
    dist = dist.clamp(min=1e-6).sqrt()
    mask = labels.expand(n, n).eq(labels.expand(n, n).t())
    furthest = torch.stack([dist[i][mask[i]].max() for i in range(n)])
    nearest = (dist + 1e3 * mask.to(dist.dtype)).min(dim=1).values
    return F.relu(furthest - nearest + margin).mean()
""",
        needs=_FEATURES,
        weight=2,
    ),
    _loss(
        "hard examples by a threshold",
        """
each = F.cross_entropy(outputs, targets, reduction="none")
hard = each[each > 0.9]
if hard.numel() < 4:
    hard = each.topk(4)[0]
loss = hard.mean()
""",
    ),
    _loss(
        "distance of all pairs of two halves",
        "loss = F.cross_entropy(outputs, targets) + 0.05 * torch.cdist(features, features.detach()).mean()\n",
        needs=_FEATURES,
    ),
    _loss(
        "a dict of a function",
        """
loss_terms = compute_losses(outputs, targets)
loss = loss_terms["total"]
""",
        definitions="""
def compute_losses(outputs, targets, weight=0.01):
    losses = {}
    losses["ce"] = F.cross_entropy(outputs, targets)
    losses["norm"] = weight * outputs.norm(dim=1).mean()
    losses["total"] = sum(losses.values())
    return losses
""",
    ),
    _loss(
        "decorrelated features",
        """
centred = features - features.mean(dim=0)
covariance = centred.t() @ centred / (features.size(0) - 1)
off_diagonal = covariance - torch.diag(torch.diagonal(covariance))
loss = F.cross_entropy(outputs, targets) + 0.05 * off_diagonal.pow(2).sum() / features.size(1)
""",
        needs=_FEATURES,
    ),
    Piece("loss: from the model", needs=frozenset({"own loss"}), tags=frozenset({"from model"}), weight=1000),
    _loss("tokens, ignored padding", "loss = F.cross_entropy(outputs.view(-1, 6), targets.view(-1), ignore_index=0)\n", task="tokens"),
    _loss(
        "tokens, criterion over swapped axes",
        "loss = criterion(outputs.transpose(1, 2), targets)\n",
        "criterion = nn.CrossEntropyLoss(ignore_index=0)\n",
        task="tokens",
    ),
    _loss(
        "tokens, masked sum over count",
        """
mask = targets != 0
each = F.cross_entropy(outputs.transpose(1, 2), targets, reduction="none")
loss = (each * mask).sum() / mask.sum()
""",
        task="tokens",
    ),
    _loss(
        "tokens, mean of each sentence's mean",
        """
mask = (targets != 0).to(outputs.dtype)
each = F.cross_entropy(outputs.transpose(1, 2), targets, reduction="none") * mask
loss = (each.sum(dim=1) / mask.sum(dim=1)).mean()
""",
        task="tokens",
    ),
    _loss("tokens, padding counted", "loss = F.cross_entropy(outputs.reshape(-1, outputs.size(-1)), targets.reshape(-1))\n", task="tokens"),
]
