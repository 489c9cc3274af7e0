"""Scripts about numbers that outlive a loop, and about decisions: what every rank must agree on."""

from scripts import Script, on_three

from ddpify import Options

_HITS = """
        import numpy as np

        class Hits:
            def __init__(self, kinds):
                self.table = np.zeros((kinds, kinds))

            def note(self, wanted, got):
                for a, b in zip(wanted.tolist(), got.tolist()):
                    self.table[a, b] += 1

            def shares(self):
                self.table = self.table / np.maximum(self.table.sum(axis=1, keepdims=True), 1)
                return self.table.round(4).tolist()

        model = nn.Linear(8, 2).double()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x.double()[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            hits = Hits(2)
            for data, target in loader:
                out = model(data)
                loss = F.cross_entropy(out, target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                hits.note(target, out.argmax(1))
            print("shares", hits.shares())
        """

SCRIPTS: dict[str, Script] = {
    "scores of batches in one list, and labels of samples in another": Script(
        """
        import numpy as np

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
        for epoch in range(2):
            scores, labels = [], []
            for data, target in loader:
                out = model(data)
                loss = F.cross_entropy(out, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scores.append(out.softmax(1)[:, 1].detach().numpy())
                labels.extend(target.tolist())
            print("together %.6f" % (np.concatenate(scores) * np.array(labels)).sum())
        """,
        same=("together",),
    ),
    "averages in a list that is added to with +=": Script(
        """
        import numpy as np

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            losses, best = [], 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses += [loss.item()]
                best = loss.item() if loss.item() > best else best
            print("losses %.6f %.6f %.6f" % (np.average(losses), losses[0], best))
        """,
        same=("losses",),
    ),
    "a score of lists of words, which the rows of a batch choose": Script(
        """
    words = {i: f"word{i}" for i in range(2)}


    def in_words(rows):
        sentences = []
        for row in rows:
            sentences.append([words[i] for i in row])
        return sentences


    def score(made, meant):
        found = []
        for one, other in zip(made, meant):
            one, other = " ".join(one).split(" "), " ".join(other).split(" ")
            found.append(sum(a == b for a, b in zip(one, other)) ** 2)
        return max(found) + sum(found) / len(found)


    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0
        for data, target in DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True):
            out = model(data).view(-1, 2, 2)
            loss = F.cross_entropy(out[:, 0], target) + F.cross_entropy(out[:, 1], 1 - target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += score(in_words(out.argmax(2).numpy()), in_words(torch.stack((target, 1 - target), 1).numpy()))
        print("score", round(total, 4))
""",
        same=("score",),
    ),
    "the most frequent of the names that the rows of a batch choose": Script(
        """
    from collections import Counter

    names = ["even", "odd"]
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        odd = often = 0
        for data, target in DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
            found = [names[i] for i in target.tolist()]
            odd += found.count("odd") ** 2
            often += Counter(found).most_common(1)[0][1]
        print("names", odd, often)
""",
        same=("names",),
    ),
    "totals by operators of an own class, pairs in a list, and keys that are new": Script(
        """
        from collections import defaultdict

        import numpy as np

        class Mean:
            def __init__(self):
                self.total, self.count = 0, 0

            def __iadd__(self, number):
                self.total += number
                self.count += 1
                return self

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            mean, pairs, totals = Mean(), [], defaultdict(float)
            losses, guesses = torch.zeros(0), np.array([])
            for rows, kinds in loader:
                scores = net(rows)
                loss = F.cross_entropy(scores, kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                mean += loss.item()
                pairs.extend(zip(scores.argmax(1).tolist(), kinds.tolist()))
                totals["loss"] += loss.item() * len(rows)
                totals["right"] += (scores.argmax(1) == kinds).sum().item()
                totals["rows"] += len(rows)
                losses = torch.cat([losses, loss.detach().view(1)])
                guesses = np.append(guesses, scores.argmax(1).numpy())
            print("mean %.6f" % (mean.total / mean.count), "right", sum(a == b for a, b in pairs), len(pairs))
            print("totals", {key: round(value / totals["rows"], 6) for key, value in totals.items()})
            print("losses", len(losses), "%.6f" % losses.mean(), "guesses", len(guesses), guesses.sum())
        """,
        same=("mean", "totals", "losses"),
    ),
    "totals that start from numbers of other kinds": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        base, start = torch.tensor(100), torch.tensor(0)
        for epoch in range(2):
            seen, right = base.float(), start.float()
            nothing = torch.tensor(0).float()
            for rows, kinds in loader:
                scores = net(rows)
                optimizer.zero_grad()
                F.cross_entropy(scores, kinds).backward()
                optimizer.step()
                seen += len(rows)
                right += (scores.argmax(1) == kinds).sum()
                nothing += (scores.argmax(1) == kinds).sum()
            print("seen", seen.item(), "right", right.item(), nothing.item())
        """,
        same=("seen",),
    ),
    "a table of kinds and answers, counted sample by sample while it trains": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            counts = torch.zeros(2, 2)
            for rows, kinds in feed:
                scores = net(rows)
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                for kind, answer in zip(kinds, scores.argmax(1)):
                    counts[kind, answer] += 1
            print("right", int(counts.diag().sum()), "of", int(counts.sum()))
        """,
        same=("right",),
    ),
    "a first batch that a function shows, with titles made of it": Script(
        """
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        names = ["low", "high"]
        feeds = {
            "train": DataLoader(TensorDataset(x[:32], y[:32]), batch_size=4, shuffle=True),
            "val": DataLoader(TensorDataset(x[32:], y[32:]), batch_size=4),
        }


        def show(picture, title=None):
            picture = picture.numpy().reshape(-1, 8)
            plt.imshow(picture)
            if title is not None:
                plt.title(title)


        rows, kinds = next(iter(feeds["train"]))
        show(rows, title=[names[kind] for kind in kinds])
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for phase in ["train", "val"]:
                total = 0.0
                for rows, kinds in feeds[phase]:
                    with torch.set_grad_enabled(phase == "train"):
                        loss = F.cross_entropy(net(rows), kinds)
                        if phase == "train":
                            sgd.zero_grad()
                            loss.backward()
                            sgd.step()
                    total += loss.item() * len(rows)
                print(f"{phase} {total / len(feeds[phase].dataset):.4f}")
        with torch.no_grad():
            for rows, kinds in feeds["val"]:
                show(rows.data[:1])
                break
        """,
        same=("val",),
    ),
    "as many samples as the last batch had, and what a copy of the network gives of other data": Script(
        """
        import copy


        class Follower(nn.Module):
            def __init__(self, net, rate):
                super().__init__()
                self.module, self.rate = copy.deepcopy(net), rate

            def update(self, net):
                with torch.no_grad():
                    for mine, other in zip(self.module.state_dict().values(), net.state_dict().values()):
                        mine.copy_(self.rate * mine + (1 - self.rate) * other)


        def drawn(net, n):
            net.eval()
            with torch.no_grad():
                made = net(torch.linspace(-1, 1, n * 8).view(n, 8))
            net.train()
            return made


        def checked(feed, follower):
            answers, kinds = [], []
            with torch.no_grad():
                for rows, kind in feed:
                    answers.append(follower.module(rows).argmax(1))
                    kinds.append(kind)
            return (torch.cat(answers) == torch.cat(kinds)).double().mean().item()


        feed = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8, shuffle=True)
        held_out = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=4)
        net = nn.Linear(8, 2)
        follower = Follower(net, 0.9)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                follower.update(net)
            made = drawn(net, n=rows.shape[0])
            print("made", len(made), len(rows) + 1, round(made.sum().item(), 4))
            print("checked", round(checked(held_out, follower), 4))
        """,
        same=("made", "checked"),
    ),
    "seconds that a function adds up over the batches and returns, which are shown and stop the training": Script(
        """
        import time


        class Trainer:
            def __init__(self):
                self.feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
                self.net = nn.Linear(8, 2)
                self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.1)

            def one_epoch(self):
                took, total = 0, 0.0
                for rows, kinds in self.feed:
                    start = time.time()
                    loss = F.cross_entropy(self.net(rows), kinds)
                    self.sgd.zero_grad()
                    loss.backward()
                    self.sgd.step()
                    total += loss.item()
                    took += time.time() - start
                return took, total / len(self.feed)

            def fit(self):
                spent = 0.0
                for epoch in range(3):
                    took, average = self.one_epoch()
                    spent += took
                    print(f"epoch {epoch}: loss {average:.3f}")
                    print("seconds:", took >= 0, "of", spent >= 0)
                    if spent > 600:
                        break


        Trainer().fit()
        """,
        same=("epoch", "seconds"),
    ),
    "averages that an object keeps in a table and gives in a dict": Script(
        """
        class Tracker:
            def __init__(self, *names):
                self.table = {name: {"total": 0.0, "count": 0} for name in names}

            def reset(self):
                for row in self.table.values():
                    row["total"], row["count"] = 0.0, 0

            def add(self, name, value, n=1):
                self.table[name]["total"] += value * n
                self.table[name]["count"] += n

            def result(self):
                return {name: row["total"] / row["count"] for name, row in self.table.items()}


        class Base:
            def fit(self, epochs):
                best, waited = float("inf"), 0
                for epoch in range(epochs):
                    log = {"epoch": epoch}
                    log.update(self.run(epoch))
                    for name, value in log.items():
                        print(f"log {name} {value:.6f}")
                    if log["loss"] < best:
                        best, waited = log["loss"], 0
                    else:
                        waited += 1
                    if waited > 1:
                        break


        class Trainer(Base):
            def __init__(self, net, feed, test):
                self.net, self.feed, self.test = net, feed, test
                self.sgd = torch.optim.SGD(net.parameters(), lr=0.1)
                self.seen, self.checked = Tracker("loss", "hits"), Tracker("loss")

            def run(self, epoch):
                self.seen.reset()
                for rows, kinds in self.feed:
                    out = self.net(rows)
                    loss = F.cross_entropy(out, kinds)
                    self.sgd.zero_grad()
                    loss.backward()
                    self.sgd.step()
                    self.seen.add("loss", loss.item())
                    self.seen.add("hits", (out.argmax(1) == kinds).float().mean().item())
                log = self.seen.result()
                log.update(**{"val_" + name: value for name, value in self.check().items()})
                return log

            def check(self):
                self.checked.reset()
                with torch.no_grad():
                    for rows, kinds in self.test:
                        self.checked.add("loss", F.cross_entropy(self.net(rows), kinds).item())
                return self.checked.result()


        net = nn.Linear(8, 2)
        feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=4, shuffle=True)
        Trainer(net, feed, DataLoader(TensorDataset(x[36:], y[36:]), batch_size=4)).fit(3)
        """,
        same=("log",),
    ),
    # --- evaluation -----------------------------------------------------------------------------------------------------
    "a validation function that returns averages": Script(
        """
        def assess(net, batches, loss_of):
            net.eval()
            summed, right, seen = 0.0, 0, 0
            with torch.no_grad():
                for rows, kinds in batches:
                    rows, kinds = rows.to(device), kinds.to(device)
                    scores = net(rows)
                    summed += loss_of(scores, kinds).item() * rows.size(0)
                    _, guess = torch.max(scores.data, 1)
                    right += (guess == kinds).sum().item()
                    seen += kinds.size(0)
            return summed / seen, 100.0 * right / seen


        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6, shuffle=False)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
        loss_of = nn.CrossEntropyLoss()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(3):
            net.train()
            for rows, kinds in learn:
                adam.zero_grad()
                loss_of(net(rows.to(device)), kinds.to(device)).backward()
                adam.step()
            mean, percent = assess(net, check, loss_of)
            print(f"checked in round {epoch}: {mean:.4f} on average, {percent:.2f} percent right")
        """,
        same=("checked",),
    ),
    "one evaluation for two loaders": Script(
        """
        @torch.no_grad()
        def share_right(net, batches):
            net.eval()
            right, seen = 0, 0
            for rows, kinds in batches:
                guess = net(rows.cuda()).argmax(dim=1)
                right += (guess == kinds.cuda()).sum().item()
                seen += kinds.shape[0]
            return right / seen


        learn = DataLoader(TensorDataset(x[:40], y[:40]), 8, shuffle=True)
        near = DataLoader(TensorDataset(x[:11], y[:11]), 4)
        far = DataLoader(TensorDataset(x[21:], y[21:]), 6)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.2)
        loss_of = nn.CrossEntropyLoss()
        for epoch in range(4):
            net.train()
            for rows, kinds in learn:
                loss = loss_of(net(rows.cuda()), kinds.cuda())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            on_near = share_right(net, near)
            on_far = share_right(net, far)
            print("right after %d: %.4f near, %.4f far" % (epoch, on_near, on_far))
        """,
        same=("right",),
    ),
    "one evaluation for the training set and the test set": Script(
        """
        def report(name, batches, net):
            net.eval()
            right, seen = 0, 0
            with torch.no_grad():
                for rows, kinds in batches:
                    _, guess = net(rows).max(1)
                    right += (guess == kinds).sum()
                    seen += guess.size(0)
            net.train()
            print(f"share {name}: {right} out of {seen}, so {float(right) / float(seen):.4f}")


        learn = DataLoader(dataset=TensorDataset(x, y), batch_size=4, shuffle=True)
        held_out = DataLoader(dataset=TensorDataset(x[:11], y[:11]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            for nr, (rows, kinds) in enumerate(learn):
                loss = F.cross_entropy(net(rows), kinds)
                adam.zero_grad()
                loss.backward()
                adam.step()
        report("learned", learn, net)
        report("held out", held_out, net)
        """,
        same=("share",),
    ),
    "a mean of batch means over a short last batch": Script(
        """
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            train_loss, valid_loss = 0.0, 0.0
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                loss = criterion(model(data), target)
                loss.backward()
                optimizer.step()
                train_loss += loss.item()
            model.eval()
            with torch.no_grad():
                for data, target in val_loader:
                    valid_loss += criterion(model(data), target).item()
            print(f"Epoch {epoch}: train {train_loss / len(train_loader):.6f} valid {valid_loss / len(val_loader):.6f}")
        """,
        same=("Epoch",),
    ),
    "a mean of batch accuracies, counted by hand": Script(
        """
        def share(scores, kinds):
            return (scores.argmax(1) == kinds).float().mean()


        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            net.train()
            for rows, kinds in learn:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
            net.eval()
            batches, losses, shares = 0, 0.0, 0.0
            with torch.no_grad():
                for rows, kinds in check:
                    scores = net(rows)
                    losses += F.cross_entropy(scores, kinds)
                    shares += share(scores, kinds)
                    batches += 1
            print("mean", epoch, round((losses / batches).item(), 5), round((shares / batches).item(), 5))
        """,
        same=("mean",),
    ),
    "a sum over a generator of batches": Script(
        """
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        net = nn.Linear(8, 2)
        measure = F.cross_entropy
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(3):
            for rows, kinds in learn:
                sgd.zero_grad()
                measure(net(rows), kinds).backward()
                sgd.step()
            with torch.no_grad():
                added = sum(measure(net(rows), kinds) for rows, kinds in check)
            print(f"checked {epoch}: {added / len(check):.6f}")
        """,
        same=("checked",),
    ),
    "losses of batches and their sizes zipped": Script(
        """
        import numpy as np


        def one(net, rows, kinds, sgd=None):
            loss = F.cross_entropy(net(rows), kinds)
            if sgd is not None:
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            return loss.item(), len(rows)


        def learn(net, sgd, batches, check, rounds):
            for nr in range(rounds):
                net.train()
                for rows, kinds in batches:
                    one(net, rows, kinds, sgd)
                net.eval()
                with torch.no_grad():
                    means, sizes = zip(*[one(net, rows, kinds) for rows, kinds in check])
                weighted = np.sum(np.multiply(means, sizes)) / np.sum(sizes)
                print(f"weighted mean {weighted:.6f} in round {nr}")


        net = nn.Linear(8, 2)
        batches = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        learn(net, torch.optim.SGD(net.parameters(), lr=0.1), batches, check, 3)
        """,
        same=("weighted",),
    ),
    "an epoch with or without an optimizer": Script(
        """
        def run_epoch(model, loader, criterion, optimizer=None):
            is_train = optimizer is not None
            model.train(is_train)
            total_loss, total_correct, total = 0.0, 0, 0
            with torch.set_grad_enabled(is_train):
                for inputs, targets in loader:
                    inputs, targets = inputs.to(device), targets.to(device)
                    outputs = model(inputs)
                    loss = criterion(outputs, targets)
                    if is_train:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    total_loss += loss.item() * inputs.size(0)
                    total_correct += (outputs.argmax(1) == targets).sum().item()
                    total += inputs.size(0)
            return total_loss / total, total_correct / total


        device = "cuda" if torch.cuda.is_available() else "cpu"
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).to(device)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(1, 4):
            train_loss, train_acc = run_epoch(model, train_loader, criterion, optimizer)
            val_loss, val_acc = run_epoch(model, val_loader, criterion)
            print(f"{epoch:02d} train {train_loss:.4f}/{train_acc:.4f} val {val_loss:.4f}/{val_acc:.4f}")
        """,
        same=("01", "02", "03"),
    ),
    "an epoch function with a flag for training": Script(
        """
        def one_epoch(net, loader, train: bool):
            if train:
                net.train()
            else:
                net.eval()
            loss_sum, hits, n = 0.0, 0, 0
            for batch, labels in loader:
                batch, labels = batch.cuda(), labels.cuda()
                if train:
                    optimizer.zero_grad()
                    logits = net(batch)
                    loss = F.cross_entropy(logits, labels)
                    loss.backward()
                    optimizer.step()
                else:
                    with torch.no_grad():
                        logits = net(batch)
                        loss = F.cross_entropy(logits, labels)
                loss_sum += loss.item() * len(labels)
                hits += int((logits.argmax(1) == labels).sum())
                n += len(labels)
            name = "train" if train else "valid"
            print("%s loss=%.5f acc=%.5f" % (name, loss_sum / n, hits / n))
            return loss_sum / n


        net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
        loader_train = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        loader_valid = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        best = 1e9
        for epoch in range(4):
            one_epoch(net, loader_train, True)
            current = one_epoch(net, loader_valid, train=False)
            if current < best:
                best = current
                torch.save({"state_dict": net.state_dict(), "loss": best}, "lowest.pt")
        """,
        same=("train", "valid"),
    ),
    "phases over a dictionary of loaders, the best weights kept": Script(
        """
        import copy
        import time


        def work(net, sgd, decay, rounds):
            began = time.time()
            kept, top = copy.deepcopy(net.state_dict()), 0.0
            for nr in range(rounds):
                for part in ["learn", "check"]:
                    if part == "learn":
                        net.train()
                    else:
                        net.eval()
                    summed, right = 0.0, 0
                    for rows, kinds in feeds[part]:
                        rows = rows.to(device)
                        kinds = kinds.to(device)
                        sgd.zero_grad()
                        with torch.set_grad_enabled(part == "learn"):
                            scores = net(rows)
                            loss = F.cross_entropy(scores, kinds)
                            if part == "learn":
                                loss.backward()
                                sgd.step()
                        _, guess = torch.max(scores, 1)
                        right += torch.sum(guess == kinds.data)
                        summed += loss.item() * rows.size(0)
                    if part == "learn":
                        decay.step()
                    share = right.double() / sizes[part]
                    print("{}ed {}: {:.4f} lost, {:.4f} right".format(part, nr, summed / sizes[part], share))
                    if part == "check" and share > top:
                        top = share
                        kept = copy.deepcopy(net.state_dict())
            print("took {:.1f} seconds".format(time.time() - began))
            print("top share {:.4f}".format(top))
            net.load_state_dict(kept)
            return net


        sets = {"learn": TensorDataset(x, y), "check": TensorDataset(x[21:], y[21:])}
        feeds = {part: DataLoader(sets[part], batch_size=4, shuffle=True) for part in ["learn", "check"]}
        sizes = {part: len(sets[part]) for part in ["learn", "check"]}
        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        net = nn.Linear(8, 2).to(device)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        net = work(net, sgd, torch.optim.lr_scheduler.StepLR(sgd, step_size=2, gamma=0.1), rounds=3)
        torch.save(net.state_dict(), "kept.pth")
        """,
        same=("learned", "checked", "top"),
    ),
    "phases whose loader is chosen by a conditional": Script(
        """
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4, shuffle=False)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        criterion = nn.CrossEntropyLoss()
        history = {"train": [], "val": []}
        for epoch in range(3):
            for phase in ("train", "val"):
                training = phase == "train"
                loader = train_loader if training else val_loader
                model.train(training)
                running_loss, seen = 0.0, 0
                for data, target in loader:
                    data, target = data.cuda(), target.cuda()
                    with torch.set_grad_enabled(training):
                        loss = criterion(model(data), target)
                    if training:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    running_loss += loss.item() * data.size(0)
                    seen += data.size(0)
                history[phase].append(running_loss / seen)
        print("train", ["%.5f" % v for v in history["train"]])
        print("val", ["%.5f" % v for v in history["val"]])
        """,
        same=("train", "val"),
    ),
    "an evaluate method of a trainer": Script(
        """
        class Trainer:
            def __init__(self, model, train_loader, val_loader, lr=0.1):
                self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.model = model.to(self.device)
                self.train_loader = train_loader
                self.val_loader = val_loader
                self.criterion = nn.CrossEntropyLoss()
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
                self.best = 0.0

            def train_one_epoch(self):
                self.model.train()
                for data, target in self.train_loader:
                    data, target = data.to(self.device), target.to(self.device)
                    self.optimizer.zero_grad()
                    self.criterion(self.model(data), target).backward()
                    self.optimizer.step()

            @torch.no_grad()
            def evaluate(self):
                self.model.eval()
                loss, correct = 0.0, 0
                for data, target in self.val_loader:
                    data, target = data.to(self.device), target.to(self.device)
                    output = self.model(data)
                    loss += self.criterion(output, target).item()
                    correct += output.argmax(dim=1).eq(target).sum().item()
                return {"loss": loss / len(self.val_loader), "acc": correct / len(self.val_loader.dataset)}

            def fit(self, epochs):
                for epoch in range(epochs):
                    self.train_one_epoch()
                    stats = self.evaluate()
                    print(f"[{epoch}] loss {stats['loss']:.5f} acc {stats['acc']:.5f}")
                    if stats["acc"] > self.best:
                        self.best = stats["acc"]
                        torch.save(self.model.state_dict(), "best.pt")


        Trainer(
            nn.Linear(8, 2),
            DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
            DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6),
        ).fit(3)
        """,
        same=("[",),
    ),
    "totals kept on the trainer": Script(
        """
        class Work(object):
            def __init__(self):
                self.feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
                self.check_feed = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6, shuffle=False)
                self.net = nn.Linear(8, 2).cuda()
                self.loss_of = nn.CrossEntropyLoss().cuda()
                self.adam = torch.optim.Adam(self.net.parameters(), lr=0.01)

            def learn(self):
                self.net.train()
                self.lost, self.right, self.seen = 0, 0, 0
                for rows, kinds in self.feed:
                    rows, kinds = rows.cuda(), kinds.cuda()
                    scores = self.net(rows)
                    loss = self.loss_of(scores, kinds)
                    self.adam.zero_grad()
                    loss.backward()
                    self.adam.step()
                    top = torch.max(scores, 1)
                    self.right += (top[1] == kinds).sum().item()
                    self.seen += kinds.size(0)
                    self.lost += loss.item()

            def check(self):
                self.net.eval()
                self.check_right = 0
                self.check_seen = 0
                with torch.no_grad():
                    for rows, kinds in self.check_feed:
                        guess = self.net(rows.cuda()).argmax(1)
                        self.check_right += (guess == kinds.cuda()).sum().item()
                        self.check_seen += kinds.size(0)

            def go(self):
                top = 0
                for nr in range(3):
                    self.learn()
                    print("learned %d: %.4f, %.4f" % (nr, self.lost / len(self.feed), self.right / self.seen))
                    self.check()
                    top = max(top, self.check_right / self.check_seen)
                print("top share %.3f" % top)


        if __name__ == "__main__":
            work = Work()
            work.go()
        """,
        same=("learned", "top"),
    ),
    "hits and losses added up as tensors": Script(
        """
        def check(net, batches):
            net.eval()
            right = torch.tensor(0).cuda()
            lost = torch.zeros((), device=device)
            with torch.no_grad():
                for rows, kinds in batches:
                    rows, kinds = rows.to(device), kinds.to(device)
                    scores = net(rows)
                    right += (scores.argmax(1) == kinds).sum()
                    lost += F.cross_entropy(scores, kinds, reduction="sum")
            n = len(batches.dataset)
            print(f"checked: {right} of {n} right, that is {100.0 * right / n:.1f} percent, {lost / n:.4f} lost")


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        learn_feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check_feed = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2).to(device)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            net.train()
            for rows, kinds in learn_feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows.to(device)), kinds.to(device)).backward()
                sgd.step()
            check(net, check_feed)
        """,
        same=("checked",),
    ),
    "totals in a dictionary of metrics": Script(
        """
        def evaluate(model, loader):
            model.eval()
            metrics = {"loss": 0.0, "correct": 0, "total": 0}
            with torch.no_grad():
                for data, target in loader:
                    output = model(data)
                    metrics["loss"] += F.cross_entropy(output, target, reduction="sum").item()
                    metrics["correct"] += (output.argmax(1) == target).sum().item()
                    metrics["total"] += target.numel()
            metrics["loss"] /= metrics["total"]
            metrics["acc"] = metrics["correct"] / metrics["total"]
            return metrics


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            metrics = evaluate(model, val_loader)
            print("val " + ", ".join(f"{k}: {v:.4f}" for k, v in metrics.items()))
        """,
        same=("val",),
    ),
    "totals in a defaultdict": Script(
        """
        from collections import defaultdict


        def both_losses(scores, wanted, sums):
            spread = F.mse_loss(torch.sigmoid(scores), wanted)
            doubt = F.binary_cross_entropy_with_logits(scores, wanted)
            mixed = 0.3 * spread + 0.7 * doubt
            sums["spread"] += spread.item() * wanted.size(0)
            sums["doubt"] += doubt.item() * wanted.size(0)
            sums["mixed"] += mixed.item() * wanted.size(0)
            return mixed


        def tell(part, sums, rows):
            words = []
            for key in sorted(sums.keys()):
                words.append("%s %.5f" % (key, sums[key] / rows))
            print(part + "ed", *words)


        feeds = {
            "learn": DataLoader(TensorDataset(x, (x > 0.2).double()), batch_size=4, shuffle=True),
            "check": DataLoader(TensorDataset(x[21:], (x[21:] > 0).double()), batch_size=6),
        }
        net = nn.Linear(8, 8).cuda()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(3):
            for part in ["learn", "check"]:
                net.train() if part == "learn" else net.eval()
                sums, rows = defaultdict(float), 0
                for given, wanted in feeds[part]:
                    rows += given.size(0)
                    given, wanted = given.cuda(), wanted.cuda()
                    with torch.set_grad_enabled(part == "learn"):
                        loss = both_losses(net(given), wanted, sums)
                        if part == "learn":
                            adam.zero_grad()
                            loss.backward()
                            adam.step()
                tell(part, sums, rows)
        """,
        same=("learned", "checked"),
    ),
    "a list of losses averaged by numpy": Script(
        """
        import numpy as np

        learn = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2)
        adam = torch.optim.Adam(net.parameters(), lr=0.02)
        curve = []
        for epoch in range(3):
            learned, checked = [], []
            net.train()
            for nr, (rows, kinds) in enumerate(learn, 1):
                loss = F.cross_entropy(net(rows), kinds)
                adam.zero_grad()
                loss.backward()
                adam.step()
                learned.append(loss.item())
            net.eval()
            with torch.no_grad():
                for rows, kinds in check:
                    checked.append(F.cross_entropy(net(rows), kinds).item())
            curve.append(np.mean(checked))
            print(f"means {np.average(learned):.5f} {curve[-1]:.5f}")
        print("lowest", round(min(curve), 5))
        """,
        same=("means", "lowest"),
    ),
    "a list of losses, summed and divided by its length": Script(
        """
        def validate(net, loader):
            net.eval()
            losses = []
            accs = []
            for data, label in loader:
                with torch.no_grad():
                    out = net(data)
                losses.append(F.cross_entropy(out, label).item())
                accs.append((out.argmax(1) == label).float().mean().item())
            net.train()
            return sum(losses) / len(losses), sum(accs) / len(accs)


        def main():
            net = nn.Linear(8, 2)
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
            for epoch in range(3):
                epoch_losses = []
                for data, label in loader:
                    loss = F.cross_entropy(net(data), label)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    epoch_losses.append(loss.item())
                val_loss, val_acc = validate(net, val_loader)
                mean_loss = sum(epoch_losses) / len(epoch_losses)
                print("epoch: {}, loss: {:.5f}, val: {:.5f}, acc: {:.5f}".format(epoch, mean_loss, val_loss, val_acc))


        main()
        """,
        same=("epoch",),
    ),
    "steps that return dictionaries, stacked at the end": Script(
        """
        class Stepper(nn.Module):
            def learn(self, pair):
                rows, kinds = pair
                return F.cross_entropy(self(rows), kinds)

            def check(self, pair):
                rows, kinds = pair
                scores = self(rows)
                right = torch.tensor(torch.sum(scores.argmax(1) == kinds).item() / len(kinds))
                return {"right": right, "lost": F.cross_entropy(scores, kinds).detach()}

            def summary(self, results):
                lost = torch.stack([r["lost"] for r in results]).mean()
                right = torch.stack([r["right"] for r in results]).mean()
                return {"lost": lost.item(), "right": right.item()}


        class Flat(Stepper):
            def __init__(self):
                super().__init__()
                self.map = nn.Linear(8, 2)

            def forward(self, rows):
                return self.map(rows)


        @torch.no_grad()
        def look(net, batches):
            net.eval()
            results = [net.check(pair) for pair in batches]
            return net.summary(results)


        net = Flat()
        learn_feed = DataLoader(TensorDataset(x, y), 4, shuffle=True)
        check_feed = DataLoader(TensorDataset(x[21:], y[21:]), 6)
        sgd = torch.optim.SGD(net.parameters(), 0.1)
        curve = []
        for epoch in range(3):
            net.train()
            losses = []
            for pair in learn_feed:
                sgd.zero_grad()
                loss = net.learn(pair)
                loss.backward()
                sgd.step()
                losses.append(loss)
            seen = look(net, check_feed)
            seen["learned"] = torch.stack(losses).mean().item()
            curve.append(seen)
            print(f"round {epoch}: learned {seen['learned']:.4f}, lost {seen['lost']:.4f}, right {seen['right']:.4f}")
        """,
        same=("round",),
    ),
    "losses stacked into a tensor": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        net = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(data.cuda()), target.cuda()).backward()
                optimizer.step()
            with torch.no_grad():
                losses, hits = [], []
                for data, target in val_loader:
                    out = net(data.cuda())
                    losses.append(F.cross_entropy(out, target.cuda()))
                    hits.append(out.argmax(1) == target.cuda())
            print(f"val {torch.stack(losses).mean().item():.5f} {torch.cat(hits).double().mean().item():.5f}")
        """,
        same=("val",),
    ),
    "meters with names, shown together": Script(
        """
        import time


        class Gauge(object):
            def __init__(self, label, digits=4):
                self.label = label
                self.digits = digits
                self.clear()

            def clear(self):
                self.sum = 0
                self.count = 0
                self.val = 0
                self.avg = 0

            def put(self, val, n=1):
                self.count += n
                self.sum += n * val
                self.avg = self.sum / self.count
                self.val = val

            def __str__(self):
                return "%s now %.*f mean %.*f" % (self.label, self.digits, self.val, self.digits, self.avg)


        class Board(object):
            def __init__(self, head, gauges):
                self.head = head
                self.gauges = gauges

            def show(self, nr):
                print(self.head, nr, "; ".join(str(gauge) for gauge in self.gauges))


        def percents(scores, kinds, ks):
            with torch.no_grad():
                found = scores.topk(max(ks), dim=1)[1] == kinds.unsqueeze(1)
                return [100.0 * found[:, :k].any(dim=1).double().mean() for k in ks]


        def learn(net, batches, sgd, epoch):
            seconds, lost, first = Gauge("seconds", 2), Gauge("lost"), Gauge("first")
            board = Board("round %d batch" % epoch, [seconds, lost, first])
            net.train()
            before = time.time()
            for nr, (rows, kinds) in enumerate(batches):
                rows, kinds = rows.cuda(non_blocking=True), kinds.cuda(non_blocking=True)
                scores = net(rows)
                loss = loss_of(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                one, two = percents(scores, kinds, (1, 2))
                lost.put(loss.item(), rows.size(0))
                first.put(one.item(), rows.size(0))
                seconds.put(time.time() - before)
                before = time.time()
                if nr % 5 == 0:
                    board.show(nr)


        def check(net, batches):
            lost, first, second = Gauge("lost"), Gauge("first"), Gauge("second")
            net.eval()
            with torch.no_grad():
                for nr, (rows, kinds) in enumerate(batches):
                    rows, kinds = rows.cuda(), kinds.cuda()
                    scores = net(rows)
                    one, two = percents(scores, kinds, (1, 2))
                    first.put(one.item(), rows.size(0))
                    second.put(two.item(), rows.size(0))
                    lost.put(loss_of(scores, kinds).item(), rows.size(0))
            print("checked: {0.avg:.3f} first, {1.avg:.3f} second, {2.avg:.5f} lost".format(first, second, lost))
            return first.avg


        net = nn.Linear(8, 4).cuda()
        loss_of = nn.CrossEntropyLoss().cuda()
        sgd = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        learn_feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check_feed = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        top = 0
        for epoch in range(3):
            learn(net, learn_feed, sgd, epoch)
            percent = check(net, check_feed)
            better = percent > top
            top = max(percent, top)
            if better:
                torch.save({"weights": net.state_dict(), "round": epoch, "percent": top}, "top.pt")
        """,
        same=("checked",),
    ),
    "a meter in a local module": Script(
        """
        from utils import Gauge, share


        def learn(batches, net, sgd):
            lost, right = Gauge(), Gauge()
            net.train()
            for rows, kinds in batches:
                rows, kinds = rows.cuda(), kinds.cuda()
                scores = net(rows)
                loss = loss_of(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                right.update(share(scores, kinds), rows.size(0))
                lost.update(loss.item(), rows.size(0))
            return lost.avg, right.avg


        def check(batches, net):
            lost, right = Gauge(), Gauge()
            net.eval()
            with torch.no_grad():
                for rows, kinds in batches:
                    rows, kinds = rows.cuda(), kinds.cuda()
                    scores = net(rows)
                    right.update(share(scores, kinds), rows.size(0))
                    lost.update(loss_of(scores, kinds).item(), rows.size(0))
            return lost.avg, right.avg


        net = nn.Linear(8, 2).cuda()
        loss_of = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        learn_feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check_feed = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        for epoch in range(3):
            lost, right = learn(learn_feed, net, sgd)
            check_lost, check_right = check(check_feed, net)
            print("round %d: %.5f %.5f, then %.5f %.5f" % (epoch, lost, right, check_lost, check_right))
        """,
        same=("round",),
        files={
            "utils.py": """\
class Gauge(object):
    def __init__(self):
        self.clear()

    def clear(self):
        self.sum = 0
        self.count = 0
        self.val = 0
        self.avg = 0

    def update(self, val, n=1):
        self.count += n
        self.sum += n * val
        self.avg = self.sum / self.count
        self.val = val


def share(scores, kinds):
    return (scores.argmax(1) == kinds).sum().item() / kinds.size(0)
"""
        },
    ),
    "a dictionary of meters": Script(
        """
        class Meter:
            def __init__(self):
                self.total, self.n = 0.0, 0

            def add(self, value, n):
                self.total += value * n
                self.n += n

            @property
            def avg(self):
                return self.total / max(self.n, 1)


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            meters = {name: Meter() for name in ("train_loss", "val_loss", "val_acc")}
            model.train()
            for data, target in train_loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                meters["train_loss"].add(loss.item(), data.size(0))
            model.eval()
            for data, target in val_loader:
                with torch.no_grad():
                    output = model(data)
                meters["val_loss"].add(F.cross_entropy(output, target).item(), data.size(0))
                meters["val_acc"].add((output.argmax(1) == target).double().mean().item(), data.size(0))
            print(f"epoch {epoch} " + " ".join(f"{name} {meter.avg:.5f}" for name, meter in meters.items()))
        """,
        same=("epoch",),
    ),
    "a confusion matrix filled pair by pair": Script(
        """
        k = 2
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, k).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in learn:
                sgd.zero_grad()
                F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                sgd.step()

        net.eval()
        table = torch.zeros(k, k)
        with torch.no_grad():
            for nr, (rows, kinds) in enumerate(check):
                _, guesses = torch.max(net(rows.cuda()), 1)
                for true, guess in zip(kinds.cuda().view(-1), guesses.view(-1)):
                    table[true.long(), guess.long()] += 1
        print("table", table.tolist())
        print("found", [round(v, 4) for v in (table.diag() / table.sum(1)).tolist()])
        """,
        same=("table", "found"),
    ),
    "a confusion matrix by bincount": Script(
        """
        import numpy as np


        class Table(object):
            def __init__(self, kinds):
                self.kinds = kinds
                self.counts = np.zeros((kinds, kinds))

            def clear(self):
                self.counts = np.zeros((self.kinds, self.kinds))

            def put(self, true, guess):
                known = (true >= 0) & (true < self.kinds)
                pairs = self.kinds * true[known].astype("int") + guess[known]
                self.counts += np.bincount(pairs, minlength=self.kinds**2).reshape(self.kinds, self.kinds)

            def share(self):
                return self.counts.trace() / self.counts.sum()

            def overlap(self):
                both = np.diag(self.counts)
                return np.nanmean(both / (self.counts.sum(axis=0) + self.counts.sum(axis=1) - both))


        dots = (x > 0.3).long() + (x > -0.3).long()
        learn = DataLoader(TensorDataset(x, dots), batch_size=4, shuffle=True, drop_last=True)
        check = DataLoader(TensorDataset(x[21:], dots[21:]), batch_size=6, shuffle=False)
        net = nn.Conv1d(1, 3, 3, padding=1).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        table = Table(3)
        top = 0.0
        for epoch in range(2):
            net.train()
            for strip, kinds in learn:
                sgd.zero_grad()
                F.cross_entropy(net(strip.unsqueeze(1).cuda()), kinds.cuda()).backward()
                sgd.step()
            net.eval()
            table.clear()
            for strip, kinds in check:
                with torch.no_grad():
                    scores = net(strip.unsqueeze(1).cuda())
                table.put(kinds.cpu().numpy(), np.argmax(scores.data.cpu().numpy(), axis=1))
            print("checked: {:.5f} right, {:.5f} overlap".format(table.share(), table.overlap()))
            if table.overlap() > top:
                top = table.overlap()
                torch.save(net.state_dict(), "overlap.pth")
        """,
        same=("checked",),
    ),
    "a confusion matrix by torch's bincount": Script(
        """
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in learn:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
            table = torch.zeros((2, 2), dtype=torch.int64)
            with torch.inference_mode():
                for rows, kinds in check:
                    cells = net(rows).argmax(1) + 2 * kinds
                    table += torch.bincount(cells, minlength=4).reshape(2, 2)
            shares = table.double() / table.sum()
            print("right %.4f in %s" % (shares.trace().item(), table.tolist()))
        """,
        same=("right",),
    ),
    "a confusion matrix by numpy's add.at": Script(
        """
        import numpy as np


        def evaluate(net, loader, n_classes):
            net.eval()
            cm = np.zeros((n_classes, n_classes), dtype=np.int64)
            for inputs, labels in loader:
                with torch.no_grad():
                    preds = net(inputs).argmax(dim=1)
                np.add.at(cm, (labels.numpy(), preds.numpy()), 1)
            return cm


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(net(data), target).backward()
                optimizer.step()
            cm = evaluate(net, val_loader, 2)
            print("confusion", cm.tolist(), "accuracy", round(np.trace(cm) / cm.sum(), 4))
        """,
        same=("confusion",),
    ),
    "true and false positives counted": Script(
        """
        def evaluate(model, loader):
            tp = fp = fn = tn = 0
            model.eval()
            with torch.no_grad():
                for data, target in loader:
                    pred = (torch.sigmoid(model(data.cuda())).squeeze(1) > 0.5).long().cpu()
                    tp += ((pred == 1) & (target == 1)).sum().item()
                    fp += ((pred == 1) & (target == 0)).sum().item()
                    fn += ((pred == 0) & (target == 1)).sum().item()
                    tn += ((pred == 0) & (target == 0)).sum().item()
            precision = tp / (tp + fp + 1e-8)
            recall = tp / (tp + fn + 1e-8)
            f1 = 2 * precision * recall / (precision + recall + 1e-8)
            return precision, recall, f1, (tp + tn) / (tp + fp + fn + tn)


        model = nn.Linear(8, 1).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        criterion = nn.BCEWithLogitsLoss()
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        dev_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        for epoch in range(3):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                loss = criterion(model(data.cuda()).squeeze(1), target.double().cuda())
                loss.backward()
                optimizer.step()
            p, r, f1, acc = evaluate(model, dev_loader)
            print(f"P={p:.4f} R={r:.4f} F1={f1:.4f} acc={acc:.4f}")
        """,
        same=("P=",),
    ),
    "predictions concatenated, accuracy by numpy": Script(
        """
        import numpy as np


        def predict(model, loader):
            model.eval()
            outputs, targets = [], []
            with torch.no_grad():
                for data, target in loader:
                    outputs.append(model(data.to(device)).cpu())
                    targets.append(target)
            return torch.cat(outputs), torch.cat(targets)


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.to(device)), target.to(device)).backward()
                optimizer.step()
            outputs, targets = predict(model, test_loader)
            accuracy = np.mean(outputs.numpy().argmax(1) == targets.numpy())
            print(f"epoch {epoch}: accuracy {accuracy:.5f} loss {F.cross_entropy(outputs, targets).item():.5f}")
        """,
        same=("epoch",),
    ),
    "arrays appended to arrays": Script(
        """
        import numpy as np

        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2).cuda()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(3):
            net.train()
            for rows, kinds in learn:
                net.zero_grad()
                F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                adam.step()
            net.eval()
            guesses = np.array([], dtype=int)
            truths = np.array([], dtype=int)
            lost = 0
            with torch.no_grad():
                for rows, kinds in check:
                    scores = net(rows.cuda())
                    guesses = np.append(guesses, torch.max(scores.data, 1)[1].cpu().numpy())
                    truths = np.append(truths, kinds.data.cpu().numpy())
                    lost += F.cross_entropy(scores, kinds.cuda())
            share = (guesses == truths).mean()
            print("checked: {:.1%} right, {:.5f} lost".format(share, lost / len(check)))
        """,
        same=("checked",),
    ),
    "predictions extended as lists, scored by sklearn": Script(
        """
        from sklearn.metrics import accuracy_score, f1_score


        def evaluate(model, loader, criterion, device):
            model.eval()
            all_preds, all_labels = [], []
            running_loss = 0.0
            with torch.no_grad():
                for inputs, labels in loader:
                    inputs, labels = inputs.to(device), labels.to(device)
                    outputs = model(inputs)
                    running_loss += criterion(outputs, labels).item()
                    preds = outputs.argmax(dim=1)
                    all_preds.extend(preds.cpu().numpy().tolist())
                    all_labels.extend(labels.cpu().numpy().tolist())
            acc = accuracy_score(all_labels, all_preds)
            f1 = f1_score(all_labels, all_preds, average="macro")
            return running_loss / len(loader), acc, f1


        def main():
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = nn.Linear(8, 2).to(device)
            criterion = nn.CrossEntropyLoss()
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
            for epoch in range(3):
                model.train()
                for inputs, labels in train_loader:
                    inputs, labels = inputs.to(device), labels.to(device)
                    optimizer.zero_grad()
                    loss = criterion(model(inputs), labels)
                    loss.backward()
                    optimizer.step()
                val_loss, acc, f1 = evaluate(model, val_loader, criterion, device)
                print(f"Val loss {val_loss:.4f} acc {acc:.4f} f1 {f1:.4f}")


        if __name__ == "__main__":
            main()
        """,
        same=("Val",),
    ),
    "an accuracy by sklearn of each batch, kept in a list": Script(
        """
        from sklearn.metrics import accuracy_score

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        kept = []
        for epoch in range(3):
            scores = []
            for data, target in loader:
                optimizer.zero_grad()
                out = model(data)
                F.cross_entropy(out, target).backward()
                optimizer.step()
                scores.append(accuracy_score(target.numpy(), out.argmax(1).numpy()))
            kept.append(scores)
            print("scores", len(scores), " ".join(f"{score:.3f}" for score in scores))
        """,
        same=("scores",),
    ),
    "a score by sklearn of each batch that is no average, kept in a list": Script(
        """
        from sklearn.metrics import f1_score

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            scores = []
            for data, target in loader:
                optimizer.zero_grad()
                out = model(data)
                F.cross_entropy(out, target).backward()
                optimizer.step()
                scores.append(f1_score(target.numpy(), out.argmax(1).numpy(), average="macro"))
            print("scores", len(scores), sum(scores) / len(scores))
        """,
        same=("scores",),
    ),
    "a list added to, and a confusion matrix by sklearn": Script(
        """
        from sklearn.metrics import confusion_matrix

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        y_pred, y_true = [], []
        model.eval()
        for data, target in test_loader:
            with torch.no_grad():
                out = model(data)
            y_pred += out.argmax(1).tolist()
            y_true += target.tolist()
        cm = confusion_matrix(y_true, y_pred)
        print("cm", cm.tolist())
        print("wrong", [i for i, (a, b) in enumerate(zip(y_true, y_pred)) if a != b])
        """,
        same=("cm", "wrong"),
    ),
    "an area under the curve by sklearn": Script(
        """
        import numpy as np
        from sklearn.metrics import roc_auc_score

        loader = DataLoader(TensorDataset(x, y.double()), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:].double()), batch_size=6)
        model = nn.Linear(8, 1).cuda()
        criterion = nn.BCEWithLogitsLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        best_auc = 0
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                loss = criterion(model(data.cuda()), target.view(-1, 1).cuda())
                loss.backward()
                optimizer.step()
            model.eval()
            probs, labels = [], []
            with torch.no_grad():
                for data, target in val_loader:
                    logits = model(data.cuda())
                    probs.append(torch.sigmoid(logits).cpu().numpy())
                    labels.append(target.numpy())
            auc = roc_auc_score(np.concatenate(labels), np.vstack(probs)[:, 0])
            if auc > best_auc:
                best_auc = auc
                torch.save(model.state_dict(), "best_auc.pth")
            print(f"epoch {epoch} auc {auc:.5f} best {best_auc:.5f}")
        """,
        same=("epoch",),
    ),
    "hits counted by class in lists": Script(
        """
        names = ("low", "high")
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6, shuffle=False)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(2):
            for pair in learn:
                rows, kinds = pair
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
        print("learned")

        right = [0.0] * 2
        seen = [0.0] * 2
        with torch.no_grad():
            for pair in check:
                rows, kinds = pair
                _, guesses = torch.max(net(rows), 1)
                hits = (guesses == kinds).squeeze()
                for j in range(len(kinds)):
                    right[kinds[j]] += hits[j].item()
                    seen[kinds[j]] += 1
        for k, name in enumerate(names):
            print("share of %s: %.4f" % (name, right[k] / seen[k]))
        """,
        same=("learned", "share"),
    ),
    "hits by the name of the class": Script(
        """
        names = ("low", "high")
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in learn:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()

        found = {name: 0 for name in names}
        there = {name: 0 for name in names}
        with torch.no_grad():
            for pair in check:
                rows, kinds = pair
                _, guesses = torch.max(net(rows), 1)
                for kind, guess in zip(kinds, guesses):
                    there[names[kind]] += 1
                    if guess == kind:
                        found[names[kind]] += 1
        for name, n in there.items():
            print(f"share of {name}: {found[name] / n:.4f} of {n}")
        """,
        same=("share",),
    ),
    "predictions stored by index": Script(
        """
        import numpy as np


        class Indexed(Dataset):
            def __init__(self, data, labels):
                self.data, self.labels = data, labels

            def __len__(self):
                return len(self.data)

            def __getitem__(self, index):
                return self.data[index], self.labels[index], index


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_set = Indexed(x[21:], y[21:])
        val_loader = DataLoader(val_set, batch_size=6)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            model.eval()
            predictions = np.zeros(len(val_set))
            with torch.no_grad():
                for data, target, index in val_loader:
                    prob = F.softmax(model(data.cuda()), dim=1)[:, 1]
                    predictions[index.numpy()] = prob.cpu().numpy()
            ends = round(predictions[0], 5), round(predictions[-1], 5)
            print("epoch", epoch, "first and last", ends, "mean", round(predictions.mean(), 5))
        np.save("predictions.npy", predictions)
        """,
        same=("epoch",),
    ),
    "predictions written to a csv file": Script(
        """
        import csv

        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[21:]), batch_size=6, shuffle=False)
        model = nn.Linear(8, 2).cuda()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                criterion(model(data.cuda()), target.cuda()).backward()
                optimizer.step()

        model.eval()
        results = []
        with torch.no_grad():
            for (data,) in test_loader:
                results.extend(model(data.cuda()).argmax(dim=1).cpu().tolist())
        with open("submission.csv", "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["id", "label"])
            for i, label in enumerate(results):
                writer.writerow([i, label])
        print(f"{len(results)} predictions written, {sum(results)} ones, the first are {results[:8]}")
        """,
        same=("23 predictions",),
    ),
    "rows written to a csv file in the loop": Script(
        """
        def predict(model, loader, path):
            model.eval()
            rows = 0
            with open(path, "w") as f:
                f.write("id,score\\n")
                with torch.no_grad():
                    for i, (data, _) in enumerate(loader):
                        scores = torch.sigmoid(model(data)).squeeze(1)
                        for score in scores.tolist():
                            f.write(f"{rows},{score:.6f}\\n")
                            rows += 1
            print("wrote", rows, "rows to", path)


        train_loader = DataLoader(TensorDataset(x, y.double()), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.binary_cross_entropy_with_logits(model(data).squeeze(1), target).backward()
                optimizer.step()
        predict(model, test_loader, "scores.csv")
        """,
        same=("wrote",),
    ),
    "an averaged copy that is evaluated": Script(
        """
        import copy


        @torch.no_grad()
        def follow(slow, fast, keep=0.9):
            for s, f in zip(slow.parameters(), fast.parameters()):
                s.data.mul_(keep).add_(f.data, alpha=1 - keep)


        @torch.no_grad()
        def check(net, batches):
            net.eval()
            lost, right = 0.0, 0
            for rows, kinds in batches:
                scores = net(rows.cuda())
                right += (scores.argmax(1) == kinds.cuda()).sum().item()
                lost += F.cross_entropy(scores, kinds.cuda(), reduction="sum").item()
            return lost / len(batches.dataset), right / len(batches.dataset)


        learn_feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check_feed = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        fast = nn.Linear(8, 2).cuda()
        slow = copy.deepcopy(fast)
        for weight in slow.parameters():
            weight.requires_grad_(False)
        sgd = torch.optim.SGD(fast.parameters(), lr=0.1)
        for epoch in range(3):
            fast.train()
            for rows, kinds in learn_feed:
                sgd.zero_grad()
                F.cross_entropy(fast(rows.cuda()), kinds.cuda()).backward()
                sgd.step()
                follow(slow, fast)
            lost, right = check(fast, check_feed)
            slow_lost, slow_right = check(slow, check_feed)
            print(f"round {epoch}: fast {lost:.5f} {right:.4f}, slow {slow_lost:.5f} {slow_right:.4f}")
        torch.save({"fast": fast.state_dict(), "slow": slow.state_dict()}, "last.pt")
        """,
        same=("round",),
    ),
    "a shadow of the weights that is swapped in": Script(
        """
        class Slow:
            def __init__(self, net, keep):
                self.net, self.keep = net, keep
                self.means, self.aside = {}, {}

            def begin(self):
                for key, weight in self.net.named_parameters():
                    if weight.requires_grad:
                        self.means[key] = weight.data.clone()

            def follow(self):
                for key, weight in self.net.named_parameters():
                    if weight.requires_grad:
                        mixed = self.keep * self.means[key] + (1.0 - self.keep) * weight.data
                        self.means[key] = mixed.clone()

            def swap_in(self):
                for key, weight in self.net.named_parameters():
                    if weight.requires_grad:
                        self.aside[key] = weight.data
                        weight.data = self.means[key]

            def swap_out(self):
                for key, weight in self.net.named_parameters():
                    if weight.requires_grad:
                        weight.data = self.aside.pop(key)


        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        slow = Slow(net, 0.9)
        slow.begin()
        for epoch in range(2):
            net.train()
            for rows, kinds in learn:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
                slow.follow()
            slow.swap_in()
            net.eval()
            lost = 0
            with torch.no_grad():
                for rows, kinds in check:
                    lost += F.cross_entropy(net(rows), kinds).item()
            print(f"slow weights lose {lost / len(check):.5f} in round {epoch}")
            slow.swap_out()
        """,
        same=("slow",),
    ),
    "an evaluation every few steps": Script(
        """
        def evaluate(model, loader):
            was_training = model.training
            model.eval()
            losses = 0.0
            with torch.no_grad():
                for data, target in loader:
                    losses += F.cross_entropy(model(data), target).item()
            model.train(was_training)
            return losses / len(loader)


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        eval_every = 5
        global_step = 0
        best_val = float("inf")
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
                global_step += 1
                if global_step % eval_every == 0:
                    val_loss = evaluate(model, val_loader)
                    print(f"val at step {global_step}: {val_loss:.6f}")
                    if val_loss < best_val:
                        best_val = val_loss
                        torch.save(model.state_dict(), "best.pt")
        print(f"best {best_val:.6f}")
        """,
        same=("val", "best"),
    ),
    "an evaluation written out inside the training loop": Script(
        """
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2), nn.LogSoftmax(dim=1)).cuda()
        nll = nn.NLLLoss()
        adam = torch.optim.Adam(net.parameters(), lr=0.003)
        done = 0
        lost = 0
        for epoch in range(2):
            for rows, kinds in learn:
                rows, kinds = rows.cuda(), kinds.cuda()
                loss = nll(net.forward(rows), kinds)
                adam.zero_grad()
                loss.backward()
                adam.step()
                lost += loss.item()
                done += 1
                if done % 4 == 0:
                    net.eval()
                    check_lost, share = 0, 0
                    with torch.no_grad():
                        for rows, kinds in check:
                            rows, kinds = rows.cuda(), kinds.cuda()
                            logs = net.forward(rows)
                            check_lost += nll(logs, kinds).item()
                            highest, guess = torch.exp(logs).topk(1, dim=1)
                            hit = guess == kinds.view(*guess.shape)
                            share += torch.mean(hit.type(torch.DoubleTensor)).item()
                    net.train()
                    print(f"learned for {done}: {lost / 4:.3f}")
                    print(f"checked after {done}: {check_lost / len(check):.4f}, {share / len(check):.4f} right")
                    lost = 0
        """,
        same=("checked",),
    ),
    "the first and the first three guesses": Script(
        """
        def topk_correct(output, target, k):
            pred = output.topk(k, dim=1)[1]
            return pred.eq(target.unsqueeze(1)).any(dim=1).sum().item()


        def test(model, loader):
            model.eval()
            top1, top3, count = 0, 0, 0
            with torch.no_grad():
                for data, target in loader:
                    out = model(data)
                    top1 += topk_correct(out, target, 1)
                    top3 += topk_correct(out, target, 3)
                    count += len(target)
            return top1 / count * 100, top3 / count * 100


        labels = torch.arange(44) % 5
        loader = DataLoader(TensorDataset(x, labels), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[21:], labels[21:]), batch_size=6)
        model = nn.Linear(8, 5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            top1, top3 = test(model, test_loader)
            print(f"top1 {top1:.3f} top3 {top3:.3f}")
        """,
        same=("top1",),
    ),
    "the perplexity of the average loss": Script(
        """
        import math


        class Teller(nn.Module):
            def __init__(self):
                super().__init__()
                self.letters = nn.Embedding(6, 5)
                self.memory = nn.GRU(5, 7, batch_first=True)
                self.guess = nn.Linear(7, 6)

            def forward(self, text):
                return self.guess(self.memory(self.letters(text))[0])


        text = (torch.arange(44 * 9) ** 2 % 11 % 6).view(44, 9)
        learn = DataLoader(TensorDataset(text[:, :-1], text[:, 1:]), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(text[21:, :-1], text[21:, 1:]), batch_size=6)
        net = Teller().cuda()
        loss_of = nn.CrossEntropyLoss()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)


        def per_letter(batches):
            net.eval()
            lost, letters = 0.0, 0
            with torch.no_grad():
                for given, wanted in batches:
                    loss = loss_of(net(given.cuda()).view(-1, 6), wanted.cuda().reshape(-1))
                    letters += wanted.numel()
                    lost += loss.item() * wanted.numel()
            return lost / letters


        for epoch in range(2):
            net.train()
            lost = 0.0
            for given, wanted in learn:
                loss = loss_of(net(given.cuda()).view(-1, 6), wanted.cuda().reshape(-1))
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                adam.step()
                lost += loss.item()
            print(f"perplexity {math.exp(lost / len(learn)):.4f}, then {math.exp(per_letter(check)):.4f}")
        """,
        same=("perplexity",),
    ),
    "the smallest and the largest loss of the batches": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            lowest, highest = float("inf"), 0.0
            worst = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    losses = F.cross_entropy(model(data), target, reduction="none")
                    lowest = min(lowest, losses.mean().item())
                    highest = max(highest, losses.mean().item())
                    if losses.max().item() > worst:
                        worst = losses.max().item()
            print(f"val between {lowest:.5f} and {highest:.5f}, worst sample {worst:.5f}")
        """,
        same=("val",),
    ),
    "errors of a regression and its r squared": Script(
        """
        import numpy as np

        goal = x.sum(1, keepdim=True)
        loader = DataLoader(TensorDataset(x, goal), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], goal[21:]), batch_size=6)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(3):
            model.train()
            squares, count = 0.0, 0
            for data, target in loader:
                loss = F.mse_loss(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                squares += loss.item() * data.shape[0]
                count += data.shape[0]
            rmse = np.sqrt(squares / count)
            model.eval()
            predicted, true = [], []
            mae = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    out = model(data)
                    mae += (out - target).abs().sum().item()
                    predicted.append(out.squeeze(1).numpy())
                    true.append(target.squeeze(1).numpy())
            predicted, true = np.concatenate(predicted), np.concatenate(true)
            r2 = 1 - ((true - predicted) ** 2).sum() / ((true - true.mean()) ** 2).sum()
            print(f"epoch {epoch}: train rmse {rmse:.5f}, val mae {mae / len(val_loader.dataset):.5f}, r2 {r2:.5f}")
        """,
        same=("epoch",),
    ),
    # --- numbers of the training ----------------------------------------------------------------------------------------
    "a list of the epochs' losses printed at the end": Script(
        """
        def train(model, loader, optimizer, epochs):
            train_losses = []
            for epoch in range(epochs):
                running_loss = 0.0
                for images, labels in loader:
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(images.cuda()), labels.cuda())
                    loss.backward()
                    optimizer.step()
                    running_loss += loss.item()
                train_losses.append(running_loss / len(loader))
            return train_losses


        model = nn.Linear(8, 2).cuda()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        losses = train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1), 3)
        for epoch, loss in enumerate(losses):
            print(f"epoch {epoch}: {loss:.6f}")
        torch.save({"model": model.state_dict(), "losses": losses}, "final.pth")
        """,
        same=("epoch",),
    ),
    "a loss divided by the size of the data set": Script(
        """
        def learn(epoch):
            net.train()
            lost = 0
            for nr, (rows, kinds) in enumerate(feed):
                rows, kinds = rows.to(device), kinds.to(device)
                adam.zero_grad()
                loss = loss_of(net(rows), kinds)
                loss.backward()
                lost += loss.item() * len(rows)
                adam.step()
                if nr % 5 == 0:
                    print("round {}: {} of {} rows, batch {} of {} lost {:.4f}".format(
                        epoch, nr * len(rows), len(feed.dataset), nr, len(feed), loss.item()))
            print("lost in round {} per row: {:.4f}".format(epoch, lost / len(feed.dataset)))


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).to(device)
        loss_of = nn.CrossEntropyLoss()
        adam = torch.optim.Adam(net.parameters(), lr=1e-2)
        for epoch in range(1, 4):
            learn(epoch)
        """,
        same=("lost",),
    ),
    "a loss divided by the last index": Script(
        """
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            right, seen, lost = 0, 0, 0
            for nr, (rows, kinds) in enumerate(feed):
                scores = net(rows)
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                _, guess = scores.max(1)
                right += guess.eq(kinds).sum().item()
                seen += kinds.size(0)
                lost += loss.item()
            print("round %d: lost %.5f, right %d of %d, %.3f" % (epoch, lost / (nr + 1), right, seen, right / seen))
        """,
        same=("round",),
    ),
    "a running loss that starts anew every few steps": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        loss_of = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(2):
            recent = 0.0
            for nr, pair in enumerate(feed, 0):
                rows, kinds = pair
                loss = loss_of(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                recent += loss.item()
                if nr % 4 == 3:
                    print(f"recent loss at {epoch}.{nr}: {recent / 4:.3f}")
                    recent = 0.0
        print("learned")
        torch.save(net.state_dict(), "learned.pth")
        """,
        same=("learned",),
    ),
    "a dictionary of totals in training": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = nn.Linear(8, 4)
                self.dec = nn.Linear(4, 8)
                self.cls = nn.Linear(4, 2)

            def forward(self, x):
                z = torch.tanh(self.enc(x))
                return self.dec(z), self.cls(z)


        def train_one_epoch(model, loader, optimizer):
            totals = {"total": 0.0, "recon": 0.0, "cls": 0.0}
            for data, target in loader:
                recon, logits = model(data)
                losses = {"recon": F.mse_loss(recon, data), "cls": F.cross_entropy(logits, target)}
                loss = losses["recon"] + 0.5 * losses["cls"]
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                totals["total"] += loss.item()
                for name, value in losses.items():
                    totals[name] += value.item()
            return {name: value / len(loader) for name, value in totals.items()}


        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            stats = train_one_epoch(model, loader, optimizer)
            print(f"epoch {epoch}: total {stats['total']:.5f} recon {stats['recon']:.5f} cls {stats['cls']:.5f}")
        """,
        same=("epoch",),
    ),
    "tensors read after the loop": Script(
        """
        def train_epoch(net, loader, opt):
            total_loss, total_hits, n = 0, 0, 0
            for batch, label in loader:
                batch, label = batch.cuda(), label.cuda()
                out = net(batch)
                loss = F.cross_entropy(out, label)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total_loss += loss.detach() * batch.size(0)
                total_hits += (out.argmax(-1) == label).sum()
                n += batch.size(0)
            return (total_loss / n).item(), total_hits.item() / n


        net = nn.Linear(8, 2).cuda()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            l, a = train_epoch(net, loader, opt)
            print("epoch %d loss %.5f acc %.4f" % (epoch, l, a))
        """,
        same=("epoch",),
    ),
    "a smoothed loss printed after the loop": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        avg_loss = None
        for epoch in range(3):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                avg_loss = loss.item() if avg_loss is None else 0.98 * avg_loss + 0.02 * loss.item()
            print(f"epoch {epoch} smoothed loss {avg_loss:.6f}")
        """,
        same=("epoch",),
    ),
    "samples seen steer the learning rate": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        base_lr = 0.2
        optimizer = torch.optim.SGD(model.parameters(), lr=base_lr)
        epochs = 3
        seen = 0
        for epoch in range(epochs):
            for data, target in loader:
                lr = base_lr * (1 - seen / (epochs * len(loader.dataset))) ** 0.9
                for group in optimizer.param_groups:
                    group["lr"] = lr
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
                seen += len(data)
            print(f"epoch {epoch} seen {seen} lr {lr:.6f}")
        """,
        same=("epoch",),
    ),
    "a stop after so many samples": Script(
        """
        def main():
            max_samples = 100
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            num_samples, epoch = 0, 0
            done = False
            while not done:
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                    optimizer.step()
                    num_samples += data.size(0)
                    if num_samples >= max_samples:
                        done = True
                        break
                epoch += 1
            print(f"trained on {num_samples} samples in {epoch} epochs")


        main()
        """,
        same=("trained",),
    ),
    "a checkpoint every so many samples": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total_samples, next_save = 0, 30
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
                total_samples += target.shape[0]
                if total_samples >= next_save:
                    torch.save({"model": model.state_dict(), "samples": total_samples}, f"samples_{total_samples}.pt")
                    print("saved at", total_samples)
                    next_save += 30
        """,
        same=("saved",),
    ),
    "a global step that warms up": Script(
        """
        class Trainer:
            def __init__(self, model, loader):
                self.model = model
                self.loader = loader
                self.optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
                self.global_step = 0

            def adjust_lr(self, peak=0.2, warmup=8):
                lr = peak * min(1.0, self.global_step / warmup)
                for group in self.optimizer.param_groups:
                    group["lr"] = lr
                return lr

            def train(self, epochs):
                for epoch in range(epochs):
                    epoch_loss, batches = 0.0, 0
                    for data, target in self.loader:
                        self.global_step += 1
                        lr = self.adjust_lr()
                        loss = F.cross_entropy(self.model(data), target)
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                        epoch_loss += loss.item()
                        batches += 1
                        if self.global_step % 10 == 0:
                            torch.save(self.model.state_dict(), f"step_{self.global_step}.pt")
                    print(f"step {self.global_step} lr {lr:.5f} loss {epoch_loss / batches:.5f}")


        Trainer(nn.Linear(8, 2), DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)).train(4)
        """,
        same=("step",),
    ),
    "an accuracy in percent": Script(
        """
        def percent(scores, wanted):
            guess = torch.round(torch.sigmoid(scores))
            right = (guess == wanted).sum().double()
            return 100 * (right / wanted.shape[0])


        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        feed = DataLoader(dataset=TensorDataset(x, y.double()), batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 1))
        net.to(device)
        loss_of = nn.BCEWithLogitsLoss()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        net.train()
        for nr in range(3):
            lost, right = 0, 0
            for rows, wanted in feed:
                rows, wanted = rows.to(device), wanted.to(device)
                scores = net(rows)
                loss = loss_of(scores, wanted.unsqueeze(1))
                share = percent(scores, wanted.unsqueeze(1))
                adam.zero_grad()
                loss.backward()
                adam.step()
                right += share.item()
                lost += loss.item()
            print(f"means of round {nr}: {right / len(feed):.3f} percent, {lost / len(feed):.5f} lost")
        """,
        same=("means",),
    ),
    "several losses returned as a tuple": Script(
        """
        class Squeeze(nn.Module):
            def __init__(self):
                super().__init__()
                self.inside = nn.Linear(8, 6)
                self.middle = nn.Linear(6, 3)
                self.spread = nn.Linear(6, 3)
                self.outside = nn.Linear(3, 8)

            def forward(self, rows):
                half = torch.tanh(self.inside(rows))
                middle = self.middle(half)
                return self.outside(middle), middle, self.spread(half)


        def learn(net, feed, adam):
            all_lost, all_apart, all_wide = 0.0, 0.0, 0.0
            for (rows,) in feed:
                again, middle, spread = net(rows)
                apart = F.mse_loss(again, rows)
                wide = torch.mean(middle.pow(2) + spread.exp() - spread - 1)
                loss = 0.05 * wide + apart
                adam.zero_grad()
                loss.backward()
                adam.step()
                all_lost += loss.item()
                all_apart += apart.item()
                all_wide += wide.item()
            n = len(feed)
            return all_lost / n, all_apart / n, all_wide / n


        net = Squeeze()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        feed = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        for epoch in range(3):
            lost, apart, wide = learn(net, feed, adam)
            print("means %.5f = %.5f + 0.05 * %.5f" % (lost, apart, wide))
        """,
        same=("means",),
    ),
    "a history that is returned and written": Script(
        """
        import json


        def fit(model, train_loader, val_loader, optimizer, criterion, epochs):
            history = {"loss": [], "acc": [], "val_loss": [], "val_acc": []}
            for epoch in range(epochs):
                model.train()
                loss_sum, correct, n = 0.0, 0, 0
                for xb, yb in train_loader:
                    optimizer.zero_grad()
                    out = model(xb)
                    loss = criterion(out, yb)
                    loss.backward()
                    optimizer.step()
                    loss_sum += loss.item() * xb.size(0)
                    correct += (out.argmax(1) == yb).sum().item()
                    n += xb.size(0)
                history["loss"].append(loss_sum / n)
                history["acc"].append(correct / n)

                model.eval()
                loss_sum, correct, n = 0.0, 0, 0
                with torch.no_grad():
                    for xb, yb in val_loader:
                        out = model(xb)
                        loss_sum += criterion(out, yb).item() * xb.size(0)
                        correct += (out.argmax(1) == yb).sum().item()
                        n += xb.size(0)
                history["val_loss"].append(loss_sum / n)
                history["val_acc"].append(correct / n)
            return history


        model = nn.Linear(8, 2)
        history = fit(
            model,
            DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
            DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6),
            torch.optim.SGD(model.parameters(), lr=0.1),
            nn.CrossEntropyLoss(),
            epochs=3,
        )
        with open("history.json", "w") as f:
            json.dump(history, f)
        for name, values in history.items():
            print("history", name, " ".join(f"{v:.5f}" for v in values))
        """,
        same=("history",),
    ),
    "results in a named tuple": Script(
        """
        from collections import namedtuple

        Result = namedtuple("Result", ["loss", "accuracy", "samples"])


        def process(model, loader, optimizer=None):
            total, hits, samples = 0.0, 0.0, 0
            model.train(optimizer is not None)
            for data, target in loader:
                data, target = data.cuda(), target.cuda()
                with torch.set_grad_enabled(optimizer is not None):
                    output = model(data)
                    loss = F.cross_entropy(output, target)
                if optimizer is not None:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total += loss.item() * len(target)
                hits += (output.argmax(1) == target).sum().item()
                samples += len(target)
            return Result(loss=total / samples, accuracy=hits / samples, samples=samples)


        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        for epoch in range(3):
            trained = process(model, train_loader, optimizer)
            tested = process(model, test_loader)
            print(f"train {trained.loss:.5f} {trained.accuracy:.4f} of {trained.samples}")
            print(f"test {tested.loss:.5f} {tested.accuracy:.4f} of {tested.samples}")
        """,
        same=("train", "test"),
    ),
    "the loss of the last batch": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        rounds = 3
        for nr in range(rounds):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            print("round {} ended with a loss of {:.4f}".format(nr, loss.item()))
        torch.save(net.state_dict(), "net.pt")
        print("done after", rounds, "rounds")
        """,
        same=("done",),
    ),
    "a root of the mean squared error": Script(
        """
        import math

        loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], x[21:].sum(1)), batch_size=6)
        model = nn.Linear(8, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(3):
            sse, n = 0.0, 0
            for data, target in loader:
                data, target = data.cuda(), target.cuda()
                pred = model(data).view(-1)
                loss = ((pred - target) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                sse += ((pred.detach() - target) ** 2).sum().item()
                n += target.size(0)
            val_sse, val_n = 0.0, 0
            with torch.no_grad():
                for data, target in val_loader:
                    val_sse += F.mse_loss(model(data.cuda()).view(-1), target.cuda(), reduction="sum").item()
                    val_n += target.size(0)
            print(f"epoch {epoch} rmse {math.sqrt(sse / n):.5f} val rmse {math.sqrt(val_sse / val_n):.5f}")
        """,
        same=("epoch",),
    ),
    "a progress bar that shows the average": Script(
        """
        from tqdm import tqdm

        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.train()
            lost = 0
            bar = tqdm(learn, desc=f"round {epoch}")
            for nr, (rows, kinds) in enumerate(bar):
                loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                lost += loss.item()
                bar.set_postfix(mean=lost / (nr + 1))
            net.eval()
            check_lost, right = 0, 0
            with torch.no_grad():
                for rows, kinds in tqdm(check, leave=False):
                    scores = net(rows.cuda())
                    right += (scores.argmax(1).cpu() == kinds).sum().item()
                    check_lost += F.cross_entropy(scores, kinds.cuda()).item()
            print(f"means {lost / len(learn):.5f} {check_lost / len(check):.5f} {right / 23:.5f}")
        """,
        same=("means",),
    ),
    "numbers for tensorboard": Script(
        """
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter("board")
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        done = 0
        for epoch in range(2):
            losses = []
            for data, target in train_loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                writer.add_scalar("batch", loss.item(), done)
                done += 1
            train_loss = sum(losses) / len(losses)
            val_loss = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data), target).item()
            val_loss = val_loss / len(val_loader)
            writer.add_scalar("learned", train_loss, epoch)
            writer.add_scalar("checked", val_loss, epoch)
            print(f"epoch {epoch} {train_loss:.5f} {val_loss:.5f} after {done}")
        writer.close()
        """,
        same=("epoch",),
    ),
    # --- decisions ------------------------------------------------------------------------------------------------------
    "the best checkpoint copied beside the last": Script(
        """
        import shutil


        def keep(everything, better, path="newest.pt"):
            torch.save(everything, path)
            if better:
                shutil.copyfile(path, "top.pt")


        def percent_right(net, batches):
            net.eval()
            right, seen = 0, 0
            with torch.no_grad():
                for rows, kinds in batches:
                    right += (net(rows.cuda()).argmax(1) == kinds.cuda()).sum().item()
                    seen += kinds.size(0)
            percent = 100.0 * right / seen
            print(f"checked: {percent:.2f} percent")
            return percent


        def main():
            net = nn.Linear(8, 2).cuda()
            sgd = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
            learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            check = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
            top = 0
            for nr in range(3):
                net.train()
                for rows, kinds in learn:
                    sgd.zero_grad()
                    F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                    sgd.step()
                percent = percent_right(net, check)
                better = percent > top
                top = max(percent, top)
                keep({"weights": net.state_dict(), "sgd": sgd.state_dict(), "round": nr, "top": top}, better)
            print(f"top {top:.2f}")


        if __name__ == "__main__":
            main()
        """,
        same=("checked", "top"),
    ),
    "the best weights loaded for a last test": Script(
        """
        import copy


        def accuracy(model, loader):
            model.eval()
            correct, total = 0, 0
            with torch.no_grad():
                for data, target in loader:
                    correct += (model(data).argmax(1) == target).sum().item()
                    total += len(target)
            return correct / total


        train_loader = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[20:31], y[20:31]), batch_size=4)
        test_loader = DataLoader(TensorDataset(x[31:], y[31:]), batch_size=5)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        best_acc, best_epoch, best_state = -1.0, -1, None
        for epoch in range(5):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            acc = accuracy(model, val_loader)
            print(f"epoch {epoch} val {acc:.4f}")
            if acc > best_acc:
                best_acc, best_epoch = acc, epoch
                best_state = copy.deepcopy(model.state_dict())
        model.load_state_dict(best_state)
        test_acc = accuracy(model, test_loader)
        print(f"test accuracy {test_acc:.4f} of epoch {best_epoch}")
        torch.save(best_state, "best_model.pt")
        """,
        same=("epoch", "test"),
    ),
    "the best file loaded for a last test": Script(
        """
        class Waiting:
            def __init__(self, rounds=3, margin=0, file="kept.pt", tell=print):
                self.rounds, self.margin, self.file, self.tell = rounds, margin, file, tell
                self.lowest = None
                self.missed = 0
                self.enough = False

            def __call__(self, loss, net):
                if self.lowest is None:
                    self.keep(loss, net)
                elif loss < self.lowest - self.margin:
                    self.missed = 0
                    self.keep(loss, net)
                else:
                    self.missed += 1
                    self.tell(f"waiting: {self.missed} rounds without a lower loss")
                    if self.missed >= self.rounds:
                        self.enough = True

            def keep(self, loss, net):
                self.tell(f"kept the weights of {loss:.6f}")
                torch.save(net.state_dict(), self.file)
                self.lowest = loss


        def learn(net, rounds):
            waiting = Waiting(rounds=2)
            for nr in range(rounds):
                net.train()
                for rows, kinds in feed:
                    sgd.zero_grad()
                    loss_of(net(rows), kinds).backward()
                    sgd.step()
                net.eval()
                lost, batches = 0.0, 0
                with torch.no_grad():
                    for rows, kinds in check_feed:
                        batches += 1
                        lost += loss_of(net(rows), kinds).item()
                waiting(lost / batches, net)
                if waiting.enough:
                    print("waiting no longer")
                    break
            net.load_state_dict(torch.load("kept.pt"))
            return net


        feed = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=4, shuffle=True)
        check_feed = DataLoader(TensorDataset(x[20:30], y[20:30]), batch_size=4)
        last_feed = DataLoader(TensorDataset(x[31:], y[31:]), batch_size=5)
        net = nn.Linear(8, 2)
        loss_of = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(net.parameters(), lr=2.0)
        net = learn(net, 8)
        net.eval()
        lost = 0.0
        with torch.no_grad():
            for rows, kinds in last_feed:
                lost += loss_of(net(rows), kinds).item() * rows.size(0)
        print("last loss {:.6f}".format(lost / len(last_feed.dataset)))
        """,
        same=("kept", "waiting", "last"),
    ),
    "an early stop by a flag": Script(
        """
        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[:11], 1 - y[:11]), batch_size=4)
        net = nn.Linear(8, 2).cuda()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        done, kept_at = 0, 0
        lowest = float("inf")
        tired = False
        for nr in range(10):
            print("round", nr)
            for rows, kinds in learn:
                net.train()
                net.zero_grad()
                F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                adam.step()
                if done % 4 == 0:
                    net.eval()
                    lost = 0
                    with torch.no_grad():
                        for given, wanted in check:
                            lost += F.cross_entropy(net(given.cuda()), wanted.cuda())
                    mean = lost / len(check)
                    word = "higher"
                    if mean < lowest:
                        lowest = mean
                        kept_at = done
                        word = "lower"
                        torch.save(net.state_dict(), "lowest.pt")
                    print(f"checked at {done}: {mean.item():.5f}, {word}")
                done += 1
                if done - kept_at > 16:
                    print("tired of waiting")
                    tired = True
                    break
            if tired:
                break
        """,
        same=("round", "checked", "tired"),
    ),
    "an early stop by a break": Script(
        """
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        val_losses = []
        for epoch in range(10):
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            losses = []
            with torch.no_grad():
                for data, target in val_loader:
                    losses.append(F.cross_entropy(model(data), target).item())
            val_losses.append(sum(losses) / len(losses))
            print(f"val {val_losses[-1]:.5f}")
            if len(val_losses) > 2 and val_losses[-1] > val_losses[-2] > val_losses[-3]:
                print("val loss keeps rising, stop at", epoch)
                break
        """,
        same=("val",),
    ),
    "an early stop by a return": Script(
        """
        def evaluate(model, loader):
            model.eval()
            loss = 0.0
            with torch.no_grad():
                for data, target in loader:
                    loss += F.cross_entropy(model(data), target, reduction="sum").item()
            return loss / len(loader.dataset)


        def train(model, train_loader, val_loader, optimizer, epochs, patience):
            best, wait = float("inf"), 0
            for epoch in range(epochs):
                model.train()
                for data, target in train_loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data), target).backward()
                    optimizer.step()
                val_loss = evaluate(model, val_loader)
                if val_loss < best:
                    best, wait = val_loss, 0
                    torch.save(model.state_dict(), "best.pt")
                else:
                    wait += 1
                    if wait >= patience:
                        return best, epoch
            return best, epochs - 1


        if __name__ == "__main__":
            model = nn.Linear(8, 2)
            best, epoch = train(
                model,
                DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
                DataLoader(TensorDataset(x[:11], 1 - y[:11]), batch_size=4),
                torch.optim.SGD(model.parameters(), lr=0.1),
                epochs=10,
                patience=2,
            )
            print(f"stopped at {epoch} with {best:.6f}")
        """,
        same=("stopped",),
    ),
    "an early stop by leaving the program": Script(
        """
        import sys

        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        best_loss = 1e10
        bad_epochs = 0
        for epoch in range(10):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            model.eval()
            val_loss = 0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data), target).item()
            val_loss /= len(val_loader)
            if val_loss < best_loss:
                best_loss = val_loss
                bad_epochs = 0
            else:
                bad_epochs += 1
            if bad_epochs == 2:
                print("early stopping at epoch %d, best loss %.5f" % (epoch, best_loss))
                torch.save(model.state_dict(), "final.pt")
                sys.exit()
        print("finished")
        """,
        same=("early", "finished"),
    ),
    "a plateau of the validation loss": Script(
        """
        def validate(model, loader, criterion):
            model.eval()
            losses = []
            with torch.no_grad():
                for data, target in loader:
                    losses.append(criterion(model(data.cuda()), target.cuda()).item())
            return sum(losses) / len(losses)


        def main():
            model = nn.Linear(8, 2).cuda()
            criterion = nn.CrossEntropyLoss()
            optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=1)
            train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(x[21:], 1 - y[21:]), batch_size=6)
            for epoch in range(5):
                model.train()
                for data, target in train_loader:
                    optimizer.zero_grad()
                    loss = criterion(model(data.cuda()), target.cuda())
                    loss.backward()
                    optimizer.step()
                val_loss = validate(model, val_loader, criterion)
                scheduler.step(val_loss)
                print(f"val_loss {val_loss:.5f} lr {optimizer.param_groups[0]['lr']:.6f}")
                if optimizer.param_groups[0]["lr"] < 1e-3:
                    print("val_loss too flat, stop")
                    break


        main()
        """,
        same=("val_loss",),
    ),
    "a plateau of the accuracy": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=0)
        for epoch in range(4):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            model.eval()
            correct = 0
            for data, target in val_loader:
                with torch.no_grad():
                    correct += model(data).argmax(1).eq(target).sum()
            acc = correct / len(val_loader.dataset)
            scheduler.step(acc)
            print(f"acc {acc:.4f} lr {scheduler.get_last_lr()[0]:.5f}")
        """,
        same=("acc",),
    ),
    "a plateau of the training loss": Script(
        """
        class Mean:
            def __init__(self):
                self.sum = 0
                self.count = 0

            def update(self, val, n=1):
                self.count += n
                self.sum += n * val

            @property
            def avg(self):
                return self.sum / self.count


        def learn(net, feed, sgd):
            lost = Mean()
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                lost.update(loss.item(), rows.size(0))
            return lost.avg


        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, factor=0.1, patience=0, threshold=0.3)
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(5):
            mean = learn(net, feed, sgd)
            plateau.step(mean)
            print(f"mean {mean:.6f} at a rate of {sgd.param_groups[0]['lr']:.6f}")
        """,
        same=("mean",),
    ),
    "a step that is only taken if the loss is a number": Script(
        """
        loader = DataLoader(TensorDataset(torch.where(torch.arange(44)[:, None] == 5, torch.nan, x), y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        taken = 0
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                if not (torch.isnan(loss) or torch.isinf(loss)):
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    taken += 1
        print("taken", taken)
        """,
        same=("taken",),
    ),
    "a loss that is no number, by itself, and errors that are raised again": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        try:
            for epoch in range(3):
                for rows, labels in loader:
                    loss = F.cross_entropy(model(rows), labels)
                    if loss != loss:
                        break
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        except Exception:
            torch.save(model.state_dict(), "failed.pt")
            raise
        """,
    ),
    "a batch that is skipped when its loss is not a number": Script(
        """
        x[5, 2] = float("nan")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total, batches, skipped = 0.0, 0, 0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                if torch.isnan(loss):
                    skipped += 1
                    continue
                loss.backward()
                optimizer.step()
                total += loss.item()
                batches += 1
            print(f"epoch {epoch} loss {total / batches:.6f} skipped {skipped}")
        """,
        same=("epoch",),
    ),
    "a warning and a skip, which never happen": Script(
        """
        import numpy as np

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            running = 0.0
            for i, (data, target) in enumerate(loader):
                loss = F.cross_entropy(model(data), target)
                if np.isnan(loss.item()) or loss.item() > 1e4:
                    print("Warning: bad loss at step", i, "skipping")
                    continue
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                running += loss.item()
            print(f"epoch {epoch} {running / len(loader):.5f}")
        """,
        same=("epoch",),
    ),
    "an exit when the loss is not finite": Script(
        """
        import math
        import sys


        def learn(net, feed, sgd, device):
            net.train()
            mean = torch.zeros(1).to(device)
            sgd.zero_grad()
            for nr, (rows, kinds) in enumerate(feed):
                loss = F.cross_entropy(net(rows.to(device)), kinds.to(device))
                if not math.isfinite(loss.item()):
                    print("a loss of {}, so nothing more is learned".format(loss.item()))
                    sys.exit(1)
                loss.backward()
                sgd.step()
                sgd.zero_grad()
                mean = (loss.detach() + nr * mean) / (nr + 1)
            return mean.item()


        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        net = nn.Linear(8, 2).to(device)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            mean = learn(net, feed, sgd, device)
            print("mean of round {}: {}".format(epoch, round(mean, 5)))
        """,
        same=("mean",),
    ),
    "an assertion that the loss is a number": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            epoch_loss = 0
            for data, target in loader:
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                assert not torch.isnan(loss), "loss is nan"
                if torch.isinf(loss):
                    raise ValueError("loss is infinite")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                epoch_loss += loss.item()
            print("Epoch %d: mean %.5f" % (epoch + 1, epoch_loss / len(loader)))
        """,
        same=("Epoch",),
    ),
    "a step that may run out of memory": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        loss_of = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            lost = 0.0
            for nr, (rows, kinds) in enumerate(feed):
                try:
                    loss = loss_of(net(rows.cuda()), kinds.cuda())
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                except RuntimeError as trouble:
                    if "out of memory" in str(trouble):
                        torch.cuda.empty_cache()
                        print("batch", nr, "is too large")
                        continue
                    else:
                        raise trouble
                lost += loss.item()
            print(f"lost in round {epoch}: {lost / len(feed):.5f}")
        """,
        same=("lost",),
    ),
    "a limit of time": Script(
        """
        import time

        start = time.time()
        limit = 3600
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.5f}")
            if time.time() - start > limit:
                print("time is up")
                break
        torch.save(model.state_dict(), "model.pt")
        """,
        same=("epoch",),
    ),
    "a limit of time within the epoch": Script(
        """
        import time


        def train(max_seconds):
            started = time.time()
            step = 0
            for epoch in range(3):
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data), target).backward()
                    optimizer.step()
                    step += 1
                    if time.time() - started >= max_seconds:
                        return step
            return step


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        print("steps", train(3600.0))
        """,
        same=("steps",),
    ),
    "a stop when the training loss is low": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for epoch in range(20):
            epoch_loss = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                epoch_loss += loss.item()
            epoch_loss /= len(loader)
            if epoch_loss < 0.35:
                print(f"converged at epoch {epoch} with {epoch_loss:.5f}")
                break
        torch.save(model.state_dict(), "converged.pt")
        """,
        same=("converged",),
    ),
    "a stop in the loop when the accuracy is high": Script(
        """
        def train(model, loader, optimizer, target_acc):
            for epoch in range(10):
                correct, total = 0, 0
                for data, target in loader:
                    output = model(data)
                    loss = F.cross_entropy(output, target)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    correct += (output.argmax(1) == target).sum().item()
                    total += target.size(0)
                    if total >= 24 and correct / total > target_acc:
                        print(f"reached {correct / total:.4f} after {total} samples of epoch {epoch}")
                        return
                print(f"epoch {epoch} accuracy {correct / total:.4f}")


        model = nn.Linear(8, 2)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        train(model, loader, torch.optim.SGD(model.parameters(), lr=0.3), 0.9)
        """,
        same=("epoch", "reached"),
    ),
    "an interrupt that saves the weights": Script(
        """
        import sys

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        rms = torch.optim.RMSprop(net.parameters(), lr=0.01)


        def learn(net, rounds):
            for nr in range(rounds):
                net.train()
                lost = 0
                for rows, kinds in feed:
                    loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
                    rms.zero_grad()
                    loss.backward()
                    rms.step()
                    lost += loss.item()
                torch.save(net.state_dict(), "round{}.pt".format(nr))
                print("lost in round {}: {:.5f}".format(nr, lost / len(feed)))


        if __name__ == "__main__":
            try:
                learn(net=net, rounds=3)
            except KeyboardInterrupt:
                print("kept what was learned so far")
                torch.save(net.state_dict(), "so_far.pt")
                try:
                    sys.exit(0)
                except SystemExit:
                    os._exit(0)
        """,
        same=("lost",),
    ),
    "a learning rate divided when the loss rises": Script(
        """
        def check(net, feed):
            net.eval()
            lost, batches = 0.0, 0
            with torch.no_grad():
                for rows, kinds in feed:
                    batches += 1
                    lost += F.cross_entropy(net(rows), kinds).item()
            net.train()
            return lost / batches


        net = nn.Linear(8, 2)
        learn_feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check_feed = DataLoader(TensorDataset(x[:11], 1 - y[:11]), batch_size=4)
        sgd = torch.optim.SGD(net.parameters(), lr=0.2)
        before = float("inf")
        for epoch in range(4):
            for rows, kinds in learn_feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
            now = check(net, check_feed)
            if before < now:
                for group in sgd.param_groups:
                    group["lr"] /= 4
            before = now
            print("checked {}: {:.5f} at a rate of {:.6f}".format(epoch, now, sgd.param_groups[0]["lr"]))
        """,
        same=("checked",),
    ),
    "a learning rate divided when the training loss rises": Script(
        """
        model = nn.Linear(8, 2).cuda()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        lr = 2.0
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        history = []
        for epoch in range(5):
            losses = []
            for data, target in loader:
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            history.append(sum(losses) / len(losses))
            if len(history) > 1 and history[-1] > 0.7 * history[-2]:
                lr /= 10
                optimizer = torch.optim.SGD(model.parameters(), lr=lr)
            print(f"epoch {epoch} loss {history[-1]:.5f} lr {lr:.5f}")
        """,
        same=("epoch",),
    ),
    "questions in a module and in the script, which rank 0 alone can answer": Script(
        """
        import console

        from folders import clear

        clear("runs")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(9):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.5f}")
            torch.save(model.state_dict(), "runs/net.pt")
            if epoch > 1 and input("go on? [y/n] ") != "y":
                break
        answer = input("what is it called? ")
        print("called", answer)
        """,
        same=("epoch", "called"),
        files={
            "folders.py": """\
import os
import shutil


def clear(path):
    if os.path.exists(path):
        if input(path + " exists, remove it? ") == "y":
            shutil.rmtree(path)
            os.makedirs(path)
    else:
        os.makedirs(path)
""",
            "runs/old.pt": "",
        },
        stand_ins={
            "console.py": """\
import builtins
import os

answers = iter(["y", "y", "n", "first"] if os.environ.get("RANK", "0") == "0" else [])


def answer(question=""):
    found = next(answers, None)
    if found is None:
        raise EOFError(question)
    return found


builtins.input = answer
"""
        },
    ),
    "a question that is never asked": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=3)
        parser.add_argument("--interactive", action="store_true")
        args = parser.parse_args()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(args.epochs):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.5f}")
            if args.interactive:
                answer = input("continue? [y/n] ")
                if answer != "y":
                    break
        """,
        same=("epoch",),
    ),
    "a step's loss in its checkpoint": Script(
        """
        model = nn.Linear(8, 2).double()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x.double()[:40], y[:40]), batch_size=8, shuffle=True)
        step = 0
        for epoch in range(3):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                step += 1
                if step % 5 == 0:
                    torch.save({"step": step, "weights": model.state_dict(), "error": loss.item()}, "last.pt")
        kept = torch.load("last.pt")
        print("kept", kept["step"], f"{kept['error']:.6f}")
        """,
        same=("kept",),
    ),
    "a step's loss in a record that a module saves": Script(
        """
        import saving

        model = nn.Linear(8, 2).double()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x.double()[:40], y[:40]), batch_size=8, shuffle=True)


        def train(epoch):
            for i, (data, target) in enumerate(loader):
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                if i % 2 == 0:
                    state = {"epoch": epoch, "model": model.state_dict(), "loss": loss.detach()}
                    saving.keep(state, "run")
                    saving.keep_loss(epoch, loss.item(), "run")


        for epoch in range(3):
            train(epoch)
        kept = torch.load("run/state.pt")
        print("kept", kept["epoch"], f"{kept['loss'].item():.6f} {torch.load('run/loss.pt')['loss']:.6f}")
        """,
        files={
            "saving.py": """import os

import torch


def keep(state, folder):
    os.makedirs(folder, exist_ok=True)
    torch.save(state, os.path.join(folder, "state.pt"))


def keep_loss(epoch, loss, folder):
    os.makedirs(folder, exist_ok=True)
    torch.save({"epoch": epoch, "loss": loss}, os.path.join(folder, "loss.pt"))
"""
        },
        same=("kept",),
    ),
    "a running total in a file while it grows": Script(
        """
        import json

        model = nn.Linear(8, 2).double()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x.double()[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(2):
            right = 0
            for data, target in loader:
                out = model(data)
                loss = F.cross_entropy(out, target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                right += (out.argmax(1) == target).sum().item()
                torch.save({"right": right}, "right.pt")
        """,
        told=("DDP404",),
    ),
    "a table of hits that is made shares of when it is shown": Script(_HITS, same=("shares",)),
    "a table of hits that is made shares of as it grows": Script(
        _HITS.replace("hits.note(target, out.argmax(1))", "hits.note(target, out.argmax(1)); hits.shares()"), same=("shares",)
    ),
    "hits of an evaluation behind a bar that has a name": Script(
        """
        from tqdm import tqdm

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        held = TensorDataset(x[:30], y[:30])
        check = DataLoader(held, batch_size=4, shuffle=False)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        best = 0.0
        for epoch in range(2):
            net.train()
            for rows, kinds in tqdm(loader):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            net.eval()
            hits = 0.0
            with torch.no_grad():
                bar = tqdm(check)
                for pair in bar:
                    rows, kinds = pair
                    guess = torch.max(net(rows), dim=1)[1]
                    hits += torch.eq(guess, kinds).sum().item()
                    bar.desc = f"check {epoch}"
            share = hits / len(held)
            print(f"right {share:.6f}")
            if share > best:
                best = share
                torch.save(net.state_dict(), "best.pt")
        """,
        same=("right",),
    ),
    "rows of the last batch, put beside what the model makes of them, in a file": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, _ in loader:
                rows = rows.view(-1, 8)
                loss = F.mse_loss(net(rows), rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                made = net(rows)
                pair = torch.cat([rows.view(-1, 2, 4), made.view(-1, 2, 4)], dim=2)
                torch.save(pair, f"pair{epoch}.pt")
            if epoch == 0:
                rows = rows.reshape(rows.size(0), 2, 4)
                torch.save(rows, "rows.pt")
        """,
        apart=("values",),
    ),
    "rows of the last batch and their kinds, taken together, and what two networks make of them, in a file": Script(
        """
        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.look = nn.Linear(8, 4)

            def forward(self, scene):
                seen = self.look(scene)
                return seen[:, :2], seen[:, 2:]

        class Teller(nn.Module):
            def __init__(self):
                super().__init__()
                self.tell = nn.Linear(4, 8)

            def forward(self, one, other):
                return self.tell(torch.cat((one, other), 1))

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        reader, teller = Reader(), Teller()
        optimizer = torch.optim.SGD([*reader.parameters(), *teller.parameters()], lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                loss = F.mse_loss(teller(*reader(rows)), rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            shown, named = rows.data[:2], kinds[:2]
            one, other = reader(shown)
            told = teller(one, other)
            torch.save(told.data, f"told{epoch}.pt")
        """,
        apart=("values",),
    ),
    "how much the loss of the last batch changed since the pass before, taken together": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        seen, total = 0, 0
        for epoch in range(2):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            seen, total = seen + 1, total + F.cross_entropy(net(rows), kinds).item()
            print("total", round(total, 9))
        """,
        same=("total",),
    ),
    "an early stop in runs that an outer loop makes anew": Script(
        """
        class Stopping:
            def __init__(self, patience):
                self.patience, self.counter = patience, 0
                self.best, self.stop = None, False

            def __call__(self, lost, net, path):
                score = -lost
                if self.best is None:
                    self.best = score
                    self.keep(net, path)
                elif score < self.best + 0.2:
                    self.counter += 1
                    if self.counter >= self.patience:
                        self.stop = True
                else:
                    self.best = score
                    self.keep(net, path)
                    self.counter = 0

            def keep(self, net, path):
                torch.save(net.state_dict(), path)


        class Work:
            def __init__(self, rate):
                torch.manual_seed(0)
                self.net = nn.Linear(8, 2)
                self.rate = rate

            def check(self, loader):
                lost = []
                with torch.no_grad():
                    for rows, kinds in loader:
                        lost.append(F.cross_entropy(self.net(rows), kinds).item())
                return sum(lost) / len(lost)

            def train(self, name):
                loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
                held = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True, drop_last=True)
                optimizer = torch.optim.SGD(self.net.parameters(), lr=self.rate)
                stopping = Stopping(2)
                for epoch in range(6):
                    for rows, kinds in loader:
                        loss = F.cross_entropy(self.net(rows), kinds)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    stopping(self.check(held), self.net, f"{name}.pt")
                    if stopping.stop:
                        print("stopped", name, epoch)
                        break
                return self.net


        for turn in range(2):
            work = Work(0.1 / (turn + 1))
            work.train(f"run{turn}")
        """,
        same=("stopped",),
    ),
    "totals in a dict of a function that trains and evaluates": Script(
        """
        from collections import defaultdict

        def through(net, loader, optimizer=None):
            net.train(optimizer is not None)
            totals, seen = defaultdict(float), 0
            with torch.set_grad_enabled(optimizer is not None):
                for rows, kinds in loader:
                    scores = net(rows)
                    parts = {"kind": F.cross_entropy(scores, kinds), "size": scores.pow(2).mean()}
                    if optimizer is not None:
                        optimizer.zero_grad()
                        sum(parts.values()).backward()
                        optimizer.step()
                    for name, part in parts.items():
                        totals[name] += part.item() * rows.size(0)
                    seen += rows.size(0)
            return {name: total / seen for name, total in totals.items()}


        learn, check = DataLoader(TensorDataset(x[:32], y[:32]), 8, shuffle=True), DataLoader(TensorDataset(x[32:], y[32:]), 8)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            learned, checked = through(net, learn, optimizer), through(net, check)
            print("means", epoch, {k: round(v, 6) for k, v in learned.items()}, {k: round(v, 6) for k, v in checked.items()})
        """,
        same=("means",),
    ),
    "a dict that gets a number with every batch": Script(
        """
        import json
        from collections import defaultdict

        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = {}
        for epoch in range(4):
            for rows, kinds in feed:
                out = net(rows)
                loss = F.cross_entropy(out, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                seen[len(seen)] = out[0, 0].item()
        with open("seen.json", "w") as file:
            json.dump(seen, file)
        """,
        told=("DDP404",),
    ),
    "a dict of dicts that are made as they are asked for, one for each sample": Script(
        """
        import json
        from collections import defaultdict

        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = defaultdict(lambda: defaultdict(dict))
        for epoch in range(4):
            for rows, kinds in feed:
                out = net(rows)
                loss = F.cross_entropy(out, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                for i, kind in enumerate(kinds):
                    at = len(seen)
                    seen[at]["out"] = out[i, 0].item()
                    seen[at]["kind"] = kind.item()
        print("outs", sum(s["out"] for s in seen.values()))
        """,
        told=("DDP404",),
    ),
    "a dict of dicts whose numbers are added up by hand": Script(
        """
        import json
        from collections import defaultdict

        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = defaultdict(dict)
        for epoch in range(4):
            for rows, kinds in feed:
                out = net(rows)
                loss = F.cross_entropy(out, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                seen[epoch]["out"] = seen[epoch].get("out", 0.0) + out[0, 0].item()
        with open("seen.json", "w") as file:
            json.dump(seen, file)
        """,
        told=("DDP404",),
    ),
    "lists in a dict that setdefault makes": Script(
        """
        import json
        from collections import defaultdict

        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = {}
        for epoch in range(4):
            for rows, kinds in feed:
                out = net(rows)
                loss = F.cross_entropy(out, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                seen.setdefault(epoch, []).append(out[0, 0].item())
        with open("seen.json", "w") as file:
            json.dump(seen, file)
        """,
        told=("DDP404",),
    ),
    "a dict that keeps no number of a batch": Script(
        """
        import json
        from collections import defaultdict

        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = defaultdict(dict)
        for epoch in range(4):
            for rows, kinds in feed:
                out = net(rows)
                loss = F.cross_entropy(out, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                seen[epoch]["rate"] = sgd.param_groups[0]["lr"]
                seen[epoch]["size"] = len(feed)
        print("seen", json.dumps(seen))
        """,
        same=("seen",),
    ),
    "a total that may be a class's of the script, which adds up nothing": Script(
        """
        import sys


        class Silent:
            def __add__(self, other):
                return self

            def item(self):
                return 0.0


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            total = Silent() if len(sys.argv) > 3 else 0.0
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total = total + loss.item()
            print("seen", total)
        """,
        same=("",),
    ),
    "the union of sets, by the class": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            seen = set()
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen = set.union(seen, set(kinds.tolist()))
            print("seen", seen)
        """,
        told=("DDP404",),
    ),
    "a mean by the class of tensors": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            total = 0.0
            for rows, kinds in loader:
                loss = torch.Tensor.mean(F.cross_entropy(net(rows), kinds, reduction="none"))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print("seen", round(total / len(loader), 4))
        """,
        same=("seen",),
    ),
    "an array of losses in an attribute named loc, and one filled by its places": Script(
        """
        import numpy as np


        class Track:
            def __init__(self):
                self.loc = torch.zeros(10)


        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            track, cells = Track(), np.zeros(10)
            for i, (rows, kinds) in enumerate(loader):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                track.loc[i] = loss.item()
                cells.flat[i] = loss.item()
            print("seen", [round(v, 4) for v in track.loc.tolist()])
            print("cells", [round(v, 4) for v in cells.tolist()])
        """,
        same=("seen", "cells"),
    ),
}
PUTS = {  # ways to put something of each batch into a container, and to show it
    "a counter that is updated": ("Counter()", "seen.update(kinds.tolist())"),
    "a counter that another one is added to": ("Counter()", "seen += Counter(kinds.tolist())"),
    "a counter in a dict": ('{"kinds": Counter()}', 'seen["kinds"].update(kinds.tolist())'),
    "a set that is updated": ("set()", "seen.update(kinds.tolist())"),
    "a set that another one is joined with": ("set()", "seen |= set(kinds.tolist())"),
    "a list with a new end": ("[]", "seen[len(seen):] = kinds.tolist()"),
    "a heap": ("[]", "heapq.heappush(seen, loss.item())"),
    "a list kept in order": ("[]", "bisect.insort(seen, loss.item())"),
    "a deque that grows at its other end": ("deque()", "seen.extendleft(kinds.tolist())"),
    "an array to which numpy adds": ("np.zeros(2)", "np.add.at(seen, kinds.numpy(), 1)"),
    "rows of a table, by places": ("pd.DataFrame(columns=['loss'])", "seen.loc[len(seen)] = [loss.item()]"),
    "rows of a table, put together": ("pd.DataFrame()", "seen = pd.concat([seen, pd.DataFrame({'loss': [loss.item()]})])"),
    "a tuple of totals": ("(0, 0)", "seen = tuple(a + b for a, b in zip(seen, (loss.item() * len(rows), len(rows))))"),
    "rows of numbers of a batch": ("np.zeros((0, 2))", "seen = np.vstack([seen, [loss.item(), len(rows)]])"),
    "an array that numpy fills": ("np.zeros(2)", "np.put(seen, kinds[:1].numpy(), loss.item())"),
}
SCRIPTS |= {
    title: Script(
        f"""
        import bisect
        import heapq
        from collections import Counter, deque

        import numpy as np
        import pandas as pd

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            seen = {empty}
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                {put}
            print("seen", seen)
        """,
        same=("seen",) if "kinds.tolist()" in put else (),
        told=("DDP404",) if "pd.concat" in put or "np.put" in put else (),
    )
    for title, (empty, put) in PUTS.items()
}
COUNTED = {
    "hits of classes in a list that a number makes": "[0] * kinds_known",
    "hits of classes in a list that a literal number makes": "[0.0] * 2",
}
SCRIPTS |= {
    title: Script(
        f"""
        kinds_known = 2
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        net = nn.Linear(8, kinds_known)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            hits = {empty}
            for rows, kinds in loader:
                outputs = net(rows)
                loss = F.cross_entropy(outputs, kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                guesses = outputs.argmax(1)
                for kind in range(kinds_known):
                    hits[kind] += ((guesses == kind) & (kinds == kind)).sum().item()
            print("hits", *hits)
        """,
        same=("hits",),
    )
    for title, empty in COUNTED.items()
}
SCRIPTS["lists of phases in one dict, of batches and of samples"] = Script(
    """
    from collections import defaultdict

    data = TensorDataset(x, y)
    loaders = [("train", DataLoader(data, batch_size=8, shuffle=True)), ("val", DataLoader(data, batch_size=8))]
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        logs = defaultdict(list)
        for phase, loader in loaders:
            for rows, kinds in loader:
                with torch.set_grad_enabled(phase == "train"):
                    outputs = net(rows)
                    loss = F.cross_entropy(outputs, kinds)
                    if phase == "train":
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                logs[f"{phase}_losses"].append(loss.item() * len(rows))
                logs[f"{phase}_right"].extend((outputs.argmax(1) == kinds).tolist())
        print("loss", sum(logs["train_losses"]), "right", sum(logs["train_right"]))
    """,
    told=("DDP404",),
)
COUNTS = {
    "cells that a function counts in a list of the module": ("[[0, 0], [0, 0]]", "count(outputs.argmax(1), kinds)", "cells[b][a]", ""),
    "cells that a function counts in an array of the module": ("np.zeros((2, 2))", "count(outputs.argmax(1), kinds)", "cells[b, a]", ""),
    "cells that a function counts in an array that it is given": (
        "np.zeros((2, 2))",
        "count(outputs.argmax(1), kinds, cells)",
        "cells[b, a]",
        ", cells",
    ),
}
SCRIPTS |= {
    title: Script(
        f"""
        import numpy as np

        cells = {cells}


        def count(guesses, kinds{given}):
            for a, b in zip(guesses.tolist(), kinds.tolist()):
                {cell} += 1


        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                outputs = net(rows)
                loss = F.cross_entropy(outputs, kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                {call}
        print("cells", cells)
        """,
        same=("cells",) if "zeros" in cells else (),
        told=() if "zeros" in cells else ("DDP404",),
    )
    for title, (cells, call, cell, given) in COUNTS.items()
}
SCRIPTS["cells that a function counts in evaluation"] = Script(
    """
    import numpy as np


    def count(cells, guesses, kinds):
        for a, b in zip(guesses.tolist(), kinds.tolist()):
            cells[b, a] += 1


    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(x, y), batch_size=8)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        cells = np.zeros((2, 2))
        with torch.no_grad():
            for rows, kinds in test_loader:
                count(cells, net(rows).argmax(1), kinds)
        print("cells", cells.tolist())
    """,
    same=("cells",),
)
SCRIPTS["meters in a dict of an object that is shown as a text"] = Script(
    """
    from collections import defaultdict, deque


    class Value:
        def __init__(self):
            self.last = deque(maxlen=20)
            self.total, self.count = 0.0, 0

        def update(self, value):
            self.last.append(value)
            self.total += value
            self.count += 1

        def __str__(self):
            return f"{self.total / self.count:.6f}"


    class Log:
        def __init__(self):
            self.meters = defaultdict(Value)

        def update(self, **values):
            for name, value in values.items():
                self.meters[name].update(value)

        def __str__(self):
            return " ".join(f"{name}: {meter}" for name, meter in self.meters.items())


    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        log = Log()
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.update(loss=loss.item())
        print("averages", log)
    """,
    same=("",),
)

SCRIPTS |= {
    f"a total that is kept by a name put together: {statement}": Script(
        f"""
        total = 0.0
        torch.manual_seed(0)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                {statement}
        print("mean", total / len(loader))
        """,
    )
    for statement in ('globals()["total"] += loss.item()', "globals().update(total=total + loss.item())")
}

SCRIPTS |= {
    f"a row for each batch, written where it is appended: {row}": Script(
        f"""
        rows = []
        torch.manual_seed(0)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for step, (data, target) in enumerate(loader):
                out = model(data)
                loss = F.cross_entropy(out, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                rows.append({row})
        for row in rows:
            print("row", row)
        """,
        same=("row",),
    )
    for row in (
        "[epoch, step, round(loss.item(), 4)]",
        "(step, (out.argmax(1) == target).sum().item(), len(target))",
        '{"step": step, "right": {"sum": (out.argmax(1) == target).sum().item()}}',
        'f"{step} {loss.item():.4f}"',
        '"%d %.4f" % (step, loss.item())',
        'str(step) + " " + str((out.argmax(1) == target).sum().item())',
    )
}
SCRIPTS |= {
    "some rows of the last batch beside what the model makes, in a list that is written out, in a file": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, _ in loader:
                loss = F.mse_loss(net(rows), rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                made = net(torch.ones(2, 8))
                torch.save(torch.cat([made, rows[:2]], dim=0), f"set{epoch}.pt")
        """,
        apart=("values",),
    ),
    "some rows of all batches, in a list that grows, in a file": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
        net = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        kept = []
        for epoch in range(2):
            for rows, _ in loader:
                loss = F.mse_loss(net(rows), rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                kept.append(net(rows).detach().std())
        torch.save(torch.stack([kept[0], kept[-1]]), "kept.pt")
        """,
        told=("DDP404",),
    ),
}

_UNTIL = """
import time

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
end, epoch = time.time() + 3600, 0
while time.time() < end and epoch < 3:
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(rows), wanted)
        STOP
        loss.backward()
        optimizer.step()
    epoch += 1
print("epochs", epoch)
"""

SCRIPTS |= {
    "a loop that ends by the clock, and leaves out batches without a loss": Script(
        _UNTIL.replace("STOP", "if torch.isnan(loss):\n            continue"),
        same=("epochs",),
    ),
    "a batch that is left out, or ends the epoch, by two tests in a row": Script(
        _UNTIL.replace("time.time() < end and ", "").replace(
            "STOP",
            """if torch.isnan(loss):
            print("left out")
            continue
        elif torch.isinf(loss):
            break""",
        ),
        same=("epochs",),
    ),
}

_ASKED_FOR = """
loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(rows), wanted)
        loss.backward()
        optimizer.step()
batches, total, at, outputs = iter(loader), 0.0, 0, []
while True:
    try:
        rows, wanted = next(batches)
    except StopIteration:
        break
    with torch.no_grad():
        STEP
    at += 1
"""
SCRIPTS |= {
    "a total over batches that are asked for one by one": Script(
        _ASKED_FOR.replace("STEP", "total += F.cross_entropy(model(rows), wanted).item()") + 'print(f"average {total / at:.6f}")\n',
        same=("average",),
    ),
    "outputs of batches that are asked for one by one": Script(
        _ASKED_FOR.replace("STEP", "outputs.append(model(rows))") + 'print(f"mean {torch.cat(outputs).mean():.6f}")\n',
        same=("mean",),
    ),
    "a file for each batch that is asked for": Script(
        _ASKED_FOR.replace("STEP", 'torch.save(model(rows), f"batch{at}.pt")'),
        told=("DDP404",),
    ),
}
_LOGGER = """
    class Log:
        def __init__(self):
            self.kept = {{}}

        def update(self, values):
            for key, value in values.items():
                if torch.is_tensor(value):
                    values[key] = value.item()
                self.kept.setdefault(key, []).append(values[key])

        def save(self):
            with open("log.txt", "w") as file:
                {save}


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    log = Log()
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.update({{"loss": loss, "rate": 0.1}})
        log.save()
    for key, values in log.kept.items():
        print("kept", " ".join("%.6f" % value for value in values))
"""
SCRIPTS["losses that an object keeps in lists of a dict, written as a text"] = Script(
    _LOGGER.format(save='file.write("%s" % (self.kept,))'), same=("kept",)
)
SCRIPTS["losses that an object keeps in lists of a dict, written line by line"] = Script(
    _LOGGER.format(save='file.writelines("{} {}\\\\n".format(key, values) for key, values in self.kept.items())'), same=("kept",)
)
SCRIPTS["losses that an object keeps in lists of a dict, dumped"] = Script(
    "    import json\n" + _LOGGER.format(save="json.dump(self.kept, file)"), same=("kept",)
)
SCRIPTS["the last average of the losses so far, in a text that is shown in the loop and after it"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        for i, (rows, kinds) in enumerate(DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True), 1):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            said = f"right {total / i:.6f}"
        print(said)
    """,
    same=("right",),
)
SCRIPTS["a log that is guarded with all it does, of the loss of each batch"] = Script(
    """
    class Log:
        def __init__(self):
            self.losses = []

        def add(self, value):
            self.losses.append(value)
            print("now", value)


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    log = Log()
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.add(loss.item())
    print("right %.6f" % (sum(sorted(log.losses)[:7]) / 7))
    """,
    same=("right",),
)
SCRIPTS["a total over all epochs of the losses of the batches that have a label"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0.0
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if kinds.max() > 0:
                total += loss.item()
        print(total)
    """,
    told=("DDP404",),
)
_KEPT_IN_A_LOOP = """
    class Log:
        def __init__(self):
            self.seen = {{}}

        def put(self, value):
            self.seen.setdefault("sizes", []).append(value)


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        log, kept = Log(), []
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for k in {passes}:
                {put}
        print("sizes", log.seen, kept)
"""
SCRIPTS |= {
    f"numbers of a batch that {what} keeps, once for each of {of}": Script(
        _KEPT_IN_A_LOOP.format(passes=passes, put=put), told=() if alike else ("DDP404",)
    )
    for what, put in (("an object", "log.put((rows**2).mean().item())"), ("a list", "kept.append((rows**2).mean().item())"))
    for of, passes, alike in (
        ("its columns", "range(rows.size(1))", True),
        ("the model's parameters", "list(net.parameters())", True),
        ("the labels in it", "kinds.unique()", False),
        ("the numbers below its largest", "range(int(rows.max() * 3))", False),
        ("the labels in it as a set", "set(kinds.tolist())", False),
    )
}
SCRIPTS["a total of averages over a batch, one for each of its rows that have a label"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for row in rows[kinds > 0]:
                total += (rows**2).mean().item()
        print(total)
    """,
    told=("DDP404",),
)
_LAST_SHOWN = """
    def as_images(rows):
        rows = 0.5 * (rows + 1)
        rows = rows.clamp(0, 1)
        return rows.view(rows.size(0), 1, 2, 4)


    class Maker:
        def images(self, rows):
            return as_images(rows)


    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    maker = Maker()
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            out = net(rows)
            loss = F.mse_loss(out, rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch [{{}}/3], loss:{{:.6f}}".format(epoch + 1, loss.item()))
        pictures = {made}
        print("now", pictures[0].flatten().tolist())
"""
SCRIPTS |= {
    f"the last batch's outputs, made images by {how}, which are shown": Script(_LAST_SHOWN.format(made=made), same=("epoch",))
    for how, made in (("a function", "as_images(out.cpu().data)"), ("a method", "maker.images(out.detach())"))
}
SCRIPTS["means of the losses of some steps, kept beside the loss of each"] = Script(
    """
    import numpy as np

    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    for epoch in range(3):
        means, losses = [], []
        for _ in range(2):
            steps = []
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps.append(loss.item())
            means.append(np.mean(steps))
            losses.append(loss.item())
        print("means %.6f %.6f" % (np.mean(means), np.mean(losses)))
    """,
    same=("means",),
)
SCRIPTS["the worst loss of all epochs"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    worst = 0.0
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            worst = max(worst, loss.item())
        print("worst %.6f" % worst)
    """,
    same=("worst",),
)

SCRIPTS["what is shown and written of batches beside the training, and a number that fades"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=False)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)


    def show():
        for rows, kinds in loader:
            print("mean %.5f" % rows.mean().item())
            break


    def largest():
        for rows, kinds in loader:
            yield rows.max().item()


    show()
    fading = 0.0
    for rows, kinds in loader:
        losses = F.cross_entropy(net(rows), kinds, reduction="none")
        sgd.zero_grad()
        losses.mean().backward()
        sgd.step()
        fading = 0.9 * fading + 0.1 * losses.max().item()
    print("fading %.5f" % fading)
    for i, (rows, kinds) in enumerate(loader):
        print("sum", i, "%.5f" % rows.sum().item())
    with open("sums.txt", "w") as sums:
        for rows, kinds in loader:
            sums.write("%.5f\\n" % rows.sum().item())
    with open("tops.txt", "w") as tops:
        for top in largest():
            tops.write("%.5f\\n" % top)
    print("first %.5f" % next(iter(loader))[0].sum().item(), ["%.5f" % rows.sum().item() for rows, _ in loader])
    """,
    told=("DDP404",),
)

SCRIPTS["several rows for each token of a sentence, and a number that fades"] = Script(
    """
    class Words(Dataset):
        def __len__(self):
            return 42

        def __getitem__(self, i):
            return torch.arange(i, i + 5) % 9, torch.arange(i, i + 5) % 4


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.out = nn.Embedding(9, 6), nn.Linear(6, 4)

        def forward(self, rows):
            return self.out(self.words(rows)).view(-1, 4)


    loader = DataLoader(Words(), batch_size=6, shuffle=True)
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    fading = 0.0
    for epoch in range(2):
        for words, tags in loader:
            losses = F.cross_entropy(net(words), tags.view(-1), reduction="none")
            sgd.zero_grad()
            losses.mean().backward()
            sgd.step()
            fading = 0.9 * fading + 0.1 * losses.max().item()
    print("fading %.6f" % fading)
    """,
    told=("DDP404",),
)

SCRIPTS["two networks, one of which judges the other, and a number that fades"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:42]), batch_size=6, shuffle=True)
    maker = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8))
    judge = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1))
    makes, judges = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=0.1)
    fading = 0.0
    for epoch in range(2):
        for (rows,) in loader:
            seeds = rows[:, :3] * 0.5
            fake = maker(seeds)
            judges.zero_grad()
            loss = (judge(fake.detach()) - judge(rows)).pow(2).mean() + judge(rows).std()
            loss.backward()
            judges.step()
            makes.zero_grad()
            score = judge(fake)
            weights = 0.01 * sum(p.pow(2).sum() for p in maker.parameters())
            (-score.mean() + score.max() + 0.1 * (fake - rows).abs().max() + weights).backward()
            makes.step()
            fading = 0.9 * fading + 0.1 * loss.item()
    print("fading %.6f" % fading)
    """,
    told=("DDP404",),
)
SCRIPTS["what is added up from 0 on, with its sign turned"] = Script(
    """
    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    feed = DataLoader(TensorDataset(x, y), batch_size=6)
    for epoch in range(2):
        seen = 0.0
        for rows, kinds in feed:
            gain = 0.0
            for scale in (1, 2):
                gain = gain - F.cross_entropy(net(rows) * scale, kinds, reduction="sum")
            sgd.zero_grad()
            (-gain).backward()
            sgd.step()
            seen += gain.item()
        print("loss %.5f" % (-seen / len(feed.dataset)))
    """,
    same=("loss",),
)

SCRIPTS |= {
    "a function that says by the loss whether to leave a batch out": Script(
        """
        import math


        def is_broken(number):
            if not math.isfinite(number):
                return True
            return False


        x[6, 3] = float("nan")
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=False)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        left_out = 0
        for epoch in range(4):
            for rows, wanted in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(rows), wanted)
                if is_broken(loss.item()):
                    left_out += 1
                    continue
                loss.backward()
                optimizer.step()
        print("left out", left_out)
        """,
        same=("left out",),
    ),
    "a function that says by the clock or a file whether to save and stop": Script(
        """
        import os
        import sys
        import time


        def is_late(folder, began, epoch):
            if time.time() - began > 3600:
                return True
            return os.path.exists(os.path.join(folder, f"stop{epoch}"))


        def save(folder, epoch):
            path = os.path.join(folder, f"model{epoch}.pt")
            torch.save(model.state_dict(), path)
            return path


        began = time.time()
        os.makedirs("saved", exist_ok=True)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        if os.path.exists("saved/model0.pt"):
            model.load_state_dict(torch.load("saved/model0.pt"))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, wanted in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), wanted).backward()
                optimizer.step()
            if is_late("saved", began, epoch):
                print("saved", save("saved", epoch))
                sys.exit(0)
        """,
        same=("saved",),
        files={"saved/stop2": ""},
    ),
}

SCRIPTS |= {
    "an accuracy of what was seen so far, shown in the loop, and one of all after it": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        count = len(loader.dataset)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            right, seen = 0, 0.0
            for rows, wanted in loader:
                optimizer.zero_grad()
                output = model(rows)
                F.cross_entropy(output, wanted).backward()
                optimizer.step()
                right += output.argmax(1).eq(wanted).sum().item()
                seen += torch.ones(len(rows)).sum().item()
                share = seen / count
                so_far = seen / count
                print("so far", so_far)
            print("shown at last", share)
            print("right", right / count)
        """,
        same=("so far", "shown", "right"),
    ),
}
SCRIPTS["a score of the first batch of a loader that trains"] = Script(
    """
    def score(net, loader):
        rows, kinds = next(iter(loader))
        with torch.no_grad():
            return F.cross_entropy(net(rows), kinds).item()


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[30:], y[30:]), batch_size=8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        ours, theirs = score(model, loader), score(model, test_loader)
        print("test", f"{theirs:.5f}")
        print("train", ours > 0)
    """,
    same=("test",),
)
SCRIPTS["a stop where a list holds something, and a score gets worse"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[30:], y[30:]), batch_size=8)
    model, scores = nn.Linear(8, 2), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(6):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        with torch.no_grad():
            right, count = 0, 0
            for i, (rows, labels) in enumerate(test_loader):
                if i == 1:
                    break
                right += (model(rows).argmax(1) == labels).sum().item()
        if scores and right <= scores[-1]:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
        scores.append(right)
        print("rate", optimizer.param_groups[0]["lr"], right)
    """,
    same=("rate",),
)
SCRIPTS["what a model gets right of the loader that trains it"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    right = []
    for rows, kinds in loader:
        with torch.no_grad():
            right.append((net(rows).argmax(1) == kinds).double())
    print(f"right {torch.cat(right).mean().item():.6f}")
    """,
    same=("right",),
)
SCRIPTS["an evaluation whose batches have numbers, which training alone reads"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8, shuffle=True)
    others = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=4)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(6):
        net.train()
        for step, (rows, labels) in enumerate(loader):
            (F.cross_entropy(net(rows), labels) / 2).backward()
            if step % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
        net.eval()
        total, found = 0.0, []
        for step, (rows, labels) in enumerate(others):
            with torch.no_grad():
                scores = net(rows)
            total += F.cross_entropy(scores, labels).item()
            found.extend(scores.argmax(1).tolist())
        print("total", "%.6f" % (total / len(others)), found)
    """,
    same=("total",),
)
SCRIPTS["averages of each sample over a list of dimensions, of which the largest is kept"] = Script(
    """
    def each_of(rows):
        return rows.mean(dim=list(range(1, len(rows.shape))))


    loader = DataLoader(TensorDataset(x[:40].view(40, 2, 4)), batch_size=8, shuffle=True)
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        found, worst = [], 0.0
        for (rows,) in loader:
            losses = each_of((net(rows) - rows) ** 2)
            optimizer.zero_grad()
            (losses * (1 + rows[:, 0, 0].abs())).mean().backward()
            optimizer.step()
            found.extend(losses.tolist())
            worst = max(worst, losses.max().item())
        print("losses", len(found), "%.6f %.6f" % (sum(found) / len(found), worst))
    """,
    same=("losses",),
)
SCRIPTS["how often each pair of a label and a guess occurs, counted of rows that are chosen and of all"] = Script(
    """
    import numpy as np


    def counted(labels, guesses, kinds):
        valid = (labels >= 0) & (labels < kinds)
        return np.bincount(kinds * labels[valid].astype(int) + guesses[valid], minlength=kinds**2).reshape(kinds, kinds)


    loader = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8, shuffle=True)
    others = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=4)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        pairs = torch.zeros(4, dtype=torch.long)
        for rows, labels in loader:
            scores = net(rows)
            loss = F.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pairs += torch.bincount(labels * 2 + scores.argmax(1), minlength=4)
        table = np.zeros((2, 2))
        with torch.no_grad():
            for rows, labels in others:
                table += counted(labels.numpy().flatten(), net(rows).argmax(1).numpy().flatten(), 2)
        print("pairs", pairs.tolist(), table.tolist(), np.diag(table) / table.sum(1))
    """,
    same=("pairs",),
    options=Options(whole_batches="never"),
)
_AFFINE = """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    SIZE = 12
    loader = DataLoader(TensorDataset(x, y), batch_size=SIZE, shuffle=True)
    seen = 0


    def step(rows, labels):
        global seen
        scores = model(rows)
        loss = LOSS
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(rows)
        RATE
        return (scores.argmax(1) == labels).sum().item()


    for epoch in range(4):
        hits, running = 0, []
        for n, (rows, labels) in enumerate(loader):
            right = step(rows, labels)
            hits += ADDED
            now = KEPT
            running.append(now)
        print("hits", hits / len(loader), "%.4f" % sum(running))
    """
_MEAN = "F.cross_entropy(scores, labels)"
_FACTOR = 'optimizer.param_groups[0]["lr"] = 0.1 * (1 - seen / (5 * len(loader.dataset)))'


def _affine(loss: str = _MEAN, rate: str = "pass", added: str = "right", kept: str = "n") -> Script:
    text = _AFFINE.replace("LOSS", loss).replace("RATE", rate).replace("ADDED", added).replace("KEPT", kept)
    return Script(text, same=("hits",), options=Options(whole_batches="never"))


SCRIPTS |= on_three(
    {
        "running averages of what is averaged after the loop, too": _affine(kept="hits / (right + 1)"),
        "a rate that goes down with the samples seen by a function": _affine(rate=_FACTOR),
        "a total divided by one sample less": _affine('F.cross_entropy(scores, labels, reduction="sum") / (len(rows) - 1)'),
        "a total divided by some samples more": _affine('F.cross_entropy(scores, labels, reduction="sum") / (labels.numel() + 5)'),
        "a total divided by one more than the batch size": _affine('F.cross_entropy(scores, labels, reduction="sum") / (SIZE + 1)'),
        "a total divided by twice the batch size": _affine('F.cross_entropy(scores, labels, reduction="sum") / (2 * SIZE)'),
        "a total divided by a count that is never zero": _affine('F.cross_entropy(scores, labels, reduction="sum") / (len(rows) + 1e-8)'),
        "hits and one more of each batch": _affine(added="right + 1"),
        "a count of each batch and some more": _affine(added="len(rows) + 2"),
    },
    rows=36,
)
SCRIPTS["a batch's length and something more, asked for"] = Script(
    """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(6):
        for rows, labels in DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True):
            more = 20 - rows.shape[0]
            if more > 10:
                continue
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
    """,
    ranks=(2, 3),
)
SCRIPTS["a batch's numbers and the square of its length, kept in a list"] = Script(
    """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        kept = []
        for rows, labels in DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True):
            scores = model(rows)
            loss = F.cross_entropy(scores, labels)
            right = (scores.argmax(1) == labels).sum().item()
            part = (float(right) + labels.numel() ** 0.5) / max(rows.shape[0] * rows.shape[0] / 14.0, 1)
            kept.append(part)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("kept %.5f" % (sum(kept) / max(len(kept), 1)), "%.5f" % max(kept))
    """,
    same=("kept",),
    rows=36,
)
_WITHIN = """
    class Average:
        def __init__(self):
            self.sum = self.count = self.avg = 0

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n
            self.avg = self.sum / self.count

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    held_out = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=8)

    def evaluate():
        total = 0.0
        with torch.no_grad():
            for rows, labels in held_out:
                total += F.cross_entropy(model(rows), labels).item() * len(labels)
        return total / 20, 20 / total

    history = []
    for epoch in range(3):
        for step, (rows, labels) in enumerate(loader):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
            if step % 4 == 0:
                found = 0
                EVALUATION
        print("held out %.6f" % FOUND)
    print("history", history)
    """
_INLINE = """for rows, labels in OVER:
                    with torch.no_grad():
                        found += (model(rows).argmax(1) == labels).sum().item()"""
_OBJECT = """seen = Average()
                for rows, labels in held_out:
                    with torch.no_grad():
                        seen.update(F.cross_entropy(model(rows), labels).item(), len(labels))"""
SCRIPTS |= {
    f"an evaluation within the batches, read after them: {title}": Script(
        _WITHIN.replace("EVALUATION", text).replace("FOUND", found), same=("held out", "history")
    )
    for title, text, found in (
        ("a loop", _INLINE.replace("OVER", "held_out"), "found"),
        ("a loop over the same loader", _INLINE.replace("OVER", "loader"), "found"),
        ("a function", "found, _ = evaluate()", "found"),
        ("one of a function's numbers, kept in a list", "history.append(evaluate()[0])", "found"),
        ("a meter", _OBJECT, "(seen.avg + seen.count)"),
    )
}

# --- a number of each batch that no average gives, of all ranks' rows ------------------------------------------------------
_SCORED = """
    import numpy as np
    from sklearn.metrics import f1_score

    class Answer(dict):
        pass

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(8, 2)

        def forward(self, rows, labels=None):
            answer = Answer()
            answer.logits = self.last(rows)
            answer.loss = F.cross_entropy(answer.logits, labels) if labels is not None else None
            return answer

    def spread(scores, labels):
        return ((scores.max() - scores.min()) * (labels + scores).std()).item()

    def scores_of(logits, labels):
        guesses = (np.exp(logits) / np.exp(logits).sum(1, keepdims=True))[:, 1] > 0.45
        return np.sum(guesses == labels) / len(labels), f1_score(labels, guesses)

    model = Net()
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    best = 0.0
    for epoch in range(3):
        total, right, hits, seen = 0.0, 0.0, 0, []
        for step, (rows, labels) in enumerate(loader):
            answer = model(rows, labels=labels)
            optimizer.zero_grad()
            answer.loss.backward()
            optimizer.step()
            LINES
        print("score %.6f %.6f %.6f" % (total / len(loader), right / len(loader), best), hits, len(seen))
"""
_SCORES = {
    "a function of the script's, of arrays": """logits = answer.logits.detach().cpu().numpy()
            labels = labels.to("cpu").numpy()
            accuracy, score = scores_of(logits, labels)
            total += score
            right += accuracy""",
    "a library's, written at once": "total += f1_score(labels.numpy(), answer.logits.argmax(1).numpy())",
    "one of tensors, with their graph": "total += spread(answer.logits[:, 1], labels)",
    "in every second batch": """if step % 2 == 0:
                total += f1_score(labels.numpy(), answer.logits.argmax(1).numpy())""",
    "the largest": "best = max(best, f1_score(labels.numpy(), answer.logits.argmax(1).numpy()))",
    "beside a count of the same guesses": """guesses = answer.logits.argmax(1).cpu().numpy()
            gold = labels.numpy()
            total += f1_score(gold, guesses)
            hits += int((guesses == gold).sum())""",
    "beside the guesses themselves": """guesses = answer.logits.argmax(1).cpu().numpy()
            total += f1_score(labels.numpy(), guesses)
            seen.extend(guesses)""",
}
SCRIPTS |= {
    f"a score of each batch that is no average: {title}": Script(_SCORED.replace("LINES", lines), same=("score",))
    for title, lines in _SCORES.items()
}
SCRIPTS["a score of batches that a rank's own loss chooses"] = Script(
    _SCORED.replace("LINES", "if answer.loss.item() < 0.7:\n                " + _SCORES["a library's, written at once"]), told=("DDP404",)
)
SCRIPTS["spreads of the training loader's batches, averaged before it trains"] = Script(
    """
    loader = DataLoader(TensorDataset(x, y.float()), batch_size=8)
    mean, spread = 0.0, 0.0
    for rows, _ in loader:
        mean += rows.mean(0)
        spread += rows.std(0)
    mean /= len(loader)
    spread /= len(loader)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        for rows, labels in loader:
            loss = F.binary_cross_entropy_with_logits(model((rows - mean) / spread).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("loss %.6f" % (total / len(loader)))
    """,
    same=("loss",),
)
SCRIPTS["scores of a test loader's batches, whose size the model keeps where it is another"] = Script(
    """
    from sklearn.metrics import roc_auc_score

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.size = 8
            self.last = nn.Linear(8, 1)

        def forward(self, rows):
            if rows.size(0) != self.size:
                self.size = rows.size(0)
            return self.last(rows).view((self.size, 1)).squeeze(1)

    loader = DataLoader(TensorDataset(x, y.float()), batch_size=8)
    test_loader = DataLoader(TensorDataset(x, y.float()), batch_size=8)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            loss = F.binary_cross_entropy_with_logits(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            total = sum(roc_auc_score(labels.numpy(), model(rows).numpy()) for rows, labels in test_loader)
            score = 0.0
            for rows, labels in test_loader:
                score += roc_auc_score(labels.numpy(), model(rows).numpy())
        print("score %.6f %.6f" % (score / len(test_loader), total / len(test_loader)))
    """,
    same=("score",),
)
SCRIPTS["a share of right answers, of how many rows there are that a network has viewed by their sizes"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 1)

        def forward(self, rows):
            return self.layer(rows.view(rows.size(0), -1)).view(len(rows.shape) and rows.size(0))


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    feed = DataLoader(TensorDataset(x.view(44, 2, 4), y.float()), batch_size=8, shuffle=True)
    for epoch in range(3):
        right = 0
        for rows, kinds in feed:
            scores = net(rows)
            loss = F.binary_cross_entropy_with_logits(scores, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            found = (torch.round(torch.sigmoid(scores)) == kinds).float()
            right += (found.sum() / len(found)).item()
        print("right", round(right / len(feed), 6))
    """,
    same=("right",),
)
SCRIPTS["a forward that ends early in training, and a test where the validation is better"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1)

        def forward(self, rows):
            out = self.last(torch.relu(self.norm(self.inner(rows))))
            if self.training:
                return out
            return out.clamp(-1, 1)


    def judge(net, batches):
        net.eval()
        found, wanted = [], []
        for rows, kinds in batches:
            with torch.no_grad():
                found.append(net(rows).view(-1))
            wanted.append(kinds.float())
        return (torch.cat(found) - torch.cat(wanted)).abs().mean().item()


    def predict(net, batches):
        net.eval()
        found = []
        for rows, kinds in batches:
            with torch.no_grad():
                found.append(net(rows).view(-1))
        return torch.cat(found)


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=4, shuffle=True)
    valid_loader = DataLoader(TensorDataset(x[24:34], y[24:34]), batch_size=4)
    test_loader = DataLoader(TensorDataset(x[34:], y[34:]), batch_size=4)
    best = 9.0
    for epoch in range(3):
        net.train()
        for rows, kinds in loader:
            loss = F.l1_loss(net(rows).view(-1), kinds.float())
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        valid = judge(net, valid_loader)
        print("valid", round(valid, 3))
        if valid < best:
            best = valid
            print("test", round(predict(net, test_loader).sum().item(), 3))
    """,
    same=("valid", "test"),
)
