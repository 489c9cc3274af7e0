"""kornia: augmentation inside the loop, focal and SSIM losses, albumentations in the data set."""
import albumentations as A
import kornia.augmentation as K
import numpy as np
import torch
import torch.nn as nn
from kornia.losses import FocalLoss, ssim_loss
from torch.utils.data import DataLoader, Dataset


class Textures(Dataset):
    def __init__(self, n, seed, transform=None):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 3, n)
        self.images = (rng.random((n, 16, 16, 3)) * 0.5 + self.labels[:, None, None, None] * 0.15).astype(np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.transform is not None:
            image = self.transform(image=image)["image"]
        return torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).to(torch.get_default_dtype()), int(self.labels[i])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.decoder = nn.Conv2d(8, 3, 3, padding=1)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = self.encoder(x)
        return self.head(h.mean((2, 3))), torch.sigmoid(self.decoder(h))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    transform = A.Compose([A.CenterCrop(14, 14), A.Resize(16, 16)])
    train_loader = DataLoader(Textures(64, 0, transform), batch_size=8, shuffle=True)
    val_loader = DataLoader(Textures(24, 1), batch_size=8)
    normalize = K.Normalize(mean=torch.tensor([0.5, 0.5, 0.5]), std=torch.tensor([0.25, 0.25, 0.25])).to(device)
    model = Model().to(device)
    focal = FocalLoss(alpha=0.5, gamma=2.0, reduction="mean")
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        model.train()
        total, n = 0.0, 0
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            logits, rebuilt = model(normalize(images))
            loss = focal(logits, labels) + 0.2 * ssim_loss(rebuilt, images, window_size=5)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * images.size(0)
            n += images.size(0)
        model.eval()
        right = 0
        with torch.no_grad():
            for images, labels in val_loader:
                logits, _ = model(normalize(images.to(device)))
                right += (logits.argmax(1) == labels.to(device)).sum().item()
        print(f"epoch {epoch} loss {total / n:.4f} accuracy {right / len(val_loader.dataset):.3f}")
    torch.save(model.state_dict(), "kornia.pt")


if __name__ == "__main__":
    main()
