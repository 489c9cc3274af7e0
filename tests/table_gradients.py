"""Scripts whose gradients no wrapper sees by itself: other methods than forward, parameters outside modules, second backward calls."""

from dataclasses import replace

from scripts import Script, on_three

from ddpify import Options

LOADER = """
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
"""
METHODS = """
    class Classifier(nn.Module):
        def __init__(self, width=5):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(8, width), nn.Tanh())
            self.head = nn.Linear(width, 2)

        def forward(self, rows):
            return self.head(self.encoder(rows))

        def loss(self, rows, labels):
            return F.cross_entropy(self(rows), labels)

        def code_loss(self, rows):
            return (self.encoder(rows) ** 2).mean()
"""
SEPARATE = Script(
    LOADER
    + """
    maker = nn.Linear(4, 8)
    judge = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    making = torch.optim.SGD(maker.parameters(), lr=0.1)
    judging = torch.optim.SGD(judge.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            made = maker(rows[:, :4])
            judging.zero_grad()
            of_real, of_made = judge(rows), judge(made.detach())
            real_loss, made_loss = F.softplus(-of_real).mean(), F.softplus(of_made).mean()
            real_loss.backward()
            made_loss.backward()
            judging.step()
            making.zero_grad()
            F.softplus(-judge(made)).mean().backward()
            making.step()
    """
)
THROWN_AWAY = Script(
    LOADER
    + """
    maker = nn.Linear(4, 8)
    judge = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    making = torch.optim.SGD(maker.parameters(), lr=0.1)
    judging = torch.optim.SGD(judge.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            made = maker(rows[:, :4])
            judged = F.softplus(judge(made.detach())).mean() + F.softplus(-judge(rows)).mean()
            fooled = F.softplus(-judge(made)).mean()
            making.zero_grad()
            fooled.backward()
            making.step()
            judging.zero_grad()
            judged.backward()
            judging.step()
    """
)
SCRIPTS: dict[str, Script] = {
    **{
        f"gradients clipped of a model whose first layer is freed, with an optimizer of {title}": Script(
            f"""
            loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
            model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
            for p in model[0].parameters():
                p.requires_grad = False
            optimizer = torch.optim.SGD({parameters}, lr=0.1)
            for epoch in range(3):
                if epoch == 1:
                    for p in model[0].parameters():
                        p.requires_grad = True
                    {freed}
                for a, b in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(a), b).backward()
                    nn.utils.clip_grad_norm_({clipped}, 0.1)
                    optimizer.step()
            """,
            told=told,
        )
        for title, parameters, freed, clipped, told in (
            ("all", "model.parameters()", "pass", "model.parameters()", ()),
            (
                "what is freed, too",
                "filter(lambda p: p.requires_grad, model.parameters())",
                'optimizer.add_param_group({"params": model[0].parameters()})',
                "model.parameters()",
                (),
            ),
            (
                "the last one, clipped alone",
                "[p for p in model.parameters() if p.requires_grad]",
                "pass",
                'optimizer.param_groups[0]["params"]',
                (),
            ),
            ("the last one", "[p for p in model.parameters() if p.requires_grad]", "pass", "model.parameters()", ("DDP205",)),
        )
    },
    "a method gives the loss": Script(
        LOADER
        + METHODS
        + """
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = model.loss(rows, labels)
            loss.backward()
            optimizer.step()
    torch.save(model.state_dict(), "last.pt")
"""
    ),
    "a method gives the loss, in a trainer that makes the model": Script(
        LOADER
        + METHODS
        + """
    class Trainer:
        def __init__(self, rate):
            self.model = Classifier()
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)

        @classmethod
        def of(cls, settings):
            return cls(settings["rate"])

        def fit(self, epochs):
            for epoch in range(epochs):
                for rows, labels in loader:
                    self.optimizer.zero_grad()
                    loss = self.model.loss(rows, labels)
                    loss.backward()
                    self.optimizer.step()


    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=0.1)
    settings = vars(parser.parse_args()).copy()
    trainer = Trainer.of(settings)
    trainer.fit(settings.get("epochs", 3))
    torch.save(trainer.model.state_dict(), "last.pt")
"""
    ),
    "a method gives the loss, in functions": Script(
        """
    class Regressor(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(8, 6)
            self.fc2 = nn.Linear(6, 1)

        def predict(self, rows):
            return self.fc2(torch.relu(self.fc1(rows))).squeeze(1)

        def get_loss(self, batch):
            rows, labels = batch
            return F.mse_loss(self.predict(rows), labels.double())


    def train_epoch(net, feed, opt):
        net.train()
        for batch in feed:
            loss = net.get_loss(batch)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()


    @torch.no_grad()
    def evaluate(net, feed):
        net.eval()
        wrong = 0.0
        for rows, labels in feed:
            wrong += (net.predict(rows) - labels).abs().sum().item()
        return wrong / len(feed.dataset)


    def main():
        feed = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
        test = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=6)
        net = Regressor()
        opt = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(3):
            train_epoch(net, feed, opt)
            print("error", round(evaluate(net, test), 8))


    if __name__ == "__main__":
        main()
""",
        same=("error",),
    ),
    "an autoencoder with an objective of its own": Script(
        """
    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc = nn.Linear(8, 3)
            self.dec = nn.Linear(3, 8)

        def elbo(self, rows):
            code = self.enc(rows)
            return F.mse_loss(self.dec(code), rows) + 0.1 * code.pow(2).mean()


    class Trainer:
        def __init__(self, vae, feed):
            self.vae, self.feed = vae, feed
            self.optim = torch.optim.RMSprop(self.vae.parameters(), lr=0.01)

        def fit(self, epochs):
            for epoch in range(epochs):
                for rows, _ in self.feed:
                    self.optim.zero_grad()
                    loss = self.vae.elbo(rows)
                    loss.backward()
                    self.optim.step()


    feed = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    trainer = Trainer(Autoencoder(), feed)
    trainer.fit(3)
    torch.save(trainer.vae.state_dict(), "vae.pt")
"""
    ),
    "several methods of one model": Script(
        LOADER
        + METHODS
        + """
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), labels) + 0.1 * model.code_loss(rows)
            loss.backward()
            optimizer.step()
        print("classes", model.head.out_features)
"""
    ),
    "a step inside the model": Script(
        LOADER
        + """
    class Learner(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
            self.optimizer = torch.optim.Adam(self.parameters(), lr=0.02)

        def forward(self, rows):
            return self.net(rows)

        def train_step(self, batch):
            rows, labels = batch
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self(rows), labels)
            loss.backward()
            self.optimizer.step()
            return loss.item()


    learner = Learner()
    for epoch in range(3):
        for batch in loader:
            learner.train_step(batch)
    torch.save(learner.state_dict(), "learner.pt")
"""
    ),
    "weights of a line, written by hand": Script(
        LOADER
        + """
    w = torch.randn(8, 2, requires_grad=True)
    b = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([w, b], lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            loss = F.cross_entropy(rows @ w + b, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "a learned temperature beside the model": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    temperature = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([{"params": model.parameters()}, {"params": [temperature], "lr": 0.01}], lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows) / temperature, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("temperature", round(temperature.item(), 8))
""",
        same=("temperature",),
    ),
    "weights moved by hand": Script(
        LOADER
        + """
    class Line:
        def __init__(self):
            self.w = torch.randn(8, 2).requires_grad_()
            self.b = torch.zeros(2, requires_grad=True)

        def parameters(self):
            return [self.w, self.b]

        def __call__(self, rows):
            return rows @ self.w + self.b


    model = Line()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(3):
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "weights of no module, which an optimizer moves by a closure": Script(
        LOADER
        + """
    w = torch.zeros(8, 2, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=0.3, max_iter=3)
    for epoch in range(3):
        for rows, labels in loader:

            def closure():
                optimizer.zero_grad()
                loss = F.cross_entropy(rows @ w, labels)
                loss.backward()
                return loss

            optimizer.step(closure)
    print(f"weights {w.detach().abs().sum().item():.5f}")
""",
        same=("weights",),
    ),
    "two backwards through one forward": Script(
        LOADER
        + """
    model = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            out = model(rows)
            main_loss = F.cross_entropy(out, labels)
            small = 0.1 * out.pow(2).mean()
            optimizer.zero_grad()
            main_loss.backward(retain_graph=True)
            small.backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
            optimizer.step()
    torch.save(model.state_dict(), "model.pt")
"""
    ),
    "two networks, two losses, one graph": Script(
        LOADER
        + """
    class Part(nn.Module):
        def __init__(self, wide, out):
            super().__init__()
            self.layer = nn.Linear(wide, out)

        def forward(self, rows):
            return torch.tanh(self.layer(rows))


    first, second = Part(8, 4), Part(4, 2)
    opt_a = torch.optim.SGD(first.parameters(), lr=0.1)
    opt_b = torch.optim.SGD(second.parameters(), lr=0.05)
    for epoch in range(3):
        for rows, labels in loader:
            code = first(rows)
            out = second(code)
            loss_b = F.cross_entropy(out, labels)
            loss_a = loss_b + code.abs().mean()
            opt_b.zero_grad()
            loss_b.backward(retain_graph=True)
            opt_a.zero_grad()
            loss_a.backward()
            opt_b.step()
            opt_a.step()
"""
    ),
    "layers unfrozen on the way": Script(
        LOADER
        + """
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    for p in model[0].parameters():
        p.requires_grad = False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        if epoch == 2:
            for p in model[0].parameters():
                p.requires_grad = True
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    **{
        f"{title} that is made frozen, freed with all of the model": Script(
            LOADER
            + f"""
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.made = {made}
            self.head = nn.Linear(8, 2)

        def forward(self, rows):
            return self.head({used})


    model = Gated()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        if epoch == 2:
            {freed}
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
        )
        for title, made, used, freed in (
            (
                "a gate",
                "nn.Parameter(torch.ones(8), requires_grad=False)",
                "rows * self.made",
                "for p in model.parameters():\n                p.requires_grad = True",
            ),
            ("a scale", "nn.Parameter(torch.ones(8), False)", "rows * self.made", "model.requires_grad_(True)"),
            (
                "a table",
                "nn.Embedding.from_pretrained(torch.eye(8))",
                "rows + self.made((rows[:, 0] > 0).long())",
                "for p in model.parameters():\n                p.requires_grad_(True)",
            ),
        )
    },
    "gradients clipped by hand": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(rows), labels).backward()
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.data.clamp_(-0.05, 0.05)
            optimizer.step()
"""
    ),
    "the norm of gradients told": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            norm = sum(p.grad.norm().item() ** 2 for p in model.parameters()) ** 0.5
            optimizer.step()
        print("norm", round(norm, 8))
""",
        same=("norm",),
    ),
    "a closure for every batch": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.2, max_iter=3)
    for epoch in range(3):
        for rows, labels in loader:

            def closure():
                optimizer.zero_grad()
                loss = F.cross_entropy(model(rows), labels)
                loss.backward()
                return loss

            optimizer.step(closure)
"""
    ),
    "a closure with a line search": Script(
        LOADER
        + """
    model = nn.Linear(8, 1)
    opt = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe", max_iter=4)
    for epoch in range(3):
        for rows, labels in loader:

            def again():
                opt.zero_grad()
                out = F.mse_loss(model(rows).squeeze(1), labels.double()) + 0.1 * model.weight.pow(2).sum()
                out.backward()
                return out

            opt.step(again)
"""
    ),
    "two steps that look for flat ground": Script(
        LOADER
        + """
    class Tilted(torch.optim.Optimizer):
        def __init__(self, weights, walk, reach=0.04, **habits):
            super().__init__(weights, {"reach": reach, **habits})
            self.walk = walk(self.param_groups, **habits)
            self.param_groups = self.walk.param_groups

        def felt(self):
            for part in self.param_groups:
                for weight in part["params"]:
                    if weight.grad is not None:
                        yield part["reach"], weight

        @torch.no_grad()
        def uphill(self):
            steep = sum(weight.grad.square().sum() for _, weight in self.felt()).sqrt()
            for reach, weight in self.felt():
                self.state[weight]["climbed"] = weight.grad * reach / (1e-9 + steep)
                weight += self.state[weight]["climbed"]
            self.zero_grad()

        @torch.no_grad()
        def downhill(self):
            for _, weight in self.felt():
                weight -= self.state[weight]["climbed"]
            self.walk.step()
            self.zero_grad()

        def step(self, closure=None):
            raise NotImplementedError


    model = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2))
    walker = Tilted(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    for epoch in range(3):
        for rows, labels in loader:
            F.cross_entropy(model(rows), labels).backward()
            walker.uphill()
            F.cross_entropy(model(rows), labels).backward()
            walker.downhill()
"""
    ),
    "slow weights that follow fast ones": Script(
        LOADER
        + """
    class Slow:
        def __init__(self, inner, every=3, part=0.5):
            self.inner, self.every, self.part, self.count = inner, every, part, 0
            self.kept = [[p.detach().clone() for p in g["params"]] for g in inner.param_groups]

        def zero_grad(self):
            self.inner.zero_grad()

        def step(self):
            self.inner.step()
            self.count += 1
            if self.count % self.every == 0:
                for group, kept in zip(self.inner.param_groups, self.kept):
                    for p, old in zip(group["params"], kept):
                        old.add_(self.part * (p.data - old))
                        p.data.copy_(old)


    model = nn.Linear(8, 2)
    optimizer = Slow(torch.optim.SGD(model.parameters(), lr=0.2))
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
"""
    ),
    "averaged weights": Script(
        LOADER
        + """
    from torch.optim.swa_utils import SWALR, AveragedModel

    test = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    averaged = AveragedModel(model)
    schedule = SWALR(optimizer, swa_lr=0.05)
    for epoch in range(4):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        if epoch > 1:
            averaged.update_parameters(model)
            schedule.step()
    hits = 0
    averaged.eval()
    with torch.no_grad():
        for rows, labels in test:
            hits += (averaged(rows).argmax(1) == labels).sum().item()
    print("hits", hits)
    torch.save(averaged.module.state_dict(), "averaged.pt")
""",
        same=("hits",),
    ),
    "saved from the processor": Script(
        LOADER
        + """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(8, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        for rows, labels in loader:
            rows, labels = rows.to(device), labels.to(device)
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        model.eval().cpu()
        torch.save(model.state_dict(), f"epoch{epoch}.pt")
        model.to(device).train()
    model.cpu()
    torch.save(model.state_dict(), "last.pt")
"""
    ),
    "saved from the processor at once": Script(
        LOADER
        + """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(8, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows.to(device)), labels.to(device)).backward()
            optimizer.step()
        torch.save(model.cpu().state_dict(), "now.pt")
        model.to(device)
"""
    ),
    "saved whole from the processor at once": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        torch.save(model.cpu(), "now.pt")
    torch.save(model.cpu(), "last.pt")
    print("norm", round(torch.load("last.pt", weights_only=False).weight.norm().item(), 4))
    print("kept", type(torch.load("now.pt", weights_only=False)).__name__)
""",
        same=("norm", "kept"),
    ),
    "gradients scaled by a hook": Script(
        LOADER
        + """
    model = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
    for p in model[0].parameters():
        p.register_hook(lambda g: 0.1 * g)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
"""
    ),
    "gradients clamped by a hook": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    for p in model.parameters():
        p.register_hook(lambda g: torch.clamp(g, -0.05, 0.05))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
"""
    ),
    "gradients asked for and set": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            grads = torch.autograd.grad(loss, model.parameters())
            for p, g in zip(model.parameters(), grads):
                p.grad = g
            optimizer.step()
""",
        told=("DDP201", "DDP900"),
    ),
    "two stages": Script(
        LOADER
        + """
    body = nn.Sequential(nn.Linear(8, 5), nn.Tanh())
    first = nn.Sequential(body, nn.Linear(5, 8))
    optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, _ in loader:
            optimizer.zero_grad()
            F.mse_loss(first(rows), rows).backward()
            optimizer.step()
    second = nn.Sequential(body, nn.Linear(5, 2))
    optimizer = torch.optim.SGD(second.parameters(), lr=0.05)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(second(rows), labels).backward()
            optimizer.step()
"""
    ),
    "gradients of several batches, averaged by hand with a method": Script(
        LOADER
        + METHODS
        + """
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    for epoch in range(4):
        for i, (rows, labels) in enumerate(loader):
            loss = (model.loss(rows, labels) + model.code_loss(rows)) / 2
            loss.backward()
            if (i + 1) % 2 == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
"""
    ),
    "gradients clipped and stepped in a function": Script(
        LOADER
        + METHODS
        + """
    def update(opt, most):
        if most:
            torch.nn.utils.clip_grad_norm_(model.parameters(), most)
        opt.step()
        opt.zero_grad()


    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            loss = model.loss(rows, labels) + model.code_loss(rows)
            loss.backward()
            update(optimizer, 0.3)
"""
    ),
    "layers unfrozen by their names": Script(
        LOADER
        + METHODS
        + """
    def free(net, prefix):
        for name, p in net.named_parameters():
            if name.startswith(prefix):
                p.requires_grad = True


    model = Classifier()
    for p in model.encoder.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        if epoch == 1:
            free(model, "encoder")
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
"""
    ),
    "a head first, then all of it": Script(
        LOADER
        + """
    model = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2))
    for p in model.parameters():
        p.requires_grad = False
    for p in model[2].parameters():
        p.requires_grad = True
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
    for p in model.parameters():
        p.requires_grad = True
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
"""
    ),
    "a head first, then all of it, in a function": Script(
        """
    def train(net, feed, opt, epochs):
        for epoch in range(epochs):
            for rows, labels in feed:
                opt.zero_grad()
                F.cross_entropy(net(rows), labels).backward()
                opt.step()


    def main():
        feed = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2))
        for p in net[0].parameters():
            p.requires_grad = False
        train(net, feed, torch.optim.SGD(net[2].parameters(), lr=0.1), 2)
        for p in net[0].parameters():
            p.requires_grad = True
        train(net, feed, torch.optim.SGD(net.parameters(), lr=0.05), 2)


    main()
"""
    ),
    "a student that learns by a method, a teacher that does, too": Script(
        LOADER
        + METHODS
        + """
    teacher, student = Classifier(), Classifier(width=3)
    first = torch.optim.SGD(teacher.parameters(), lr=0.1)
    second = torch.optim.SGD(student.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            first.zero_grad()
            second.zero_grad()
            guide = teacher.loss(rows, labels)
            follow = F.mse_loss(student(rows), teacher(rows).detach()) + 0.1 * student.code_loss(rows)
            (guide + follow).backward()
            first.step()
            second.step()
"""
    ),
    "scaled losses of a method, unscaled and clipped": Script(
        LOADER
        + METHODS
        + """
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = model.loss(rows, labels) + 0.1 * model.code_loss(rows)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.2)
            scaler.step(optimizer)
            scaler.update()
"""
    ),
    "gradients clipped by a function of the script's own": Script(
        LOADER
        + METHODS
        + """
    def clip(parameters, factor=0.01):
        for p in parameters:
            if p.grad is None:
                continue
            most = p.detach().norm().clamp(min=1e-3) * factor
            p.grad.detach().mul_((most / p.grad.detach().norm()).clamp(max=1.0))


    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            (model.loss(rows, labels) + model.code_loss(rows)).backward()
            clip(model.parameters())
            optimizer.step()
"""
    ),
    "gradients of tasks, one backward call for each": Script(
        LOADER
        + """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for rows, labels in loader:
            grads = []
            for part in (0, 1):
                optimizer.zero_grad()
                out = model(rows)[:, part]
                ((out - labels) ** 2).mean().backward()
                grads.append([p.grad.clone() for p in model.parameters()])
            for p, a, b in zip(model.parameters(), *grads):
                dot = (a * b).sum()
                p.grad = a + b - (dot < 0) * dot * b / b.norm() ** 2
            optimizer.step()
"""
    ),
    "a method that uses a part of the model": Script(
        LOADER
        + METHODS
        + """
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def train():
        for rows, labels in loader:
            optimizer.zero_grad()
            model.code_loss(rows=rows).backward()
            optimizer.step()


    for epoch in range(3):
        train()
        with torch.no_grad():
            print("left", round(model.code_loss(x[:42]).item(), 8))
""",
        same=("left",),
    ),
    "steps that a dict of what was learned returns": Script(
        """
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 4)
            self.head = nn.Linear(4, 2)

        def training_step(self, batch, number):
            rows, labels = batch
            out = self.head(torch.tanh(self.body(rows)))
            return {"loss": F.cross_entropy(out, labels)}

        def configure(self):
            return torch.optim.Adam(self.parameters(), lr=0.02)


    class Loop:
        def __init__(self, epochs):
            self.epochs = epochs

        def fit(self, module, feed):
            optimizer = module.configure()
            for epoch in range(self.epochs):
                for number, batch in enumerate(feed):
                    outcome = module.training_step(batch, number)
                    optimizer.zero_grad()
                    outcome["loss"].backward()
                    optimizer.step()


    module = Module()
    Loop(3).fit(module, DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True))
    torch.save(module.state_dict(), "module.pt")
"""
    ),
    "a bias for every class, in a list": Script(
        LOADER
        + """
    model = nn.Linear(8, 2, bias=False)
    biases = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.Adam([{"params": model.parameters()}, {"params": biases, "lr": 0.1}], lr=0.01)
    for epoch in range(3):
        for rows, labels in loader:
            out = model(rows) + torch.cat([biases[0], biases[1]])
            loss = F.cross_entropy(out, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "a queue of learned prompts in a class": Script(
        LOADER
        + """
    class Prompts:
        def __init__(self, count, width):
            self.table = nn.Parameter(torch.randn(count, width))

        def row(self, index):
            return self.table[index]


    class Runner:
        def __init__(self):
            self.prompts = Prompts(2, 8)
            self.model = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD([self.prompts.table, *self.model.parameters()], lr=0.1)

        def run(self):
            for rows, labels in loader:
                loss = F.cross_entropy(self.model(rows + self.prompts.row(0)), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


    runner = Runner()
    for epoch in range(3):
        runner.run()
"""
    ),
    "a trainer of another module, which steps by two losses": Script(
        """
    from learn import Learner


    def main():
        net = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2))
        learner = Learner(net, DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True))
        for epoch in range(3):
            learner.run()
        torch.save(net.state_dict(), "net.pt")


    if __name__ == "__main__":
        main()
""",
        files={
            "learn.py": """\
import torch
import torch.nn.functional as F


class Learner:
    def __init__(self, net, feed):
        self.net, self.feed = net, feed
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def run(self):
        for rows, labels in self.feed:
            out = self.net(rows)
            self.optimizer.zero_grad()
            F.cross_entropy(out, labels).backward(retain_graph=True)
            out.pow(2).mean().backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
            self.optimizer.step()
"""
        },
    ),
    "a method of the model inside a DataParallel": Script(
        LOADER
        + METHODS
        + """
    model = nn.DataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            model.module.loss(rows, labels).backward()
            optimizer.step()
    torch.save(model.module.state_dict(), "model.pt")
"""
    ),
    "moved from the processor at the end": Script(
        LOADER
        + """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(8, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows.to(device)), labels.to(device)).backward()
            optimizer.step()
    model.eval().cpu()
    torch.save(model.state_dict(), "end.pt")
"""
    ),
    "gradients of outputs clamped by a hook": Script(
        LOADER
        + """
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            logits = net(rows)
            logits.register_hook(lambda gradient: gradient.clamp(-0.03, 0.03))
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
        told=("DDP201",),
    ),
    "gradients of outputs turned around by a hook that a function makes": Script(
        LOADER
        + """
    def turned_around(strength):
        def hook(gradient):
            return -strength * gradient.clone()

        return hook

    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh())
    head, critic = nn.Linear(6, 2), nn.Linear(6, 1)
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters(), *critic.parameters()], lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            features = net(rows)
            loss = F.cross_entropy(head(features), labels)
            shown = features * 1.0
            shown.register_hook(turned_around(0.1 * epoch))
            loss = loss + F.binary_cross_entropy_with_logits(critic(shown).squeeze(1), labels.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "inputs moved along their gradients": Script(
        LOADER
        + """
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            rows.requires_grad_(True)
            F.cross_entropy(net(rows), labels).backward()
            loss = F.cross_entropy(net((rows + 2.0 * rows.grad).detach()), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "inputs moved by the signs of their gradients": Script(
        LOADER
        + """
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            rows.requires_grad_(True)
            F.cross_entropy(net(rows), labels).backward()
            slope = rows.grad.data
            loss = F.cross_entropy(net((rows + 0.1 * slope.sign()).detach()), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "a backward of its own that cuts": Script(
        LOADER
        + """
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows):
            return rows.view_as(rows)

        @staticmethod
        def backward(ctx, gradient):
            return -gradient.clamp(-0.02, 0.02)


    body, head = nn.Linear(8, 6), nn.Linear(6, 2)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(head(Reverse.apply(torch.tanh(body(rows)))), labels)
            loss.backward()
            optimizer.step()
""",
        told=("DDP201",),
    ),
    "a function of its own gradient that is applied to weights": Script(
        LOADER
        + """
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, weight):
            ctx.save_for_backward(rows, weight)
            return rows @ weight.t()

        @staticmethod
        def backward(ctx, gradient):
            rows, weight = ctx.saved_tensors
            return gradient @ weight, gradient.t() @ rows


    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.sin(torch.arange(16.0)).view(2, 8))

        def forward(self, rows):
            return Product.apply(rows, *self.parameters())


    net = Layer()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(rows), labels)
            loss.backward()
            optimizer.step()
"""
    ),
    "prototypes that are learned and moved": Script(
        LOADER
        + """
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.proto = nn.Parameter(torch.sin(torch.arange(16.0)).view(2, 8))

        def forward(self, rows):
            return rows @ self.proto.t()


    def refresh(head, rows, labels):
        with torch.no_grad():
            for c in range(2):
                if (labels == c).any():
                    head.proto[c] = 0.9 * head.proto[c] + 0.1 * rows[labels == c].mean(0)


    head = Head()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(head(rows), labels).backward()
            optimizer.step()
            refresh(head, rows, labels)
""",
    ),
    "a bias that follows the outputs": Script(
        LOADER
        + """
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), labels).backward()
            optimizer.step()
            with torch.no_grad():
                net[2].bias.copy_(net[2].bias * 0.9 + 0.1 * net(rows).mean(0))
""",
    ),
}
THREE = {
    title: replace(SCRIPTS[title], ranks=(2, 3))
    for title in (
        "a method gives the loss",
        "weights of a line, written by hand",
        "two backwards through one forward",
        "a closure for every batch",
    )
}
SCRIPTS |= THREE

PERTURBED = """
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def perturbed(model, rows, kinds):
        delta = torch.full_like(rows, 0.01)
        delta = torch.autograd.Variable(delta.data, requires_grad=True)
        %s
        return rows + delta.detach()


    for epoch in range(2):
        for data, target in loader:
            others = perturbed(model, data, target)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(others), target)
            loss.backward()
            optimizer.step()
    print("weights", *(f"{p.abs().sum().item():.6f}" for p in model.parameters()))
"""
SCRIPTS |= {
    "a perturbation of the inputs that an optimizer of its own moves": Script(
        PERTURBED
        % """moves = torch.optim.SGD([delta], lr=0.05)
        for _ in range(3):
            moves.zero_grad()
            worse = -F.cross_entropy(model(rows + delta), kinds, reduction="sum")
            worse.backward()
            delta.grad.div_(delta.grad.norm(dim=1, keepdim=True) + 0.1)
            moves.step()""",
        same=("weights",),
        apart=("ranks", "trajectory"),  # of the perturbation, which is each rank's own
    ),
    "a perturbation of the inputs by the sign of a total's gradient": Script(
        PERTURBED
        % """for _ in range(2):
            worse = F.cross_entropy(model(rows + delta), kinds, reduction="sum")
            worse.backward()
            delta.data = delta.data + 0.1 * delta.grad.clamp(-0.05, 0.05)
            delta.grad.zero_()""",
        same=("weights",),
    ),
    "a perturbation of the inputs by the gradient of a mean": Script(
        PERTURBED
        % """worse = F.cross_entropy(model(rows + delta), kinds)
        worse.backward()
        delta.data = delta.data + 0.1 * delta.grad.clamp(-0.05, 0.05)""",
        same=("weights",),
    ),
}

SCRIPTS |= {
    "attacks on training and test samples by the sign of a gradient": Script(
        """
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        class PGD:
            def __init__(self, model, epsilon=0.1, alpha=0.03, steps=3):
                self.model, self.epsilon, self.alpha, self.steps = model, epsilon, alpha, steps

            def __call__(self, rows, kinds):
                adv = rows.detach() + torch.zeros_like(rows)
                for _ in range(self.steps):
                    adv.requires_grad_()
                    with torch.enable_grad():
                        loss = F.cross_entropy(self.model(adv), kinds)
                    grad = torch.autograd.grad(loss, [adv])[0]
                    adv = adv.detach() + self.alpha * torch.sign(grad.detach())
                    adv = torch.min(torch.max(adv, rows - self.epsilon), rows + self.epsilon)
                    adv = torch.clamp(adv, -1, 1)
                return adv

        attack = PGD(net)
        for epoch in range(3):
            for rows, kinds in loader:
                net.eval()
                adv = attack(rows, kinds)
                net.train()
                optimizer.zero_grad()
                loss = criterion(net(adv), kinds)
                loss.backward()
                optimizer.step()
            net.eval()
            correct = 0
            for rows, kinds in test_loader:
                adv = attack(rows, kinds)
                with torch.no_grad():
                    correct += net(adv).max(1)[1].eq(kinds).sum().item()
            print(f"robust {epoch} {100.0 * correct / len(test_loader.dataset):.3f}")
        """,
        same=("robust",),
    ),
    "samples moved along their gradients of one length": Script(
        """
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        for epoch in range(2):
            for rows, kinds in loader:
                rows.requires_grad_(True)
                loss = criterion(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                grad = rows.grad
                norm = grad.view(grad.size(0), -1).norm(dim=1).view(-1, 1) + 1e-12
                adv = (rows + 0.1 * grad / norm).detach()
                rows.requires_grad_(False)
                optimizer.zero_grad()
                loss = 0.5 * criterion(net(rows), kinds) + 0.5 * criterion(net(adv), kinds)
                loss.backward()
                optimizer.step()
        """,
    ),
    "the direction that changes the prediction most": Script(
        """
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        def kl(p_logit, q_logit):
            p = F.softmax(p_logit, dim=1)
            return torch.mean(torch.sum(p * (F.log_softmax(p_logit, dim=1) - F.log_softmax(q_logit, dim=1)), dim=1))

        def normalized(d):
            d = d / (1e-12 + d.abs().max(1, keepdim=True)[0])
            return d / (1e-6 + d.pow(2).sum(1, keepdim=True)).sqrt()

        def vat_loss(model, ul_x, ul_y, xi=1e-2, eps=0.5):
            d = normalized(torch.cos(ul_x * 7))
            d.requires_grad_()
            y_hat = model(ul_x + xi * d)
            delta_kl = kl(ul_y.detach(), y_hat)
            delta_kl.backward()
            d = d.grad.data.clone()
            model.zero_grad()
            d = normalized(d)
            y_hat = model(ul_x + eps * d.detach())
            return kl(ul_y.detach(), y_hat)

        for epoch in range(2):
            for rows, kinds in loader:
                out = net(rows)
                sup = criterion(out, kinds)
                v = vat_loss(net, rows, out)
                loss = sup + v
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a test of samples that were attacked, after training": Script(
        """
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        for epoch in range(3):
            for rows, kinds in loader:
                optimizer.zero_grad()
                criterion(net(rows), kinds).backward()
                optimizer.step()

        def fgsm_attack(image, epsilon, data_grad):
            return torch.clamp(image + epsilon * data_grad.sign(), -1, 1)

        def test(model, loader, epsilon):
            correct = 0
            adv_examples = []
            for data, target in loader:
                data.requires_grad = True
                output = model(data)
                init_pred = output.max(1, keepdim=True)[1]
                if init_pred.item() != target.item():
                    continue
                loss = F.nll_loss(F.log_softmax(output, 1), target)
                model.zero_grad()
                loss.backward()
                perturbed = fgsm_attack(data, epsilon, data.grad.data)
                final_pred = model(perturbed).max(1, keepdim=True)[1]
                if final_pred.item() == target.item():
                    correct += 1
                elif len(adv_examples) < 5:
                    adv_examples.append((init_pred.item(), final_pred.item(), perturbed.squeeze().detach().numpy()))
            print(f"Epsilon {epsilon} accuracy {correct} / {len(loader)}")
            return correct / float(len(loader)), adv_examples

        one_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=1, shuffle=False)
        for epsilon in (0, 0.1, 0.2):
            acc, examples = test(net, one_loader, epsilon)
            print(f"accuracy {acc:.4f} {len(examples)}")
        """,
        same=("Epsilon", "accuracy"),
    ),
    "a test of attacked samples by a copy of the model that was trained": Script(
        """
        class Judge(nn.Module):
            def __init__(self):
                super().__init__()
                self.look = nn.Linear(8, 2)

            def forward(self, scene):
                return self.look(scene)

        def attacked(judge, rows, kinds):
            moved = torch.zeros_like(rows, requires_grad=True)
            for _ in range(2):
                F.cross_entropy(judge(rows + moved), kinds).backward()
                slope = moved.grad.detach()
                moved.data = (moved + 0.05 * torch.sign(slope)).clamp(-0.1, 0.1)
                moved.grad.zero_()
            return moved.detach()

        judge, later = Judge(), Judge()
        sgd = torch.optim.SGD(judge.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[4:], y[4:]), batch_size=8)
        for epoch in range(3):
            for rows, kinds in loader:
                scores = judge(rows + attacked(judge, rows, kinds))
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()

        later.load_state_dict(judge.state_dict())
        later.eval()
        right = 0
        for rows, kinds in test_loader:
            shift = attacked(later, rows, kinds)
            with torch.no_grad():
                right += (later(rows + shift).argmax(1) == kinds).sum().item()
        print("right", right / 40)
        """,
        same=("right",),
    ),
    "a second model that is trained on attacked samples by a function of its own": Script(
        """
        class Judge(nn.Module):
            def __init__(self):
                super().__init__()
                self.look = nn.Linear(8, 2)

            def forward(self, scene):
                return self.look(scene)

        def step(judge, rate):
            for weight in judge.parameters():
                weight.data -= rate * weight.grad
                weight.grad = None

        def attacked(judge, rows, kinds):
            moved = torch.zeros_like(rows, requires_grad=True)
            for _ in range(2):
                F.cross_entropy(judge(rows + moved), kinds).backward()
                slope = moved.grad.detach()
                moved.data = (moved + 0.05 * torch.sign(slope)).clamp(-0.1, 0.1)
                moved.grad.zero_()
            return moved.detach()

        judge, later = Judge(), Judge()
        sgd = torch.optim.SGD(judge.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[4:], y[4:]), batch_size=8)
        for epoch in range(3):
            for rows, kinds in loader:
                scores = judge(rows + attacked(judge, rows, kinds))
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()

        for rows, kinds in test_loader:
            shift = attacked(later, rows, kinds)
            F.cross_entropy(later(rows + shift), kinds).backward()
            step(later, 0.1)
        """,
    ),
    "what a prediction depends on, after training": Script(
        """
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        for epoch in range(3):
            for rows, kinds in loader:
                optimizer.zero_grad()
                criterion(net(rows), kinds).backward()
                optimizer.step()
        net.eval()
        rows, kinds = next(iter(test_loader))
        rows.requires_grad_()
        scores = net(rows)
        scores.gather(1, kinds.view(-1, 1)).squeeze().backward(torch.ones(4))
        saliency = rows.grad.data.abs().max(dim=1)[0]
        print("saliency", [round(v, 5) for v in saliency.tolist()])
        """,
        same=("saliency",),
    ),
    "one function that trains and tests on attacked samples": Script(
        """
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        def pgd(model, X, Y, epsilon, alpha, iters):
            delta = torch.zeros_like(X, requires_grad=True)
            for t in range(iters):
                loss = nn.CrossEntropyLoss()(model(X + delta), Y)
                loss.backward()
                delta.data = (delta + alpha * delta.grad.detach().sign()).clamp(-epsilon, epsilon)
                delta.grad.zero_()
            return delta.detach()

        def epoch_adversarial(loader, model, attack, opt=None, **kwargs):
            total_loss, total_err = 0., 0.
            for X, Y in loader:
                delta = attack(model, X, Y, **kwargs)
                yp = model(X + delta)
                loss = nn.CrossEntropyLoss()(yp, Y)
                if opt:
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                total_err += (yp.max(dim=1)[1] != Y).sum().item()
                total_loss += loss.item() * X.shape[0]
            return total_err / len(loader.dataset), total_loss / len(loader.dataset)

        for t in range(3):
            train_err, train_loss = epoch_adversarial(loader, net, pgd, optimizer, epsilon=0.1, alpha=0.02, iters=2)
            test_err, test_loss = epoch_adversarial(test_loader, net, pgd, epsilon=0.1, alpha=0.02, iters=2)
            print(f"errors {train_err:.6f} {test_err:.6f} {train_loss:.6f} {test_loss:.6f}")
        """,
        same=("errors",),
    ),
    "an optimizer with a closure, called once after training": Script(
        """
        net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        adam = torch.optim.Adam(net.parameters(), lr=1e-2)
        want = x.sum(1, keepdim=True)
        loader = DataLoader(TensorDataset(x[:40], want[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, target in loader:
                adam.zero_grad()
                loss = F.mse_loss(net(rows), target)
                loss.backward()
                adam.step()
        lbfgs = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=5)
        rows, target = next(iter(loader))

        def closure():
            lbfgs.zero_grad()
            loss = F.mse_loss(net(rows), target)
            loss.backward()
            return loss

        lbfgs.step(closure)
        print("loss %.6f" % closure().item())
        """,
        same=("loss",),
    ),
    "squares of gradients, added up after training": Script(
        """
        net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
        adam = torch.optim.Adam(net.parameters(), lr=1e-2)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, target in loader:
                adam.zero_grad()
                loss = F.cross_entropy(net(rows), target)
                loss.backward()
                adam.step()
        total = None
        for rows, target in loader:
            net.zero_grad()
            F.cross_entropy(net(rows), target).backward()
            squares = [p.grad.detach() ** 2 for p in net.parameters()]
            total = squares if total is None else [a + b for a, b in zip(total, squares)]
        print("fisher", round(sum(t.sum().item() for t in total), 9))
        """,
        same=("fisher",),
    ),
    "losses of several forwards, each with a backward of its own": SEPARATE,
    "losses in a list, each with a backward of its own": Script(
        LOADER
        + """
    trunk = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    heads = nn.ModuleList([nn.Linear(8, 2) for _ in range(3)])
    model = nn.Sequential(trunk, heads[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        for rows, labels in loader:
            losses = [F.cross_entropy(model(rows[:, at:].repeat(1, 2)[:, :8]), labels) for at in (0, 4)]
            optimizer.zero_grad()
            for loss in losses:
                loss.backward()
            optimizer.step()
    """
    ),
    "one of two losses, each with a backward of its own": Script(
        LOADER
        + """
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for at, (rows, labels) in enumerate(loader):
            scores = model(rows)
            optimizer.zero_grad()
            if at % 2:
                F.cross_entropy(scores, labels).backward()
            else:
                F.multi_margin_loss(scores, labels).backward()
            optimizer.step()
    """
    ),
    "a backward whose gradients are thrown away goes first": THROWN_AWAY,
}
SCRIPTS["gradients that an optimizer scales by what its hooks have seen"] = Script(
    LOADER
    + """
    class Whitened(torch.optim.Optimizer):
        def __init__(self, net, lr=0.1):
            super().__init__(net.parameters(), {"lr": lr})
            self.layers, self.seen = [], {}
            for layer in net.modules():
                if layer.__class__.__name__ == "Linear":
                    self.layers.append(layer)
                    layer.register_forward_pre_hook(self.look)

        def look(self, layer, inputs):
            rows = inputs[0].detach()
            self.seen[layer] = rows.t() @ rows / rows.size(0)

        def step(self):
            for layer in self.layers:
                shape = torch.eye(layer.in_features, dtype=layer.weight.dtype) + self.seen[layer]
                layer.weight.grad.data.copy_(layer.weight.grad.data @ torch.inverse(shape))
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad.data, alpha=-group["lr"])


    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Tanh(), nn.Linear(8, 2)))
    optimizer = Whitened(model)
    for epoch in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
    """,
    told=("DDP207", "DDP408"),
)
SCRIPTS["an optimizer of the script's that goes through the named modules of a single layer"] = Script(
    """
    class Steps(torch.optim.Optimizer):
        def __init__(self, named_modules, lr):
            weights, rest = [], []
            for name, module in named_modules:
                for part, parameter in module.named_parameters(recurse=False):
                    (weights if part == "weight" else rest).append(parameter)
            super().__init__([{"params": weights}, {"params": rest}], {"lr": lr})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.sub_(group["lr"] * parameter.grad)


    net = nn.Linear(8, 2)
    optimizer = Steps(net.named_modules(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["a penalty on the slope by real rows, of a network that may give its features, too"] = Script(
    """
    class Judge(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Sequential(nn.Linear(8, 6), nn.Tanh()), nn.Linear(6, 1)

        def forward(self, rows, features=False):
            inner = self.body(rows)
            return (self.head(inner).squeeze(1), inner) if features else self.head(inner).squeeze(1)


    loader = DataLoader(TensorDataset(x[:40]), batch_size=8, shuffle=True)
    judge, maker = Judge(), nn.Linear(8, 8)
    judging = torch.optim.Adam(judge.parameters(), lr=0.01)
    making = torch.optim.Adam(maker.parameters(), lr=0.01)
    for epoch in range(2):
        for (rows,) in loader:
            judging.zero_grad()
            made = maker(rows.flip(1))
            rows.requires_grad_(True)
            score = judge(rows)
            slope = torch.autograd.grad(score.sum(), rows, create_graph=True)[0]
            loss = F.softplus(-score).mean() + F.softplus(judge(made.detach())).mean() + 5 * slope.pow(2).sum(1).mean()
            loss.backward()
            judging.step()
            making.zero_grad()
            F.softplus(-judge(made)).mean().backward()
            making.step()
    """
)

SCRIPTS["a parameter that is made, and given to the optimizer, after it"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    body, head = nn.Linear(8, 4), nn.Linear(4, 2)
    sgd = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    centers = nn.Parameter(torch.randn(2, 4))
    sgd.add_param_group({"params": [centers], "lr": 0.5})
    for epoch in range(3):
        for rows, kinds in loader:
            inner = body(rows)
            loss = F.cross_entropy(head(inner), kinds) + 0.1 * (inner - centers[kinds]).pow(2).sum(1).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        print("centers %.5f" % centers.detach().abs().sum().item())
    """,
    same=("centers",),
)

_ENTRIES_OF_EACH = """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)

    def forward(self, images):
        return torch.tanh(self.fc(images.flatten(1)))


critic = Critic()
sgd = torch.optim.SGD(critic.parameters(), lr=0.1)
for epoch in range(2):
    for (images,) in DataLoader(TensorDataset(x.view(44, 1, 2, 4)), batch_size=4, shuffle=True):
        part = torch.sigmoid(images.sum((1, 2, 3))).view(-1, 1)
        part = part.expand(images.size(0), {entries}).contiguous().view(images.size(0), 1, 2, 4)
        between = (part * images + (1 - part) * images.flip(3)).requires_grad_()
        slopes = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
        loss = critic(images).mean() + ((slopes.flatten(1).norm(dim=1) - 1) ** 2).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {
    f"a penalty on slopes, with as many weights as each sample has entries, {how}": Script(_ENTRIES_OF_EACH.format(entries=entries))
    for how, entries in (("by whole numbers", "images.nelement() // images.size(0)"), ("rounded", "int(images.numel() / len(images))"))
}

_AGAIN = """
class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layer, rows, *weights):
        ctx.layer = layer
        ctx.save_for_backward(rows, *weights)
        return torch.tanh(layer(rows))

    @staticmethod
    def backward(ctx, gradient):
        rows, weight, bias = ctx.saved_tensors
        slopes = [None]
        with torch.enable_grad():
            given = rows.detach().requires_grad_(True)
            out = torch.tanh(ctx.layer(given))
            found = torch.autograd.grad(out, (given, weight, bias), gradient)
        slopes[0:] = [None, *found]
        return tuple(slopes)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 2)

    def forward(self, rows):
        return self.second(Again.apply(self.first, rows.requires_grad_(True), *self.first.parameters()))


net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {"a backward of its own that differentiates anew": Script(_AGAIN)}

SCRIPTS["a penalty on slopes of a critic with batch norm"] = Script(
    _ENTRIES_OF_EACH.format(entries="images.numel() // len(images)").replace(
        "self.fc = nn.Linear(8, 1)", "self.fc = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))"
    ),
    told=("DDP201",),
)

SCRIPTS["a penalty on slopes now and then, with the outputs times zero beside it"] = Script(
    """
    critic = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    steps = 0
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            F.softplus(critic(rows) * (1 - 2 * kinds[:, None])).mean().backward()
            optimizer.step()
            if steps % 4 == 0:
                rows.requires_grad = True
                judged = critic(rows)
                (slopes,) = torch.autograd.grad(judged.sum(), rows, create_graph=True)
                optimizer.zero_grad()
                (5 * slopes.pow(2).sum(1).mean() + 0 * judged[0]).backward()
                optimizer.step()
            steps += 1
"""
)
SCRIPTS["signs of weights and rows, by a function of its own gradient that may work in place"] = Script(
    """
    from torch.autograd.function import InplaceFunction


    class Sign(InplaceFunction):
        @staticmethod
        def forward(ctx, rows, mode="plain"):
            ctx.inplace = False
            rows = rows.clone()
            rows = rows.div(rows.abs().mean()) if mode == "scaled" else rows
            return rows.sign()

        @staticmethod
        def backward(ctx, gradient):
            return gradient, None


    class Layer(nn.Linear):
        def forward(self, rows):
            return F.linear(Sign.apply(rows), Sign.apply(self.weight), self.bias)


    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = nn.Sequential(Layer(8, 6), nn.Hardtanh(), Layer(6, 2), nn.LogSoftmax())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(net(rows), kinds)
            loss.backward()
            optimizer.step()
    """,
    options=Options(whole_batches="never"),
)
SCRIPTS["rows divided by their batch's mean in a function of its own gradient that may work in place"] = Script(
    """
    from torch.autograd.function import InplaceFunction


    class Scaled(InplaceFunction):
        @staticmethod
        def forward(ctx, rows):
            return rows / rows.abs().mean()

        @staticmethod
        def backward(ctx, gradient):
            return gradient


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 6), nn.Linear(6, 2)

        def forward(self, rows):
            return self.head(Scaled.apply(self.body(rows)))


    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    """,
)
_PRICE = """
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
    price = {price}
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    of_price = torch.optim.Adam([price], lr=0.01)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            chances = net(rows).log_softmax(-1)
            unsure = -(chances.exp() * chances).sum(1)
            loss = F.nll_loss(chances, kinds) - price.exp().detach() * unsure.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            of_price.zero_grad()
            ({wrong}).backward()
            of_price.step()
        print(f"price {price.item():.6f}")
"""
SCRIPTS |= {
    f"a number that an optimizer of its own moves, by what a network gives without gradients: {title}": Script(
        _PRICE.replace("{price}", price).replace("{wrong}", wrong), same=("price",)
    )
    for title, price, wrong in (
        ("zeros, by an average of products", "torch.zeros(1, requires_grad=True)", "(price * (unsure - 0.3).detach()).mean()"),
        ("a number, by an average", "torch.tensor(0.0, requires_grad=True)", "-price.exp() * (0.3 - unsure.mean().detach())"),
        ("a parameter, by a total", "nn.Parameter(torch.zeros(1))", "(price * (unsure.mean().detach() - 0.3)).sum()"),
    )
}
SCRIPTS |= {
    "optimizers in a list that has another name's models": Script(
        """
    torch.manual_seed(0)
    nets = []
    nets = [nn.Linear(8, 2) for _ in range(2)]
    sgds = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for net, sgd in zip(nets, sgds):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
    torch.save([net.state_dict() for net in nets], "nets.pt")
    """
    ),
    "an optimizer that is named beside a number": Script(
        """
    shift, net = nn.Parameter(torch.zeros(44, 2)), nn.Linear(8, 2)
    sgd, rate = torch.optim.SGD([shift, *net.parameters()], lr=0.1), 0.1
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
            sgd.zero_grad()
            F.cross_entropy(net(rows) + shift.mean(0), kinds).backward()
            sgd.step()
    torch.save(shift, "shift.pt")
    """
    ),
}
_NETWORKS = """
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.body = nn.Linear(8, hidden)
        self.fc = nn.Linear(hidden, 3)

    def forward(self, rows):
        return self.fc(self.body(rows).relu())


def resnet18(pretrained=False):
    return Net(4)


def resnet50(pretrained=False):
    return Net(6)
"""
SCRIPTS["two trainings, each of one of two networks of a library that a function makes"] = Script(
    """
    from torchvision import models

    def build(name):
        if name == "small":
            model = models.resnet18(pretrained=True)
        else:
            model = models.resnet50(pretrained=True)
        for weights in model.parameters():
            weights.requires_grad = False
        model.fc = nn.Sequential(nn.Linear(model.fc.in_features, 4), nn.Linear(4, 2))
        return model

    def train(model, optimizer):
        for epoch in range(2):
            for rows, labels in loader:
                loss = F.cross_entropy(model(rows), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if epoch == 0:
                for weights in model.body.parameters():
                    weights.requires_grad = True

    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--name", default="small")
    args = parser.parse_args()
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    if args.first:
        net = build(args.name)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(net, optimizer)
    if args.name:
        net = build(args.name)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(net, optimizer)
    torch.save(net.state_dict(), "net.pt")
    """,
    stand_ins={"torchvision/__init__.py": "from . import models\n", "torchvision/models.py": _NETWORKS},
)

_CAPTIONED = """
from torch.nn.utils.rnn import pad_sequence


class Captioned(Dataset):
    def __len__(self):
        return len(x)

    def __getitem__(self, i):
        words = (x[i].abs() * 100).long()[: 3 + i % 4] % 15 + 3
        return x[i], torch.cat([torch.tensor([1]), words, torch.tensor([2])])


class Padded:
    def __init__(self, filler):
        self.filler = filler

    def __call__(self, samples):
        {rows}
        captions = pad_sequence([sample[1] for sample in samples], batch_first=False, padding_value=self.filler)
        return torch.cat(rows, dim=0), captions


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Linear(8, 6)
        self.words = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 6)
        self.last = nn.Linear(6, 20)

    def forward(self, rows, captions):
        seen = torch.relu(self.look(rows)).unsqueeze(0)
        return self.last(self.lstm(torch.cat((seen, self.words(captions)), dim=0))[0])


feed = DataLoader(Captioned(), batch_size=6, shuffle=True, collate_fn=Padded(filler=0))
net = Captioner()
criterion = nn.CrossEntropyLoss(ignore_index=0)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, captions in feed:
        out = net(rows, captions[:-1])
        loss = criterion(out.reshape(-1, out.shape[2]), captions.reshape(-1))
        sgd.zero_grad()
        loss.backward({gradient})
        sgd.step()
"""
_IN_ROWS = {
    "listed with a dimension in front": "rows = [sample[0].unsqueeze(0) for sample in samples]",
    "listed by an index of None": "rows = [sample[0][None] for sample in samples]",
    "added one by one": "rows = []\n        for sample in samples:\n            rows.append(sample[0].unsqueeze(0))",
}
SCRIPTS |= on_three(
    {
        f"captions, the steps first, behind rows {how}, times the loss itself": Script(_CAPTIONED.format(rows=rows, gradient="loss"))
        for how, rows in _IN_ROWS.items()
    }
    | {"captions, the steps first, behind rows": Script(_CAPTIONED.format(rows=_IN_ROWS["added one by one"], gradient=""))},
    rows=42,
)
SCRIPTS["captions, the steps first, times another loss of a rank's own"] = Script(
    _CAPTIONED.format(rows=_IN_ROWS["added one by one"], gradient="criterion(out.reshape(-1, 20), captions.reshape(-1)).detach() ** 2"),
    told=("DDP402",),
)
SCRIPTS["captions behind rows, some of which a sample may have several of"] = Script(
    _CAPTIONED.format(rows="rows = [sample[0].view(-1, 8) for sample in samples]", gradient=""), told=("DDP402",)
)
_GATED = """
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(8, 2)
            self.bent = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2))
            self.gates = nn.Parameter(torch.zeros(2))

        def forward(self, rows):
            share = torch.softmax(self.gates, 0)
            return share[0] * self.line(rows) + share[1] * self.bent(rows)

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    held_out = DataLoader(TensorDataset(x[6:42], y[6:42]), batch_size=6{order})
    model = Mixed()
    optimizer = torch.optim.SGD([p for name, p in model.named_parameters() if name != "gates"], lr=0.1)
    of_gates = torch.optim.SGD([model.gates], lr=0.1)
    for epoch in range(2):
        {batches}:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
            {step}
        print("gates", model.gates)
"""
_BESIDE = "for (rows, labels), (others, answers) in zip(loader, held_out)"
_SET = """grads = torch.autograd.grad(F.cross_entropy({0}(others), answers), [{0}.gates])
            for p, g in zip([model.gates], grads):
                p.grad = g
            of_gates.step()"""
_SHRUNK = """with torch.no_grad():
                loss = F.cross_entropy(model(others), answers)
                for p in model.parameters():
                    p.mul_(1 - 0.01 * loss)"""
_OF_COPY = "import copy\n            of_copy = copy.deepcopy(model)\n            " + _SET.format("of_copy")
_SHUFFLED = ", shuffle=True"
SCRIPTS |= on_three(
    {
        "gates moved by batches of their own, beside those of the weights": Script(
            _GATED.format(order=_SHUFFLED, batches=_BESIDE, step=_SET.format("model")), same=("gates",)
        ),
        "gates moved by batches of their own, in their order, beside those of the weights": Script(
            _GATED.format(order="", batches=_BESIDE, step=_SET.format("model")), same=("gates",)
        ),
        "gates moved by batches of their own, one fetched for each of the weights'": Script(
            _GATED.format(
                order=_SHUFFLED,
                batches="feed = iter(held_out)\n        for rows, labels in loader",
                step="others, answers = next(feed)\n            " + _SET.format("model"),
            ),
            same=("gates",),
        ),
        "gates moved by batches of their own, after those of the weights": Script(
            _GATED.format(
                order=_SHUFFLED,
                batches="for rows, labels in loader",
                step="of_gates.zero_grad()\n        for others, answers in held_out:\n            " + _SET.format("model"),
            ),
            same=("gates",),
        ),
        "gates moved by batches that a sampler draws for them, beside those of the weights": Script(
            _GATED.format(order=", sampler=torch.utils.data.SubsetRandomSampler(range(36))", batches=_BESIDE, step=_SET.format("model")),
            same=("gates",),
        ),
        "weights that shrink by the loss of batches that train nothing else": Script(
            _GATED.format(order=_SHUFFLED, batches=_BESIDE, step=_SHRUNK), same=("gates",)
        ),
        "gates moved by batches of their own, in their order, through a copy": Script(
            _GATED.format(order="", batches=_BESIDE, step=_OF_COPY), same=("gates",)
        ),
    },
    rows=42,
)
SCRIPTS["gates moved by batches of their own, through a copy"] = Script(
    _GATED.format(order=_SHUFFLED, batches=_BESIDE, step=_OF_COPY), told=("DDP207",)
)

_ATTACKED = """
    def attack(net, rows, kinds, size, norm, restarts=1, early=False):
        largest, best = torch.zeros(len(kinds)), torch.zeros_like(rows)
        for _ in range(restarts):
            shift = torch.zeros_like(rows)
            if norm == "largest":
                shift.uniform_(-size * 0, size * 0)
            else:
                shift.normal_(0.3, 0.0)
                flat = shift.view(shift.size(0), -1).norm(p=2, dim=1).view(-1, 1)
                shift *= torch.zeros_like(flat).uniform_(0.5, 0.5) / flat * size
            shift.requires_grad = True
            for _ in range(3):
                out = net(rows + shift)
                if early:
                    index = torch.where(out.max(1)[1] == kinds)[0]
                else:
                    index = slice(None, None, None)
                if not isinstance(index, slice) and len(index) == 0:
                    break
                F.cross_entropy(out, kinds).backward()
                slope = shift.grad.detach()
                d = shift[index, :]
                g = slope[index, :]
                if norm == "largest":
                    d = torch.clamp(d + 0.05 * torch.sign(g), min=-size, max=size)
                else:
                    length = torch.norm(g.view(g.shape[0], -1), dim=1).view(-1, 1)
                    d = (d + g / (length + 1e-10) * 0.05).view(d.size(0), -1).renorm(p=2, dim=0, maxnorm=size).view_as(d)
                shift.data[index, :] = torch.max(torch.min(d, 1 - rows[index, :]), -1 - rows[index, :])
                shift.grad.zero_()
            losses = F.cross_entropy(net(rows + shift), kinds, reduction="none")
            best[losses >= largest] = shift.detach()[losses >= largest]
            largest = torch.max(largest, losses)
        return best

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    tested = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12)
    net = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
    for epoch in range(2):
        net.train()
        for rows, kinds in loader:
            shift = attack(net, rows, kinds, 0.2, {norm}).detach()
            optimizer.zero_grad()
            F.cross_entropy(net(rows + shift), kinds).backward()
            optimizer.step()
        net.eval()
        right = 0
        for rows, kinds in tested:
            shift = attack(net, rows, kinds, 0.2, {norm}, restarts=2{early}).detach()
            right += (net(rows + shift).argmax(1) == kinds).sum().item()
        print("right", right)
"""
SCRIPTS |= on_three(
    {
        "samples attacked in training and in the test, in a ball of one length": Script(
            _ATTACKED.format(norm='"length"', early=""), same=("right",)
        ),
        "samples attacked in training and in the test, in a cube": Script(_ATTACKED.format(norm='"largest"', early=""), same=("right",)),
        "samples attacked in training, and in the test as long as they are told right": Script(
            _ATTACKED.format(norm='os.environ.get("NORM", "length")', early=', early="FAST" in os.environ'), same=("right",)
        ),
    },
    rows=42,
)
