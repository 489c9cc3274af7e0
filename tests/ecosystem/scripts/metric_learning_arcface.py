"""Face verification style: an ArcFace loss of pytorch_metric_learning, whose class weights are trained by an optimizer of their own."""
import torch
import torch.nn as nn
from pytorch_metric_learning import losses
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 12)
y = torch.randint(0, 4, (64,))
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8)).to(device)
loss_func = losses.ArcFaceLoss(num_classes=4, embedding_size=8).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loss_optimizer = torch.optim.SGD(loss_func.parameters(), lr=0.05)

for epoch in range(2):
    model.train()
    total = 0.0
    for data, labels in loader:
        data, labels = data.to(device), labels.to(device)
        optimizer.zero_grad()
        loss_optimizer.zero_grad()
        embeddings = model(data)
        loss = loss_func(embeddings, labels)
        loss.backward()
        optimizer.step()
        loss_optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")
torch.save({"model": model.state_dict(), "loss": loss_func.state_dict()}, "arcface.pt")
