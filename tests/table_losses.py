"""Scripts about losses: what DistributedDataParallel's average over ranks must not change."""

from scripts import Script

SCRIPTS: dict[str, Script] = {
    # --- losses that couple the samples of a batch: every rank computes that of the whole batch ---------------------------
    "two views of each sample, told from all others": Script(
        """
        def view_loss(ahead, behind, heat=0.5):
            both = F.normalize(torch.cat([ahead, behind]), dim=1)
            alike = both @ both.T / heat
            alike.fill_diagonal_(-1e9)
            n = ahead.size(0)
            partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(alike.device)
            return F.cross_entropy(alike, partner)


        pairs = DataLoader(TensorDataset(x, x.flip(1)), batch_size=8, shuffle=True)
        encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
        sgd = torch.optim.SGD(encoder.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for one, two in pairs:
                loss = view_loss(encoder(one), encoder(two))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item()
            print(f"epoch {epoch}: {total / len(pairs):.6f}")
        """,
        same=("epoch",),
    ),
    "a supervised contrastive loss over views": Script(
        """
        class LabelContrast(nn.Module):
            def __init__(self, temperature=0.3):
                super().__init__()
                self.temperature = temperature

            def forward(self, features, labels):
                views = features.shape[1]
                flat = torch.cat(torch.unbind(features, dim=1), dim=0)
                labels = labels.repeat(views)
                logits = flat @ flat.T / self.temperature
                own = torch.eye(flat.shape[0], dtype=torch.bool, device=flat.device)
                logits = logits.masked_fill(own, -1e9)
                same = (labels[:, None] == labels[None, :]).float().masked_fill(own, 0)
                chance = logits - torch.logsumexp(logits, dim=1, keepdim=True)
                return -((same * chance).sum(1) / same.sum(1)).mean()


        def main():
            loader = DataLoader(TensorDataset(x, x * 0.5 + 0.1, y), batch_size=8, shuffle=True, drop_last=True)
            model = nn.Linear(8, 5)
            criterion = LabelContrast()
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            for epoch in range(3):
                meter, seen = 0.0, 0
                for first, second, labels in loader:
                    bsz = labels.shape[0]
                    out = F.normalize(model(torch.cat([first, second], dim=0)), dim=1)
                    f1, f2 = torch.split(out, [bsz, bsz], dim=0)
                    features = torch.cat([f1.unsqueeze(1), f2.unsqueeze(1)], dim=1)
                    loss = criterion(features, labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    meter += loss.item() * bsz
                    seen += bsz
                print("mean loss", epoch, round(meter / seen, 7))


        if __name__ == "__main__":
            main()
        """,
        same=("mean loss",),
    ),
    "captions and pictures, matched within the batch": Script(
        """
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.left, self.right = nn.Linear(4, 6), nn.Linear(4, 6)
                self.scale = nn.Parameter(torch.tensor(1.0))

            def forward(self, a, b):
                return F.normalize(self.left(a), dim=-1), F.normalize(self.right(b), dim=-1), self.scale.exp()


        def match(left, right, scale):
            scores = scale * left @ right.t()
            at = torch.arange(len(left), device=left.device)
            return (F.cross_entropy(scores, at) + F.cross_entropy(scores.t(), at)) / 2


        net = Two()
        feed = DataLoader(TensorDataset(x[:, :4], x[:, 4:]), batch_size=4, shuffle=True)
        adam = torch.optim.Adam(net.parameters(), lr=0.02)
        for epoch in range(2):
            for a, b in feed:
                left, right, scale = net(a, b)
                loss = match(left, right, scale)
                adam.zero_grad()
                loss.backward()
                adam.step()
        """,
        told=("DDP402",),
    ),
}
