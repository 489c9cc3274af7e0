"""Numbers of a training and of a validation that classes and functions of a script compute."""

from __future__ import annotations

from .metrics import shown, validation
from .pieces import Piece

_F = ("import torch.nn.functional as F",)
_NP = ("import numpy as np",)
_TAG = frozenset({"validation"})
MORE_SCORES: list[Piece] = [
    shown(
        "totals of named numbers",
        "sums_by_name, batches_summed = {}, 0\n",
        """
numbers_now = {"loss": loss.item(), "confidence": outputs.softmax(dim=1).max(dim=1).values.mean().item()}
for key, value in numbers_now.items():
    sums_by_name[key] = sums_by_name.get(key, 0.0) + value
batches_summed += 1
""",
        'print("train", ", ".join(f"{key} {value / batches_summed:.6f}" for key, value in sums_by_name.items()))\n',
        task="rows",
    ),
    shown(
        "meters in a dict, shown by their text",
        "meters = MeterGroup()\n",
        "meters.update({'loss': loss.item(), 'acc': (outputs.argmax(1) == targets).double().mean().item()}, n=len(targets))\n",
        'print(f"train {meters}")\n',
        definitions="""
class MeterGroup:
    def __init__(self):
        self.meters = {}

    def update(self, values, n=1):
        for name, value in values.items():
            total, count = self.meters.get(name, (0.0, 0))
            self.meters[name] = (total + value * n, count + n)

    def __str__(self):
        return " ".join(f"{name}: {total / count:.6f}" for name, (total, count) in self.meters.items())
""",
        task="rows",
    ),
    shown(
        "running means in a loop over an interval",
        "interval_loss, interval_hits, interval_seen, since_report = 0.0, 0, 0, 0\n",
        """
interval_loss += loss.item()
interval_hits += (outputs.argmax(dim=1) == targets).sum().item()
interval_seen += targets.size(0)
since_report += 1
if since_report % 2 == 0:
    print("step interval loss %.4f acc %.4f" % (interval_loss / 2, interval_hits / interval_seen))
    interval_loss, interval_hits, interval_seen = 0.0, 0, 0
""",
        "",
        task="rows",
    ),
]
SCORES: list[Piece] = [
    validation(
        "histogram of labels and guesses",
        "hist, val_losses = np.zeros((3, 3)), []\n",
        """
hist += fast_hist(targets.cpu().numpy().flatten(), outputs.argmax(dim=1).cpu().numpy().flatten(), 3)
val_losses.append(F.cross_entropy(outputs, targets).item() * len(targets))
""",
        """
iou = np.diag(hist) / (hist.sum(1) + hist.sum(0) - np.diag(hist))
val_loss, val_acc = sum(val_losses) / hist.sum(), np.nanmean(iou)
""",
        imports=_NP,
        tags=_TAG,
        definitions="""
def fast_hist(label, guess, classes):
    known = (label >= 0) & (label < classes)
    return np.bincount(classes * label[known].astype(int) + guess[known], minlength=classes ** 2).reshape(classes, classes)
""",
    ),
    validation(
        "an evaluator with a matrix",
        "evaluator.reset()\nval_sum = 0.0\n",
        """
evaluator.add_batch(targets.cpu().numpy(), np.argmax(outputs.cpu().numpy(), axis=1))
val_sum += F.cross_entropy(outputs, targets, reduction="sum").item()
""",
        "val_loss, val_acc = val_sum / evaluator.confusion_matrix.sum(), evaluator.accuracy()\n",
        imports=(*_F, *_NP),
        tags=_TAG,
        setup="evaluator = Evaluator(3)\n",
        definitions="""
class Evaluator:
    def __init__(self, num_class):
        self.num_class = num_class
        self.confusion_matrix = np.zeros((self.num_class,) * 2)

    def accuracy(self):
        return np.diag(self.confusion_matrix).sum() / self.confusion_matrix.sum()

    def _generate_matrix(self, truth, guess):
        mask = (truth >= 0) & (truth < self.num_class)
        label = self.num_class * truth[mask].astype("int") + guess[mask]
        return np.bincount(label, minlength=self.num_class ** 2).reshape(self.num_class, self.num_class)

    def add_batch(self, truth, guess):
        self.confusion_matrix += self._generate_matrix(truth, guess)

    def reset(self):
        self.confusion_matrix = np.zeros((self.num_class,) * 2)
""",
        weight=1.5,
    ),
    validation(
        "arrays joined, measured by functions",
        "preds, trues = [], []\n",
        "preds.append(outputs.detach().cpu().numpy())\ntrues.append(F.one_hot(targets, 3).cpu().numpy())\n",
        """
preds, trues = np.concatenate(preds, axis=0), np.concatenate(trues, axis=0)
mae, mse, rmse = regression_metrics(preds, trues)
val_loss, val_acc = mse, float(np.corrcoef(preds[:, 0], trues[:, 0])[0, 1])
print(f"validation mae {mae:.6f} rmse {rmse:.6f}")
""",
        imports=(*_F, *_NP),
        tags=_TAG,
        definitions="""
def regression_metrics(pred, true):
    mae = np.mean(np.abs(pred - true))
    mse = np.mean((pred - true) ** 2)
    return mae, mse, np.sqrt(mse)
""",
    ),
    validation(
        "area under a curve",
        "val_scores, val_truth, val_sum = torch.zeros(0), torch.zeros(0), 0.0\n",
        """
val_scores = torch.cat((val_scores, outputs[:, 0].cpu()), 0)
val_truth = torch.cat((val_truth, (targets == 0).to(outputs.dtype).cpu()), 0)
val_sum += F.cross_entropy(outputs, targets, reduction="sum").item()
""",
        "val_loss, val_acc = val_sum / len(val_truth), roc_auc_score(val_truth.numpy(), val_scores.numpy())\n",
        imports=(*_F, "from sklearn.metrics import roc_auc_score"),
        tags=_TAG,
    ),
    validation(
        "nearest neighbour of all outputs",
        "bank, bank_labels, val_parts = [], [], []\n",
        """
bank.append(F.normalize(outputs, dim=1))
bank_labels.append(targets)
val_parts.append(F.cross_entropy(outputs, targets, reduction="none"))
""",
        """
bank, bank_labels = torch.cat(bank, dim=0), torch.cat(bank_labels, dim=0)
scores = bank @ bank.t() - 2 * torch.eye(len(bank), device=bank.device)
val_loss = torch.cat(val_parts).mean().item()
val_acc = (bank_labels[scores.argmax(dim=1)] == bank_labels).double().mean().item()
""",
        imports=_F,
        tags=_TAG,
    ),
    validation(
        "results of a function in a dict",
        "collected = []\n",
        "collected.append(score_batch(outputs, targets))\n",
        """
count = sum(part["n"] for part in collected)
val_loss = sum(part["loss"] * part["n"] for part in collected) / count
val_acc = sum(part["hits"] for part in collected) / count
""",
        tags=_TAG,
        definitions="""
def score_batch(outputs, targets):
    guesses = outputs.argmax(dim=1)
    loss = F.cross_entropy(outputs, targets)
    return {"loss": loss.item(), "hits": int((guesses == targets).sum()), "n": targets.shape[0]}
""",
    ),
    validation(
        "a number for each sample, by its key",
        "by_sample = {}\n",
        """
each_loss = F.cross_entropy(outputs, targets, reduction="none")
for value, sample, right in zip(each_loss.tolist(), inputs.sum(dim=1).tolist(), (outputs.argmax(1) == targets).tolist()):
    by_sample[round(sample, 6)] = (value, right)
""",
        """
val_loss = sum(value for value, _ in by_sample.values()) / len(by_sample)
val_acc = sum(right for _, right in by_sample.values()) / len(by_sample)
""",
        tags=_TAG,
    ),
]
