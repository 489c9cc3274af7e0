"""Classify graphs by levels that keep fewer and fewer of their nodes: TopKPooling, NNConv over attributes of edges, two readouts."""
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv, Linear, NNConv, TopKPooling, global_max_pool, global_mean_pool

torch.manual_seed(12)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def graph(g):
    n = int(torch.randint(5, 10, (1,), generator=g))
    kind = int(torch.randint(0, 2, (1,), generator=g))
    edges = torch.randint(0, n, (2, 3 * n), generator=g)
    return Data(x=torch.randn(n, 4, generator=g) + kind, edge_index=edges, edge_attr=torch.rand(3 * n, 2, generator=g), y=torch.tensor([kind]))


g = torch.Generator().manual_seed(5)
graphs = [graph(g) for _ in range(80)]
train_loader = DataLoader(graphs[:64], batch_size=8, shuffle=True)
test_loader = DataLoader(graphs[64:], batch_size=8)


class Levels(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = NNConv(4, 12, torch.nn.Sequential(torch.nn.Linear(2, 48)), aggr="mean")
        self.pool1 = TopKPooling(12, ratio=0.7)
        self.second = GraphConv(12, 12)
        self.pool2 = TopKPooling(12, ratio=0.7)
        self.lin1, self.lin2 = Linear(24, 12), torch.nn.Linear(12, 2)

    def forward(self, data):
        x, edge_index, batch = data.x, data.edge_index, data.batch
        x = F.relu(self.first(x, edge_index, data.edge_attr))
        x, edge_index, _, batch, _, _ = self.pool1(x, edge_index, None, batch)
        seen = torch.cat([global_max_pool(x, batch), global_mean_pool(x, batch)], dim=1)
        x = F.relu(self.second(x, edge_index))
        x, edge_index, _, batch, _, _ = self.pool2(x, edge_index, None, batch)
        seen = seen + torch.cat([global_max_pool(x, batch), global_mean_pool(x, batch)], dim=1)
        return F.log_softmax(self.lin2(F.relu(self.lin1(seen))), dim=-1)


model = Levels().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)


def train():
    model.train()
    total = 0
    for data in train_loader:
        data = data.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), data.y)
        loss.backward()
        optimizer.step()
        total += data.num_graphs * loss.item()
    return total / 64


def test(loader):
    model.eval()
    correct = 0
    for data in loader:
        data = data.to(device)
        correct += model(data).max(dim=1)[1].eq(data.y).sum().item()
    return correct / 16


for epoch in range(1, 4):
    loss = train()
    print(f"epoch {epoch} loss {loss:.5f} test {test(test_loader):.5f}")
