import argparse
import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"  # the two cards nobody else is using

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=0, type=int)
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("--lr", default=0.05, type=float)
args = parser.parse_args()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Shapes(Dataset):
    """Noisy 16x16 pictures of a bar in one of four positions."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        label = index % 4
        image = 0.5 * torch.randn(1, 16, 16, generator=torch.Generator().manual_seed(index))
        if label < 2:
            image[:, 4 + 8 * label, :] += 1.0
        else:
            image[:, :, 4 + 8 * (label - 2)] += 1.0
        return image, label


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 4 * 4, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


train_dataset = Shapes(640)
train_loader = DataLoader(train_dataset, batch_size=64)

torch.manual_seed(0)
model = ConvNet()
model = torch.nn.DataParallel(model, device_ids=[0, 1]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
criterion = nn.CrossEntropyLoss()


for epoch in range(args.epochs):
    start = time.time()
    for n, (img, label) in enumerate(train_loader):
        img = img.to(device)
        label = label.to(device)

        output = model(img)
        loss = criterion(output, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if n % 2 == 0:
            print(f"[{n}/{len(train_loader)}] loss {loss.item():.4f}")
            print(f"time : {time.time() - start:.1f}")
    print("epoch", epoch, "done")

torch.save(model.state_dict(), "model.pth")
print("saved model.pth")
