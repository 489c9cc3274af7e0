"""What is decided after an epoch: the best epoch, when to stop, how fast to go on."""

from __future__ import annotations

from .pieces import Piece

_NEEDS = frozenset({"validation"})
REPORTS = [
    Piece("report: one line", after='print(f"epoch {epoch}: train loss {train_loss:.6f}")\n', excludes=_NEEDS),
    Piece("report: two numbers", after='print("epoch %d train loss %.6f" % (epoch, train_loss))\n', excludes=_NEEDS),
    Piece(
        "report: validation",
        after='print(f"epoch {epoch}: train loss {train_loss:.6f} val loss {val_loss:.6f} val acc {val_acc:.6f}")\n',
        needs=_NEEDS,
    ),
    Piece(
        "report: format",
        after='print("epoch {} train {:.6f} val {:.6f} {:.6f}".format(epoch + 1, train_loss, val_loss, val_acc))\n',
        needs=_NEEDS,
    ),
    Piece(
        "report: logging",
        imports=("import logging",),
        definitions="logging.basicConfig(level=logging.INFO, format='%(message)s')\nlogger = logging.getLogger(__name__)\n",
        after='logger.info("epoch %d train loss %.6f", epoch, train_loss)\n',
        tags=frozenset({"logged"}),
    ),
]
DECISIONS = [
    Piece("decision: none", weight=3),
    Piece(
        "decision: best accuracy",
        setup="best_acc = 0.0\n",
        after='if val_acc > best_acc:\n    best_acc = val_acc\n    torch.save(model.state_dict(), "best.pt")\n',
        finish='print(f"best accuracy {best_acc:.6f}")\n',
        needs=_NEEDS,
        weight=2,
    ),
    Piece(
        "decision: best weights kept in memory",
        imports=("import copy",),
        setup='best_loss = float("inf")\nbest_weights = copy.deepcopy(model.state_dict())\n',
        after="if val_loss < best_loss:\n    best_loss = val_loss\n    best_weights = copy.deepcopy(model.state_dict())\n",
        finish='model.load_state_dict(best_weights)\nprint(f"best val loss {best_loss:.6f}")\ntorch.save(model.state_dict(), "final.pt")\n',
        needs=_NEEDS,
    ),
    Piece(
        "decision: best training loss",
        setup='best_loss, best_epoch = float("inf"), -1\n',
        after="if train_loss < best_loss:\n    best_loss, best_epoch = train_loss, epoch\n",
        finish='print(f"best train loss {best_loss:.6f} of epoch {best_epoch}")\n',
    ),
    Piece(
        "decision: early stop",
        settings={"patience": 2},
        setup='lowest = float("inf")\nbad_epochs = 0\n',
        after="""
if val_loss < lowest:
    lowest = val_loss
    bad_epochs = 0
else:
    bad_epochs += 1
    if bad_epochs >= patience:
        print("early stop")
        break
""",
        needs=_NEEDS,
    ),
    Piece(
        "decision: early stopping object",
        definitions="""
class EarlyStopping:
    def __init__(self, patience=2, delta=0.0):
        self.patience = patience
        self.delta = delta
        self.counter = 0
        self.best = None
        self.stop = False

    def __call__(self, value):
        if self.best is None or value < self.best - self.delta:
            self.best = value
            self.counter = 0
        else:
            self.counter += 1
            self.stop = self.counter >= self.patience
""",
        setup="stopper = EarlyStopping(patience=2)\n",
        after="stopper(val_loss)\nif stopper.stop:\n    print('early stop')\n    break\n",
        needs=_NEEDS,
    ),
    Piece(
        "decision: plateau of the validation",
        setup="plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)\n",
        after="plateau.step(val_loss)\n",
        needs=_NEEDS,
    ),
    Piece(
        "decision: plateau of the training loss",
        setup="plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)\n",
        after="plateau.step(train_loss)\n",
    ),
    Piece(
        "decision: stop at a training loss",
        after="if train_loss < 0.4:\n    print(f'train loss reached at epoch {epoch}')\n    break\n",
    ),
    Piece(
        "decision: rate lowered when the training loss rises",
        setup="last_loss = 1e9\n",
        after="""
if train_loss > 0.9 * last_loss:
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
last_loss = train_loss
""",
    ),
    Piece(
        "decision: gate by the epoch's accuracy",
        setup="unlocked = False\n",
        after="""
if val_acc > 0.5:
    unlocked = True
if unlocked:
    for group in optimizer.param_groups:
        group["lr"] = 0.3 * lr
""",
        needs=_NEEDS,
    ),
    Piece(
        "decision: early stopping object that saves",
        definitions="""
class EarlyStopper:
    def __init__(self, patience=2, delta=0.0, path="early.pt", trace_func=print):
        self.patience, self.delta, self.path, self.trace_func = patience, delta, path, trace_func
        self.counter = 0
        self.best_score = None
        self.early_stop = False
        self.val_loss_min = np.inf

    def __call__(self, val_loss, model):
        score = -val_loss
        if self.best_score is None:
            self.best_score = score
            self.save_checkpoint(val_loss, model)
        elif score < self.best_score + self.delta:
            self.counter += 1
            self.trace_func(f"early stopping counter: {self.counter} out of {self.patience}")
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            self.save_checkpoint(val_loss, model)
            self.counter = 0

    def save_checkpoint(self, val_loss, model):
        self.trace_func(f"validation loss decreased ({self.val_loss_min:.6f} to {val_loss:.6f})")
        torch.save(model.state_dict(), self.path)
        self.val_loss_min = val_loss
""",
        imports=("import numpy as np",),
        setup="early_stopping = EarlyStopper(patience=2)\n",
        after="early_stopping(val_loss, model)\nif early_stopping.early_stop:\n    print('early stop')\n    break\n",
        finish='model.load_state_dict(torch.load("early.pt"))\n',
        needs=_NEEDS,
        weight=2,
    ),
    Piece(
        "decision: best accuracy, with its checkpoint",
        setup="best_acc, best_epoch = 0.0, 0\n",
        after="""
if val_acc >= best_acc:
    best_acc, best_epoch = val_acc, epoch
    state = {"epoch": epoch + 1, "net": model.state_dict(), "best_acc": best_acc, "optimizer": optimizer.state_dict()}
    torch.save(state, "checkpoint_best.pth")
""",
        finish="""
best_state = torch.load("checkpoint_best.pth", weights_only=False)
print("best epoch", best_state["epoch"], round(best_state["best_acc"], 6))
""",
        needs=_NEEDS,
    ),
    Piece(
        "decision: the best few checkpoints",
        imports=("import os",),
        setup="top_checkpoints = []\n",
        after="""
name = f"top_{epoch}.pt"
top_checkpoints.append((val_acc, name))
torch.save(model.state_dict(), name)
top_checkpoints.sort(key=lambda pair: pair[0], reverse=True)
if len(top_checkpoints) > 2:
    os.remove(top_checkpoints.pop()[1])
""",
        needs=_NEEDS,
    ),
    Piece(
        "decision: rate divided when the validation does not improve",
        setup='lowest, stale = float("inf"), 0\n',
        after="""
if val_loss < lowest:
    lowest, stale = val_loss, 0
else:
    stale += 1
if stale > 0:
    optimizer.param_groups[0]["lr"] /= 10
    print(f"rate is now {optimizer.param_groups[0]['lr']:.6f}")
    if optimizer.param_groups[0]["lr"] < 1e-4:
        break
""",
        needs=_NEEDS,
    ),
    Piece(
        "decision: best of a list",
        setup="val_accs_seen = []\n",
        after='val_accs_seen.append(val_acc)\nif val_acc == max(val_accs_seen):\n    torch.save(model.state_dict(), "of_list.pt")\n',
        finish='print("best epoch", int(np.argmax(val_accs_seen)), f"{max(val_accs_seen):.6f}")\n',
        imports=("import numpy as np",),
        needs=_NEEDS,
    ),
]
