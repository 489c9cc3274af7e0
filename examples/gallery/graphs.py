"""Classifies small graphs: rings against chains, with torch_geometric."""

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

EPOCHS, BATCH = 6, 16


def make_graph(number):
    nodes, closed = 4 + number % 5, number % 2
    ends = [(i, i + 1) for i in range(nodes - 1)] + [(nodes - 1, 0)] * closed
    edges = torch.tensor(ends + [(b, a) for a, b in ends]).T
    return Data(x=torch.cos(torch.arange(nodes * 4.0) + number).view(nodes, 4), edge_index=edges, y=torch.tensor([closed]))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(4, 32), GCNConv(32, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, x, edges, graphs):
        x = F.relu(self.first(x, edges))
        x = F.relu(self.second(x, edges))
        return self.head(global_mean_pool(x, graphs))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader([make_graph(i) for i in range(64)], batch_size=BATCH, shuffle=True, drop_last=True)
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    for epoch in range(EPOCHS):
        total = 0.0
        for batch in loader:
            batch = batch.to(device)
            loss = F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    torch.save(model.state_dict(), "graphs.pt")


if __name__ == "__main__":
    main()
