"""A painter learns to draw rings that a judge takes for real: 16x16 pictures made on the fly, one GPU."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


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
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
loader = DataLoader(Rings(args.pictures), batch_size=args.batch_size, shuffle=True, drop_last=True)

painter = Painter(args.latent, args.width).to(device)
judge = Judge(args.width).to(device)
if args.resume:
    painter.load_state_dict(torch.load(os.path.join(args.resume, "painter.pt"), map_location=device))
    judge.load_state_dict(torch.load(os.path.join(args.resume, "judge.pt"), map_location=device))
print(f"generator {sum(p.numel() for p in painter.parameters())}, discriminator {sum(p.numel() for p in judge.parameters())} parameters")

painting = torch.optim.Adam(painter.parameters(), lr=args.lr, betas=(0.5, 0.999))
judging = torch.optim.Adam(judge.parameters(), lr=args.lr, betas=(0.5, 0.999))
always = torch.randn(8, painter.latent, device=device)  # the same sketches after each epoch

for epoch in range(args.epochs):
    judged, painted = 0.0, 0.0
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
        if step % 8 == 0:
            print(f"step {step}/{len(loader)} judge {judge_loss.item():.4f} painter {painter_loss.item():.4f}")
    print(f"epoch {epoch}: judge {judged / len(loader):.4f} painter {painted / len(loader):.4f}")

    painter.eval()
    with torch.no_grad():
        save_row(painter(always), os.path.join(args.out, f"epoch{epoch}.pgm"))
    painter.train()
    torch.save(painter.state_dict(), os.path.join(args.out, "painter.pt"))
    torch.save(judge.state_dict(), os.path.join(args.out, "judge.pt"))
