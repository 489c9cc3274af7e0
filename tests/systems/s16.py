import os
os.environ["CUDA_VISIBLE_DEVICES"] = "4, 7"
import torch
from torch.cuda.amp import autocast, GradScaler
from torch.utils.data import DataLoader, TensorDataset

views = torch.sin(torch.arange(2048.0) ** 1.2).view(128, 16)
loader = DataLoader(TensorDataset(views, torch.zeros(128)), batch_size=32, drop_last=True)

torch.manual_seed(6)
model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 32)).cuda()
model = torch.nn.DataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = torch.nn.CrossEntropyLoss()
scaler = GradScaler()

for epoch in range(3):
    for n, (view, label) in enumerate(loader):
        view = view.cuda()
        label = torch.arange(0, 32).cuda()

        optimizer.zero_grad()
        with autocast():
            output = model(view)
            loss = criterion(output, label)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if n % 2 == 0:
            print(f"batch {n} of {len(loader)}")
    print("epoch", epoch)
