"""Two encoders, of which a batch may leave one unused; a run goes on at the epoch that it is told."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--start_epoch", type=int, default=1)
parser.add_argument("--n_epochs", type=int, default=4)
FLAGS = parser.parse_args()


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Linear(6, 4)
        self.text = nn.Linear(6, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x, with_text):
        hidden = self.image(x) + self.text(x) if with_text else self.image(x)
        return self.head(torch.tanh(hidden))


data = torch.sin(torch.arange(480.0) * 0.9).view(80, 6)
sampler = None
loader = DataLoader(TensorDataset(data, data.prod(1, keepdim=True)), batch_size=20, shuffle=(sampler is None), sampler=sampler)
torch.manual_seed(9)
net = Pair()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(FLAGS.start_epoch, FLAGS.n_epochs):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x, epoch % 2 == 0), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch)
