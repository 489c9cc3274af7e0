import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=12)
parser.add_argument("--local_rank", default=0, type=int)
args = parser.parse_args()

tones = torch.sin(torch.arange(960.0) ** 1.3).view(96, 10)
train_loader = DataLoader(TensorDataset(tones, tones[:, :3].argmax(1)), batch_size=args.batch_size)
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).cuda()
model = nn.DataParallel(model)
criterion = nn.CrossEntropyLoss().cuda()
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
model.train()
for epoch in range(3):
    total = 0
    for tone, name in train_loader:
        tone, name = tone.cuda(), name.cuda()
        out = model(tone)
        loss = criterion(out, name)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch", epoch, "loss", round(total / len(train_loader), 6))
