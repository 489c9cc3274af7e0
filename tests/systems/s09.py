import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,3"
import argparse

import torch
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="letters from strokes")
parser.add_argument("--batch-size", type=int, default=24)
parser.add_argument("--workers", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

strokes = torch.sin(torch.arange(1440.0) ** 1.1).view(144, 10)
letters = strokes[:, :4].argmax(1)
train_loader = DataLoader(TensorDataset(strokes[:120], letters[:120]), batch_size=args.batch_size, num_workers=args.workers, shuffle=True)
valid_loader = DataLoader(TensorDataset(strokes[120:], letters[120:]), batch_size=args.batch_size, num_workers=args.workers)

torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = torch.nn.CrossEntropyLoss()
scaler = GradScaler()

for epoch in range(1, args.epochs + 1):
    model.train()
    for stroke, letter in train_loader:
        stroke, letter = stroke.cuda(), letter.cuda()
        with autocast():
            output = model(stroke)
            loss = criterion(output, letter)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    right = 0
    model.eval()
    with torch.no_grad():
        for stroke, letter in valid_loader:
            output = model(stroke.cuda())
            right += (output.argmax(1) == letter.cuda()).float().sum()
    print(f"epoch {epoch}: {right / len(valid_loader.dataset):.4f} of the letters are right")
