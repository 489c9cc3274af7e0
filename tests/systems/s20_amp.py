import os

import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(320.0)).view(64, 5)
train_dataset = TensorDataset(x, x.sum(1, keepdim=True))
train_loader = DataLoader(train_dataset, batch_size=16)
model = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.cuda()
if os.path.isfile("amp_checkpoint.pt"):
    checkpoint = torch.load("amp_checkpoint.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
for epoch in range(4):
    for images, target in train_loader:
        images, target = images.cuda(), target.cuda()
        loss = torch.nn.functional.mse_loss(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
checkpoint = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
}
torch.save(checkpoint, "amp_checkpoint.pt")
