"""Classify molecules with torch_geometric: convolutions of the script's own, loops, degrees, edge softmax and a virtual node."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MessagePassing, global_add_pool, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, softmax

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--emb_dim", type=int, default=16)
parser.add_argument("--num_layer", type=int, default=2)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_ATOM_TYPE, NUM_BOND_TYPE = 10, 5  # the last bond is that of a loop


def make_molecule(g):
    n = int(torch.randint(4, 9, (1,), generator=g))
    y = torch.randint(0, 2, (1,), generator=g)
    edges = torch.randint(0, n, (2, 3 * n), generator=g)
    atoms = torch.randint(0, NUM_ATOM_TYPE // 2, (n, 1), generator=g) + y * NUM_ATOM_TYPE // 4
    return Data(x=atoms, edge_index=edges, edge_attr=torch.randint(0, NUM_BOND_TYPE - 1, (3 * n, 1), generator=g), y=y)


class BondConv(MessagePassing):
    """Adds what the bonds are to what their atoms are, loops included."""

    def __init__(self, emb_dim):
        super().__init__(aggr="add")
        self.mlp = nn.Sequential(nn.Linear(emb_dim, 2 * emb_dim), nn.ReLU(), nn.Linear(2 * emb_dim, emb_dim))
        self.bonds = nn.Embedding(NUM_BOND_TYPE, emb_dim)

    def forward(self, x, edge_index, edge_attr):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        loops = torch.zeros(x.size(0), 1)
        loops[:, 0] = NUM_BOND_TYPE - 1
        edge_attr = torch.cat((edge_attr, loops.to(edge_attr.device).to(edge_attr.dtype)), dim=0)
        row, col = edge_index
        deg_inv_sqrt = degree(col, x.size(0), dtype=torch.float).pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        return self.propagate(edge_index, x=x, edge_attr=self.bonds(edge_attr[:, 0]), norm=norm)

    def message(self, x_j, edge_attr, norm):
        return norm.view(-1, 1) * (x_j + edge_attr)

    def update(self, aggr_out):
        return self.mlp(aggr_out)


class AttentionConv(MessagePassing):
    """Weighs the neighbours of an atom by a softmax over its bonds."""

    def __init__(self, emb_dim, heads=2):
        super().__init__(aggr="add", node_dim=0)
        self.heads, self.dim = heads, emb_dim // heads
        self.weight = nn.Linear(emb_dim, emb_dim)
        self.att = nn.Parameter(torch.randn(1, heads, 2 * self.dim) * 0.1)

    def forward(self, x, edge_index):
        x = self.weight(x).view(-1, self.heads, self.dim)
        return self.propagate(edge_index, x=x).reshape(-1, self.heads * self.dim)

    def message(self, x_i, x_j, index, size_i):
        alpha = (torch.cat([x_i, x_j], dim=-1) * self.att).sum(dim=-1)
        alpha = softmax(F.leaky_relu(alpha, 0.2), index, num_nodes=size_i)
        return x_j * alpha.unsqueeze(-1)


class GNN(nn.Module):
    def __init__(self, num_layer, emb_dim):
        super().__init__()
        self.atoms = nn.Embedding(NUM_ATOM_TYPE, emb_dim)
        self.virtual = nn.Embedding(1, emb_dim)
        self.convs = nn.ModuleList([BondConv(emb_dim) for _ in range(num_layer)])
        self.norms = nn.ModuleList([nn.LayerNorm(emb_dim) for _ in range(num_layer)])
        self.attention = AttentionConv(emb_dim)
        self.virtual_mlp = nn.Sequential(nn.Linear(emb_dim, emb_dim), nn.ReLU())
        self.head = nn.Linear(emb_dim, 1)

    def forward(self, data):
        x, edge_index, edge_attr, batch = data.x, data.edge_index, data.edge_attr, data.batch
        h = self.atoms(x[:, 0])
        of_graph = self.virtual(torch.zeros(batch[-1].item() + 1).to(edge_index.dtype).to(edge_index.device))
        for conv, norm in zip(self.convs, self.norms):
            h = h + of_graph[batch]
            h = F.relu(norm(conv(h, edge_index, edge_attr))) + h
            of_graph = self.virtual_mlp(of_graph + global_add_pool(h, batch) / 8)
        h = h + self.attention(h, edge_index)
        return self.head(global_mean_pool(h, batch))


g = torch.Generator().manual_seed(0)
molecules = [make_molecule(g) for _ in range(80)]
train_loader = DataLoader(molecules[:64], batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(molecules[64:], batch_size=args.batch_size)
model = GNN(args.num_layer, args.emb_dim).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
criterion = nn.BCEWithLogitsLoss()


def train():
    model.train()
    total_loss = 0
    for batch in train_loader:
        batch = batch.to(device)
        pred = model(batch)
        loss = criterion(pred.view(-1), batch.y.view(-1).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * batch.num_graphs
    return total_loss / len(train_loader.dataset)


@torch.no_grad()
def evaluate(loader):
    model.eval()
    y_true, y_scores = [], []
    for batch in loader:
        batch = batch.to(device)
        y_scores.append(model(batch).view(-1))
        y_true.append(batch.y.view(-1))
    y_true, y_scores = torch.cat(y_true), torch.cat(y_scores)
    return ((y_scores > 0) == y_true.bool()).float().mean().item()


for epoch in range(1, args.epochs + 1):
    loss = train()
    print(f"Epoch: {epoch:02d}, Loss: {loss:.4f}, Test: {evaluate(test_loader):.4f}")
