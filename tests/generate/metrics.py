"""Numbers that are kept over batches and shown afterwards: of the training and of a validation."""

from __future__ import annotations

from .pieces import Piece


def shown(feature: str, start: str, batch: str, end: str, excludes: frozenset[str] = frozenset(), **kw: object) -> Piece:
    excludes = excludes | {"closure"} if "outputs" in batch else excludes
    return Piece(f"metric: {feature}", start=start, batch=batch, end=end, excludes=excludes, **kw)  # type: ignore[arg-type]


_METER = """
class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)
"""
_LENGTH = frozenset({"no loader", "no length"})
TRAIN_LOSS = [
    shown(
        "sum over len(loader)",
        "running_loss = 0.0\n",
        "running_loss += loss.item()\n",
        "train_loss = running_loss / len(train_loader)\n",
        excludes=_LENGTH,
        weight=3,
    ),
    shown(
        "sum over samples",
        "running_loss, seen_samples = 0.0, 0\n",
        "running_loss += loss.item() * inputs.size(0)\nseen_samples += inputs.size(0)\n",
        "train_loss = running_loss / seen_samples\n",
        weight=3,
    ),
    shown(
        "sum over len(dataset)",
        "epoch_loss = 0\n",
        "epoch_loss += loss.item() * len(targets)\n",
        "train_loss = epoch_loss / len(train_loader.dataset)\n",
        excludes=_LENGTH | {"own sampler"},
    ),
    shown(
        "list and mean",
        "losses_seen = []\n",
        "losses_seen.append(loss.item())\n",
        "train_loss = sum(losses_seen) / len(losses_seen)\n",
        weight=2,
    ),
    shown(
        "list and numpy mean",
        "batch_losses = []\n",
        "batch_losses.append(loss.item())\n",
        "train_loss = np.mean(batch_losses)\n",
        imports=("import numpy as np",),
    ),
    shown(
        "stacked tensors",
        "loss_tensors = []\n",
        "loss_tensors.append(loss.detach())\n",
        "train_loss = torch.stack(loss_tensors).mean().item()\n",
    ),
    shown("tensor on the device", "total_loss = 0.0\n", "total_loss = total_loss + loss.detach()\n", "train_loss = total_loss.item()\n"),
    shown(
        "meter",
        "meter = AverageMeter()\n",
        "meter.update(loss.item(), inputs.size(0))\n",
        "train_loss = meter.avg\n",
        definitions=_METER,
        weight=2,
    ),
    shown(
        "dict of totals",
        'totals = {"loss": 0.0, "batches": 0}\n',
        'totals["loss"] += loss.item()\ntotals["batches"] += 1\n',
        'train_loss = totals["loss"] / totals["batches"]\n',
    ),
    shown(
        "defaultdict of lists",
        "records = defaultdict(list)\n",
        'records["loss"].append(loss.item())\n',
        'train_loss = np.mean(records["loss"])\n',
        imports=("from collections import defaultdict", "import numpy as np"),
    ),
    shown(
        "running mean updated in place",
        "mean_loss, batches_done = 0.0, 0\n",
        "mean_loss = (mean_loss * batches_done + loss.item()) / (batches_done + 1)\nbatches_done += 1\n",
        "train_loss = mean_loss\n",
    ),
    shown(
        "exponential average",
        "smoothed = None\n",
        "smoothed = loss.item() if smoothed is None else 0.9 * smoothed + 0.1 * loss.item()\n",
        "train_loss = smoothed\n",
    ),
    shown(
        "running mean by increments",
        "train_loss, batch_count = 0.0, 0\n",
        "batch_count += 1\ntrain_loss += (loss.item() - train_loss) / batch_count\n",
        "",
    ),
    shown(
        "an object with named totals",
        "tracker = MetricTracker()\n",
        'tracker.update("loss", loss.item(), n=len(targets))\n',
        'train_loss = tracker.result()["loss"]\n',
        definitions="""
class MetricTracker:
    def __init__(self):
        self.totals, self.counts = {}, {}

    def update(self, key, value, n=1):
        self.totals[key] = self.totals.get(key, 0.0) + value * n
        self.counts[key] = self.counts.get(key, 0) + n

    def result(self):
        return {key: self.totals[key] / self.counts[key] for key in self.totals}
""",
    ),
    shown(
        "vector of totals",
        "totals_vector = torch.zeros(2)\n",
        "totals_vector[0] += loss.item() * targets.size(0)\ntotals_vector[1] += targets.size(0)\n",
        "train_loss = (totals_vector[0] / totals_vector[1]).item()\n",
    ),
    shown(
        "numpy array appended to",
        "loss_array = np.array([])\n",
        "loss_array = np.append(loss_array, loss.item())\n",
        "train_loss = loss_array.mean()\n",
        imports=("import numpy as np",),
    ),
    shown(
        "history of all batches",
        "first_of_epoch = len(loss_history)\n",
        "loss_history.append(loss.item())\n",
        "train_loss = sum(loss_history[first_of_epoch:]) / len(loss_history[first_of_epoch:])\n",
        setup="loss_history = []\n",
    ),
]
_HITS = "(outputs.argmax(dim=1) == targets).sum().item()"
MORE = [
    shown(
        "accuracy",
        "correct, total = 0, 0\n",
        f"correct += {_HITS}\ntotal += targets.size(0)\n",
        'train_acc = 100.0 * correct / total\nprint(f"train accuracy {train_acc:.4f}")\n',
        task="rows",
        weight=3,
    ),
    shown(
        "accuracy with max",
        "hits = 0\ncount = 0\n",
        "_, predicted = torch.max(outputs.data, 1)\nhits += predicted.eq(targets.data).cpu().sum().item()\ncount += len(targets)\n",
        'print(f"train accuracy {hits}/{count} ({100. * hits / count:.2f}%)")\n',
        task="rows",
    ),
    shown(
        "mean of the batches' accuracies",
        "accuracies = []\n",
        "accuracies.append((outputs.argmax(1) == targets).double().mean().item())\n",
        'print(f"train mean accuracy {sum(accuracies) / len(accuracies):.6f}")\n',
        task="rows",
        excludes=frozenset({"uneven"}),
    ),
    shown(
        "confusion matrix",
        "confusion = torch.zeros(3, 3, dtype=torch.long)\n",
        "for t, p in zip(targets.cpu(), outputs.argmax(dim=1).cpu()):\n    confusion[t, p] += 1\n",
        'print("train confusion", confusion.tolist())\nprint(f"train recall {(confusion.diag() / confusion.sum(1)).mean():.6f}")\n',
        task="rows",
    ),
    shown(
        "class totals",
        "class_correct, class_total = [0] * 3, [0] * 3\n",
        """
for label, guess in zip(targets.tolist(), outputs.argmax(1).tolist()):
    class_correct[label] += int(label == guess)
    class_total[label] += 1
""",
        'for c in range(3):\n    print(f"train class {c}: {class_correct[c]} of {class_total[c]}")\n',
        task="rows",
    ),
    shown(
        "predictions kept",
        "all_predictions, all_targets = [], []\n",
        "all_predictions.append(outputs.argmax(dim=1).detach().cpu())\nall_targets.append(targets.clone().cpu())\n",
        'matches = torch.cat(all_predictions) == torch.cat(all_targets)\nprint(f"train matches {matches.double().mean().item():.6f}")\n',
        task="rows",
    ),
    shown(
        "predictions in numpy",
        "guesses, truths = [], []\n",
        "guesses.extend(outputs.argmax(dim=1).cpu().numpy())\ntruths.extend(targets.cpu().numpy())\n",
        'print(f"train score {np.mean(np.array(guesses) == np.array(truths)):.6f}")\n',
        imports=("import numpy as np",),
        task="rows",
    ),
    shown(
        "largest loss",
        'worst = float("-inf")\n',
        "worst = max(worst, outputs.detach().abs().max().item())\n",
        'print(f"train largest output {worst:.6f}")\n',
    ),
    shown(
        "top two",
        "top2 = 0\n",
        "_, best_two = outputs.topk(2, dim=1)\ntop2 += best_two.eq(targets.view(-1, 1)).sum().item()\n",
        'print(f"train top two {top2 / num_train:.6f}")\n',
        task="rows",
        excludes=frozenset({"uneven"}),
    ),
    shown(
        "tokens right",
        "right, words = 0, 0\n",
        "real = targets != 0\nright += ((outputs.argmax(-1) == targets) & real).sum().item()\nwords += real.sum().item()\n",
        'print(f"train words {right} of {words} ({right / words:.6f})")\n',
        task="tokens",
        weight=3,
    ),
    shown("printed in the loop", "", 'print(f"step of epoch {epoch}: loss {loss.item():.6f}")\n', "", weight=2),
    shown(
        "squared errors and a root",
        "squares, entries = 0.0, 0\n",
        "squares += (outputs.detach() ** 2).sum().item()\nentries += outputs.numel()\n",
        'print(f"train rms {(squares / entries) ** 0.5:.6f}")\n',
        task="rows",
    ),
    shown("learning rate", "", "", "print(f\"epoch {epoch} lr {optimizer.param_groups[0]['lr']:.6f}\")\n"),
    shown(
        "accuracy of a function, in meters",
        "top1, top2_meter = AverageMeter(), AverageMeter()\n",
        """
acc1, acc2 = topk_accuracy(outputs, targets, topk=(1, 2))
top1.update(acc1.item(), inputs.size(0))
top2_meter.update(acc2.item(), inputs.size(0))
""",
        'print(f"train top1 {top1.avg:.4f} top2 {top2_meter.avg:.4f}")\n',
        definitions=_METER
        + """

def topk_accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0) * (100.0 / target.size(0)) for k in topk]
""",
        task="rows",
    ),
    shown(
        "precision and recall from counts",
        "tp, fp, fn = 0, 0, 0\n",
        """
positive, guessed = targets == 1, outputs.argmax(dim=1) == 1
tp += (positive & guessed).sum().item()
fp += (~positive & guessed).sum().item()
fn += (positive & ~guessed).sum().item()
""",
        'print(f"train f1 {2 * tp / max(1, 2 * tp + fp + fn):.6f}")\n',
        task="rows",
    ),
    shown(
        "window of the last losses",
        "recent = deque(maxlen=3)\n",
        'recent.append(loss.item())\nprint(f"step smoothed {sum(recent) / len(recent):.6f}")\n',
        "",
        imports=("from collections import deque",),
    ),
    shown(
        "time of the epoch",
        "began = time.time()\n",
        "",
        'print(f"epoch took {time.time() - began < 1e6}")\n',
        imports=("import time",),
    ),
]


def validation(feature: str, start: str, batch: str, end: str, task: str = "rows", **kw: object) -> Piece:
    piece = Piece(f"validation: {feature}", validation_start=start, validation_batch=batch, validation_end=end, task=task, **kw)  # type: ignore[arg-type]
    return piece


_F = ("import torch.nn.functional as F",)
_TAG = frozenset({"validation"})
VALIDATIONS = [
    validation(
        "totals",
        "val_total, val_correct = 0.0, 0\n",
        f'val_total += F.cross_entropy(outputs, targets, reduction="sum").item()\nval_correct += {_HITS}\n',
        "val_loss = val_total / len(val_loader.dataset)\nval_acc = val_correct / len(val_loader.dataset)\n",
        imports=_F,
        tags=_TAG,
        excludes=frozenset({"own validation length"}),
        weight=3,
    ),
    validation(
        "totals by samples",
        "val_total, val_correct, val_seen = 0.0, 0, 0\n",
        f"val_total += F.cross_entropy(outputs, targets).item() * targets.size(0)\nval_correct += {_HITS}\nval_seen += targets.size(0)\n",
        "val_loss = val_total / val_seen\nval_acc = val_correct / val_seen\n",
        imports=_F,
        tags=_TAG,
        weight=3,
    ),
    validation(
        "mean of batch means",
        "val_losses, val_accs = [], []\n",
        """
val_losses.append(F.cross_entropy(outputs, targets).item())
val_accs.append((outputs.argmax(1) == targets).double().mean().item())
""",
        "val_loss = sum(val_losses) / len(val_losses)\nval_acc = sum(val_accs) / len(val_accs)\n",
        imports=_F,
        tags=_TAG,
    ),
    validation(
        "all outputs kept",
        "logits_kept, labels_kept = [], []\n",
        "logits_kept.append(outputs)\nlabels_kept.append(targets)\n",
        """
logits_all, labels_all = torch.cat(logits_kept), torch.cat(labels_kept)
val_loss = F.cross_entropy(logits_all, labels_all).item()
val_acc = (logits_all.argmax(dim=1) == labels_all).double().mean().item()
""",
        imports=_F,
        tags=_TAG,
        weight=2,
    ),
    validation(
        "scikit-learn",
        "y_true, y_pred, val_total = [], [], 0.0\n",
        "y_true += targets.tolist()\ny_pred += outputs.argmax(dim=1).tolist()\n"
        'val_total += F.cross_entropy(outputs, targets, reduction="sum").item()\n',
        'val_loss = val_total / len(y_true)\nval_acc = f1_score(y_true, y_pred, average="macro")\n',
        imports=(*_F, "from sklearn.metrics import f1_score"),
        tags=_TAG,
    ),
    validation(
        "tokens",
        "val_total, val_words, val_right = 0.0, 0, 0\n",
        """
real = targets != 0
val_total += F.cross_entropy(outputs.reshape(-1, 6), targets.reshape(-1), ignore_index=0, reduction="sum").item()
val_right += ((outputs.argmax(-1) == targets) & real).sum().item()
val_words += real.sum().item()
""",
        "val_loss = val_total / val_words\nval_acc = val_right / val_words\n",
        "tokens",
        imports=_F,
        tags=_TAG,
    ),
    validation(
        "means over len(loader)",
        "val_loss, val_acc = 0.0, 0.0\n",
        f"val_loss += F.cross_entropy(outputs, targets).item()\nval_acc += {_HITS}\n",
        "val_loss /= len(val_loader)\nval_acc /= len(val_loader.dataset)\n",
        imports=_F,
        tags=_TAG,
        excludes=frozenset({"own validation length"}),
    ),
    validation(
        "array of all outputs filled",
        "scores_kept, labels_seen, filled = np.zeros((num_val, 3)), np.zeros(num_val, dtype=int), 0\n",
        """
scores_kept[filled:filled + len(targets)] = outputs.cpu().numpy()
labels_seen[filled:filled + len(targets)] = targets.cpu().numpy()
filled += len(targets)
""",
        """
val_loss = float(((scores_kept[:filled] - np.eye(3)[labels_seen[:filled]]) ** 2).mean())
val_acc = float((scores_kept[:filled].argmax(axis=1) == labels_seen[:filled]).mean())
""",
        imports=("import numpy as np",),
        tags=_TAG,
    ),
    validation(
        "classes' accuracies averaged",
        "val_total, val_seen, class_hits, class_counts = 0.0, 0, torch.zeros(3), torch.zeros(3)\n",
        """
guesses_now = outputs.argmax(dim=1)
for k in range(3):
    of_class = targets == k
    class_hits[k] += (guesses_now[of_class] == k).sum().item()
    class_counts[k] += of_class.sum().item()
val_total += F.cross_entropy(outputs, targets).item() * len(targets)
val_seen += len(targets)
""",
        "val_loss = val_total / val_seen\nval_acc = (class_hits / class_counts.clamp(min=1)).mean().item()\n",
        imports=_F,
        tags=_TAG,
    ),
    validation(
        "confusion matrix of numpy",
        "val_losses, val_matrix = [], np.zeros((3, 3), dtype=int)\n",
        """
val_losses.append(F.cross_entropy(outputs, targets, reduction="none").cpu())
np.add.at(val_matrix, (targets.cpu().numpy(), outputs.argmax(dim=1).cpu().numpy()), 1)
""",
        "val_loss = torch.cat(val_losses).mean().item()\nval_acc = np.trace(val_matrix) / val_matrix.sum()\n",
        imports=(*_F, "import numpy as np"),
        tags=_TAG,
    ),
    validation(
        "meters",
        "val_meter, acc_meter = AverageMeter(), AverageMeter()\n",
        """
val_meter.update(F.cross_entropy(outputs, targets).item(), targets.size(0))
acc_meter.update((outputs.argmax(dim=1) == targets).double().mean().item(), targets.size(0))
""",
        "val_loss, val_acc = val_meter.avg, acc_meter.avg\n",
        imports=_F,
        tags=_TAG,
        definitions=_METER,
    ),
    validation(
        "lists in a dict",
        'val_kept = {"scores": [], "labels": []}\n',
        'val_kept["scores"].extend(outputs.cpu().tolist())\nval_kept["labels"].extend(targets.cpu().tolist())\n',
        """
val_scores, val_labels = torch.tensor(val_kept["scores"]), torch.tensor(val_kept["labels"])
val_loss = F.cross_entropy(val_scores, val_labels).item()
val_acc = (val_scores.argmax(dim=1) == val_labels).double().mean().item()
""",
        imports=_F,
        tags=_TAG,
    ),
]
NO_VALIDATION = Piece("validation: none")
