"""Settings by tyro, a run of wandb, GradScaler and bfloat16 by choice, cosine warm-up, gradient accumulation."""
import dataclasses
import math
import os
import random
from typing import Literal, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import tyro
import wandb
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Args:
    exp_name: str = os.path.basename(__file__)[: -len(".py")]
    """the name of this experiment"""
    seed: int = 1
    track: bool = False
    wandb_project: str = "sequences"
    wandb_entity: Optional[str] = None
    total_epochs: int = 2
    batch_size: int = 16
    micro_batch: int = 8
    learning_rate: float = 2e-3
    warmup: float = 0.1
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    save_model: bool = True


class Series(Dataset):
    def __init__(self, n, length=12):
        g = torch.Generator().manual_seed(0)
        phase = torch.rand(n, 1, generator=g) * 6.28
        t = torch.arange(length + 1).float() / 3
        self.waves = torch.sin(phase + t) + 0.05 * torch.randn(n, length + 1, generator=g)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        return self.waves[i, :-1].unsqueeze(-1), self.waves[i, 1:].unsqueeze(-1)


class Forecaster(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h)


def main(args: Args):
    run_name = f"{args.exp_name}__{args.seed}"
    if args.track:
        wandb.init(project=args.wandb_project, entity=args.wandb_entity, config=vars(args), name=run_name, save_code=True)
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[args.precision]
    accumulation = args.batch_size // args.micro_batch
    loader = DataLoader(Series(128), batch_size=args.micro_batch, shuffle=True, drop_last=True)
    model = Forecaster().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    scaler = torch.amp.GradScaler(device.type, enabled=args.precision == "fp16")
    total_updates = args.total_epochs * len(loader) // accumulation

    def schedule(step):
        warm = max(1, int(args.warmup * total_updates))
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total_updates - warm)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    update = 0
    for epoch in range(args.total_epochs):
        epoch_loss = torch.zeros((), device=device)
        for i, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            with torch.autocast(device.type, dtype=dtype, enabled=args.precision != "fp32"):
                loss = F.smooth_l1_loss(model(x), y) / accumulation
            scaler.scale(loss).backward()
            epoch_loss += loss.detach() * accumulation
            if (i + 1) % accumulation == 0:
                scaler.unscale_(optimizer)
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
                update += 1
                if args.track:
                    wandb.log({"loss": loss.item() * accumulation, "grad_norm": norm.item(), "lr": scheduler.get_last_lr()[0]}, step=update)
        mean = (epoch_loss / len(loader)).item()
        print(f"epoch={epoch} update={update} loss={mean:.4f}")
        if args.track:
            wandb.log({"epoch_loss": mean}, step=update)
    if args.save_model:
        os.makedirs(f"runs/{run_name}", exist_ok=True)
        torch.save(model.state_dict(), f"runs/{run_name}/{args.exp_name}.model")
    if args.track:
        wandb.finish()


if __name__ == "__main__":
    main(tyro.cli(Args))
