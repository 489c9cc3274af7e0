"""Scripts that are given mixed precision, have it switched or keep what they have, in many styles."""

from dataclasses import replace

from scripts import Script

from ddpify import Options

KEEP, NONE, FP16, BF16 = (Options(amp=a) for a in ("keep", "none", "torch", "torch-bf16"))

STEPS = """
def fit(model, loader, optimizer, loss_fn):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
"""
PLAIN: dict[str, Script] = {
    "everything at top level": Script(
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(2):
            running = 0.0
            for inputs, targets in loader:
                inputs, targets = inputs.to(device), targets.to(device)
                optimizer.zero_grad()
                outputs = model(inputs)
                loss = criterion(outputs, targets)
                loss.backward()
                optimizer.step()
                running += loss.item()
            print(f"epoch {epoch} loss {running / len(loader):.6f}")
        """,
        same=("epoch",),
    ),
    "main that hands all to a train function": Script("""
        class Guesser(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(8, 12)
                self.last = nn.Linear(12, 2)

            def forward(self, rows):
                return self.last(self.first(rows).tanh())

        def practise(wish, guesser, place, pages, adam, day):
            guesser.train()
            for number, (page, answer) in enumerate(pages):
                page, answer = page.to(place), answer.to(place)
                adam.zero_grad()
                guess = guesser(page).log_softmax(1)
                loss = F.nll_loss(guess, answer)
                loss.backward()
                adam.step()
                if not number % wish.tell_every:
                    print("day", day, "page", number, loss.item())

        def main():
            cli = argparse.ArgumentParser()
            cli.add_argument("--days", type=int, default=2)
            cli.add_argument("--tell-every", type=int, default=5)
            wish = cli.parse_args()
            torch.manual_seed(3)
            place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            guesser = Guesser().to(place)
            adam = torch.optim.Adam(guesser.parameters(), lr=0.02)
            tiring = torch.optim.lr_scheduler.StepLR(adam, step_size=1, gamma=0.6)
            pages = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            for day in range(wish.days):
                practise(wish, guesser, place, pages, adam, day)
                tiring.step()

        if __name__ == "__main__":
            main()
        """),
    "a trainer class with clipping and a scheduler for each step": Script("""
        class Trainer:
            def __init__(self, model, loader, lr=0.05):
                self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
                self.model = model.to(self.device)
                self.loader = loader
                self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
                self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
                self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=lr, total_steps=22)

            def train_step(self, batch):
                inputs, labels = (t.to(self.device) for t in batch)
                logits = self.model(inputs)
                # label smoothing is in the criterion
                loss = self.criterion(logits, labels)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
                self.optimizer.step()
                self.scheduler.step()
                return loss.item()

            def fit(self, epochs):
                for epoch in range(epochs):
                    losses = []
                    for batch in self.loader:
                        losses.append(self.train_step(batch))
                    print("mean loss", sum(losses) / len(losses))

        torch.manual_seed(0)
        trainer = Trainer(nn.Linear(8, 2), DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
        trainer.fit(2)
        """),
    "gradients gathered over some batches": Script("""
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
        opt = torch.optim.SGD(model.parameters(), lr=0.2)
        train_dl = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, drop_last=True)
        accum = 2
        for epoch in range(4):
            opt.zero_grad()
            for i, (xb, yb) in enumerate(train_dl):
                logits = model(xb)
                loss = F.cross_entropy(logits, yb) / accum
                loss.backward()
                if (i + 1) % accum == 0:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                    opt.step()
                    opt.zero_grad()
        """),
    "an optimizer for the first epochs, and another one for the rest": Script("""
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        fast = torch.optim.SGD(model.parameters(), lr=0.1)
        slow = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(4):
            for rows, labels in loader:
                loss = F.cross_entropy(model(rows), labels)
                model.zero_grad()
                loss.backward()
                if epoch < 2:
                    fast.step()
                else:
                    slow.step()
        """),
    "generator and discriminator on probabilities": Script("""
        grains = 4
        mill = nn.Sequential(nn.Linear(grains, 16), nn.ReLU(), nn.Linear(16, 8))
        baker = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 1), nn.Sigmoid())
        doubt = nn.BCELoss()
        milling = torch.optim.Adam(mill.parameters(), lr=0.003, betas=(0.6, 0.99))
        baking = torch.optim.Adam(baker.parameters(), lr=0.003, betas=(0.6, 0.99))
        sacks = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for year in range(2):
            for at, (flour, _) in enumerate(sacks):
                # first the baker, sack by sack
                baker.zero_grad()
                wanted = torch.full((len(flour),), 1.0)
                trust = baker(flour).flatten()
                missed = doubt(trust, wanted)
                missed.backward()
                ground = mill(flour[:, :grains] / 2)
                wanted.fill_(0.0)
                trust = baker(ground.detach()).flatten()
                fooled = doubt(trust, wanted)
                fooled.backward()
                baking.step()
                # then the mill
                mill.zero_grad()
                wanted.fill_(1.0)
                trust = baker(ground).flatten()
                refused = doubt(trust, wanted)
                refused.backward()
                milling.step()
        """),
    "a gan with losses on logits, trained now and then": Script("""
        maker = nn.Linear(4, 8)
        judge = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1))
        doubt = nn.BCEWithLogitsLoss()
        judging = torch.optim.RMSprop(judge.parameters(), lr=0.02)
        making = torch.optim.RMSprop(maker.parameters(), lr=0.02)
        things = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        seen = 0
        for day in range(2):
            for (thing,) in things:
                clay = thing[:, 4:]
                false = judge(maker(clay).detach())
                true = judge(thing)
                misled = doubt(false, torch.full_like(false, 0.0)) + doubt(true, torch.full_like(true, 1.0))
                judging.zero_grad()
                misled.backward()
                judging.step()
                if not seen % 2:
                    shown = judge(maker(clay))
                    refused = doubt(shown, torch.full_like(shown, 1.0))
                    making.zero_grad()
                    refused.backward()
                    making.step()
                seen += 1
        """),
    "encoder and decoder with an optimizer each": Script("""
        enc, dec = nn.Linear(8, 3), nn.Linear(3, 8)
        enc_opt = torch.optim.SGD(enc.parameters(), lr=0.1)
        dec_opt = torch.optim.SGD(dec.parameters(), lr=0.1)

        def step(batch):
            enc_opt.zero_grad()
            dec_opt.zero_grad()
            code = enc(batch)
            out = dec(torch.relu(code))
            loss = F.mse_loss(out, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(enc.parameters(), 1.0)
            torch.nn.utils.clip_grad_norm_(dec.parameters(), 1.0)
            enc_opt.step()
            dec_opt.step()
            return loss.item()

        for epoch in range(2):
            for (batch,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
                step(batch)
        """),
    "the loss made in a helper": Script("""
        net = nn.Linear(8, 2)
        optim = torch.optim.SGD(net.parameters(), lr=0.1)

        def compute_loss(net, batch):
            xb, yb = batch
            return F.cross_entropy(net(xb), yb)

        loader = DataLoader(TensorDataset(x, y), batch_size=4)
        for epoch in range(2):
            for batch in loader:
                loss = compute_loss(net, batch)
                optim.zero_grad(); loss.backward(); optim.step()
        """),
    "forward, loss and backward in one expression": Script("""
        net = nn.Linear(8, 2)
        optim = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                optim.zero_grad()
                F.cross_entropy(net(xb), yb).backward()
                optim.step()
        """),
    "a checkpoint that is written and read": Script("""
        model = nn.Linear(8, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        start = 0
        if os.path.exists("last.pt"):
            checkpoint = torch.load("last.pt", map_location="cpu")
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            start = checkpoint["epoch"] + 1
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(start, 2):
            for xb, yb in loader:
                loss = F.cross_entropy(model(xb), yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            torch.save({
                "epoch": epoch,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
            }, "last.pt")
        """),
    "phases, and a best model": Script(
        """
        parts = {"train": TensorDataset(x[:32], y[:32]), "val": TensorDataset(x[32:], y[32:])}
        feeds = {part: DataLoader(parts[part], batch_size=4, shuffle=part == "train") for part in ["train", "val"]}

        def grow(plant, miss, sgd, years=2):
            tallest = 0.0
            for year in range(years):
                for part in ["train", "val"]:
                    if part == "val":
                        plant.eval()
                    else:
                        plant.train()
                    missed, hits = 0.0, 0
                    for rows, kinds in feeds[part]:
                        sgd.zero_grad()
                        with torch.set_grad_enabled(part == "train"):
                            said = plant(rows)
                            loss = miss(said, kinds)
                            if part == "train":
                                loss.backward()
                                sgd.step()
                        hits += torch.sum(said.argmax(1) == kinds.data)
                        missed += len(rows) * loss.item()
                    print(part, "missed", round(missed / len(parts[part]), 6))
            return plant

        plant = nn.Linear(8, 2)
        grow(plant, nn.CrossEntropyLoss(), torch.optim.SGD(plant.parameters(), lr=0.1, momentum=0.8), 3)
        """,
        same=("train missed", "val missed"),
    ),
    "a total, divided nowhere": Script("""
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                pred = model(xb).squeeze(1)
                loss = F.mse_loss(pred, yb.to(pred.dtype), reduction="sum")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """),
    "methods that leave their results on self": Script("""
        class Atelier:
            def __init__(self):
                self.brush, self.lens = nn.Linear(4, 4), nn.Linear(8, 1)
                self.verdict = nn.MSELoss()
                self.lens_adam = torch.optim.Adam(self.lens.parameters(), lr=0.02)
                self.brush_adam = torch.optim.Adam(self.brush.parameters(), lr=0.02)

            def receive(self, rows):
                self.outline, self.photo = rows.chunk(2, dim=1)

            def paint(self):
                self.painted = self.brush(self.outline)

            def examine(self):
                true = self.lens(torch.cat([self.outline, self.photo], dim=-1))
                false = self.lens(torch.cat([self.outline, self.painted.detach()], dim=-1))
                yes, no = torch.full_like(true, 1.0), torch.full_like(false, 0.0)
                self.blindness = 0.5 * (self.verdict(true, yes) + self.verdict(false, no))
                self.blindness.backward()

            def improve(self):
                seen = self.lens(torch.cat([self.outline, self.painted], dim=-1))
                self.clumsiness = 8 * F.l1_loss(self.painted, self.photo) + self.verdict(seen, torch.full_like(seen, 1.0))
                self.clumsiness.backward()

            def lesson(self):
                self.paint()
                self.lens_adam.zero_grad()
                self.examine()
                self.lens_adam.step()
                self.brush_adam.zero_grad()
                self.improve()
                self.brush_adam.step()

        atelier = Atelier()
        for day in range(2):
            for (rows,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
                atelier.receive(rows)
                atelier.lesson()
        """),
    "a recurrent loss added up over time": Script("""
        cell, head = nn.GRUCell(2, 6), nn.Linear(6, 2)
        optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        loader = DataLoader(TensorDataset(x.view(44, 4, 2), y), batch_size=4, shuffle=True)
        for epoch in range(2):
            for seq, target in loader:
                hidden = torch.zeros(seq.size(0), 6)
                loss = 0
                optimizer.zero_grad()
                for t in range(4):
                    hidden = cell(seq[:, t], hidden)
                    loss = loss + F.cross_entropy(head(hidden), target)
                loss.backward()
                optimizer.step()
        """),
    "gradient norms that are looked at": Script(
        """
        def length_of_gradients(model):
            squares = 0.0
            for weight in model.parameters():
                if weight.grad is None:
                    continue
                squares += weight.grad.data.norm(2).item() ** 2
            return squares ** 0.5

        model = nn.Linear(8, 2)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for at, (rows, kinds) in enumerate(DataLoader(TensorDataset(x, y), batch_size=4)):
                loss = F.cross_entropy(model(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                length = length_of_gradients(model)
                if at % 5 == 0:
                    print("length", round(length, 9))
                sgd.step()
        """,
        same=("length",),
    ),
    "an optimizer from a helper, a warm-up that wraps it": Script("""
        class Warmup:
            def __init__(self, optimizer, steps):
                self.optimizer, self.steps, self.count = optimizer, steps, 0

            def zero_grad(self):
                self.optimizer.zero_grad()

            def step(self):
                self.count += 1
                for group in self.optimizer.param_groups:
                    group["lr"] = 0.1 * min(1.0, self.count / self.steps)
                self.optimizer.step()

        def make_optimizer(model):
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            return Warmup(opt, 6)

        def main():
            model = nn.Linear(8, 2)
            optimizer = make_optimizer(model)
            for epoch in range(2):
                for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(xb), yb)
                    loss.backward()
                    optimizer.step()

        main()
        """),
    "a loss of probabilities inside a helper": Script("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 1)

            def forward(self, x):
                return torch.sigmoid(self.fc(x)).squeeze(1)

        def objective(net, xb, yb):
            p = net(xb)
            return F.binary_cross_entropy(p, yb.to(xb.dtype))

        net = Net()
        optimizer = torch.optim.Adam(net.parameters())
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                loss = objective(net, xb, yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """),
    "two losses, each with its own backward": Script("""
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                optimizer.zero_grad()
                loss_a = F.cross_entropy(model(xb), yb)
                loss_a.backward()
                loss_b = model(xb * 0.5).pow(2).mean()
                loss_b.backward()
                optimizer.step()
        """),
    "an iteration counter and next(iter)": Script("""
        model = nn.Linear(8, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=24)
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        batches = iter(train_loader)
        for it in range(24):
            try:
                xb, yb = next(batches)
            except StopIteration:
                batches = iter(train_loader)
                xb, yb = next(batches)
            pred = model(xb)
            loss = F.cross_entropy(pred, yb)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
        """),
}

HARDER: dict[str, Script] = {
    "a warm-up of the generator that ends its iterations early": Script("""
        maker, judge = nn.Linear(4, 8), nn.Linear(8, 1)
        making, judging = torch.optim.Adam(maker.parameters(), lr=0.02), torch.optim.Adam(judge.parameters(), lr=0.02)
        doubt = nn.BCEWithLogitsLoss()
        seen = 0
        for day in range(2):
            for (thing,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
                seen += 1
                making.zero_grad()
                made = maker(thing[:, :4])
                unlike = F.l1_loss(made, thing)
                if seen < 6:
                    unlike.backward()
                    making.step()
                    continue
                shown = judge(made)
                refused = unlike + doubt(shown, torch.full_like(shown, 1.0))
                refused.backward()
                making.step()
                judging.zero_grad()
                false, true = judge(made.detach()), judge(thing)
                misled = (doubt(false, torch.full_like(false, 0.0)) + doubt(true, torch.full_like(true, 1.0))) / 2
                misled.backward()
                judging.step()
        """),
    "three losses of probabilities and their mean": Script("""
        weaver, buyer = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1), nn.Sigmoid())
        dislike = torch.nn.BCELoss()
        buying = torch.optim.Adam(buyer.parameters(), lr=0.02)
        weaving = torch.optim.Adam(weaver.parameters(), lr=0.02)
        for turn in range(2):
            for stall, (cloth,) in enumerate(DataLoader(TensorDataset(x), batch_size=4, shuffle=True)):
                yes, no = torch.ones(len(cloth), 1), torch.zeros(len(cloth), 1)
                weaving.zero_grad()
                woven = weaver(cloth[:, :4])
                unsold = dislike(buyer(woven), yes)
                unsold.backward()
                weaving.step()
                buying.zero_grad()
                cheated = dislike(buyer(woven.detach()), no)
                left = dislike(buyer(cloth), yes)
                regret = (cheated + left) / 2
                regret.backward()
                buying.step()
        """),
    "several critic steps for each of the generator's, with a penalty": Script("""
        def steepness(judge, left, right):
            path = (left + right) / 2
            path.requires_grad_(True)
            height = judge(path)
            slope = torch.autograd.grad(outputs=height, inputs=path, grad_outputs=torch.full_like(height, 1.0), create_graph=True)[0]
            return (slope.square().sum(1).sqrt() - 1).square().mean()

        terrain = nn.Linear(4, 8)
        climber = nn.Sequential(nn.Linear(8, 8), nn.Softplus(), nn.Linear(8, 1))
        climb_adam = torch.optim.Adam(climber.parameters(), lr=0.02)
        terrain_adam = torch.optim.Adam(terrain.parameters(), lr=0.02)
        for day in range(2):
            for (place,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
                for attempt in range(2):
                    built = terrain(place[:, :4])
                    up = climber(built.detach()).flatten()
                    down = climber(place).flatten()
                    steep = steepness(climber, place, built.detach())
                    height = up.mean() - down.mean() + 8 * steep
                    climber.zero_grad()
                    height.backward()
                    climb_adam.step()
                up = climber(terrain(place[:, :4])).flatten()
                depth = -up.mean()
                terrain.zero_grad()
                depth.backward()
                terrain_adam.step()
        """),
    "a penalty inside the expression of the loss": Script("""
        def uneven(net, rows):
            rows = rows.clone().requires_grad_(True)
            high = net(rows)
            slope, = torch.autograd.grad(high, rows, torch.full_like(high, 1.0), create_graph=True)
            return slope.square().mean()

        net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        sgd = torch.optim.SGD(net.parameters(), lr=0.04)
        for epoch in range(2):
            for (rows,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
                loss = (1 - net(rows)).square().mean() + 0.2 * uneven(net, rows)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """),
    "gradients clamped by hand": Script("""
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                optimizer.zero_grad()
                F.cross_entropy(model(xb), yb).backward()
                for p in model.parameters():
                    p.grad.data.clamp_(-0.05, 0.05)
                optimizer.step()
        """),
    "gradients clamped in a helper that is given the optimizer": Script("""
        def hold_back(adam, most):
            for part in adam.param_groups:
                for weight in part["params"]:
                    if weight.grad is None:
                        continue
                    weight.grad.data.clamp_(min=-most, max=most)

        def practise(pages, guesser, adam):
            for number, (page, kinds) in enumerate(pages, start=1):
                adam.zero_grad()
                said = guesser(page)
                loss = F.cross_entropy(said, kinds)
                loss.backward()
                hold_back(adam, 0.4)
                adam.step()
                if not number % 4:
                    print("page", number, loss.item())

        if __name__ == "__main__":
            guesser = nn.Linear(8, 2)
            adam = torch.optim.Adam(guesser.parameters(), 2e-2)
            pages = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            for day in range(2):
                practise(pages, guesser, adam)
        """),
    "a trainer that is given its optimizer": Script("""
        class Runner(object):
            def __init__(self, net, optimizer, loader):
                self.net = net
                self.optimizer = optimizer
                self.loader = loader

            def save(self, path):
                torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}, path)

            def run(self, epochs):
                for epoch in range(epochs):
                    for xb, yb in self.loader:
                        loss = self.loss(xb, yb)
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                    self.save("net.pt")

            def loss(self, xb, yb):
                logits = self.net(xb)
                return F.cross_entropy(logits, yb)

        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        Runner(net, optimizer, DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)).run(2)
        """),
    "outputs that become numbers of numpy": Script(
        """
        import numpy as np

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            scores = []
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                output = model(xb)
                loss = F.cross_entropy(output, yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scores.append(output.softmax(1).detach().cpu().numpy()[:, 0])
            print("mean score", round(float(np.concatenate(scores).mean()), 6))
        """,
        same=("mean score",),
    ),
    "a teacher, a student and two losses": Script("""
        teacher = nn.Linear(8, 2)
        teacher.eval()
        for p in teacher.parameters():
            p.requires_grad = False
        student = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

        def train_epoch(student, teacher, loader, optimizer):
            for xb, yb in loader:
                with torch.no_grad():
                    soft = F.softmax(teacher(xb) / 2.0, dim=1)
                logits = student(xb)
                hard = F.cross_entropy(logits, yb)
                loss = 0.5 * hard + 0.5 * F.kl_div(F.log_softmax(logits / 2.0, dim=1), soft, reduction="batchmean")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            train_epoch(student, teacher, loader, optimizer)
        """),
    "two phases with an optimizer each": Script("""
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)

        def one_epoch(opt):
            for xb, yb in loader:
                opt.zero_grad()
                loss = F.cross_entropy(model(xb), yb)
                loss.backward()
                opt.step()

        warm = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(1):
            one_epoch(warm)
        main_opt = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(2):
            one_epoch(main_opt)
        """),
    "training in another module": Script(
        """
        from steps import fit

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            fit(model, loader, optimizer, F.cross_entropy)
        """,
        files={"steps.py": STEPS},
    ),
    "a loss that is a method's": Script("""
        class Coder(nn.Module):
            def __init__(self):
                super().__init__()
                self.down, self.up = nn.Linear(8, 3), nn.Linear(3, 8)

            def forward(self, rows):
                return self.up(torch.relu(self.down(rows)))

            def training_loss(self, rows):
                return F.mse_loss(self(rows), rows)

        coder = Coder()
        optimizer = torch.optim.SGD(coder.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, _ in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                optimizer.zero_grad()
                coder.training_loss(rows).backward()
                optimizer.step()
        """),
    "a loss returned with its parts": Script("""
        class Blur(nn.Module):
            def __init__(self):
                super().__init__()
                self.look, self.place, self.paint = nn.Linear(8, 6), nn.Linear(6, 2), nn.Linear(2, 8)

            def forward(self, rows):
                place = self.place(self.look(rows).relu())
                return self.paint(place), place

        def count(painted, rows, place):
            unlike = F.mse_loss(painted, rows)
            far = place.square().mean()
            return {"all": unlike + 0.2 * far, "far": far, "unlike": unlike}

        blur = Blur()
        adam = torch.optim.Adam(blur.parameters(), lr=2e-2)
        for epoch in range(2):
            for rows, _ in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                painted, place = blur(rows)
                counted = count(painted, rows, place)
                adam.zero_grad()
                counted["all"].backward()
                adam.step()
        """),
}

PRESENT: dict[str, Script] = {
    "the old names": Script("""
        from torch.cuda.amp import autocast, GradScaler

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = GradScaler()
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                optimizer.zero_grad()
                with autocast():
                    loss = F.cross_entropy(model(xb), yb)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        """),
    "a flag, clipping and accumulation": Script("""
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        args = parser.parse_args()
        model = nn.Linear(8, 2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        scaler = torch.cuda.amp.GradScaler(enabled=args.amp)
        for epoch in range(3):
            for i, (xb, yb) in enumerate(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, drop_last=True)):
                with torch.cuda.amp.autocast(enabled=args.amp):
                    loss = F.cross_entropy(model(xb), yb) / 2
                scaler.scale(loss).backward()
                if (i + 1) % 2 == 0:
                    scaler.unscale_(optimizer)
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    scaler.step(optimizer)
                    scaler.update()
                    optimizer.zero_grad()
        """),
    "a total, scaled": Script("""
        from torch.cuda import amp

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        scaler = amp.GradScaler(2.0 ** 10)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                with amp.autocast(True):
                    loss = F.cross_entropy(model(xb), yb, reduction="sum")
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        """),
    "masked entries, scaled": Script("""
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                mask = (xb > 0).to(xb.dtype)
                with torch.autocast("cuda", torch.float16, torch.cuda.is_available()):
                    out = model(xb)
                    loss = (((out - xb) ** 2) * mask).sum() / mask.sum()
                optimizer.zero_grad()
                scaled = scaler.scale(loss)
                scaled.backward()
                scaler.step(optimizer)
                scaler.update()
        """),
    "a context that is null on the cpu": Script("""
        from contextlib import nullcontext

        place = "cuda" if torch.cuda.is_available() else "cpu"
        kinds_of_number = {"half": torch.float16, "brain": torch.bfloat16, "full": torch.float32}
        number = kinds_of_number["half"]
        short = nullcontext() if place == "cpu" else torch.amp.autocast(device_type=place, dtype=number)
        model = nn.Linear(8, 2).to(place)
        adam = torch.optim.AdamW(model.parameters(), lr=0.02)
        scale = torch.cuda.amp.GradScaler(enabled=True)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                rows, kinds = rows.to(place), kinds.to(place)
                with short:
                    loss = F.cross_entropy(model(rows), kinds)
                scale.scale(loss).backward()
                scale.unscale_(adam)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.8)
                scale.step(adam)
                scale.update()
                adam.zero_grad(set_to_none=True)
        """),
    "two optimizers of a gan": Script("""
        potter, guest = nn.Linear(4, 8), nn.Linear(8, 1)
        guest_adam, potter_adam = torch.optim.Adam(guest.parameters(), lr=0.02), torch.optim.Adam(potter.parameters(), lr=0.02)
        guest_scale = torch.cuda.amp.GradScaler()
        potter_scale = torch.cuda.amp.GradScaler()
        doubt = nn.BCEWithLogitsLoss()
        for year in range(2):
            for (pot,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
                with torch.cuda.amp.autocast():
                    shaped = potter(pot[:, :4])
                    new, old = guest(shaped.detach()), guest(pot)
                    misled = doubt(new, torch.full_like(new, 0.0)) + doubt(old, torch.full_like(old, 1.0))
                guest.zero_grad()
                guest_scale.scale(misled).backward()
                guest_scale.step(guest_adam)
                guest_scale.update()
                with torch.cuda.amp.autocast():
                    new = guest(shaped)
                    refused = doubt(new, torch.full_like(new, 1.0))
                potter.zero_grad()
                potter_scale.scale(refused).backward()
                potter_scale.step(potter_adam)
                potter_scale.update()
        """),
    "bfloat16 without a scaler": Script("""
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                    loss = F.cross_entropy(model(xb), yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """),
    "two branches, with and without": Script("""
        def practise(model, pages, sgd, scale=None):
            for rows, kinds in pages:
                sgd.zero_grad()
                if scale is not None:
                    with torch.cuda.amp.autocast():
                        loss = F.cross_entropy(model(rows), kinds)
                    scale.scale(loss).backward()
                    scale.step(sgd)
                    scale.update()
                else:
                    loss = F.cross_entropy(model(rows), kinds)
                    loss.backward()
                    sgd.step()

        model = nn.Linear(8, 2)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        in_half = os.environ.get("IN_HALF") == "1"
        pages = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            practise(model, pages, sgd, torch.cuda.amp.GradScaler() if in_half else None)
        """),
    "a forward that casts itself": Script("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 2)

            @torch.cuda.amp.autocast()
            def forward(self, x):
                return self.fc(x)

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(xb), yb)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        """),
}

LEFT: dict[str, Script] = {
    "a closure, in float16": Script(
        """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                def closure():
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(xb), yb)
                    loss.backward()
                    return loss
                optimizer.step(closure)
        """,
        options=FP16,
        told=("DDP413",),
    ),
    "updates written out, in float16": Script(
        """
        model = nn.Linear(8, 2)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                loss = F.cross_entropy(model(xb), yb)
                model.zero_grad()
                loss.backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.1 * p.grad
        """,
        options=FP16,
        told=("DDP413",),
    ),
    "gradients clipped more often than the optimizer steps": Script(
        """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for i, (xb, yb) in enumerate(DataLoader(TensorDataset(x, y), batch_size=4, drop_last=True)):
                loss = F.cross_entropy(model(xb), yb) / 2
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                if i % 2:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
        options=FP16,
        told=("DDP413",),
    ),
    "an iteration that ends before its step": Script(
        """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                loss = F.cross_entropy(model(xb), yb)
                optimizer.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                if not torch.isfinite(norm):
                    continue
                optimizer.step()
        """,
        options=FP16,
        told=("DDP413",),
    ),
    "gradients clamped by a hook, under a scaler": Script(
        """
        model = nn.Linear(8, 2)
        for p in model.parameters():
            p.register_hook(lambda grad: grad.clamp(-0.1, 0.1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                loss = F.cross_entropy(model(xb), yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        options=FP16,
        told=("DDP413",),
    ),
    "a loss of probabilities in another module": Script(
        """
        from objectives import bce

        model = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                p = model(xb).squeeze(1)
                loss = bce(p, yb.to(xb.dtype))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        files={"objectives.py": "import torch.nn.functional as F\n\ndef bce(p, t):\n    return F.binary_cross_entropy(p, t)\n"},
        options=BF16,
    ),
    "mixed precision in another module, off": Script(
        """
        from net import Net

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4):
                loss = F.cross_entropy(model(xb), yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        files={
            "net.py": """
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.fc(x)
"""
        },
        options=NONE,
    ),
}

SCRIPTS: dict[str, Script] = {
    **{f"{title}, in float16": replace(script, options=FP16) for title, script in (PLAIN | HARDER).items()},
    **{f"{title}, in bfloat16": replace(script, options=BF16) for title, script in (PLAIN | HARDER).items()},
    **{f"{title}, kept": replace(script, options=KEEP) for title, script in PRESENT.items()},
    **{f"{title}, off": replace(script, options=NONE) for title, script in PRESENT.items()},
    **{f"{title}, to float16": replace(script, options=FP16) for title, script in PRESENT.items()},
    **{f"{title}, to bfloat16": replace(script, options=BF16) for title, script in PRESENT.items()},
    **LEFT,
}
