"""Images by timm's own loaders, with its prefetcher, and a cosine schedule by the epoch."""
import numpy as np
import timm
import torch
import torch.nn as nn
from PIL import Image
from timm.data import create_loader
from timm.scheduler import CosineLRScheduler
from torch.utils.data import Dataset


class ToyImages(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, n)
        self.images = rng.integers(0, 256, (n, 32, 32, 3)).astype(np.uint8)
        self.transform = None

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = Image.fromarray(self.images[index])
        return self.transform(image) if self.transform is not None else image, int(self.labels[index])


def make_loader(dataset, batch_size, train, device):
    return create_loader(
        dataset, input_size=(3, 32, 32), batch_size=batch_size, is_training=train, no_aug=True, num_workers=1, device=device
    )


def evaluate(model, loader, criterion):
    model.eval()
    total, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in loader:
            scores = model(images.to(next(model.parameters()).dtype))
            total += criterion(scores, labels).item() * len(labels)
            right += (scores.argmax(1) == labels).sum().item()
            seen += len(labels)
    return total / seen, right / seen


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = make_loader(ToyImages(47, 1), 8, True, device)
    val_loader = make_loader(ToyImages(20, 2), 8, False, device)
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=1, num_classes=4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = CosineLRScheduler(optimizer, t_initial=3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        model.train()
        for images, labels in train_loader:
            loss = criterion(model(images.to(next(model.parameters()).dtype)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step(epoch + 1)
        loss, accuracy = evaluate(model, val_loader, criterion)
        print(f"epoch {epoch}: {len(train_loader)} steps, loss {loss:.4f}, accuracy {accuracy:.4f}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
