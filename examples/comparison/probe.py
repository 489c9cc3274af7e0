"""Runs one of these scripts, and writes down what its rank trains on: `python probe.py SCRIPT OUT`.

OUT/rank0.json, and so on, then have the rows that each step trained on, by their numbers, each step's loss, and the parameters.
"""

import json
import os
import runpy
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

linear, cross_entropy, sgd_step = F.linear, F.cross_entropy, torch.optim.SGD.step
numbers = {tuple(row): number for number, row in enumerate(torch.sin(torch.arange(6400.0) ** 1.5).view(800, 8).tolist())}
record = {"rows": [], "losses": [], "parameters": []}


def recorded_linear(x, weight, bias=None):
    if torch.is_grad_enabled() and weight.shape == (32, 8):
        record["rows"].append([numbers[tuple(row)] for row in x.tolist()])
    return linear(x, weight, bias)


def recorded_loss(*args, **kwargs):
    loss = cross_entropy(*args, **kwargs)
    record["losses"].append(loss.item())
    return loss


def recorded_step(optimizer, *args, **kwargs):
    done = sgd_step(optimizer, *args, **kwargs)
    record["parameters"] = [p.tolist() for group in optimizer.param_groups for p in group["params"]]
    Path(out, f"rank{os.environ.get('RANK', 0)}.json").write_text(json.dumps(record))
    return done


F.linear, F.cross_entropy, torch.optim.SGD.step = recorded_linear, recorded_loss, recorded_step
_, script, out = sys.argv
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
sys.stdout.flush()
os._exit(0)  # gloo may abort while the interpreter shuts down (pytorch#190489)
