"""What a script writes and reads back."""

from __future__ import annotations

from .pieces import Piece

_STATE = '{"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": train_loss}'
FILES = [
    Piece("files: none", weight=2),
    Piece("files: weights at the end", finish='torch.save(model.state_dict(), "model.pt")\n', weight=3),
    Piece(
        "files: checkpoint of each epoch",
        imports=("import os",),
        setup='os.makedirs("checkpoints", exist_ok=True)\n',
        after=f'torch.save({_STATE}, f"checkpoints/epoch_{{epoch}}.pt")\n',
        weight=2,
    ),
    Piece(
        "files: path objects",
        imports=("from pathlib import Path",),
        setup='out_dir = Path("runs")\nout_dir.mkdir(parents=True, exist_ok=True)\n',
        after='torch.save(model.state_dict(), out_dir / "last.pt")\n',
    ),
    Piece(
        "files: a folder with the settings",
        imports=("import os",),
        setup="""
os.makedirs("run", exist_ok=True)
with open(os.path.join("run", "settings.txt"), "w") as f:
    f.write(f"epochs {epochs} batch {batch_size}\\n")
""",
        finish='torch.save(model.state_dict(), os.path.join("run", "model.pt"))\n',
    ),
    Piece("files: whole model", finish='torch.save(model, "whole.pt")\n', apart=("keys",)),
    Piece(
        "files: moved to the CPU and back",
        after='model.cpu()\ntorch.save(model.state_dict(), "cpu.pt")\nmodel.to("cuda" if torch.cuda.is_available() else "cpu")\n',
        needs=frozenset({"gpu"}),
        excludes=frozenset({"fake gpu"}),
    ),
    Piece(
        "files: weights read back",
        finish="""
torch.save(model.state_dict(), "weights.pt")
model.load_state_dict(torch.load("weights.pt", map_location="cpu"))
print(f"final weights {sum(p.sum().item() for p in model.parameters()):.6f}")
""",
    ),
    Piece(
        "files: CSV log",
        imports=("import csv",),
        setup='log_file = open("log.csv", "w", newline="")\nwriter = csv.writer(log_file)\nwriter.writerow(["epoch", "train_loss"])\n',
        after="writer.writerow([epoch, round(float(train_loss), 6)])\nlog_file.flush()\n",
        finish="log_file.close()\n",
    ),
    Piece(
        "files: text log",
        after='with open("log.txt", "a") as f:\n    f.write(f"{epoch} {train_loss:.6f}\\n")\n',
    ),
    Piece(
        "files: JSON history",
        imports=("import json",),
        setup='history = {"train_loss": [], "epochs": []}\n',
        after='history["train_loss"].append(float(train_loss))\nhistory["epochs"].append(epoch)\n',
        finish='with open("history.json", "w") as f:\n    json.dump(history, f)\n',
    ),
    Piece(
        "files: last checkpoints kept",
        imports=("import os",),
        setup="kept_files = []\n",
        after="""
path = f"model_{epoch}.pt"
torch.save(model.state_dict(), path)
kept_files.append(path)
if len(kept_files) > 2:
    os.remove(kept_files.pop(0))
""",
    ),
    Piece(
        "files: resumed where there is a checkpoint",
        imports=("import os",),
        values={"first epoch": "start_epoch"},
        setup="""
start_epoch = 0
if os.path.exists("resume.pt"):
    checkpoint = torch.load("resume.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    start_epoch = checkpoint["epoch"] + 1
print("start at epoch", start_epoch)
""",
        after='torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "resume.pt")\n',
    ),
    Piece(
        "files: function that saves",
        definitions="""
def save_checkpoint(state, is_best, filename="checkpoint.pt"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pt")
""",
        imports=("import shutil",),
        setup='record = float("inf")\n',
        after="is_best = train_loss < record\nrecord = min(train_loss, record)\n"
        'save_checkpoint({"epoch": epoch, "state_dict": model.state_dict(), "record": record}, is_best)\n',
    ),
    Piece(
        "files: a number of the model",
        finish='print(f"final norm {sum(p.detach().pow(2).sum() for p in model.parameters()).sqrt().item():.6f}")\n',
        weight=2,
    ),
    Piece(
        "files: a writer of scalars",
        imports=("import json",),
        definitions="""
class Writer:
    def __init__(self, path):
        self.file = open(path, "w")

    def add_scalar(self, tag, value, step):
        self.file.write(json.dumps({"tag": tag, "value": round(float(value), 6), "step": step}) + "\\n")

    def close(self):
        self.file.close()
""",
        setup='writer = Writer("scalars.json")\n',
        after='writer.add_scalar("train/loss", train_loss, epoch)\n',
        finish="writer.close()\n",
    ),
    Piece(
        "files: summary writer",
        imports=("from torch.utils.tensorboard import SummaryWriter",),
        setup='board = SummaryWriter("board")\n',
        batch='board.add_scalar("batch/loss", loss.item(), epoch)\n',
        after='board.add_scalar("train/loss", train_loss, epoch)\nboard.flush()\n',
        finish="board.close()\n",
        apart=("files",),  # named by the time and the process
        weight=0.5,
    ),
    Piece(
        "files: printed and written by a function",
        definitions="""
def print_log(text, path="printed.txt"):
    print(text)
    with open(path, "a") as f:
        f.write(text + "\\n")
""",
        after='print_log(f"epoch {epoch} of the log: {train_loss:.6f}")\n',
    ),
    Piece(
        "files: arrays of numpy",
        imports=("import numpy as np",),
        setup="curve = []\n",
        after="curve.append(float(train_loss))\n",
        finish='np.savetxt("curve.txt", np.array(curve), fmt="%.6f")\nnp.save("curve.npy", np.array(curve))\n',
    ),
    Piece(
        "files: saved on every second epoch and at the end",
        after="""
if epoch % 2 == 0 or epoch == epochs - 1:
    torch.save({"net": model.state_dict(), "loss": train_loss}, f"net_{epoch}.pth")
""",
    ),
    Piece(
        "files: output sent to a file, too",
        imports=("import sys",),
        definitions="""
class Tee:
    def __init__(self, path):
        self.terminal = sys.stdout
        self.log = open(path, "w")

    def write(self, message):
        self.terminal.write(message)
        self.log.write(message)

    def flush(self):
        self.terminal.flush()
        self.log.flush()
""",
        setup='sys.stdout = Tee("stdout.txt")\n',
        finish="sys.stdout.flush()\n",
        weight=0.7,
    ),
]
