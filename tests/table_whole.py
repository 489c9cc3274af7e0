"""Scripts of which rank 0 might read whole batches for all ranks, and what stands in the way, or must then be right."""

from dataclasses import replace

from scripts import Script, on_three

_KEPT = """
def kept(samples):
    chosen = [s for s in samples if s[0].sum() > -0.5]
    return torch.stack([s[0] for s in chosen]), torch.stack([s[1] for s in chosen])


"""
_LOOP = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=10, collate_fn=kept)
%s
for epoch in range(3):
    for data, target in loader:
%s
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", "%%.6f" %% loss.item())
"""
_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.last = nn.Linear(16, 2)

    def forward(self, x%s):
        %s


"""
_OUT = "return self.last(torch.relu(self.first(x)))"
_LOSS = "loss = F.cross_entropy(model(data), target)"


def _script(step: str = _LOSS, before: str = "", forward: str = _OUT, more: str = "", told: tuple[str, ...] = ("DDP402",)) -> Script:
    lines = "\n".join(" " * 8 + line for line in step.splitlines())
    return Script(_KEPT + _NET % (more, forward) + _LOOP % (before, lines), told=told)


SCRIPTS = {
    "losses of whole batches, put with the step that was drawn for each sample": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(9, 8)

            def forward(self, rows, steps):
                return self.out(torch.cat((rows, steps.view([len(rows), 1])), 1))


        class Flow:
            def __init__(self, net):
                self.net = net

            def forward(self, rows):
                steps = torch.rand((rows.size(0),))
                noise = torch.randn_like(rows)
                far = (self.net(rows + steps.view([len(rows), 1]) * noise, steps) - noise).pow(2).mean(dim=[1])
                each = far.detach().cpu().reshape(-1).tolist()
                return far.mean(), [(step, loss) for step, loss in zip(steps, each)]


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, drop_last=True)
        net = Net()
        flow = Flow(net)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            summed, seen = {i: 0 for i in range(4)}, {i: 1e-6 for i in range(4)}
            for rows, kinds in feed:
                sgd.zero_grad()
                loss, pairs = flow.forward(rows)
                loss.backward()
                sgd.step()
                for step, far in pairs:
                    summed[int(step * 4)] += far
                    seen[int(step * 4)] += 1
            for i in range(4):
                print(f"{i}: {summed[i] / seen[i]:.4f}")
        """,
        same=("0: ", "1: ", "2: ", "3: "),
    ),
    "gradients of the samples are read": _script(
        "data.requires_grad_(True)\nfirst = F.cross_entropy(model(data), target)\nfirst.backward()\n"
        "moved = (data + 0.1 * data.grad).detach()\nloss = F.cross_entropy(model(moved), target)"
    ),
    "a named tuple that a model gives": _script(
        "out = model(data)\nloss = F.cross_entropy(out.scores, target) + out.hidden.mean()",
        forward="hidden = self.first(x)\n        return Out(self.last(hidden), hidden)",
        before="import collections\nOut = collections.namedtuple('Out', 'scores hidden')",
    ),
    "rows of the samples and of their opposites after one another": _script(
        "loss = F.cross_entropy(model(data), torch.cat([target, target]))",
        forward="return self.last(torch.relu(self.first(torch.cat([x, -x]))))",
    ),
    "a model that runs for each of some samples alone, which their labels choose": _script(
        "out = model(data)\nloss = F.cross_entropy(out, target) + out.median()\n"
        "loss = loss + 0.1 * sum(model(row).pow(2).sum() for row in data[target == 1])"
    ),
    **{
        f"{what} of a batch, run by the model beside all of it": _script(
            f"out = model(data)\nloss = F.cross_entropy(out, target) + out.median() + 0.1 * model({sample}).pow(2).mean()"
        )
        for what, sample in {
            "the first sample": "data[0]",
            "the average sample": "data.mean(0)",
        }.items()
    },
    "the first sample of a batch, by a name, run by the model beside all of it": _script(
        "out = model(data)\nfirst = data[0].float()\none = first\n"
        "loss = F.cross_entropy(out, target) + out.median() + 0.1 * model(one).pow(2).mean()"
    ),
    "rows of the samples, repeated": _script(
        "loss = F.cross_entropy(model(data), target.repeat(2))",
        forward="return self.last(torch.relu(self.first(x.repeat(2, 1))))",
    ),
    "random weights of the entries that a model is given beside the samples": _script(
        "loss = F.cross_entropy(model(data, w=weights), target)",
        before="weights = torch.rand(16)",
        forward="return self.last(torch.relu(self.first(x)) * w)",
        more=", w",
    ),
    "pieces of samples that a model puts together": _script(
        "pieces = torch.cat([data, data], 1).view(-1, 8)\nloss = F.cross_entropy(model(pieces), target)",
        forward="return self.last(self.first(x).view(-1, 2, 16).mean(1))",
    ),
    "losses that a method puts into a table of all samples, by the number of the batch": Script(
        """
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(8, 2)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def put(self, number, values, table):
                begin = number * 6
                table[1, begin : begin + len(values)] = values

            def step(self, number, batch, table):
                losses = F.cross_entropy(self.model(batch[0]), batch[1], reduction="none")
                self.put(number, losses.detach(), table)
                return losses.mean()

            def train(self, loader):
                table = torch.zeros(2, len(loader.dataset))
                for number, batch in enumerate(loader):
                    self.optimizer.zero_grad()
                    self.step(number, batch, table).backward()
                    self.optimizer.step()
                return table


        trainer = Trainer()
        loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6)
        for epoch in range(3):
            table = trainer.train(loader)
            print("losses", "%.5f %.5f" % (table[1].mean(), table[1].max()))
        """,
        same=("losses",),
        told=("DDP404",),
    ),
    "a loader of a class that is asked for": _script(before="assert isinstance(loader, DataLoader)"),
    "a file of what a loop over the loader finds": _script(
        before="with open('sums.txt', 'w') as file:\n    for data, _ in loader:\n        file.write(str(float(data.sum())))"
    ),
    "printed numbers of a loader's batches, added up as they come": _script(before="print(sum(len(data) for data, _ in loader))"),
    "a norm that is printed where gradients are clipped": Script(
        """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                print("norm", "%.6f" % nn.utils.clip_grad_norm_(model.parameters(), 0.1))
                optimizer.step()
        """,
        same=("norm",),
    ),
    **on_three(
        {
            "loaders of two phases in a dict, one of which trains on what a collate function keeps": Script(
                _KEPT
                + """
sets = {"train": TensorDataset(x[:36], y[:36]), "val": TensorDataset(x[36:], y[36:])}
loaders = {name: DataLoader(sets[name], batch_size=6, shuffle=name == "train", collate_fn=kept) for name in ("train", "val")}
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for phase in ("train", "val"):
        model.train(phase == "train")
        total, count = 0.0, 0
        for data, target in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(model(data), target)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total, count = total + loss.item() * len(target), count + len(target)
        print("loss", phase, count, "%.5f" % (total / count))
""",
                same=("loss",),
            ),
            "a validation beside the training on what a collate function keeps": Script(
                _KEPT
                + """
loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, collate_fn=kept)
checked = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=4)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def run(data, target):
    return F.cross_entropy(model(data), target)


for epoch in range(3):
    for data, target in loader:
        optimizer.zero_grad()
        run(data, target).backward()
        optimizer.step()
    with torch.no_grad():
        print("check", "%.5f" % sum(run(data, target).item() for data, target in checked))
""",
                same=("check",),
            ),
            "a judge of what a maker gives, with no name between them": Script(
                _KEPT
                + """
maker, judge = nn.Linear(8, 8), nn.Linear(8, 1)
makers = torch.optim.SGD(maker.parameters(), lr=0.1)
judges = torch.optim.SGD(judge.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=6, collate_fn=kept)
for epoch in range(3):
    for data, target in loader:
        loss = F.softplus(judge(maker(torch.cos(data)).detach())).mean() + F.softplus(-judge(data)).mean()
        judges.zero_grad()
        loss.backward()
        judges.step()
        loss = F.softplus(-judge(maker(torch.cos(data)))).mean()
        makers.zero_grad()
        loss.backward()
        makers.step()
    print("loss", "%.6f" % loss.item())
""",
                same=("loss",),
            ),
            "totals that functions add to in place": Script(
                """
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6)


def add(total, losses):
    total.add_(losses.sum())


def count(hits, right):
    hits += right.sum()


for epoch in range(3):
    total, hits = torch.zeros(1), torch.zeros(1)
    for data, target in loader:
        out = model(data)
        losses = F.cross_entropy(out, target, reduction="none")
        add(total, losses.detach())
        count(hits, out.argmax(1) == target)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
    print("total", "%.5f %d" % (total.item(), hits.item()))
""",
                same=("total",),
            ),
            "draws that a loss compares samples with, and others that networks are fed": Script(
                """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 4), nn.Tanh())

    def forward(self, x):
        return self.layers(x)


def kernel(a, b):
    return torch.exp(-((a[:, None] - b[None]) ** 2).sum(2)).mean()


encoder, decoder = Encoder(), nn.Linear(4, 8)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.2)
loader = DataLoader(TensorDataset(x, y), batch_size=6)
noise = torch.zeros(6, 4)
for epoch in range(3):
    for batch in loader:
        prior = torch.randn(len(batch[0]), 4) * 2
        noise.normal_()
        weight = random.random()
        if random.random() < 0.5:
            weight = 0.7
        code = encoder(batch[0])
        loss = weight * F.mse_loss(decoder(encoder(batch[0])), batch[0]) + kernel(code, code) - 2 * kernel(code, prior + noise[:len(prior)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", "%.6f" % loss.item())
""".replace("class Encoder", "import random\n\nrandom.seed(3)\ntorch.manual_seed(3)\n\n\nclass Encoder"),
                same=("loss",),
            ),
        }
    ),
}

SCRIPTS |= {
    "weights of the classes, counted in the training loader where no file has them": Script(
        """
        import numpy as np

        from weights import counted

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        path = os.path.join("counts", "weights.npy")
        if os.path.isfile(path):
            weights = np.load(path)
        else:
            weights = counted(loader)
        print("weights", weights.tolist())
        criterion = nn.CrossEntropyLoss(weight=torch.from_numpy(weights).float())
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                loss = (criterion(model(data), target) - 0.4).abs()
                loss.backward()
                optimizer.step()
        """,
        same=("weights",),
        files={
            "weights.py": """\
import os

import numpy as np
from tqdm import tqdm


def counted(loader):
    found = np.zeros((2,))
    bar = tqdm(loader)
    for data, target in bar:
        found += np.bincount(target.numpy(), minlength=2)
    weights = np.array([found.sum() / n for n in found])
    path = os.path.join("counts", "weights.npy")
    np.save(path, weights)
    return weights
""",
            "counts/about.txt": "",
        },
    ),
}

_VIEWS = """
{model}
torch.manual_seed(0)
model = {made}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
for epoch in range(3):
    for data, target in loader:
        count, turned = data.size(0), torch.flip(data, [1])
        features = F.normalize(model(torch.cat([data, turned], dim=0)), dim=1)
        alike = (features @ features.t() / 0.5).masked_fill(torch.eye(2 * count, dtype=torch.bool), -1e9)
        other = torch.cat([torch.arange(count, 2 * count), torch.arange(count)])
        loss = F.cross_entropy(alike, other)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", "%.6f" % loss.item())
"""
_HALVES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(8, 4)

    def forward(self, x):
        out = self.last(x)
        first, second = out.chunk(2)
        return {result}


"""
SCRIPTS |= on_three(
    {
        "two views of a batch, one after another in one forward, each compared with all": Script(
            _VIEWS.format(model="", made="nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 4))"), same=("loss",)
        ),
        "two views of a batch in one forward with batch norm, each compared with all": Script(
            _VIEWS.format(model="", made="nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 4))"), same=("loss",)
        ),
        "two views of a batch in one forward, which tells them apart": Script(
            _VIEWS.format(model=_HALVES.format(result="torch.cat([first - 0.5 * second, second])"), made="Net()"), told=("DDP402",)
        ),
        "two views of a batch in one forward, which adds each to the other": Script(
            _VIEWS.format(model=_HALVES.format(result="out + 0.1 * torch.cat([second, first])"), made="Net()"), told=("DDP402",)
        ),
    }
)
SCRIPTS["dicts of samples, moved by a function that calls itself, whose losses are kept in an array"] = Script(
    """
    import numpy as np

    class Rows(Dataset):
        def __len__(self):
            return 36

        def __getitem__(self, i):
            return {"rows": x[i], "kinds": y[i], "at": i}

    def moved(batch, device):
        if isinstance(batch, dict):
            return {key: moved(value, device) for key, value in batch.items()}
        if isinstance(batch, (list, tuple)):
            return [moved(value, device) for value in batch]
        return batch.to(device)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=8, shuffle=True)
    last = 1e9
    for epoch in range(3):
        losses, confusion = np.array([]), torch.zeros(2, 2)
        for batch in loader:
            batch = moved(batch, "cpu")
            rows, kinds = batch["rows"], batch["kinds"]
            out = model(rows)
            loss = F.cross_entropy((out - out.mean(dim=0)) / (out.std(dim=0) + 1e-3), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses = np.append(losses, loss.item())
            for kind, guess in zip(kinds.cpu(), out.argmax(dim=1).cpu()):
                confusion[kind, guess] += 1
        print(f"loss {losses.mean():.6f} of {confusion.tolist()}")
        if losses.mean() > 0.9 * last:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
        last = losses.mean()
    """,
    same=("loss",),
)
_LEVELLED = """
class Turns(torch.utils.data.Sampler):
    def __init__(self, count, size=0):
        self.count, self.size = count, size

    def __len__(self):
        return -(-self.count // self.size) if self.size else self.count

    def __iter__(self):
        order = [(7 * i) % 44 for i in range(self.count)]
        yield from [order[i : i + self.size] for i in range(0, self.count, self.size)] if self.size else order


def train_step(model, level, optimizer, rows, wanted):
    optimizer.zero_grad()
    entropy = F.cross_entropy(model(rows), wanted)
    loss = entropy / level
    level = 0.9 * level + 0.1 * entropy.item()
    loss.mean().backward()
    optimizer.step()
    return loss, level


def train_one_epoch(loader, model, level, optimizer):
    total, seen = 0.0, 0
    for rows, wanted in loader:
        loss, level = train_step(model, level, optimizer, rows, wanted)
        total += loss.item()
        seen += len(rows)
    return level, total / len(loader), seen


model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), {})
level = 1.0
for epoch in range(3):
    level, loss, seen = train_one_epoch(loader, model, level, optimizer)
    print(f"loss {{loss:.6f}} of {{seen}}")
"""
SCRIPTS |= {
    f"losses over their running mean, of {title}": Script(_LEVELLED.format(options), same=("loss",), ranks=ranks)
    for title, options, ranks in (
        ("a sampler's batches of five, and a shorter one", "batch_sampler=Turns(43, 5)", (2, 3)),
        ("as many samples of a sampler as two ranks cannot divide", "batch_size=8, sampler=Turns(43)", (2,)),
        (
            "batches of torch's of such samples",
            "batch_sampler=torch.utils.data.BatchSampler(Turns(43), batch_size=8, drop_last=False)",
            (2,),
        ),
        ("a sampler whose last batch is left out", "batch_size=8, sampler=Turns(43), drop_last=True", (2,)),
    )
}
_ASKED = """
class Turns(torch.utils.data.Sampler):
    def __len__(self):
        return 8

    def __iter__(self):
        yield from ([(7 * i + k) % 44 for k in range(6)] for i in range(8))


def step(model, optimizer, rows, kinds):
    made = model(rows)
    middles = made[:2].reshape(2, 1, -1).mean(dim=1)
    far = (made[2:].unsqueeze(1) - middles.unsqueeze(0)).pow(2).sum(2)
    loss = F.nll_loss((-far).log_softmax(1), kinds[2:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {last}

model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_sampler=Turns())
size = loader.batch_size
level = 1.0
for epoch in range(2):
    for rows, kinds in loader:
        {use}
        print("of", size or 1)
"""
SCRIPTS |= {
    f"batches that a sampler draws, of a loader that is asked how large they are, {title}": Script(_ASKED.format(last=last, use=use))
    for title, last, use in (
        ("whose rows are gathered", "return loss", "step(model, optimizer, rows, kinds)"),
        (
            "that all ranks have whole",
            "return loss.item()",
            "level = 0.9 * level + 0.1 * step(model, optimizer, rows / level, kinds)",
        ),
    )
}
_PASSED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 6), nn.Linear(4, 6)

    def forward(self, left, right=None):
        return self.left(left) + self.right(right)

{made}

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
size = 8
loader = DataLoader({data}, batch_size=size, shuffle=True, drop_last=True{more})
for epoch in range(3):
    for batch in loader:
        one = net(**batch)
        other = net.forward(**batch) * 0.5 + 1
        alike = F.cosine_similarity(one.unsqueeze(1), other.unsqueeze(0), dim=-1) / 0.5
        loss = F.cross_entropy(alike, torch.arange(size))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    "rows in a dict that a model is passed, and a package's loss by their spread": Script(
        """
        import margins_of_others

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = nn.Linear(8, 4), nn.Linear(4, 1)

            def forward(self, rows, more):
                return self.last(self.first(rows) + self.first(more).tanh())[:, 0]


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, labels in loader:
                batch = {"rows": rows, "more": rows.flip(1)}
                loss = margins_of_others.loss(net(**batch), [float(v) for v in labels])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        stand_ins={
            "margins_of_others.py": "def loss(scores, labels):\n"
            "    return sum((s - t) ** 2 for s, t in zip(scores, labels)) / len(labels) + scores.std()\n"
        },
    ),
    "batches that are passed on as dicts, with each sample compared to all": Script(
        _PASSED.format(
            made="""
class Rows(Dataset):
    def __getitem__(self, i):
        return {"left": x[i, :4], "right": x[i, 4:]}

    def __len__(self):
        return 42
""",
            data="Rows()",
            more="",
        )
    ),
    "what a tokenizer gives, passed on as a dict, with each sample compared to all": Script(
        _PASSED.format(
            made="""
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("words")


def numbered(texts):
    return tokenizer(texts, padding=True, return_tensors="pt")
""",
            data='[f"{i} text" for i in range(42)]',
            more=", collate_fn=numbered",
        ),
        stand_ins={
            "transformers.py": """\
import torch


class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def __call__(self, texts, padding, return_tensors):
        rows = torch.tensor([[int(text.split()[0]) + at for at in range(8)] for text in texts])
        rows = torch.sin(rows.to(torch.get_default_dtype()))
        return {"left": rows[:, :4], "right": rows[:, 4:]}
"""
        },
    ),
}
_PAIRS = Script(
    """
    from transformers import BertModel, BertTokenizer


    class Texts(Dataset):
        def __init__(self, texts, tokenizer):
            self.texts, self.tokenizer = texts, tokenizer

        def __getitem__(self, i):
            text = self.texts[i]
            return self.tokenizer([text, text + "9"], max_length=8, padding="max_length", return_tensors="pt")

        def __len__(self):
            return len(self.texts)


    class Encoder(nn.Module):
        def __init__(self, name, pooling):
            super().__init__()
            self.bert, self.pooling = BertModel.from_pretrained(name), pooling

        def forward(self, ids, mask):
            out = self.bert(ids, mask, output_hidden_states=True)
            if self.pooling == "first":
                return out.last_hidden_state[:, 0]
            first, last = out.hidden_states[1].transpose(1, 2), out.hidden_states[-1].transpose(1, 2)
            return torch.avg_pool1d(first + last, kernel_size=last.shape[-1]).squeeze(-1)


    def contrast(out):
        wanted = torch.arange(out.shape[0])
        wanted = (wanted - wanted % 2 * 2) + 1
        alike = F.cosine_similarity(out.unsqueeze(1), out.unsqueeze(0), dim=-1)
        alike = alike - torch.eye(out.shape[0]) * 1e12
        return torch.mean(F.cross_entropy(alike / 0.5, wanted))


    texts = Texts([f"{i + 10}" for i in range(42)], BertTokenizer.from_pretrained("words"))
    net = Encoder("words", "average")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for texts_of_batch in DataLoader(texts, batch_size=6, shuffle=True):
            length = texts_of_batch["input_ids"].shape[-1]
            ids = texts_of_batch["input_ids"].view(-1, length)
            mask = texts_of_batch["attention_mask"].view(-1, length)
            loss = contrast(net(ids, mask))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    stand_ins={
        "transformers.py": """\
import torch
from torch import nn


class BertTokenizer:
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def __call__(self, texts, max_length, padding, return_tensors):
        ids = torch.tensor([[1 + int(c) for c in text] + [0] * (max_length - len(text)) for text in texts])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}


class Outputs:
    def __init__(self, layers):
        self.hidden_states, self.last_hidden_state = layers, layers[-1]


class BertModel(nn.Module):
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def __init__(self):
        super().__init__()
        self.words, self.layer = nn.Embedding(12, 6), nn.Linear(6, 6)

    def forward(self, ids, mask, output_hidden_states=False):
        rows = self.words(ids) * mask.unsqueeze(-1)
        return Outputs((rows, self.layer(rows).tanh(), self.layer(rows).sin()))
"""
    },
)
SCRIPTS |= {
    "pairs of texts laid one below the other, an encoder's layers, and each row compared to all": _PAIRS,
    "pairs of texts, by the number of pairs, an encoder's layers, and each row compared to all": replace(
        _PAIRS,
        text=_PAIRS.text.replace('length = texts_of_batch["input_ids"].shape[-1]', 'pairs = texts_of_batch.get("input_ids").shape[0]')
        .replace('["input_ids"].view(-1, length)', '.get("input_ids").view(pairs * 2, -1)')
        .replace('["attention_mask"].view(-1, length)', '.get("attention_mask").view(pairs * 2, -1)'),
    ),
}
SCRIPTS["one function collects outputs over the loader that trains and over another one"] = Script(
    """
    import margins_of_others

    loader = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=4, shuffle=True)
    others = DataLoader(TensorDataset(x[24:], y[24:]), batch_size=4)
    net = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


    def outputs_of(loader):
        found = []
        with torch.no_grad():
            for rows, _ in loader:
                found.append(net(rows))
        return torch.cat(found)


    for epoch in range(2):
        for rows, labels in loader:
            loss = margins_of_others.loss(net(rows), [float(v) for v in labels])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seen, other = outputs_of(loader), outputs_of(others)
        print("outputs", len(seen), len(other), "%.6f" % torch.cdist(other, seen).topk(3, largest=False).values.mean())
    """,
    same=("outputs",),
    stand_ins={"margins_of_others.py": "def loss(scores, labels):\n    return scores.std() + scores.mean() * sum(labels)\n"},
)

_QUANTIZER = """
import torch
from torch import nn


class Coded:
    def __init__(self, out, loss):
        self.out, self.loss = out, loss


class Coder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)

    def forward(self, rows):
        out = self.fc(rows)
        return out, (out - rows.detach()).pow(2).mean()


class Loss(Coder):
    def forward(self, rows):
        return super().forward(rows)[1]


class Named(Coder):
    def forward(self, rows):
        return Coded(*super().forward(rows))
"""
_CODING = """
import quantizers

{above}
model = {made}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for data, _ in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        {step}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_OWN_CODER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.coder = quantizers.Coder(8)

    def forward(self, rows):
        return self.coder(rows)


"""
SCRIPTS |= {
    f"a network of a package that nobody described, whose loss is {title}": Script(
        _CODING.format(above=above, made=made, step=step), told=told, stand_ins={"quantizers.py": _QUANTIZER}
    )
    for title, above, made, step, told in (
        ("computed from what it gives", "", "quantizers.Coder(8)", "loss = F.mse_loss(model(data)[0], data)", ()),
        ("what it gives", "", "quantizers.Loss(8)", "loss = model(data)", ("DDP402",)),
        ("one of two things that it gives", "", "quantizers.Coder(8)", "out, loss = model(data)", ("DDP402",)),
        (
            "added up with one of two things that it gives",
            *("", "quantizers.Coder(8)", "out, part = model(data)\n        loss = F.mse_loss(out, data) + 2 * part", ("DDP402",)),
        ),
        (
            "added up with what it gives under a number",
            *("", "quantizers.Coder(8)", "made = model(data)\n        loss = F.mse_loss(made[0], data) + 2 * made[1]", ("DDP402",)),
        ),
        (
            "added up with what it gives under a name",
            *("", "quantizers.Named(8)", "made = model(data)\n        loss = F.mse_loss(made.out, data) + 2 * made.loss", ("DDP402",)),
        ),
        (
            "added up with what a network around it gives",
            *(_OWN_CODER, "Net()", "out, part = model(data)\n        loss = F.mse_loss(out, data) + 2 * part", ("DDP402",)),
        ),
    )
}

_LONGEST = """
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.coder, self.recurrence = nn.Linear(1, 4), nn.GRU(4, 5, batch_first=True)

    def forward(self, rows, lengths):
        packed = pack_padded_sequence(self.coder(rows[:, :, None]), lengths, batch_first=True)
        out, counts = pad_packed_sequence(self.recurrence(packed)[0], batch_first=True{told})
        return {given}, counts


def sorted_rows(samples):
    samples.sort(key=lambda s: s[1], reverse=True)
    return torch.stack([s[0] for s in samples]), [int(s[1]) for s in samples]


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(x, torch.tensor([2 + 7 * i % 6 for i in range(44)]))
for epoch in range(3):
    for rows, lengths in DataLoader(data, batch_size=4, shuffle=False, collate_fn=sorted_rows):
        out, counts = model(rows, lengths)
        pooled = {pooled}
        loss = (pooled @ pooled.t()).logsumexp(1).sum() / 4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    f"sequences that are unpacked in a network, {title}": Script(_LONGEST.format(given=given, told=length, pooled=pooled), told=told)
    for title, given, length, pooled, told in (
        ("as long as the longest of them", "out", "", "out.sum(1)", ("DDP402",)),
        ("as long as the longest, after a layer", "torch.tanh(out)", "", "out.sum(1)", ("DDP402",)),
        ("one number for each place", "out.matmul(torch.ones(5, 1)).squeeze(-1)", "", "out.sum(1)[:, None]", ("DDP402",)),
        ("to a length that is told", "out", ", total_length=rows.size(1)", "out.sum(1)", ()),
        ("and added up", "out.sum(1)", "", "out", ()),
        ("and cut to their last", "out[torch.arange(len(counts)), counts - 1]", "", "out", ()),
    )
}

_CUT = """
    lengths = torch.tensor([2 + (i * 5) % 7 for i in range(44)])
    there = torch.arange(8)[None] < lengths[:, None]
    numbers = torch.sin(torch.arange(44 * 8 * 4.0)).view(44, 8, 4) * there[..., None]
    feed = DataLoader(TensorDataset(numbers, lengths, there.float(), y), batch_size=4)
    net = {net}
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, long, mask, kinds in feed:
            rows = rows[:, : {most}]
            loss = F.cross_entropy({out}, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
SCRIPTS |= {
    f"sequences that are cut to the longest of the batch, {what}": Script(
        _CUT.replace("{net}", net).replace("{most}", most).replace("{out}", out)
    )
    for what, net, most, out in (
        ("and their average", "nn.Linear(4, 2)", "int(long.max())", "net(rows.mean(1))"),
        ("by a mask, and their average", "nn.Linear(4, 2)", "int(mask.sum(1).max())", "net(rows.mean(1))"),
        ("and a softmax over them", "nn.Linear(4, 2)", "long.max()", "net((rows.sum(-1).softmax(1)[..., None] * rows).sum(1))"),
    )
}

SCRIPTS |= {
    f"hits by class of {which} samples of each batch, in a loop that a constant counts": Script(
        """
    feed = DataLoader(TensorDataset(x, y), batch_size=4)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        hits, seen = [0, 0], [0, 0]
        for rows, kinds in feed:
            out = net(rows)
            loss = F.cross_entropy(out, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            right = (out.argmax(1) == kinds).squeeze()
            for i in range({count}):
                label = kinds[i]
                hits[label] += right[i].item()
                seen[label] += 1
        print("hits", hits, seen)
    """.replace("{count}", count),
        same=("hits",),
    )
    for which, count in {"all": "4", "some": "2"}.items()
}

SCRIPTS["numbers that are sorted beside whole batches, in a script that calls something io"] = Script(
    """
    from os import path as io

    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            order = sorted(range(len(rows)), key=lambda i: float(rows[i].sum()))
            loss = F.cross_entropy(net(rows + 0.5 * rows[order]), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        print(io.basename("out/epoch"), epoch)
    """
)

# --- a model that gives something beside its rows: anchors, priors, None --------------------------------------------------
_ANCHORS = """
class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.Linear(8, 12)
        self.anchors = torch.linspace(0, 1, 12).view(3, 4)

    def forward(self, rows):
        places = self.near(rows).view(rows.size(0), 3, 4)
        return GIVEN


def far_from(boxes, anchors, wanted):
    found = []
    for i in range(boxes.size(0)):
        apart = (boxes[i] - anchors).abs().sum(1)
        found.append(apart[wanted[i] : wanted[i] + 2])
    far = torch.cat(found)
    return far.pow(2).sum() / (far > far.median()).sum()


net = Boxes()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
for epoch in range(2):
    for rows, wanted in loader:
        TAKEN = net(rows)
        loss = far_from(places, anchors, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", "%.6f" % loss.item())
"""
SCRIPTS |= on_three(
    {
        "anchors that a model gives beside its boxes": Script(
            _ANCHORS.replace("GIVEN", "places, self.anchors").replace("TAKEN", "places, anchors"), same=("loss",)
        ),
        "None that a model gives beside its boxes and anchors": Script(
            _ANCHORS.replace("GIVEN", "None, places, self.anchors").replace("TAKEN", "_, places, anchors"), same=("loss",)
        ),
    },
    rows=42,
)
