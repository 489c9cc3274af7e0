"""Find the bright disc in a noisy picture: a small U-Net with a dice loss."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Discs(Dataset):
    def __init__(self, first, count, size=16):
        self.first, self.count = first, count
        self.grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).float()

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(self.first + i)
        center = 4 + 8 * torch.rand(2, 1, 1, generator=generator)
        mask = ((self.grid - center).pow(2).sum(0) < 9).float()
        image = mask + 0.5 * torch.randn(mask.shape, generator=generator)
        return image[None], mask[None]


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.middle = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2))
        self.out = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, x):
        fine = self.down(x)
        return self.out(torch.cat([fine, self.middle(fine)], dim=1))


def dice_loss(logits, masks):
    p = torch.sigmoid(logits).flatten(1)
    masks = masks.flatten(1)
    overlap = (p * masks).sum(1)
    return 1 - ((2 * overlap + 1) / (p.sum(1) + masks.sum(1) + 1)).mean()


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    shared = joined = 0
    for images, masks in loader:
        found = model(images.to(device)) > 0
        masks = masks.to(device) > 0.5
        shared += (found & masks).sum().item()
        joined += (found | masks).sum().item()
    return shared / joined


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(Discs(0, 64), batch_size=8, shuffle=True)
    test_loader = DataLoader(Discs(1000, 24), batch_size=8)
    model = UNet().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    best = 0.0
    for epoch in range(3):
        model.train()
        for images, masks in train_loader:
            images, masks = images.to(device), masks.to(device)
            logits = model(images)
            loss = F.binary_cross_entropy_with_logits(logits, masks) + dice_loss(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        overlap = evaluate(model, test_loader, device)
        print(f"epoch {epoch}: intersection over union {overlap:.4f}")
        if overlap > best:
            best = overlap
            torch.save(model.state_dict(), "segmentation.pt")


if __name__ == "__main__":
    main()
