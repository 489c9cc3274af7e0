"""Learn an embedding in which two views of a sample are near each other and far from all others (SimCLR)."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Views(Dataset):
    """Two noisy views of the same vector."""

    def __init__(self, count, size=16):
        generator = torch.Generator().manual_seed(3)
        self.vectors = torch.randn(count, size, generator=generator)
        self.noise = 0.3 * torch.randn(2, count, size, generator=generator)

    def __len__(self):
        return len(self.vectors)

    def __getitem__(self, i):
        return self.vectors[i] + self.noise[0, i], self.vectors[i] + self.noise[1, i]


def contrastive_loss(a, b, temperature=0.2):
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
    similar = a @ b.T / temperature
    same = torch.arange(len(a), device=a.device)
    return (F.cross_entropy(similar, same) + F.cross_entropy(similar.T, same)) / 2


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).to(device)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.5, momentum=0.9)
loader = DataLoader(Views(128), batch_size=16, shuffle=True, drop_last=True)
for epoch in range(3):
    total = 0.0
    for a, b in loader:
        loss = contrastive_loss(encoder(a.to(device)), encoder(b.to(device)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
torch.save(encoder.state_dict(), "encoder.pt")
