"""Scripts that keep something of their batches for later steps, and models made anew in folds."""

from scripts import Script, on_three

from ddpify import Options

NUMBERED = """
    class Numbered(Dataset):
        def __len__(self):
            return 42

        def __getitem__(self, index):
            return x[index], y[index], index


    loader = DataLoader(Numbered(), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
PLAIN = """
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_KEPT = (
    PLAIN
    + """
    k = 0.3
    for epoch in range(3):
        for data, target in loader:
            near, far = F.cross_entropy(model(data), target), model(data).pow(2).mean()
            loss = near - k * far
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            diff = (0.7 * near - far).detach()
            k = k + 0.05 * diff.item()
            k = min(max(k, 0), 0.4)
    print("kept", round(k, 6))
"""
)
_POOL = """
import random


class Pool:
    def __init__(self, size=12):
        self.size = size
        self.images = []

    def query(self, images):
        if self.size == 0:
            return images
        out = []
        for image in images.data:
            image = torch.unsqueeze(image, 0)
            if len(self.images) < self.size:
                self.images.append(image)
                out.append(image)
            elif random.uniform(0, 1) > 0.5:
                at = random.randint(0, self.size - 1)
                old = self.images[at].clone()
                self.images[at] = image
                out.append(old)
            else:
                out.append(image)
        return torch.cat(out, 0)


random.seed(1)
torch.manual_seed(0)
G = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
D = nn.Linear(8, 1)
pool = Pool()
g_optimizer = torch.optim.SGD(G.parameters(), lr=0.1)
d_optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
train_loader = DataLoader(TensorDataset(x[:36], x[:36].flip(0)), batch_size=6, shuffle=True)
for epoch in range(3):
    for source, target in train_loader:
        made = G(source)
        real, fake = torch.ones(source.size(0), 1), torch.zeros(source.size(0), 1)
        g_optimizer.zero_grad()
        loss_g = F.mse_loss(D(made), real) + F.l1_loss(made, target)
        loss_g.backward()
        g_optimizer.step()
        d_optimizer.zero_grad()
        earlier = pool.query(made)
        loss_d = F.mse_loss(D(target), real) + F.mse_loss(D(earlier.detach()), fake)
        loss_d.backward()
        d_optimizer.step()
torch.save({"G": G.state_dict(), "D": D.state_dict()}, "last.pt")
"""
_IN_PLACE = {
    "in a chain": "centre.mul_(0.9).add_(out.detach().mean(0), alpha=0.1)",
    "in a chain of its data": "centre.data.mul_(0.9).add_(out.data.mean(0) * 0.1)",
    "as its data": "centre.data = 0.9 * centre.data + 0.1 * out.detach().mean(0)",
    "by a copy": "centre.copy_(0.9 * centre + 0.1 * out.detach().mean(0))",
}


def _centred(line: str, loss: str = "F.cross_entropy(out - centre, kinds)") -> Script:
    """A script whose loss depends on what a line of each step keeps of all batches until then."""
    return Script(f"""\
net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
centre, seen, total = torch.zeros(2), 0, torch.zeros(())
for epoch in range(2):
    for rows, kinds in feed:
        out = net(rows)
        loss = {loss}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        {line}
""")


def _criterion(kept: str, line: str) -> Script:
    """A script whose criterion keeps something of all batches until then."""
    return Script(f"""\
class Criterion(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", {kept})

    def forward(self, out, kinds):
        {line}
        return F.cross_entropy(out - self.kept.clone()[kinds], kinds)


net, criterion = nn.Linear(8, 2), Criterion()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
        loss = criterion(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""")


def _chosen(line: str, test: str = "loss.item() > 0.7") -> Script:
    """A script that does something to its model in steps with a number of their own."""
    return Script(f"""\
net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)


def bounded(module):
    for weight in module.parameters():
        weight.data.clamp_(-0.3, 0.3)


least = argparse.Namespace(rows=5).rows
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x[:38], y[:38]), batch_size=6, shuffle=True, drop_last=True):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if {test}:
            {line}
""")


# What is kept from batch to batch: how it begins, what adds to it, and what the loss takes of it.
_CONTAINERS = {
    "numbers of samples in a set": ("set()", "kept.update(numbers.tolist())", "each.mean() * (1 + len(kept) / 42)"),
    "a set that is united": ("set()", "kept |= set(numbers.tolist())", "each.mean() * (1 + len(kept) / 42)"),
    "a set that is asked": (
        "set()",
        "kept = kept.union(n for n, l in zip(numbers.tolist(), each.tolist()) if l > 0.6)",
        "(each * torch.tensor([2.0 if int(n) in kept else 1.0 for n in numbers])).mean()",
    ),
    "a counter": (
        "Counter()",
        "kept.update(kinds.tolist())",
        "F.cross_entropy(out, kinds, weight=torch.tensor([1 / (1 + kept[k]) for k in (0, 1)]))",
    ),
    "a sum of counters": (
        "Counter()",
        "kept = kept + Counter(kinds.tolist())",
        "F.cross_entropy(out, kinds, weight=torch.tensor([1 / (1 + kept[k]) for k in (0, 1)]))",
    ),
    "a list of all losses": ("[]", "kept.extend(each.tolist())", "each.mean() * (1 + len(kept) / 100)"),
    "a list of all losses, sorted": (
        "[]",
        "kept += each.tolist()",
        "(each * (each.detach() >= (sorted(kept)[len(kept) // 2] if kept else 0))).mean()",
    ),
    "the last losses": (
        "deque(maxlen=24)",
        "kept.extend(each.detach().numpy())",
        "(each * (each.detach() >= (float(np.median(kept)) if kept else 0))).mean()",
    ),
    "a heap of the largest losses": (
        "[]",
        "for l in each.tolist(): heapq.heappush(kept, l)",
        "(each * (each.detach() >= (kept[0] if kept else 0) + 0.2)).mean()",
    ),
    "losses in their order": (
        "[]",
        "for l in each.tolist(): bisect.insort(kept, l)",
        "(each * (each.detach() >= (kept[len(kept) // 2] if kept else 0))).mean()",
    ),
    "the first outputs of all samples": (
        "{}",
        "for n, row in zip(numbers.tolist(), out.detach()): kept.setdefault(n, row)",
        "each.mean() + ((out - torch.stack([kept.get(n, torch.zeros(2)) for n in numbers.tolist()])) ** 2).mean()",
    ),
    "losses in an array": (
        "np.zeros(42)",
        "kept[numbers.numpy()] = each.detach().numpy()",
        "(each * torch.from_numpy(1 + kept[numbers.numpy()]).float()).mean()",
    ),
    "counts in an array": (
        "np.ones(2)",
        "np.add.at(kept, kinds.numpy(), 1)",
        "F.cross_entropy(out, kinds, weight=torch.from_numpy(1 / kept).float())",
    ),
    "counts of kinds in an array": (
        "np.ones(2)",
        "kind, number = np.unique(kinds.numpy(), return_counts=True); kept[kind] += number",
        "F.cross_entropy(out, kinds, weight=torch.from_numpy(1 / kept).float())",
    ),
    "outputs one below another": (
        "np.zeros((1, 2))",
        "kept = np.vstack((kept, out.detach().numpy()))",
        "each.mean() + ((out - torch.from_numpy(kept.mean(0)).float()) ** 2).mean()",
    ),
}


def _contained(kept: str, line: str, loss: str) -> Script:
    """A script whose loss depends on what a container has of all batches until then."""
    return Script(f"""\
import bisect
import heapq
from collections import Counter, deque

import numpy as np

net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(TensorDataset(x[:42], y[:42], torch.arange(42)), batch_size=6, shuffle=True)
kept = {kept}
for epoch in range(2):
    for rows, kinds, numbers in feed:
        out = net(rows)
        each = F.cross_entropy(out, kinds, reduction="none")
        loss = {loss}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        {line}
""")


def _of_a_pass(kept: str, line: str, made: str) -> Script:
    """A script that weighs its samples by what a pass over all of them, without gradients, has kept of them."""
    return Script(f"""\
import heapq

net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(x[:42], y[:42], torch.arange(42))
feed, whole = DataLoader(data, batch_size=6, shuffle=True), DataLoader(data, batch_size=6)
for epoch in range(2):
    kept = {kept}
    with torch.no_grad():
        for rows, kinds, numbers in whole:
            each = F.cross_entropy(net(rows), kinds, reduction="none")
            {line}
    weights = torch.ones(42)
    {made}
    for rows, kinds, numbers in feed:
        each = F.cross_entropy(net(rows), kinds, reduction="none")
        loss = (each * weights[numbers]).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""")


_CHOSEN = {
    "its weights are scaled": "net[0].weight.data.mul_(0.9)",
    "its weights are bounded in a loop": "for weight in net.parameters(): weight.data.clamp_(-0.3, 0.3)",
    "its weights are bounded by a function": "bounded(net)",
    "a row of its weights is written": "with torch.no_grad(): net[0].weight[0] = 0.1",
    "a layer is frozen": "net[0].requires_grad_(False)",
    "a weight is frozen": "net[0].weight.requires_grad = False",
}
SCRIPTS: dict[str, Script] = {
    "a buffer of a criterion that follows the outputs": _criterion(
        "torch.zeros(2, 2)", "self.kept.mul_(0.9).add_(out.detach().mean(0), alpha=0.1)"
    ),
    "a buffer of a criterion with an entry for each class": _criterion(
        "torch.zeros(2, 2)",
        "for kind in range(2):\n            if (kinds == kind).any():\n"
        "                self.kept[kind] = 0.5 * self.kept[kind] + 0.5 * out.detach()[kinds == kind].mean(0)",
    ),
    **{f"a step by whose loss {title}": _chosen(line) for title, line in _CHOSEN.items()},
    **{f"kept for later batches: {title}": _contained(*how) for title, how in _CONTAINERS.items()},
    "weights by the largest losses, in a heap": _of_a_pass(
        "[]",
        "for n, l in zip(numbers.tolist(), each.tolist()): heapq.heappush(kept, (-l, n))",
        "for _, n in heapq.nsmallest(10, kept): weights[n] = 2",
    ),
    "weights by those in a list": _of_a_pass(
        "[]",
        "kept += [n for n, l in zip(numbers.tolist(), each.tolist()) if l > 0.6]",
        "for n in kept: weights[n] = 2",
    ),
    "weights by an order of all losses": _of_a_pass(
        "[]", "kept.append(torch.stack((numbers, each), 1))", "weights[torch.cat(kept)[:, 1].argsort()[:20]] = 2"
    ),
    "a step with enough samples": _chosen("bounded(net)", "len(rows) > least"),
    **{f"a running centre that is kept in place, {how}": _centred(line) for how, line in _IN_PLACE.items()},
    "a count of samples beside a loss of the whole batch": _centred(
        "seen += len(kinds)", "F.cross_entropy(out, kinds, weight=1 / torch.bincount(kinds, minlength=2).add(1)) * (1 + seen / 100)"
    ),
    "a running total beside a loss of the whole batch": _centred(
        "total = 0.9 * total + 0.1 * out.detach().sum()", "(out @ out.t()).logsumexp(1).mean() / (1 + total.abs())"
    ),
    "a pool of earlier images, from which a step draws": Script(_POOL),
    "a pool of earlier images that draws from numpy, and keeps gradients": Script(
        _POOL.replace("import random", "import numpy as np")
        .replace("random.uniform(0, 1)", "np.random.rand()")
        .replace("random.randint(0, self.size - 1)", "np.random.randint(self.size)")
        .replace("random.seed(1)", "np.random.seed(1)")
        .replace("images.data", "images")
        .replace("self.images.append(image)", "self.images.append(image.detach())")
        .replace("self.images[at] = image", "self.images[at] = image.detach()")
        .replace(
            "        d_optimizer.zero_grad()\n        earlier = pool.query(made)",
            "        d_optimizer.zero_grad()\n        g_optimizer.zero_grad()\n        earlier = pool.query(G(source))",
        )
        .replace("earlier.detach()", "earlier")
        .replace("        d_optimizer.step()", "        d_optimizer.step()\n        g_optimizer.step()"),
    ),
    "a pool of earlier images that others look into": Script(
        _POOL.replace("        d_optimizer.step()", "        d_optimizer.step()\n        loss_d = loss_d + 0 * pool.images[0].sum()"),
        told=("DDP402", "DDP408"),
    ),
    "a balance of two losses, kept within bounds": Script(_KEPT, same=("kept",)),
    "a balance of two losses, moved where they are apart, and kept within bounds": Script(
        _KEPT.replace("k = k + 0.05", "k += 0.01 if diff < -0.2 else 0.05"), same=("kept",)
    ),
    "a balance of two losses, moved by a number that is chosen where they are apart": Script(
        _KEPT.replace("k = k + 0.05 * diff.item()", "by = 0.01 if diff < -0.2 else 0.05 * diff.item()\n            k = k + by"),
    ),
    "a balance of two losses, no less than the last one": Script(_KEPT.replace("max(k, 0)", "max(k, near.item())"), same=("kept",)),
    "a balance of two losses, of which the larger is kept": Script(
        _KEPT.replace("k = k + 0.05 * diff.item()", "k = max(0.9 * k, diff.item())"), same=("kept",)
    ),
    "a balance of two losses, bounded where a batch says so": Script(
        _KEPT.replace("k = min(max(k, 0), 0.4)", "if near > 0.6:\n                k = min(max(k, 0), 0.4)"), same=("kept",)
    ),
    "samples weighed by their last losses": Script(
        NUMBERED
        + """
    weights = torch.ones(42)
    for epoch in range(3):
        for data, target, index in loader:
            each = F.cross_entropy(model(data), target, reduction="none")
            loss = (each * weights[index]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            weights[index] = each.detach()
"""
    ),
    "a memory of outputs that the loss holds on to": Script(
        NUMBERED
        + """
    memory = torch.zeros(42, 2)
    for epoch in range(3):
        for data, target, index in loader:
            out = model(data)
            loss = F.cross_entropy(out, target) + ((out - memory[index]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            memory[index] = 0.5 * memory[index] + 0.5 * out.detach()
"""
    ),
    "losses by sample, told after each epoch": Script(
        NUMBERED
        + """
    losses = torch.zeros(42)
    for epoch in range(3):
        for data, target, index in loader:
            each = F.cross_entropy(model(data), target, reduction="none")
            optimizer.zero_grad()
            each.mean().backward()
            optimizer.step()
            losses[index] = each.detach()
        print(f"hardest {losses.argmax().item()}, on average {losses.mean():.6f}")
""",
        same=("hardest",),
    ),
    "outputs kept in a dict, sample by sample": Script(
        NUMBERED
        + """
    kept = {}
    for epoch in range(2):
        for data, target, index in loader:
            out = model(data)
            loss = F.cross_entropy(out, target)
            for number, row in zip(index.tolist(), out):
                if number in kept:
                    loss = loss + ((row - kept[number]) ** 2).mean() / 6
                kept[number] = row.detach()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "a running mean of the outputs": Script(
        PLAIN
        + """
    centre = torch.zeros(4)
    for epoch in range(2):
        for data, target in loader:
            out = model(data)
            loss = ((out - centre) ** 2).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            centre = 0.9 * centre + 0.1 * out.detach().mean(0)
"""
    ),
    "a running mean that each epoch starts anew": Script(
        PLAIN
        + """
    def train(epoch):
        level = 1.0
        for data, target in loader:
            out = model(data)
            loss = (out**2).mean() / level
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            level = 0.9 * level + 0.1 * loss.item()


    for epoch in range(3):
        train(epoch)
"""
    ),
    "centres of classes": Script(
        PLAIN
        + """
    centres = torch.zeros(2, 4)
    for epoch in range(2):
        for data, target in loader:
            out = model(data)
            loss = ((out - centres[target]) ** 2).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for kind in range(2):
                if (target == kind).any():
                    centres[kind] = 0.9 * centres[kind] + 0.1 * out.detach()[target == kind].mean(0)
""",
        told=("DDP408",),
    ),
    "a queue of outputs": Script(
        PLAIN
        + """
    queue = torch.ones(12, 4)
    pointer = 0
    for epoch in range(2):
        for data, target in loader:
            keys = model(data)
            loss = (keys @ queue.T).logsumexp(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            queue[pointer : pointer + 6] = keys.detach()
            pointer = (pointer + 6) % 12
""",
    ),
    "a weight that grows with the samples seen": Script(
        PLAIN
        + """
    seen = 0
    for epoch in range(2):
        for data, target in loader:
            seen += len(data)
            weight = min(1.0, seen / 60)
            out = model(data)
            loss = F.cross_entropy(out, target) + weight * (out**2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "schedules from the lengths of loader and data": Script(
        """
    rows = TensorDataset(x[:42], y[:42])
    loader = DataLoader(rows, batch_size=6, shuffle=True, drop_last=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.3, epochs=3, steps_per_epoch=len(loader))
    warm = len(rows) // 6
    done = 0
    for epoch in range(3):
        for i, (data, target) in enumerate(loader):
            done += 1
            if done < warm:
                optimizer.param_groups[0]["momentum"] = 0.5 * done / warm
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            if i == len(loader) - 1:
                print("end of", epoch, done * 6, "of", len(loader.dataset))
""",
        same=("end",),
    ),
    "folds, each with a model and checkpoints of its own": Script(
        """
    from sklearn.model_selection import KFold
    from torch.utils.data import Subset

    everything = TensorDataset(x[:36], y[:36])
    scores = []
    for number, (rows, rest) in enumerate(KFold(n_splits=3, shuffle=True, random_state=0).split(range(36))):
        loader = DataLoader(Subset(everything, rows), batch_size=6, shuffle=True)
        check = DataLoader(Subset(everything, rest), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for data, target in check:
                hits += (model(data).argmax(1) == target).sum().item()
        scores.append(hits / len(rest))
        print(f"part {number}: {scores[-1]:.4f}")
        torch.save(model.state_dict(), f"part{number}.pt")
    print("on average", sum(scores) / len(scores))
""",
        same=("part", "on average"),
    ),
    "folds by samplers, in a function that seeds and resets": Script(
        """
    import random

    import numpy as np
    from torch.utils.data import SubsetRandomSampler

    rows = TensorDataset(x[:42], y[:42])


    def fresh(layer):
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()


    def run(number):
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)
        order = np.random.permutation(42)
        feed = DataLoader(rows, batch_size=6, sampler=SubsetRandomSampler(order[:30]))
        net = nn.Sequential(nn.Linear(8, 3), nn.Tanh(), nn.Linear(3, 2))
        net.apply(fresh)
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            lost = 0.0
            for data, target in feed:
                adam.zero_grad()
                loss = F.cross_entropy(net(data), target)
                loss.backward()
                adam.step()
                lost += loss.item()
            print(f"run {number}: {lost / len(feed):.6f}")


    for number in range(3):
        run(number)
""",
        same=("run",),
    ),
    "rates tried one after another": Script(
        """
    def build():
        return nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))


    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    lowest = None
    for rate in [0.01, 0.1]:
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        total = 0.0
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
                total += loss.item()
        print(f"rate {rate}: {total / len(loader):.6f}")
        if lowest is None or total < lowest:
            lowest = total
            torch.save(model.state_dict(), "lowest.pt")
""",
        same=("rate",),
    ),
    "a split by chance in every run": Script(
        """
    everything = TensorDataset(x[:42], y[:42])
    for number in range(2):
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        part, rest = random_split(everything, [30, 12])
        for epoch in range(2):
            loader = DataLoader(part, batch_size=6, shuffle=True)
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
""",
    ),
    "middles of the classes, moved one by one": Script(
        """
    class Middles(nn.Module):
        def __init__(self, kinds, dim):
            super().__init__()
            self.middle = torch.zeros(kinds, dim)

        def forward(self, found, labels):
            with torch.no_grad():
                for kind in labels.unique():
                    self.middle[kind] = 0.9 * self.middle[kind] + 0.1 * found[labels == kind].mean(0)
            return (found - self.middle[labels]).pow(2).sum(1).mean()

    net, near = nn.Linear(8, 3), Middles(2, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = near(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
        told=("DDP408",),
    ),
}
SCRIPTS = on_three(SCRIPTS)

SCRIPTS |= {
    "a teacher's outputs, computed once for each batch": Script(
        """
        teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).eval()
        student = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=False)
        teacher_outputs = []
        with torch.no_grad():
            for rows, _ in loader:
                teacher_outputs.append(teacher(rows))
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)

        def kd_loss(outputs, labels, teacher_outputs, T=4.0, alpha=0.9):
            return nn.KLDivLoss(reduction="batchmean")(F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1)) * (
                alpha * T * T
            ) + F.cross_entropy(outputs, labels) * (1.0 - alpha)

        for epoch in range(3):
            summ = []
            for i, (rows, kinds) in enumerate(loader):
                out = student(rows)
                loss = kd_loss(out, kinds, teacher_outputs[i])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                summ.append({"loss": loss.item(), "acc": (out.argmax(1) == kinds).float().mean().item()})
            metrics = {k: sum(s[k] for s in summ) / len(summ) for k in summ[0]}
            print("metrics " + " ; ".join(f"{k}: {v:.5f}" for k, v in metrics.items()))
        """,
        same=("metrics",),
    ),
}
_CHOSEN = """
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    heat = 1.0
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows) / heat, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {chosen}
        print(f"heat {heat:.6f}")
"""
_CHOICES = {
    "a number of which the loss chooses the factor": "heat = max(0.5, heat * (0.99 if loss.item() < 0.7 else 1.0))",
    "a number that the loss chooses to scale or to keep": "heat = 0.99 * heat if loss.item() < 0.7 else heat",
    "a number that is scaled where the loss is low": "if loss.item() < 0.7:\n                heat *= 0.99",
}
SCRIPTS |= {title: Script(_CHOSEN.replace("{chosen}", code), same=("heat",)) for title, code in _CHOICES.items()}

SCRIPTS |= {
    "a teacher's outputs for each batch, of which all are read as well": Script(
        """
        teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).eval()
        student = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=False)
        outputs = []
        with torch.no_grad():
            for rows, _ in loader:
                outputs.append(teacher(rows))
        print("spread %.5f" % torch.cat(outputs).std().item())
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(3):
            for i, (rows, kinds) in enumerate(loader):
                loss = F.mse_loss(student(rows), outputs[i])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP404",),
    ),
}

_BANK = """\
class Average(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, numbers, bank):
        {save}
        return rows @ bank.t() / 0.2

    @staticmethod
    def backward(ctx, gradient):
        {read}
        slope = gradient @ bank / 0.2
        {move}
        return slope, None, None


class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", F.normalize(torch.sin(torch.arange(42.0 * 4)).view(42, 4)))

    def forward(self, rows, numbers):
        return Average.apply(rows, numbers, self.rows)


bank, model = Bank(), nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for rows, _, numbers in DataLoader(TensorDataset(x[:42], y[:42], torch.arange(42)), batch_size=6, shuffle=True):
        loss = F.cross_entropy(bank(F.normalize(model(rows)), numbers), numbers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("bank %.5f" % (bank.rows * torch.arange(4)).sum().item())
"""
_SAVED = ("ctx.save_for_backward(rows, numbers, bank)", "rows, numbers, bank = ctx.saved_tensors")
_HELD = ("ctx.bank = bank\n        ctx.save_for_backward(rows, numbers)", "rows, numbers = ctx.saved_tensors\n        bank = ctx.bank")
_ALL_AT_ONCE = "bank.index_copy_(0, numbers, F.normalize(bank[numbers] * 0.5 + rows * 0.5))"
_ONE_BY_ONE = (
    "for row, number in zip(rows, numbers):\n            ctx.bank[number] = 0.5 * ctx.bank[number] + 0.5 * row\n"
    "            ctx.bank[number] /= ctx.bank[number].norm()"
)
_BANKS = {
    "a bank of rows that the gradient of a function moves": (*_SAVED, _ALL_AT_ONCE),
    "a bank of rows that the gradient of a function moves one by one": (*_HELD, _ONE_BY_ONE),
}
SCRIPTS |= {
    title: Script(_BANK.replace("{save}", save).replace("{read}", read).replace("{move}", move), same=("bank",))
    for title, (save, read, move) in _BANKS.items()
}
SHARED = Options(whole_batches="never")
SCRIPTS |= {
    "guesses of an evaluation, of which a data set is made": Script(
        """
    class Rows(Dataset):
        def __init__(self, rows, labels):
            self.rows, self.labels = rows, labels

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, at):
            return self.rows[at], self.labels[at]


    def fit(loader):
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    def guessed(loader):
        found = []
        with torch.no_grad():
            for rows, _ in loader:
                found.append(model(rows).softmax(1))
        return torch.cat(found)


    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, rest = Rows(x[:20], y[:20]), Rows(x[20:], y[20:])
    fit(DataLoader(first, batch_size=4, shuffle=True))
    chances = guessed(DataLoader(rest, batch_size=8))
    sure = chances.max(1).values.argsort()[-12:]
    added = Rows(x[20:][sure], chances.argmax(1)[sure])
    for _ in range(2):
        fit(DataLoader(added, batch_size=2, shuffle=True))
    print("guessed", guessed(DataLoader(rest, batch_size=8)).max().item())
""",
        same=("guessed",),
        options=SHARED,
    ),
    "losses of samples, by which a sampler of each epoch draws": Script(
        """
    data = TensorDataset(x[:40], y[:40], torch.arange(40))
    weights = torch.ones(40)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler = torch.utils.data.WeightedRandomSampler(weights, 40)
        loader = DataLoader(data, batch_size=8, sampler=sampler)
        for rows, labels, numbers in loader:
            each = F.cross_entropy(model(rows), labels, reduction="none")
            optimizer.zero_grad()
            each.mean().backward()
            optimizer.step()
            weights[numbers] = each.detach() + 0.1
        print("heaviest", weights.max().item())
""",
        same=("heaviest",),
        options=SHARED,
    ),
}


_MOVED = """
    def move({given}):
        {body}


    centre = {start}
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model, head = nn.Linear(8, 4), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            out = model(rows)
            loss = F.cross_entropy(head(out), labels) + 0.2 * (out - {read}).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            move({handed}out.detach(), labels)
"""
_MOVES = {
    "a chain": "{c}.mul_(0.9).add_(out.mean(0), alpha=0.1)",
    "a copy": "{c}.copy_(0.9 * {c} + 0.1 * out.mean(0))",
    "a slice": "{c}[:] = 0.9 * {c} + 0.1 * out.mean(0)",
    "one entry": "{c}[0] = out[:, 0].sum()",
    "an output": "torch.maximum({c}, out.abs().amax(0), out={c})",
}


def _moved(body: str, given: bool, start: str = "torch.zeros(4)", read: str = "centre") -> Script:
    """A script in which a function moves a tensor that the loss of later steps reads: one that it is given, or that is around it."""
    parts = {"given": "centre, out, labels" if given else "out, labels", "handed": "centre, " * given, "start": start, "read": read}
    text = _MOVED.replace("{body}", body.replace("{c}", "centre"))
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return Script(text, options=SHARED)


_OF_CLASSES = """for label in range(2):
            chosen = labels == label
            if chosen.any():
                centre[label] = 0.9 * centre[label] + 0.1 * out[chosen].mean(0)"""
SCRIPTS |= {f"a tensor that a function is given and moves, by {how}": _moved(body, True) for how, body in _MOVES.items()}
SCRIPTS |= {f"a tensor around a function that moves it, by {how}": _moved(body, False) for how, body in _MOVES.items()}
SCRIPTS |= {
    "a tensor that a function is given, and gives other data": _moved("centre.data = 0.9 * centre.data + 0.1 * out.mean(0)", True),
    "an entry of a dict, moved by a chain": _moved(
        'centre["all"].mul_(0.9).add_(0.1 * out.mean(0))', False, '{"all": torch.zeros(4)}', 'centre["all"]'
    ),
    "an entry of a list that a function moves": _moved(
        "centre[0] = 0.9 * centre[0] + 0.1 * out.mean(0)", False, "[torch.zeros(4)]", "centre[0]"
    ),
    "rows of classes that a function is given and moves": _moved(_OF_CLASSES, True, "torch.zeros(2, 4)", "centre[labels]"),
    "rows of classes around a function that moves them": _moved(_OF_CLASSES, False, "torch.zeros(2, 4)", "centre[labels]"),
    "rows of classes in a dict that a function moves": _moved(
        _OF_CLASSES, True, "{0: torch.zeros(4), 1: torch.zeros(4)}", "torch.stack([centre[int(label)] for label in labels])"
    ),
    "a queue of keys with a pointer, in a method of the model": Script(
        """
    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.slow = nn.Linear(8, 4), nn.Linear(8, 4).requires_grad_(False)
            self.register_buffer("queue", F.normalize(torch.sin(torch.arange(96.0)).view(4, 24), dim=0))
            self.register_buffer("at", torch.zeros(1, dtype=torch.long))

        @torch.no_grad()
        def put(self, keys):
            size, at = keys.shape[0], int(self.at)
            self.queue[:, at : at + size] = keys.T
            self.at[0] = (at + size) % 24

        def forward(self, rows, others):
            queries = F.normalize(self.encoder(rows), dim=1)
            with torch.no_grad():
                keys = F.normalize(self.slow(others), dim=1)
            near = (queries * keys).sum(1, keepdim=True)
            far = queries @ self.queue.clone().detach()
            self.put(keys)
            return torch.cat([near, far], dim=1) / 0.2


    loader = DataLoader(TensorDataset(x[:40], x[:40].flip(1)), batch_size=8, shuffle=True, drop_last=True)
    model = Pairs()
    optimizer = torch.optim.SGD(model.encoder.parameters(), lr=0.1)
    for epoch in range(3):
        total, seen = 0.0, 0
        for rows, others in loader:
            scores = model(rows, others)
            loss = F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            seen += len(rows)
        print("loss", round(total / seen, 8))
    torch.save(model.state_dict(), "pairs.pt")
""",
        same=("loss",),
        options=SHARED,
    ),
    "rows of classes that a criterion moves, entry by entry": Script(
        """
    class Centres(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(2, 4))

        def forward(self, out, labels):
            loss = (out - self.rows[labels]).pow(2).sum(1).mean()
            self.move(out.detach(), labels)
            return loss

        @torch.no_grad()
        def move(self, out, labels):
            for label in range(2):
                if (labels == label).any():
                    self.rows[label].mul_(0.9).add_(out[labels == label].mean(0), alpha=0.1)


    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model, centres = nn.Linear(8, 4), Centres()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            loss = centres(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
        options=SHARED,
    ),
}
_HELD = """
    import numpy as np

    class Training:
        def __init__(self, net):
            self.net = net
            self.radius = torch.tensor(0.1)

        def fit(self, loader):
            sgd = torch.optim.SGD(self.net.parameters(), lr=0.1)
            for epoch in range(3):
                for rows, _ in loader:
                    far = (self.net(rows) - 1).pow(2).sum(1)
                    loss = self.radius**2 + 10 * (far - self.radius**2).clamp(min=0).mean()
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                    {line}


    training = Training(nn.Linear(8, 2))
    training.fit(DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True))
    print("radius", f"{training.radius.item():.6f}")
"""
SCRIPTS |= {
    f"a number that an object keeps of all batches, {name}": Script(_HELD.replace("{line}", line), same=("radius",))
    for name, line in {
        "as the data of its tensor": "self.radius.data = torch.tensor(float(np.quantile(far.detach().sqrt().numpy(), 0.9)))",
        "of the farthest row": "self.radius.data = far.detach().max().sqrt()",
    }.items()
}

_TWO_NAMES = """
    class Tracker:
        def __init__(self, target, share=0.1):
            self.target, self.share = target, share

        def __call__(self, out):
            STEP


    def main():
        mean = torch.zeros(4)
        model = nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        track = Tracker(mean)
        for epoch in range(3):
            for rows, _ in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                out = model(rows)
                loss = LOSS
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                track(out.detach())
        print("mean", [round(m, 8) for m in mean.tolist()])


    main()
"""
_NEAR = "((out - mean) ** 2).mean()"
SCRIPTS |= {
    "a tensor that an object was given changes in place, and is read by its first name": Script(
        _TWO_NAMES.replace("STEP", "self.target.mul_(1 - self.share).add_(self.share * out.mean(0))").replace("LOSS", _NEAR),
        same=("mean",),
    ),
    "a tensor that an object was given changes by a third name": Script(
        _TWO_NAMES.replace("STEP", "held = self.target\n            held.lerp_(out.mean(0), self.share)").replace("LOSS", _NEAR),
        same=("mean",),
    ),
    "a tensor that an object was given changes by an operator, and is shown by its first name": Script(
        _TWO_NAMES.replace("STEP", "self.target += self.share * out.mean(0)").replace("LOSS", "(out**2).mean()"),
        same=("mean",),
    ),
    "a tensor changes by its first name, and is read where an object was given it": Script(
        _TWO_NAMES.replace("STEP", "pass")
        .replace("LOSS", "((out - track.target) ** 2).mean()")
        .replace("track(out.detach())", "mean.lerp_(out.detach().mean(0), 0.1)")
        .replace("mean.tolist()", "track.target.tolist()"),
        same=("mean",),
    ),
}
SCRIPTS["a state of one or two tensors, let go by a function that calls itself"] = Script(
    """
    class Net(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.kind = kind
            self.words = nn.Embedding(5, 8)
            self.rnn = getattr(nn, kind)(8, 4)
            self.head = nn.Linear(4, 5)

        def forward(self, rows, hidden):
            out, hidden = self.rnn(self.words(rows), hidden)
            return self.head(out), hidden

        def first(self, size):
            weight = next(self.parameters())
            if self.kind == "LSTM":
                return weight.new_zeros(1, size, 4), weight.new_zeros(1, size, 4)
            return weight.new_zeros(1, size, 4)


    def let_go(h):
        if isinstance(h, torch.Tensor):
            return h.detach()
        return tuple(let_go(v) for v in h)


    def side_by_side(data, size):
        data = data.narrow(0, 0, data.size(0) // size * size)
        return data.view(size, -1).t().contiguous()


    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="LSTM")
    parser.add_argument("--size", type=int, default=6)
    args = parser.parse_args()
    text = side_by_side(torch.randint(0, 5, (80,), generator=torch.Generator().manual_seed(4)), args.size)
    net = Net(args.kind)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(4):
        hidden = net.first(args.size)
        for i in range(0, text.size(0) - 1, 3):
            hidden = let_go(hidden)
            out, hidden = net(text[i : i + 3], hidden)
            loss = F.cross_entropy(out.view(-1, 5), text[i + 1 : i + 4].view(-1))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
)

_VIEWED = """
    import numpy as np

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    centers = torch.zeros(2, 8)
    FIRST
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            WRITTEN
            loss = F.cross_entropy(net(rows), kinds) + (net.weight * centers).pow(2).sum()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        print("centers", round(centers.sum().item(), 8))
"""
for _title, _first, _written in (
    ("an entry that has a name of its own", "pass", "row = centers[0]; row.copy_(0.9 * row + 0.1 * rows.mean(0))"),
    ("an entry that was given a name before", "row = centers[0]", "row.add_(0.1 * rows.mean(0))"),
    ("an entry of another shape of it", "flat = centers.view(-1)", "flat[:8] += 0.1 * rows.mean(0)"),
    ("an entry of another shape that has no name", "pass", "centers.view(-1)[:8].add_(0.1 * rows.mean(0))"),
    ("a row that is selected", "pass", "centers.select(0, 0).add_(0.1 * rows.mean(0))"),
    ("the array of it", "array = centers.numpy()", "array[0] += 0.1 * rows.mean(0).numpy()"),
    (
        "each of its rows in a loop",
        "pass",
        "\n            ".join(("for _, row in enumerate(centers):", "    row.add_(0.1 * rows.mean(0))")),
    ),
    ("one of its rows, which are unpacked", "first, second = centers", "first.add_(0.1 * rows.mean(0))"),
    ("its other name, to which is added", "held = centers", "held += 0.1 * rows.mean(0)"),
    ("what lets go of its gradients", "held = centers.detach()", "held += 0.1 * rows.mean(0)"),
):
    SCRIPTS[f"a state changes by way of {_title}"] = Script(
        _VIEWED.replace("FIRST", _first).replace("WRITTEN", _written), same=("centers",)
    )
_TWICE_NAMED = """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            moved = rows.clone()
            WRITTEN
            loss = F.cross_entropy(net(moved), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
for _title, _written in (
    ("a column of them", "column = moved[:, 0]; column.sub_(column.mean())"),
    ("the entries of a column of them", "column = moved[:, 0]; column[:] = rows.mean()"),
    ("another name of them", "named = moved; named -= named.mean(0)"),
):
    SCRIPTS[f"rows of a batch get its mean by way of {_title}"] = Script(_TWICE_NAMED.replace("WRITTEN", _written))
SCRIPTS["noise is put into a column of an array of each sample, of which the loss takes a total"] = Script(
    """
    import numpy as np

    np.random.seed(0)

    def noisy(image, level):
        out = image.copy()
        for at in range(out.shape[1]):
            mask, noise = (np.random.uniform(0, 1, out.shape[0]) for _ in range(2))
            column = out[:, at]
            column[mask < level] = noise[mask < level]
        return out

    net = nn.Linear(8, 8)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    error = nn.MSELoss(reduction="sum")
    for epoch in range(3):
        for rows, _ in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            noised = rows.clone()
            for at in range(rows.size(0)):
                image = rows[at].numpy().reshape(4, 2)
                noised[at] = torch.from_numpy(noisy(image, np.random.uniform(0, 1)).reshape(8))
            loss = error(net(noised), noised - rows) / (2 * rows.size(0))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
)


# --- statistics that are no averages, which training keeps in buffers and weights -----------------------------------------
_FOLLOWED = """
    class Scaled(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.register_buffer("spread", torch.ones(width))
            self.register_buffer("started", torch.tensor(False))

        def forward(self, rows):
            KEEP
            return rows / self.spread

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.scaled, self.out = nn.Linear(8, 8), Scaled(8), nn.Linear(8, 2)

        def forward(self, rows):
            return self.out(torch.tanh(self.scaled(self.into(rows))))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    held_out = DataLoader(TensorDataset(x[36:42], y[36:42]), batch_size=6)
    for epoch in range(3):
        model.train()
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for rows, labels in held_out:
                right += (model(rows).argmax(1) == labels).sum().item()
        print("right %d" % right)
    torch.save(model.state_dict(), "model.pt")
"""
_STATISTICS = {
    "a standard deviation": """if self.training:
                with torch.no_grad():
                    self.spread.mul_(0.9).add_(0.1 * rows.std(0))""",
    "a standard deviation that is assigned": """if self.training:
                self.spread = 0.9 * self.spread + 0.1 * rows.detach().std(0)""",
    "a median": """if self.training:
                middle = rows.detach().median(0).values
                self.spread.lerp_(1 + middle.abs(), 0.1)""",
    "singular values": """if self.training:
                with torch.no_grad():
                    values = torch.linalg.svdvals(rows)
                    self.spread[:6].copy_(1 + values[:6])""",
    "a quantile": """if self.training:
                self.spread = torch.maximum(self.spread, torch.quantile(rows.detach().abs(), 0.9, dim=0))""",
    "a standard deviation of columns": """if self.training:
                columns = rows.detach().transpose(0, 1).contiguous()
                self.spread.copy_(1 + columns.std(1))""",
}
SCRIPTS |= {
    f"a buffer follows {title} of the batches of all ranks": Script(_FOLLOWED.replace("KEEP", text), same=("right",))
    for title, text in _STATISTICS.items()
}
_FIRST = """
    class Normed(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.shift = nn.Parameter(torch.zeros(1, width))
            self.scale = nn.Parameter(torch.ones(1, width))
            self.register_buffer("started", torch.tensor(0, dtype=torch.uint8))

        def start(self, rows):
            with torch.no_grad():
                columns = rows.permute(1, 0).contiguous().view(rows.shape[1], -1)
                middle = columns.mean(1).unsqueeze(1).permute(1, 0)
                spread = columns.std(1).unsqueeze(1).permute(1, 0)
                self.shift.data.copy_(-middle)
                self.scale.data.copy_(1 / (spread + 1e-6))

        def forward(self, rows):
            if self.started.item() == 0:
                self.start(rows)
                self.started.fill_(1)
            return self.scale * (rows + self.shift), torch.log(torch.abs(self.scale)).sum()

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix, self.normed = nn.Linear(8, 8), Normed(8)

        def forward(self, rows):
            z, volume = self.normed(self.mix(rows))
            return -0.5 * (z**2).sum(1) + volume + torch.linalg.slogdet(self.mix.weight)[1]

    model = Flow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x[:36]), batch_size=6, shuffle=True)
    step = 0
    for epoch in range(3):
        for (rows,) in loader:
            FIRST
            loss = -model(rows).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        LAST
"""
_STARTS = {
    "the first batch sets the scales of a layer": ("pass", "pass", ()),
    "a first batch that no step follows sets the scales of a layer": (
        """if step == 0:
                with torch.no_grad():
                    model(rows)
                step += 1
                continue""",
        "pass",
        (),
    ),
    "the first batch sets the scales of a layer, and all ranks evaluate afterwards": (
        "pass",
        """with torch.no_grad():
            print("likelihood %.5f" % model(x[36:42]).mean().item())""",
        ("likelihood",),
    ),
}
SCRIPTS |= {
    title: Script(_FIRST.replace("FIRST", first).replace("LAST", last), same=same) for title, (first, last, same) in _STARTS.items()
}
_COUNTED = _FIRST.replace("self.started.item() == 0", "self.started < 9").replace("self.started.fill_(1)", "self.started += 1")
SCRIPTS |= {
    "the first few batches set the scales of a layer, one of which may be that of an evaluation": Script(
        _COUNTED.replace("FIRST", "pass").replace(
            "LAST", _STARTS["the first batch sets the scales of a layer, and all ranks evaluate afterwards"][1]
        ),
        told=("DDP207",),
    )
}

_GOES_ON = _FIRST.replace("self.scale * (rows + self.shift),", "self.scale * (self.centred(rows) + self.shift),").replace(
    "        def forward(self, rows):\n            if self.started",
    """        def centred(self, rows):
            columns = rows.t()
            if self.started.item() == 1:
                with torch.no_grad():
                    self.shift.data.copy_(0.01 * columns.std(1).unsqueeze(0))
            return columns.t()

        def forward(self, rows):
            if self.started""",
)
SCRIPTS |= {
    "columns set the shift of a layer, and go on as rows": Script(
        _GOES_ON.replace("FIRST", "pass").replace("LAST", "pass"),
        told=("DDP207",),
    )
}
