"""Metric learning with a miner and a cross-batch memory, recall by AccuracyCalculator."""
import torch
import torch.nn as nn
import torch.optim as optim
from pytorch_metric_learning import losses, miners
from torch.utils.data import DataLoader, TensorDataset


class Embedder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, dim))

    def forward(self, x):
        return nn.functional.normalize(self.body(x), dim=1)


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 5, (n,), generator=g)
    return TensorDataset(torch.randn(n, 12, generator=g) + nn.functional.one_hot(y, 12), y)


def train(model, loss_func, mining_func, device, train_loader, optimizer, epoch):
    model.train()
    total = 0.0
    for batch_idx, (data, labels) in enumerate(train_loader):
        data, labels = data.to(device), labels.to(device)
        optimizer.zero_grad()
        embeddings = model(data)
        indices_tuple = mining_func(embeddings, labels)
        loss = loss_func(embeddings, labels, indices_tuple)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"Epoch {epoch} loss = {total / len(train_loader):.4f}")


@torch.no_grad()
def embed(model, dataset, device):
    model.eval()
    vectors, labels = [], []
    for x, y in DataLoader(dataset, batch_size=32):
        vectors.append(model(x.to(device)))
        labels.append(y)
    return torch.cat(vectors), torch.cat(labels)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train_set, test_set = make(96, 0), make(40, 1)
train_loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
model = Embedder().to(device)
optimizer = optim.Adam(model.parameters(), lr=0.005)
mining_func = miners.MultiSimilarityMiner(epsilon=0.1)
loss_func = losses.CrossBatchMemory(losses.ContrastiveLoss(pos_margin=0.1, neg_margin=0.6), embedding_size=8, memory_size=64)
for epoch in range(1, 4):
    train(model, loss_func, mining_func, device, train_loader, optimizer, epoch)
    reference, reference_labels = embed(model, train_set, device)
    query, query_labels = embed(model, test_set, device)
    distances = torch.cdist(query, reference)
    recall = (reference_labels[distances.argmin(dim=1).cpu()] == query_labels).float().mean().item()
    print(f"Test recall@1 = {recall:.4f}")
torch.save(model.state_dict(), "embedder.pt")
