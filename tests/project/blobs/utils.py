import os
import shutil

import torch


def note(text):
    print("using", text)


def known_losses():
    from . import losses

    return [name for name in vars(losses) if not name.startswith("_")]


class Log:
    def __init__(self, path):
        self.file = open(path, "w")

    def __call__(self, line):
        print(line)
        self.file.write(line + "\n")
        self.file.flush()


def save_checkpoint(state, is_best, folder):
    path = os.path.join(folder, "last.pt")
    torch.save(state, path)
    if is_best:
        shutil.copyfile(path, os.path.join(folder, "best.pt"))
