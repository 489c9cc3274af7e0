"""L-BFGS over batches, with a closure."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.linspace(-2, 2, 64).view(-1, 1)
y = torch.sin(2 * x)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, history_size=10)

for epoch in range(8):
    total = 0.0
    for inputs, targets in loader:

        def closure():
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.5f}")
torch.save(model.state_dict(), "sine.pt")
