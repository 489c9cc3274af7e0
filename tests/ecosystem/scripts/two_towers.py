"""A recommender of two towers with in-batch softmax, an average of the weights by ema_pytorch, and recall over the whole catalogue."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from ema_pytorch import EMA
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


class Clicks(Dataset):
    def __init__(self, n, users, items, seed):
        g = torch.Generator().manual_seed(seed)
        self.user = torch.randint(0, users, (n,), generator=g)
        self.item = (self.user * 3 + torch.randint(0, 4, (n,), generator=g)) % items

    def __len__(self):
        return len(self.user)

    def __getitem__(self, i):
        return self.user[i], self.item[i]


class TwoTower(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user = nn.Sequential(nn.Embedding(users, 16), nn.Linear(16, dim))
        self.item = nn.Sequential(nn.Embedding(items, 16), nn.Linear(16, dim))
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, user, item):
        return F.normalize(self.user(user), dim=-1), F.normalize(self.item(item), dim=-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--users", type=int, default=30)
    p.add_argument("--items", type=int, default=40)
    p.add_argument("--bs", type=int, default=16)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = TwoTower(a.users, a.items).to(device)
    ema = EMA(model, beta=0.9, update_after_step=0, update_every=1)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    dl = DataLoader(Clicks(160, a.users, a.items, 0), batch_size=a.bs, shuffle=True, drop_last=True)
    test = Clicks(32, a.users, a.items, 1)
    for epoch in range(a.epochs):
        model.train()
        pbar, losses = tqdm(dl), []
        for user, item in pbar:
            user, item = user.to(device), item.to(device)
            u, v = model(user, item)
            logits = u @ v.T * model.temperature.exp()
            target = torch.arange(len(user), device=device)
            loss = F.cross_entropy(logits, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update()
            losses.append(loss.item())
            pbar.set_description(f"loss {loss.item():.3f}")
        with torch.no_grad():
            catalogue = F.normalize(ema.ema_model.item(torch.arange(a.items, device=device)), dim=-1)
            users = F.normalize(ema.ema_model.user(test.user.to(device)), dim=-1)
            top = (users @ catalogue.T).topk(5, dim=1).indices
            recall = (top == test.item.to(device)[:, None]).any(dim=1).float().mean().item()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} recall@5 {recall:.4f}")
    torch.save(ema.ema_model.state_dict(), "towers.pt")


if __name__ == "__main__":
    main()
