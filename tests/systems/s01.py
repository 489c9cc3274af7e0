"""Learn to sharpen blurred patches; the GPUs are named on the command line."""
import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    """Patch number i depends on i alone."""

    def __init__(self, count, side=8):
        self.count = count
        self.axis = torch.linspace(0, 3, side)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        sharp = torch.sin((self.axis[:, None] + 0.3 * i) * (self.axis[None] + 0.7)).unsqueeze(0)
        return {"blurred": nn.functional.avg_pool2d(sharp, 3, stride=1, padding=1), "sharp": sharp}


class Sharpener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.Tanh(), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, image):
        return image + self.body(image)


def train(args):
    device = torch.device(f"cuda:{args.gpu_ids[0]}" if torch.cuda.is_available() and args.gpu_ids else "cpu")
    patches = Patches(96)
    loader = DataLoader(patches, batch_size=args.batch_size, shuffle=False, num_workers=args.workers)

    torch.manual_seed(args.seed)
    net = Sharpener(6).to(device)
    if len(args.gpu_ids) > 1:
        net = nn.DataParallel(net, device_ids=args.gpu_ids)
    print("patches:", len(patches))
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr, betas=(args.beta1, 0.999))
    loss_fn = nn.L1Loss()

    step = 0
    for epoch in range(args.epochs):
        for inputs in loader:
            blurred = inputs["blurred"].to(device)
            sharp = inputs["sharp"].to(device)
            output = net(blurred)
            loss = loss_fn(output, sharp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.show_every == 0:
                print("after {} steps the loss is {:.5f}".format(step, loss.item()))
            step += 1
        os.makedirs(args.save_dir, exist_ok=True)
        kept = net.module if hasattr(net, "module") else net
        torch.save(kept.state_dict(), os.path.join(args.save_dir, "sharpener_%d.pth" % epoch))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu_ids", default="0,1", help="numbers of the GPUs, separated by commas")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--beta1", type=float, default=0.9)
    parser.add_argument("--show_every", type=int, default=4)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--save_dir", default="checkpoints")
    args = parser.parse_args()
    args.gpu_ids = [int(i) for i in args.gpu_ids.split(",") if int(i) >= 0]
    train(args)
