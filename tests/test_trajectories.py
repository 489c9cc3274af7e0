"""Ways in which scripts are written, each converted and executed: two ranks, and one, must train as the original did, step by step."""

import io
import textwrap

import pytest
import torch
from ranks import Case, Outcome, run_many
from scripts import HEAD, Script, text, told

import ddpify
from ddpify import Conversion
from ddpify.rules.base import Safety


def checkpoint() -> bytes:
    """What a run of the script that resumes would have written after its first epoch."""
    generator = torch.Generator().manual_seed(0)
    model = {"weight": torch.randn(2, 8, generator=generator), "bias": torch.zeros(2)}
    momentum = {i: {"momentum_buffer": torch.randn(shape, generator=generator)} for i, shape in enumerate([(2, 8), (2,)])}
    probe = torch.optim.SGD(torch.nn.Linear(8, 2).parameters(), lr=0.1, momentum=0.9).state_dict()
    written = io.BytesIO()
    torch.save({"epoch": 1, "model": model, "optimizer": {**probe, "state": momentum}}, written)
    return written.getvalue()


SCRIPTS = {
    # --- where the loop stands ------------------------------------------------------------------------------------------
    "everything at the top level": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).cuda()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(3):
            for images, labels in loader:
                images, labels = images.cuda(), labels.cuda()
                optimizer.zero_grad()
                loss = criterion(model(images), labels)
                loss.backward()
                optimizer.step()
            print("epoch", epoch, "done")
        torch.save(model.state_dict(), "model.pth")
        """
    ),
    "a main function with argparse": Script(
        """
        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--batch-size", type=int, default=8)
            parser.add_argument("--epochs", type=int, default=3)
            parser.add_argument("--lr", type=float, default=0.1)
            parser.add_argument("--seed", type=int, default=1)
            args = parser.parse_args()
            torch.manual_seed(args.seed)
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
            model = nn.Linear(8, 2).to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
            for epoch in range(1, args.epochs + 1):
                model.train()
                for step, (data, target) in enumerate(loader):
                    data, target = data.to(device), target.to(device)
                    optimizer.zero_grad()
                    output = F.log_softmax(model(data), dim=1)
                    loss = F.nll_loss(output, target)
                    loss.backward()
                    optimizer.step()
                    if step % 2 == 0:
                        print(f"train epoch {epoch} step {step}: {loss.item():.6f}")
                scheduler.step()


        if __name__ == "__main__":
            main()
        """,
        args=("--epochs", "2"),
    ),
    "a loop in a function that uses the module's names": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


        def train(epoch):
            model.train()
            for data, target in loader:
                data, target = data.cuda(), target.cuda()
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()


        def test():
            model.eval()
            test_loss, correct = 0, 0
            with torch.no_grad():
                for data, target in test_loader:
                    data, target = data.cuda(), target.cuda()
                    output = model(data)
                    test_loss += F.cross_entropy(output, target, reduction="sum").item()
                    correct += (output.argmax(1) == target).sum().item()
            print(f"test: {test_loss / len(test_loader.dataset):.6f}, {correct}/{len(test_loader.dataset)}")


        for epoch in range(3):
            train(epoch)
            test()
        """,
        same=("test:",),
    ),
    "a trainer class": Script(
        """
        class Trainer:
            def __init__(self, args):
                self.args = args
                self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.model = nn.Linear(8, 2).to(self.device)
                self.loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr)
                self.criterion = nn.CrossEntropyLoss()

            def train_epoch(self, epoch):
                self.model.train()
                running = 0.0
                for data, target in self.loader:
                    data, target = data.to(self.device), target.to(self.device)
                    loss = self.criterion(self.model(data), target)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    running += loss.item() * data.size(0)
                print(f"epoch {epoch}: {running / len(self.loader.dataset):.6f}")

            def fit(self):
                for epoch in range(self.args.epochs):
                    self.train_epoch(epoch)
                torch.save(self.model.state_dict(), "model.pt")


        if __name__ == "__main__":
            parser = argparse.ArgumentParser()
            parser.add_argument("--batch_size", type=int, default=8)
            parser.add_argument("--epochs", type=int, default=3)
            parser.add_argument("--lr", type=float, default=0.1)
            Trainer(parser.parse_args()).fit()
        """,
        same=("epoch",),
    ),
    "a model that a function returns": Script(
        """
        def build(name, classes):
            if name == "linear":
                net = nn.Linear(8, classes)
            else:
                net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, classes))
            return net.cuda()


        def train(model, loader, optimizer):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()


        def main():
            model = build("mlp", 2)
            loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                train(model, loader, optimizer)


        main()
        """
    ),
    # --- loaders --------------------------------------------------------------------------------------------------------
    "loader options in a dictionary": Script(
        """
        use_cuda = torch.cuda.is_available()
        kwargs = {"batch_size": 8, "shuffle": True}
        if use_cuda:
            kwargs.update({"num_workers": 1, "pin_memory": True})
        train_set = TensorDataset(x, y)
        loader = DataLoader(train_set, **kwargs)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "a positional shuffle": Script(
        """
        loader = DataLoader(TensorDataset(x, y), 8, True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "a shuffle that depends on the sampler": Script(
        """
        train_sampler = None
        train_set = TensorDataset(x, y)
        loader = DataLoader(train_set, batch_size=8, shuffle=(train_sampler is None), num_workers=0, sampler=train_sampler)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "no shuffle": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "a last batch that is dropped": Script(
        """
        loader = DataLoader(TensorDataset(x[:43], y[:43]), batch_size=8, shuffle=True, drop_last=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "a short batch that is skipped by its length": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch_size", type=int, default=8)
        args = parser.parse_args()
        loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                if len(data) != args.batch_size:
                    continue
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "a hidden state made for a batch size": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(2, 5, batch_first=True)
                self.fc = nn.Linear(5, 2)

            def forward(self, x, hidden):
                output, hidden = self.rnn(x, hidden)
                return self.fc(output[:, -1])

            def init_hidden(self, batch_size):
                return torch.zeros(1, batch_size, 5)


        batch_size = 8
        loader = DataLoader(TensorDataset(x.view(44, 4, 2), y), batch_size=batch_size, shuffle=True, drop_last=True)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data, model.init_hidden(batch_size)), target)
                loss.backward()
                optimizer.step()
        """
    ),
    "a view by the batch size, and hits divided by it": Script(
        """
        batch_size = 8
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=batch_size, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            hits = 0
            for data, target in loader:
                output = model(data.view(batch_size, -1))
                loss = F.cross_entropy(output, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                hits += (output.argmax(1) == target).sum().item()
            print(f"epoch {hits / (batch_size * len(loader)):.4f}")
        """,
        same=("epoch",),
    ),
    "a random split that nothing seeds": Script(
        """
        train_set, val_set = random_split(TensorDataset(x, y), [32, 12])
        loader = DataLoader(train_set, batch_size=8, shuffle=True)
        val_loader = DataLoader(val_set, batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            correct = 0
            with torch.no_grad():
                for data, target in val_loader:
                    correct += (model(data).argmax(1) == target).sum().item()
            print(f"val {correct}/{len(val_set)}")
        """,
        same=("val",),
    ),
    # --- losses and gradients -------------------------------------------------------------------------------------------
    "a loss that is a sum over the batch": Script(
        """
        class Blur(nn.Module):
            def __init__(self):
                super().__init__()
                self.look = nn.Linear(8, 6)
                self.paint = nn.Linear(3, 8)

            def forward(self, rows):
                place, spread = self.look(rows).chunk(2, 1)
                return self.paint(place), place, spread


        def blurred(painted, rows, place, spread):
            unlike = (painted - rows).square().sum()
            far = torch.sum(place.square() + spread.exp() - spread) / 2
            return far + unlike


        pages = DataLoader(TensorDataset(x), batch_size=8, shuffle=True)
        blur = Blur()
        sgd = torch.optim.SGD(blur.parameters(), lr=0.002)
        for epoch in range(3):
            total = 0
            for (rows,) in pages:
                sgd.zero_grad()
                painted, place, spread = blur(rows)
                loss = blurred(painted, rows, place, spread)
                loss.backward()
                total += loss.item()
                sgd.step()
            print(f"epoch {epoch}: {total / len(pages.dataset):.6f} for each row")
        """,
        same=("epoch",),
    ),
    "a loss divided by the number of the samples": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                loss = ((model(data).squeeze(1) - target) ** 2).sum() / data.size(0)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    ),
    "a total divided by the batch size": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch_size", type=int, default=8)
        args = parser.parse_args()
        loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target, reduction="sum") / args.batch_size
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    ),
    "a loss of two heads and a penalty on weights": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 6)
                self.kind = nn.Linear(6, 2)
                self.value = nn.Linear(6, 1)

            def forward(self, x):
                h = torch.tanh(self.body(x))
                return self.kind(h), self.value(h)


        loader = DataLoader(TensorDataset(x, y, x.sum(1)), batch_size=8, shuffle=True)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(3):
            for data, target, value in loader:
                logits, guess = model(data)
                penalty = sum(p.abs().sum() for p in model.parameters())
                loss = F.cross_entropy(logits, target) + 0.5 * F.mse_loss(guess.squeeze(1), value) + 1e-3 * penalty
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    ),
    "gradients accumulated over two batches": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for i, (data, target) in enumerate(loader):
                loss = F.cross_entropy(model(data), target) / 2
                loss.backward()
                if (i + 1) % 2 == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        """
    ),
    "gradients clipped by their norm": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
        """
    ),
    # --- numbers and decisions ------------------------------------------------------------------------------------------
    "a total of losses and a count of hits": Script(
        """
        pages = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        miss = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            missed, hits, seen = 0.0, 0, 0
            for rows, kinds in pages:
                sgd.zero_grad()
                said = model(rows)
                loss = miss(said, kinds)
                loss.backward()
                sgd.step()
                seen += kinds.size(0)
                missed += rows.size(0) * loss.item()
                _, chosen = said.max(1)
                hits += chosen.eq(kinds).sum().item()
            print(f"epoch {epoch} of {seen} rows: missed by {missed / seen:.6f}, hit {hits / seen:.6f}")
        """,
        same=("epoch",),
    ),
    "a mean of the batches' losses": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            running_loss = 0.0
            for inputs, labels in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                running_loss += loss.item()
            print("epoch %d loss %.6f" % (epoch, running_loss / len(loader)))
        """,
        same=("epoch",),
    ),
    "a meter of sum, count and average": Script(
        """
        class Tally:
            def __init__(self):
                self.clear()

            def clear(self):
                self.last = self.mean = 0
                self.weight = self.total = 0

            def add(self, number, weight=1):
                self.last = number
                self.weight += weight
                self.total += weight * number
                self.mean = self.total / self.weight


        def practise(pages, model, sgd):
            missed, right = Tally(), Tally()
            for rows, kinds in pages:
                said = model(rows)
                loss = F.cross_entropy(said, kinds)
                hits = (said.argmax(1) == kinds).double().mean()
                right.add(hits.item(), rows.size(0))
                missed.add(loss.item(), rows.size(0))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            return missed.mean, right.mean


        pages = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            loss, accuracy = practise(pages, model, sgd)
            print(f"epoch {epoch} loss {loss:.6f} accuracy {accuracy:.6f}")
        """,
        same=("epoch",),
    ),
    "a learning rate that follows the validation loss": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
        for epoch in range(4):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            val_loss = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data), target).item()
            val_loss /= len(val_loader)
            scheduler.step(val_loss)
            print(f"val {val_loss:.6f} lr {optimizer.param_groups[0]['lr']:.6f}")
        """,
        same=("val",),
    ),
    "an early stop on the validation loss": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        best, bad = float("inf"), 0
        for epoch in range(20):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            val_loss = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data), target, reduction="sum").item()
            if val_loss < best:
                best, bad = val_loss, 0
                torch.save(model.state_dict(), "best.pt")
            else:
                bad += 1
                if bad >= 2:
                    print(f"stop after epoch {epoch}, best {best:.6f}")
                    break
        """,
        same=("stop",),
    ),
    "an early stopping object that saves the model": Script(
        """
        class Patience:
            def __init__(self, most):
                self.most, self.waited = most, 0
                self.lowest = None
                self.over = False

            def __call__(self, missed, model):
                if self.lowest is not None and missed >= self.lowest:
                    self.waited += 1
                    print(f"waited {self.waited}, at most {self.most}")
                    if self.waited >= self.most:
                        self.over = True
                else:
                    self.lowest, self.waited = missed, 0
                    self.keep(model)

            def keep(self, model):
                torch.save(model.state_dict(), "lowest.pt")


        pages = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        questions = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        patience = Patience(2)
        for epoch in range(20):
            for rows, kinds in pages:
                sgd.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                sgd.step()
            missed = 0.0
            with torch.no_grad():
                for rows, kinds in questions:
                    missed += F.cross_entropy(model(rows), kinds).item()
            patience(missed / len(questions), model)
            if patience.over:
                print("no patience after epoch", epoch)
                break
        model.load_state_dict(torch.load("lowest.pt"))
        """,
        same=("waited", "no patience"),
    ),
    "a learning rate that follows the training loss": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0, threshold=0.5)
        for epoch in range(4):
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * len(data)
            scheduler.step(total / len(loader.dataset))
            print("rate", optimizer.param_groups[0]["lr"])
        """,
        same=("rate",),
    ),
    "tensors that add up hits and losses": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            hits = torch.zeros(1)
            total_loss = torch.tensor(0.0)
            for data, target in loader:
                output = model(data)
                loss = F.cross_entropy(output, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                hits += (output.argmax(1) == target).sum()
                total_loss += loss.detach() * len(data)
            print(f"epoch {hits.item() / len(loader.dataset):.4f} {total_loss / len(loader.dataset):.4f}")
        """,
        same=("epoch",),
    ),
    "a stop on the loss of the last batch": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for epoch in range(30):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch} last {loss.item():.6f}")
            if loss.item() < 0.2:
                break
        """,
        same=("epoch",),
    ),
    "a number of steps that ends in the middle of an epoch": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
        step = 0
        while step < 20:
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
                scheduler.step()
                step += 1
                if step >= 20:
                    break
        print("steps", step)
        """,
        same=("steps",),
    ),
    # --- checkpoints ----------------------------------------------------------------------------------------------------
    "a checkpoint with the best accuracy": Script(
        """
        def evaluate(model, loader):
            model.eval()
            correct = 0
            with torch.no_grad():
                for data, target in loader:
                    correct += (model(data).argmax(1) == target).sum().item()
            return correct / len(loader.dataset)


        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:13], y[:13]), batch_size=5)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        top = 0
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            share = evaluate(model, test_loader)
            if share > top:
                print("a new best, kept")
                if not os.path.isdir("kept"):
                    os.mkdir("kept")
                kept = {"epoch": epoch, "share": share, "weights": model.state_dict()}
                torch.save(kept, "./kept/best.pth")
                top = share
        print(f"best {top:.6f}")
        """,
        same=("best",),
    ),
    "the best weights, put back at the end": Script(
        """
        import copy

        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        best_acc, best = -1.0, copy.deepcopy(model.state_dict())
        for epoch in range(4):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            model.eval()
            hits = 0
            with torch.no_grad():
                for data, target in val_loader:
                    hits += (model(data).argmax(1) == target).sum().item()
            if hits / 10 > best_acc:
                best_acc = hits / 10
                best = copy.deepcopy(model.state_dict())
        model.load_state_dict(best)
        torch.save(model.state_dict(), "best.pt")
        print(f"best {best_acc:.4f}")
        """,
        same=("best",),
    ),
    "a checkpoint that is read back": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        torch.save(model.state_dict(), "model.pt")
        model.load_state_dict(torch.load("model.pt"))
        model.eval()
        with torch.no_grad():
            print("accuracy %.4f" % (model(x).argmax(1) == y).double().mean().item())
        """,
        same=("accuracy",),
    ),
    "a log that is open all the time": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        log = open("log.txt", "w")
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            log.write(f"{epoch}\\n")
        log.close()
        with open("done.txt", "w") as f:
            f.write("done")
        """
    ),
    "a run that is resumed": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--resume", default="")
        args = parser.parse_args()
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        start = 0
        if args.resume:
            state = torch.load(args.resume)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            start = state["epoch"]
            print("resumed at epoch", start)
        for epoch in range(start, 3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            torch.save({"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
        """,
        same=("resumed",),
        args=("--resume", "last.pt"),
        files={"last.pt": checkpoint()},
    ),
    "DataParallel with prefixed keys": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.DataParallel(nn.Linear(8, 2)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
        torch.save(model.state_dict(), "model.pth")
        """
    ),
    "DataParallel that saves the module": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        if torch.cuda.device_count() > 1:
            model = nn.DataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
        net = model.module if isinstance(model, nn.DataParallel) else model
        torch.save(net.state_dict(), "model.pth")
        """
    ),
    # --- models ---------------------------------------------------------------------------------------------------------
    "a frozen backbone": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
                self.head = nn.Linear(16, 2)

            def forward(self, x):
                return self.head(self.backbone(x))


        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = Net().cuda()
        for param in model.backbone.parameters():
            param.requires_grad = False
        optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
        """
    ),
    "an attribute and a method of the model's own": Script(
        """
        class Net(nn.Module):
            def __init__(self, classes):
                super().__init__()
                self.classes = classes
                self.fc = nn.Linear(8, classes)

            def forward(self, x):
                return self.fc(x)

            def norm(self):
                return self.fc.weight.norm().item()


        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = Net(2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target % model.classes).backward()
                optimizer.step()
            print(f"norm {model.norm():.6f} of {model.classes} classes")
        """,
        same=("norm",),
    ),
    "parameters told apart by their names": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = nn.Linear(8, 6)
                self.fc = nn.Linear(6, 2)

            def forward(self, x):
                return self.fc(torch.tanh(self.backbone(x)))


        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = Net()
        head = [p for name, p in model.named_parameters() if name.startswith("fc")]
        rest = [p for name, p in model.named_parameters() if not name.startswith("fc")]
        optimizer = torch.optim.SGD([{"params": head, "lr": 0.5}, {"params": rest}], lr=0.01)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                for name, p in model.named_parameters():
                    if name == "backbone.bias":
                        p.grad.mul_(0.5)
                optimizer.step()
        for name, p in model.named_parameters():
            print(name, tuple(p.shape))
        """,
        same=("backbone", "fc"),
    ),
    "a model with batch norm": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        torch.save(model.state_dict(), "model.pt")
        """
    ),
    "an average of the weights beside the model": Script(
        """
        import copy

        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        average = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
                with torch.no_grad():
                    for p, q in zip(average.parameters(), model.parameters()):
                        p.mul_(0.9).add_(q, alpha=0.1)
        torch.save(average.state_dict(), "average.pt")
        """
    ),
    "a generator and a discriminator": Script(
        """
        class Guest(nn.Module):
            def __init__(self):
                super().__init__()
                self.taste = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 1))

            def forward(self, dish):
                return self.taste(dish)


        kitchen = DataLoader(TensorDataset(x, x.flip(1)), batch_size=8, shuffle=True, drop_last=True)
        guest = Guest().cuda()
        cook = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).cuda()
        doubt = nn.BCEWithLogitsLoss()
        guest_adam = torch.optim.Adam(guest.parameters(), lr=0.01, betas=(0.6, 0.99))
        cook_adam = torch.optim.Adam(cook.parameters(), lr=0.01, betas=(0.6, 0.99))
        for evening in range(3):
            for goods, dish in kitchen:
                goods, dish = goods.cuda(), dish.cuda()
                yes, no = torch.ones(len(dish), 1).cuda(), torch.zeros(len(dish), 1).cuda()
                cooked = cook(goods)
                guest.zero_grad()
                misled = doubt(guest(cooked.detach()), no) + doubt(guest(dish), yes)
                misled.backward()
                guest_adam.step()
                cook.zero_grad()
                refused = doubt(guest(cooked), yes)
                refused.backward()
                cook_adam.step()
            torch.save(guest.state_dict(), "guest.pt")
            torch.save(cook.state_dict(), "cook.pt")
        """
    ),
}


FRAME = """
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for data, target in loader:
{lines}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

# losses that are proved, or corrected and then proved: these must go on being so
PROVED = {
    "a mean": "loss = F.cross_entropy(model(data), target)",
    "a mean of what each sample lost": "loss = F.cross_entropy(model(data), target, reduction='none').mean()",
    "a total": "loss = F.cross_entropy(model(data), target, reduction='sum')",
    "a total divided by the number of labels": "loss = F.cross_entropy(model(data), target, reduction='sum') / len(target)",
    "a total divided by a number": "loss = F.cross_entropy(model(data), target, reduction='sum') / 8",
    "a total divided by the size of the data set": "loss = F.cross_entropy(model(data), target, reduction='sum') / len(loader.dataset)",
    "a total of squares, halved": "loss = ((model(data) - 1.0) ** 2).sum() / data.shape[0] / 2",
    "a mean multiplied by the number of samples": "loss = F.cross_entropy(model(data), target) * data.size(0)",
    "a sum of two means": "loss = F.cross_entropy(model(data), target) + 0.1 * model(data).abs().mean()",
}
# losses that may be told or corrected, but not passed as they are
DOUBTED = {
    "a mean over a list of samples": """
        losses = [F.cross_entropy(model(d[None]), t[None]) for d, t in zip(data, target)]
        loss = sum(losses) / len(losses)""",
    "of the first four samples": "loss = F.cross_entropy(model(data)[:4], target[:4])",
    "of the first sample": "loss = F.cross_entropy(model(data), target, reduction='none')[0]",
    "of the hardest samples": "loss = F.cross_entropy(model(data), target, reduction='none').topk(2).values.mean()",
    "of the hardest samples, by the function": "loss = torch.topk(F.cross_entropy(model(data), target, reduction='none'), 2)[0].mean()",
    "of the hardest samples, sorted": "loss = F.cross_entropy(model(data), target, reduction='none').sort().values[-2:].mean()",
    "of the worst sample": "loss = F.cross_entropy(model(data), target, reduction='none').max()",
    "of the median sample": "loss = F.cross_entropy(model(data), target, reduction='none').median()",
    "of the samples of one kind": "loss = F.cross_entropy(model(data[target > 0]), target[target > 0])",
    "over a mask": """
        mask = (target > 0).double()
        loss = (F.cross_entropy(model(data), target, reduction="none") * mask).sum() / mask.sum().clamp(min=1)""",
    "summed in a loop over the samples": """
        loss = 0
        for d, t in zip(data, target):
            loss = loss + F.cross_entropy(model(d[None]), t[None])""",
    "with weights by how often a label is there": """
        weight = 1.0 / (1 + torch.bincount(target, minlength=2))
        loss = F.cross_entropy(model(data), target, weight=weight)""",
    "of samples mixed with their neighbours": "loss = F.cross_entropy(model(0.7 * data + 0.3 * data.flip(0)), target)",
    "against the neighbour's output": "loss = F.mse_loss(model(data), model(data).detach().roll(1, 0))",
    "of inputs scaled by the batch": "loss = F.cross_entropy(model((data - data.mean(0)) / (data.std(0) + 1e-5)), target)",
    "weighted by an advantage": """
        gain = data.sum(1)
        loss = (F.cross_entropy(model(data), target, reduction="none") * (gain - gain.mean()) / gain.std()).mean()""",
    "squared": "loss = F.cross_entropy(model(data), target) ** 2",
    "under a root": "loss = F.mse_loss(model(data), F.one_hot(target, 2).to(data.dtype)).sqrt()",
    "as a norm": "loss = torch.norm(model(data) - F.one_hot(target, 2))",
    "as an exponential": "loss = torch.exp(F.cross_entropy(model(data), target))",
    "kept off zero": "loss = (F.cross_entropy(model(data), target) - 0.6).abs() + 0.6",
    "clamped": "loss = F.cross_entropy(model(data), target).clamp(max=0.6)",
    "times another": "loss = F.cross_entropy(model(data), target) * model(data).pow(2).mean()",
    "over its own value": """
        value = F.cross_entropy(model(data), target)
        loss = value / value.detach()""",
    "over all pairs by a product": """
        z = F.normalize(model(data))
        loss = (z @ z.T - torch.eye(len(z))).pow(2).mean()""",
    "over all pairs by their distance": """
        z = model(data)
        loss = torch.cdist(z, z).mean()""",
    "over all pairs by broadcasting": """
        z = model(data)
        loss = (z.unsqueeze(0) - z.unsqueeze(1)).pow(2).mean()""",
    "over all pairs by einsum": """
        z = model(data)
        loss = torch.einsum("id,jd->ij", z, z).mean()""",
    "by a softmax over the batch": "loss = -F.log_softmax(model(data), dim=0).mean()",
    "by logsumexp over the batch": "loss = torch.logsumexp(model(data)[:, 0], 0)",
    "with a variance over the batch": "loss = model(data).var(dim=0).mean() + F.cross_entropy(model(data), target)",
    "with a covariance": """
        z = model(data) - model(data).mean(0)
        loss = (z.T @ z / len(z)).pow(2).sum()""",
    "by overlap": """
        p = torch.softmax(model(data), 1)[:, 1]
        loss = 1 - 2 * (p * target).sum() / (p.sum() + target.sum() + 1)""",
}
LOSSES = PROVED | DOUBTED


def with_loss(lines: str) -> Script:
    return Script(FRAME.format(lines=textwrap.indent(textwrap.dedent(lines).strip(), " " * 8)))


@pytest.fixture(scope="module")
def conversions() -> dict[str, Conversion]:
    return {title: ddpify.convert(text(script)) for title, script in SCRIPTS.items()}


@pytest.fixture(scope="module", params=[2, 1], ids=["two ranks", "no launcher"])
def outcomes(request: pytest.FixtureRequest, conversions: dict[str, Conversion]) -> dict[str, Outcome]:
    cases = [Case(text(script), conversions[title].code, script.args, dict(script.files)) for title, script in SCRIPTS.items()]
    return dict(zip(SCRIPTS, run_many(cases, request.param), strict=True))


@pytest.mark.parametrize("title", SCRIPTS)
def test_it_is_converted_without_a_doubt(conversions: dict[str, Conversion], title: str) -> None:
    done = conversions[title]
    assert [(f.code, f.line, f.message) for f in done.findings if f.level >= Safety.REVIEW] == []
    assert (done.status, done.exit_code) == ("convert", 0)
    again = ddpify.convert(done.code)
    assert (again.code, again.exit_code) == (done.code, 0)


@pytest.mark.parametrize("title", SCRIPTS)
def test_it_trains_as_the_original_step_by_step(outcomes: dict[str, Outcome], title: str) -> None:
    outcome = outcomes[title]
    assert outcome.problems() == []
    assert len(outcome.single.steps) >= 12


@pytest.mark.parametrize("title", [title for title, script in SCRIPTS.items() if script.same])
def test_numbers_of_the_whole_data_set_are_the_originals(outcomes: dict[str, Outcome], title: str) -> None:
    original = told(outcomes[title].single.stdout, SCRIPTS[title].same)
    assert original
    assert told(outcomes[title].ranks[0].stdout, SCRIPTS[title].same) == original


@pytest.fixture(scope="module")
def losses() -> dict[str, tuple[Conversion, Outcome]]:
    scripts = {title: text(with_loss(lines)) for title, lines in LOSSES.items()}
    done = {title: ddpify.convert(script) for title, script in scripts.items()}
    outcomes = run_many([Case(script, done[title].code) for title, script in scripts.items()])
    return {title: (done[title], outcome) for title, outcome in zip(scripts, outcomes, strict=True)}


@pytest.mark.parametrize("title", LOSSES)
def test_a_loss_is_right_or_told(losses: dict[str, tuple[Conversion, Outcome]], title: str) -> None:
    done, outcome = losses[title]
    assert len(outcome.single.steps) == 12
    if title in PROVED:
        assert done.exit_code == 0
    if done.exit_code == 0:
        assert outcome.problems() == []
    else:
        assert [f.code for f in done.findings if f.level >= Safety.REVIEW and f.line == line_of_backward(done)] != []


def line_of_backward(done: Conversion) -> int:
    return next(i for i, line in enumerate(done.original.splitlines(), 1) if ".backward()" in line)


_IN_ONE_BLOCK = HEAD + """
torch.manual_seed(0)
net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        sgd.zero_grad()
        F.cross_entropy(net(rows), kinds).backward()
        sgd.step()
"""


_MAIN = 'if __name__ == "__main__":\n{}'


@pytest.mark.parametrize("head", (_MAIN, f'"""Train."""\n\n{_MAIN}', "def main():\n{}\n\nmain()\n"))
def test_a_script_with_all_imports_in_one_block(head: str) -> None:
    plain = head.format(textwrap.indent(_IN_ONE_BLOCK, "    "))
    done = ddpify.convert(plain)
    (outcome,) = run_many([Case(plain, done.code)])
    assert (done.exit_code, outcome.problems(())) == (0, [])
