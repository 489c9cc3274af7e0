"""A painter learns to draw rings that a judge takes for real: 16x16 pictures made on the fly, one GPU."""
import argparse
import os
import atexit

import torch
import torch.nn.functional as F
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


# One process per GPU: torchrun tells each which one it is; without a launcher this is a group of one.
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))


def init_distributed():
    """Join the process group that torchrun describes, or be a group of one."""
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    atexit.register(dist.destroy_process_group)


def per_rank(batch_size):
    """This rank's share of a global batch."""
    if batch_size % world_size:
        lower = batch_size - batch_size % world_size
        sizes = f"{lower} or {lower + world_size}" if lower else f"{world_size}"
        raise ValueError(f"a batch size of {batch_size} cannot be divided among {world_size} ranks; {sizes} can")
    return batch_size // world_size


def sum_over_ranks(value):
    """The total over all ranks of a number, array or tensor that each computed from its own share of the data."""
    parts = [None] * world_size
    dist.all_gather_object(parts, value.detach().cpu().numpy() if torch.is_tensor(value) else value)
    total = sum(parts)
    return torch.as_tensor(total, device=value.device) if torch.is_tensor(value) else total


init_distributed()

class Rings(Dataset):
    """Bright rings on black, of many sizes and places."""

    def __init__(self, size, seed=11):
        generator = torch.Generator().manual_seed(seed)
        centers = 7.5 + 3 * (torch.rand(size, 2, generator=generator) - 0.5)
        radii = 3 + 3 * torch.rand(size, generator=generator)
        ys, xs = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
        far = ((ys - centers[:, 0, None, None]) ** 2 + (xs - centers[:, 1, None, None]) ** 2).sqrt()
        self.images = 2 * torch.exp(-((far - radii[:, None, None]) ** 2)) - 1

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index].unsqueeze(0)


class Painter(nn.Module):
    """From a latent vector to a picture: a 4x4 sketch, enlarged twice."""

    def __init__(self, latent, width):
        super().__init__()
        self.latent, self.width = latent, width
        self.sketch = nn.Linear(latent, width * 16)
        self.norm = nn.BatchNorm2d(width)
        self.coarse = nn.Conv2d(width, width, 3, padding=1)
        self.fine = nn.Conv2d(width, 1, 5, padding=2)

    def forward(self, z):
        x = self.norm(self.sketch(z).view(-1, self.width, 4, 4))
        x = F.silu(self.coarse(F.interpolate(F.silu(x), scale_factor=2)))
        return torch.tanh(self.fine(F.interpolate(x, scale_factor=2)))


class Judge(nn.Module):
    """How real a picture looks, as a logit."""

    def __init__(self, width):
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(1, width, 5, 2, 2), nn.SiLU(), nn.Conv2d(width, width, 5, 2, 2), nn.SiLU(), nn.Flatten())
        self.verdict = nn.Linear(width * 16, 1)

    def forward(self, images):
        return self.verdict(self.look(images)).squeeze(1)


def save_row(images, path):
    """Write a row of pictures as a grey-scale PGM."""
    row = torch.cat(list(images[:, 0]), dim=1).add(1).mul(127.5).clamp(0, 255).to(torch.uint8).cpu()
    with open(path, "wb") as f:
        f.write(b"P5 %d %d 255\n" % (row.size(1), row.size(0)))
        f.write(bytes(row.flatten().tolist()))


def believed(logits, real):
    """The loss of a judge who should take pictures for real, or for painted."""
    return F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits) if real else torch.zeros_like(logits))


parser = argparse.ArgumentParser()
parser.add_argument("--pictures", type=int, default=512)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--latent", type=int, default=16)
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=5e-4)
parser.add_argument("--resume", default="", help="folder with painter.pt and judge.pt to go on from")
parser.add_argument("--out", default="out", help="folder for pictures and checkpoints")
parser.add_argument("--seed", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(args.seed)
os.makedirs(args.out, exist_ok=True)
device = torch.device(f"cuda:{local_rank}" if torch.cuda.is_available() else "cpu")
train_dataset = Rings(args.pictures)
loader = DataLoader(train_dataset, batch_size=per_rank(args.batch_size), drop_last=True, sampler=DistributedSampler(train_dataset, drop_last=True))

painter = Painter(args.latent, args.width).to(device)
judge = Judge(args.width).to(device)
if args.resume:
    painter.load_state_dict(torch.load(os.path.join(args.resume, "painter.pt"), map_location=device))
    judge.load_state_dict(torch.load(os.path.join(args.resume, "judge.pt"), map_location=device))
if next(painter.parameters()).is_cuda:
    painter = torch.nn.SyncBatchNorm.convert_sync_batchnorm(painter)
painter = DistributedDataParallel(painter, device_ids=[local_rank] if next(painter.parameters()).is_cuda else None)
judge = DistributedDataParallel(judge, device_ids=[local_rank] if next(judge.parameters()).is_cuda else None)
if rank == 0:
    print(f"generator {sum(p.numel() for p in painter.parameters())}, discriminator {sum(p.numel() for p in judge.parameters())} parameters")

painting = torch.optim.Adam(painter.parameters(), lr=args.lr, betas=(0.5, 0.999))
judging = torch.optim.Adam(judge.parameters(), lr=args.lr, betas=(0.5, 0.999))
always = torch.randn(8, painter.module.latent, device=device)  # the same sketches after each epoch

if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(args.epochs):
    judged, painted = 0.0, 0.0
    loader.sampler.set_epoch(epoch)
    for step, images in enumerate(loader):
        images = images.to(device)
        fakes = painter(torch.randn(len(images), args.latent, device=device))

        # the judge learns to tell them apart
        judging.zero_grad()
        judge_loss = believed(judge(images), True) + believed(judge(fakes.detach()), False)
        judge_loss.backward()
        judging.step()

        # the painter learns to be believed
        painting.zero_grad()
        painter_loss = believed(judge(fakes), True)
        painter_loss.backward()
        painting.step()

        judged += judge_loss.item()
        painted += painter_loss.item()
        if rank == 0 and step % 8 == 0:
            print(f"step {step}/{len(loader)} judge {judge_loss.item():.4f} painter {painter_loss.item():.4f}")
    judged = sum_over_ranks(judged) / world_size
    painted = sum_over_ranks(painted) / world_size
    if rank == 0:
        print(f"epoch {epoch}: judge {judged / len(loader):.4f} painter {painted / len(loader):.4f}")

    painter.eval()
    with torch.no_grad():
        result = painter.module(always)
        if rank == 0:
            save_row(result, os.path.join(args.out, f"epoch{epoch}.pgm"))
    painter.train()
    if rank == 0:
        torch.save(painter.module.state_dict(), os.path.join(args.out, "painter.pt"))
        torch.save(judge.module.state_dict(), os.path.join(args.out, "judge.pt"))
