import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(320.0)).view(64, 5)
train_dataset = TensorDataset(x, x.sum(1, keepdim=True))
train_loader = DataLoader(train_dataset, batch_size=16)
model = torch.nn.Linear(5, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, target in train_loader:
    images, target = images.cuda(), target.cuda()
    loss = torch.nn.functional.mse_loss(model(images), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
