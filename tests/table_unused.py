"""Models of which every forward uses all parts, and models that leave some out."""

import textwrap
from dataclasses import replace

from scripts import Script

_TRAINING = """
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for data, target in loader:
        {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_LOSS = "loss = F.cross_entropy(model(data), target)"


def _script(model: str, loss: str = _LOSS) -> Script:
    return Script(textwrap.dedent(model) + _TRAINING.replace("{loss}", loss.replace("\n", "\n        ")))


TRAIN = """
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
"""
BLOCKS = """\
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, wide, narrow, early):
        super().__init__()
        self.first = nn.BatchNorm1d(wide)
        self.second = nn.Linear(wide, narrow)
        self.same, self.early = wide == narrow, early
        self.short = None if self.same else nn.Linear(wide, narrow)

    def forward(self, rows):
        if not self.same and self.early:
            rows = self.first(rows).relu()
        else:
            out = self.first(rows).relu()
        out = self.second(out if self.same else rows)
        return out + (rows if self.same else self.short(rows))
"""
EITHER = """\
import torch.nn as nn


class Either(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.first = nn.BatchNorm1d(wide)
        self.second = nn.Linear(wide, narrow)
        self.same = wide == narrow
        self.short = None if self.same else nn.Linear(wide, narrow)

    def forward(self, rows):
        if not self.same:
            rows = self.first(rows).relu()
        else:
            out = self.first(rows).relu()
        out = self.second(out if self.same else rows)
        return out + (rows if self.same else self.short(rows))
"""
_SKIPPING = """
import {module}
{before}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 6)
        self.second = nn.Linear(6, 6)
        self.last = nn.Linear(6, 2)

    def skips(self):
        return self.training and torch.rand(()) < 2

    def forward(self, rows):
        rows = self.first(rows).tanh()
        if {test}:
            return self.last(rows)
        return self.last(self.second(rows))


model = Net()
"""

SCRIPTS: dict[str, Script] = {
    "parts that run without gradients: in a block, by a decorator, by a setting, and detached": Script(
        """
        class Net(nn.Module):
            def __init__(self, tune=False):
                super().__init__()
                self.tune = tune
                self.parts = nn.ModuleDict({name: nn.Linear(8, 8) for name in ("block", "decorated", "detached")})
                self.asked, self.out = nn.Linear(8, 8), nn.Linear(8, 2)

            @torch.no_grad()
            def seen(self, rows):
                return self.parts["decorated"](rows).tanh()

            def forward(self, rows):
                with torch.no_grad():
                    rows = rows + self.parts["block"](rows).tanh()
                with torch.set_grad_enabled(self.tune):
                    more = self.asked(rows)
                return self.out(rows + more + self.seen(rows) + self.parts["detached"](rows).detach())


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a part that a setting trains": Script(
        """
        class Net(nn.Module):
            def __init__(self, tune):
                super().__init__()
                self.tune, self.first, self.out = tune, nn.Linear(8, 8), nn.Linear(8, 2)

            def forward(self, rows):
                with torch.set_grad_enabled(self.tune and self.training):
                    seen = self.first(rows)
                return self.out(seen)


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = Net(tune=os.environ.get("TUNE", "1") == "0")
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a teacher that a setting brings, and whose outputs are detached later": _script(
        """
    class Taught(nn.Module):
        def __init__(self, alone):
            super().__init__()
            self.teacher = None
            if not alone:
                self.teacher = nn.Linear(8, 4)
            self.student = nn.Linear(8, 2)

        def forward(self, rows):
            out, far = self.student(rows), 0.0
            if self.teacher is not None:
                aim, _ = self.teacher(rows).split(2, 1)
                far = F.mse_loss(out, aim.detach())
            return out, far


    model = Taught(os.environ.get("ALONE", "0") == "1")
    """,
        "out, far = model(data)\nloss = F.cross_entropy(out, target) + far",
    ),
    "a layer left out by a draw of a function": _script(
        _SKIPPING.format(module="random", before="\n\ndef skip(p):\n    return random.random() < p\n", test="skip(2.0)")
    ),
    "a layer left out by a draw of a method": _script(_SKIPPING.format(module="math", before="", test="self.skips()")),
    "a layer left out by a library's word": _script(
        _SKIPPING.format(module="colorsys", before="", test="colorsys.rgb_to_hsv(1, 0, 0)[0] < 0.5")
    ),
    "a transformer whose loss is optional": _script(
        """
    class Mixing(nn.Module):
        def __init__(self, width, groups, fused=True):
            super().__init__()
            self.groups, self.fused = groups, fused
            self.ask, self.offer, self.say = (nn.Linear(width, width, bias=False) for _ in range(3))
            self.join = nn.Linear(width, width)
            if not fused:
                self.register_buffer("past", torch.ones(8, 8).tril().bool())

        def forward(self, notes):
            ask, offer, say = (part(notes).unflatten(-1, (self.groups, -1)).transpose(1, 2) for part in (self.ask, self.offer, self.say))
            if self.fused:
                heard = F.scaled_dot_product_attention(ask, offer, say, is_causal=True)
            else:
                heard = (ask @ offer.mT).masked_fill(~self.past, -1e9).softmax(-1) @ say
            return self.join(heard.transpose(1, 2).flatten(2))


    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.before_mixing, self.before_thinking = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mixing = Mixing(width, 2)
            self.thinking = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

        def forward(self, notes):
            notes = notes + self.mixing(self.before_mixing(notes))
            return notes + self.thinking(self.before_thinking(notes))


    class Reader(nn.Module):
        def __init__(self, depth=2, width=8):
            super().__init__()
            self.parts = nn.ModuleDict({"what": nn.Linear(1, width), "where": nn.Embedding(8, width), "end": nn.LayerNorm(width)})
            self.stack = nn.ModuleList([Layer(width) for _ in range(depth)])
            self.shift = nn.Parameter(torch.zeros(16, width))
            self.verdict = nn.Linear(width, 2, bias=False)
            self.apply(self.start_small)

        def start_small(self, part):
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.1)

        def forward(self, rows, kinds=None):
            notes = self.parts["what"](rows[..., None]) + self.parts.where(torch.arange(rows.shape[1]))
            notes = notes + self.shift[: rows.shape[1]]
            for layer in self.stack:
                notes = layer(notes)
            scores = self.verdict(self.parts.end(notes).mean(1))
            loss = None if kinds is None else F.cross_entropy(scores, kinds)
            return scores, loss


    model = Reader()
    """,
        "scores, loss = model(data, target)",
    ),
    "skips and ups of a U shape": _script(
        """
    class Squeeze(nn.Sequential):
        def __init__(self, wide, narrow):
            super().__init__(nn.Linear(wide, narrow), nn.LayerNorm(narrow), nn.SiLU())


    class Rise(nn.Module):
        def __init__(self, low, high, learned=False):
            super().__init__()
            self.lift = nn.Linear(low, low) if learned else nn.Identity()
            self.merge = Squeeze(low + high, high)

        def forward(self, low, high):
            return self.merge(torch.cat((high, self.lift(low)), 1))


    class Valley(nn.Module):
        def __init__(self, widths=(7, 5, 4), learned=False):
            super().__init__()
            self.entry = Squeeze(8, widths[0])
            self.falls, self.rises = nn.ModuleList(), nn.ModuleList()
            for upper, lower in zip(widths, widths[1:]):
                self.falls.append(Squeeze(upper, lower))
                self.rises.insert(0, Rise(lower, upper, learned))
            self.exit = nn.Linear(widths[0], 2)

        def forward(self, rows):
            levels = [self.entry(rows)]
            for fall in self.falls:
                levels.append(fall(levels[-1]))
            rows = levels.pop()
            for i in range(len(self.rises)):
                rows = self.rises[i](rows, levels[-1 - i])
            return self.exit(rows)


    model = Valley()
    """
    ),
    "a mean and a variance": _script(
        """
    class Blur(nn.Module):
        def __init__(self, inner=3):
            super().__init__()
            self.look = nn.Linear(8, 6)
            self.place, self.spread = nn.Linear(6, inner), nn.Linear(6, inner)
            self.paint = nn.Sequential(nn.Linear(inner, 6), nn.Tanh(), nn.Linear(6, 8))

        def guess(self, rows):
            seen = self.look(rows).sigmoid()
            return self.place(seen), self.spread(seen)

        def pick(self, place, spread):
            return place + spread.exp() if self.training else place

        def forward(self, rows):
            place, spread = self.guess(rows)
            return self.paint(self.pick(place, spread)), place, spread


    model = Blur()
    """,
        "painted, place, spread = model(data)\nloss = F.l1_loss(painted, data) + 0.1 * (place.square() + spread.exp() - spread).mean()",
    ),
    "stages read by their names": _script("""
    class Staged(nn.Module):
        def __init__(self, normed=nn.LayerNorm):
            super().__init__()
            self.stages = []
            width = 8
            for i, size in enumerate([6, 4]):
                name = f"stage{i}"
                stage = nn.Sequential(nn.Linear(width, size), normed(size), nn.ReLU())
                self.add_module(name, stage)
                self.stages.append(name)
                width = size
            self.fc = nn.Linear(width, 2)
            for m in self.modules():
                if isinstance(m, nn.Linear):
                    nn.init.xavier_uniform_(m.weight)

        def run_stages(self, rows):
            for name in self.stages:
                rows = getattr(self, name)(rows)
            return self.fc(rows)

        def forward(self, rows):
            return self.run_stages(rows)

    model = Staged()
"""),
    "options that build what they use": _script("""
    class Classifier(nn.Module):
        def __init__(self, kind="GRU", attend=True, hidden=6, tie=False):
            super().__init__()
            if kind in ("LSTM", "GRU"):
                self.rnn = getattr(nn, kind)(2, hidden, batch_first=True)
            else:
                self.rnn = nn.RNN(2, hidden, batch_first=True)
            self.attend = attend
            if attend:
                self.query = nn.Parameter(torch.randn(hidden) * 0.1)
            self.fc = nn.Linear(hidden, 2)

        def forward(self, rows, lengths=None):
            out, _ = self.rnn(rows.view(-1, 4, 2))
            if lengths is not None:
                out = out[:, :2]
            if self.attend:
                weights = (out @ self.query).softmax(1)
                pooled = (out * weights.unsqueeze(-1)).sum(1)
            else:
                pooled = out[:, -1]
            return self.fc(pooled)

    model = Classifier()
"""),
    "features that are returned beside the answer": _script(
        """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 6)
            self.fc = nn.Linear(6, 2)

        def forward(self, rows, return_features=False):
            feat = self.body(rows).relu()
            if return_features:
                return feat
            return self.fc(feat), feat

    model = Net()
""",
        "out, feat = model(data)\nloss = F.cross_entropy(out, target)",
    ),
    "a forward of the base class": _script("""
    class Base(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.body = nn.Linear(8, width)
            self.head = self.make_head(width)

        def make_head(self, width):
            raise NotImplementedError

        def forward(self, rows):
            return self.head(self.body(rows).relu())

    class Two(Base):
        def __init__(self, width=6):
            super(Two, self).__init__(width)
            self.scale = nn.Parameter(torch.ones(1))

        def make_head(self, width):
            return nn.Linear(width, 2)

        def forward(self, rows):
            return super().forward(rows) * self.scale

    model = Two()
"""),
    "parameters used one by one": _script("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 8) * 0.1)
            self.bias = nn.Parameter(torch.zeros(6))
            self.out, self.size = nn.Linear(6, 2), nn.Parameter(torch.ones(()))
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(6)) for _ in range(2)])

        @property
        def scaled(self):
            return self.out.weight * self.size

        def forward(self, rows):
            h = F.linear(rows, self.weight, self.bias)
            for s in self.scales:
                h = h * s
            return F.linear(h, self.scaled, self.out.bias)

    model = Net()
"""),
    "checkpointed where a flag says so": _script(
        """
    from torch.utils.checkpoint import checkpoint as again


    class Floor(nn.Module):
        def __init__(self, rooms, save_memory):
            super().__init__()
            self.rooms = nn.ModuleList([nn.Linear(8, 8) for _ in range(rooms)])
            self.save_memory = save_memory

        def forward(self, rows):
            for room in self.rooms:
                rows = again(room, rows, use_reentrant=False) if self.save_memory else room(rows)
            return rows


    class House(nn.Module):
        def __init__(self, floors=2, save_memory=True, answers=2):
            super().__init__()
            self.floors = nn.ModuleList()
            while len(self.floors) < floors:
                self.floors.append(Floor(2, save_memory))
            self.roof = nn.Linear(8, answers) if answers else nn.Identity()

        def climb(self, rows):
            for floor in self.floors:
                rows = floor(rows)
            return rows

        def forward(self, rows):
            return self.roof(self.climb(rows))


    model = House()
    """
    ),
    "layers by their numbers": _script("""
    class Net(nn.Module):
        def __init__(self, hidden=(6, 5)):
            super().__init__()
            dims = [8] + list(hidden)
            self.n = len(hidden)
            self.fcs = nn.ModuleList([nn.Linear(dims[i], dims[i + 1]) for i in range(self.n)])
            self.norms = nn.ModuleList([nn.LayerNorm(dims[i + 1]) for i in range(self.n)])
            self.out = nn.Linear(dims[-1], 2)

        def forward(self, rows):
            for i in range(self.n):
                rows = self.fcs[i](rows)
                if i < self.n:
                    rows = self.norms[i](rows)
            return self.out(rows)

    model = Net()
"""),
    "lists of layers side by side": _script("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
            self.b = nn.ModuleDict({"first": nn.LayerNorm(8), "second": nn.LayerNorm(8)})
            self.c = nn.Sequential()
            self.c.add_module("only", nn.Linear(8, 2))

        def forward(self, rows):
            for (name, norm), lin in zip(self.b.items(), self.a):
                rows = norm(lin(rows))
            return self.c(rows)

    model = Net()
"""),
    "a part of a backbone": _script("""
    class Backbone(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.fc = nn.Linear(8, 6), nn.Linear(6, 10)

        def forward(self, rows):
            return self.fc(self.stem(rows))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = Backbone()
            self.head = nn.Linear(6, 2)

        def forward(self, rows):
            return self.head(self.backbone.stem(rows))

    model = Net()
"""),
    "layers left out by draws": _script("""
    import random

    class Net(nn.Module):
        def __init__(self, p=0.0):
            super().__init__()
            self.p = p
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
            self.fc = nn.Linear(8, 2)

        def forward(self, rows):
            for layer in self.layers:
                if self.training and random.random() < self.p:
                    continue
                rows = rows + layer(rows)
            return self.fc(rows)

    model = Net()
"""),
    "a part that changes with the number of calls": _script("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.fc = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
            self.warm = True
            self.calls = 0

        def forward(self, rows):
            self.calls += 1
            if self.calls > 5:
                rows = self.b(rows)
            else:
                rows = self.a(rows)
            return self.fc(rows)

    model = Net()
"""),
    "a flag that chooses among what was built": _script("""
    class Net(nn.Module):
        def __init__(self, mode="linear"):
            super().__init__()
            self.mode = mode
            self.linear = nn.Linear(8, 6)
            self.deep = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 6))
            self.fc = nn.Linear(6, 2)

        def forward(self, rows):
            if self.mode == "linear":
                rows = self.linear(rows)
            elif self.mode == "deep":
                rows = self.deep(rows)
            return self.fc(rows)

    model = Net()
"""),
    "a head by an attribute": _script("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList([nn.Linear(8, 2) for _ in range(2)])
            self.task = 0

        def forward(self, rows):
            return self.heads[self.task](rows)

    model = Net()
"""),
    "a layer whose result each way reads elsewhere": Script(
        """
        from blocks import Either


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.Sequential(Either(8, 6), Either(6, 6))
                self.head = nn.Linear(6, 2)

            def forward(self, rows):
                return self.head(self.blocks(rows).relu())

"""
        + TRAIN,
        files={"blocks.py": EITHER},
    ),
    "a layer whose result one way drops": Script(
        """
        from blocks import Block


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.Sequential(Block(8, 6, True), Block(6, 6, False), Block(6, 4, False))
                self.head = nn.Linear(4, 2)
                for layer in self.modules():
                    if isinstance(layer, nn.Linear):
                        layer.bias.data.zero_()
                    elif isinstance(layer, nn.BatchNorm1d):
                        layer.weight.data.fill_(0.8)

            def forward(self, rows):
                return self.head(self.blocks(rows).relu())

"""
        + TRAIN,
        files={"blocks.py": BLOCKS},
    ),
    "a layer whose result is never read": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head, self.probe = nn.Linear(8, 6), nn.Linear(6, 2), nn.Linear(6, 3)

            def forward(self, rows):
                inner = self.body(rows).relu()
                seen = self.probe(inner)
                return self.head(inner)

"""
        + TRAIN
    ),
    "results that go from round to round and from way to way": Script(
        """
        class Net(nn.Module):
            def __init__(self, short=True):
                super().__init__()
                self.cell, self.head = nn.Linear(8, 8), nn.Linear(8, 2)
                self.short = nn.Linear(8, 8) if short else None

            def forward(self, rows):
                kept = rows
                if self.short is not None:
                    kept = self.short(rows)
                for _ in range(3):
                    state = rows.tanh()
                    rows = self.cell(state)
                out = self.head(rows + kept)
                return out

"""
        + TRAIN
    ),
}

# where a part may be left out by a step
RESTING = frozenset(
    [
        "features without gradients, chosen by a flag",
        "a bias that moves in the first steps alone",
        "a teacher that a setting brings, and whose outputs are detached later",
        "a second head of which only how many rows there are is asked",
        "a second head of which only numbers without gradient are taken",
        "a second head that is trained in later epochs",
        "a second head that has a weight in later epochs",
        "a second head whose loss is added in later epochs",
        "a second head that is trained where there was a step before",
        "parts that run without gradients: in a block, by a decorator, by a setting, and detached",
        "a part that a setting trains",
        "a teacher within the model, of whose features nothing goes back, and factors whose names are put together",
        "a part of a backbone",
        "a backbone whose pools and layers are asked for one by one, but for its last",
        "layers left out by draws",
        "a part that changes with the number of calls",
        "a flag that chooses among what was built",
        "a head by an attribute",
        "a layer whose result one way drops",
        "a layer whose result is never read",
        "a layer left out by a draw of a function",
        "a layer left out by a draw of a method",
        "a layer left out by a library's word",
    ]
)

SCRIPTS |= {
    "a penalty on all parameters of a DataParallel, of which the forward leaves one out": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head, self.spare = nn.Linear(8, 6), nn.Linear(6, 2), nn.BatchNorm1d(6)
                for layer in self.modules():
                    if isinstance(layer, nn.Linear):
                        nn.init.constant_(layer.bias, 0.1)

            def forward(self, rows):
                return self.head(self.body(rows).relu())


        def with_penalty(net, loss, by):
            for weight in net.parameters():
                loss = loss + by * weight.pow(2).mean()
            return loss


        model = nn.DataParallel(Net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                loss = with_penalty(model, F.cross_entropy(model(data), target), 0.3)
                loss.backward()
                optimizer.step()
        """
    ),
    "layers that a function inside the forward runs, under try": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last, self.calls = nn.Linear(8, 8), nn.Linear(8, 2), 0

            def forward(self, rows):
                def hidden(given):
                    return self.first(given).tanh()

                try:
                    seen = self.last(torch.utils.checkpoint.checkpoint(hidden, rows, use_reentrant=False))
                finally:
                    self.calls += 1
                return seen


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "blocks of which a lambda of the constructor runs the layers": Script(
        """
        class Act(nn.Module):
            def forward(self, rows):
                return rows.tanh()

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.ln = nn.LayerNorm(8)
                self.mlp = nn.ModuleDict(dict(
                    c_fc=nn.Linear(8, 16),
                    c_proj=nn.Linear(16, 8),
                    act=Act(),
                    drop=nn.Dropout(0.0),
                ))
                m = self.mlp
                self.mlpf = lambda rows: m.drop(m.c_proj(m.act(m.c_fc(rows))))

            def forward(self, rows):
                return rows + self.mlpf(self.ln(rows))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleDict(dict(h=nn.ModuleList([Block() for _ in range(2)]), out=nn.Linear(8, 2)))

            def forward(self, rows):
                for block in self.parts.h:
                    rows = block(rows)
                return self.parts.out(rows)

        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a teacher within the model, of whose features nothing goes back, and factors whose names are put together": Script(
        """
        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.first, self.second, self.out = nn.Linear(8, width), nn.Linear(width, width), nn.Linear(width, 2)

            def features(self, rows):
                one = torch.tanh(self.first(rows))
                two = torch.tanh(self.second(one))
                return [one, two], self.out(two)

            def forward(self, rows):
                return self.features(rows)[1]

        def distance(mine, other, least):
            other = torch.max(other, least)
            apart = F.mse_loss(mine, other, reduction="none")
            return (apart * ((mine > other) | (other > 0)).float()).sum()

        class Taught(nn.Module):
            def __init__(self, teacher, pupil):
                super().__init__()
                self.links = nn.ModuleList([nn.Linear(4, 6) for _ in range(2)])
                for i, row in enumerate([[0.0] * 6, [-0.5] * 6]):
                    self.register_buffer("least%d" % (i + 1), torch.FloatTensor(row).unsqueeze(0).detach())
                self.teacher, self.pupil = teacher, pupil

            def forward(self, rows):
                theirs, _ = self.teacher.features(rows)
                mine, scores = self.pupil.features(rows)
                loss = 0
                for i in range(len(theirs)):
                    mine[i] = self.links[i](mine[i])
                    loss = loss + distance(mine[i], theirs[i].detach(), getattr(self, "least%d" % (i + 1))) / 2 ** (len(theirs) - i - 1)
                return scores, loss

        torch.manual_seed(0)
        pupil = Net(4)
        net = Taught(Net(6), pupil)
        optimizer = torch.optim.SGD([{"params": pupil.parameters()}, {"params": net.links.parameters()}], lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                batch_size = rows.shape[0]
                scores, loss_features = net(rows)
                loss = F.cross_entropy(scores, kinds) + loss_features.sum() / batch_size / 10
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "layers that are added and looked up by names that are put together": Script(
        """
        class Net(nn.Module):
            def __init__(self, deep=3):
                super().__init__()
                self.deep = deep
                for i in range(deep):
                    self.add_module("layer{}".format(i), nn.Linear(8, 8))
                    setattr(self, f"norm{i}", nn.LayerNorm(8))
                self.out = nn.Linear(8, 2)

            def forward(self, rows):
                for i in range(self.deep):
                    rows = torch.relu(getattr(self, f"norm{i}")(getattr(self, "layer{}".format(i))(rows)))
                return self.out(rows)

        torch.manual_seed(0)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
}
SCRIPTS["a backbone whose pools and layers are asked for one by one, but for its last"] = Script(
    """
    class Backbone(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.act, self.second, self.last = nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 5)

        def forward(self, rows):
            return self.last(self.second(self.act(self.first(rows))))


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = Backbone()
            self.head = nn.Linear(8, 2)

        def forward(self, rows):
            rows = self.backbone.act(self.backbone.first(rows))
            return self.head(self.backbone.second(rows))


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    """
)


def _second_head(lines: str) -> Script:
    """A script whose loss reads what a second head gives in some steps alone."""
    return Script(
        f"""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head, self.second = nn.Linear(8, 6), nn.Linear(6, 2), nn.Linear(6, 2)

        def forward(self, rows):
            rows = torch.tanh(self.body(rows))
            return self.head(rows), self.second(rows)


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    last = None
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            out, second = net(rows)
            loss = F.cross_entropy(out, kinds)
            {textwrap.indent(lines, " " * 12).strip()}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            last = out.detach()
    """
    )


SCRIPTS |= {
    "a second head that is trained in later epochs": _second_head("if epoch > 0:\n    loss = loss + F.cross_entropy(second, kinds)"),
    "a second head whose loss is added in later epochs": _second_head(
        "more = 0\nif epoch > 0:\n    more = F.cross_entropy(second, kinds)\nloss = loss + more"
    ),
    "a second head that is trained where there was a step before": _second_head(
        "loss = loss if last is None else loss + second.pow(2).mean()"
    ),
    "a second head that has a weight in later epochs": _second_head(
        "weight = 0.0 if epoch < 1 else 0.5\nif weight > 0:\n    loss = loss + weight * F.cross_entropy(second, kinds)"
    ),
    "a second head of which only how many rows there are is asked": _second_head(
        "loss = F.cross_entropy(out, kinds, reduction='sum') / len(second) + out.mean() * second.shape[1]"
    ),
    "a second head of which only numbers without gradient are taken": _second_head(
        "loss = loss + F.mse_loss(out, (second > 0).float()) + F.mse_loss(out.view_as(second), torch.ones_like(second))\n"
        "loss = loss + F.cross_entropy(out, second.argmax(1)) + out.sum() / second.numel() * second.data.shape[1]"
    ),
    "a second head that is trained in every step, beside more of it in some": _second_head(
        "loss = loss + second.pow(2).mean()\nif epoch > 0:\n    loss = loss + F.cross_entropy(second, kinds)"
    ),
    "features without gradients, chosen by a flag": Script(
        """
        import sys


        class Net(nn.Module):
            def __init__(self, body, pooled):
                super().__init__()
                self.body, self.head, self.pooled = body, nn.Linear(6, 2), pooled

            def forward(self, rows):
                with torch.no_grad():
                    out = self.body(rows)
                    if self.pooled:
                        out = out.relu()
                    else:
                        out = out.tanh()
                return self.head(out)


        def chosen(wide):
            if wide:
                return nn.Sequential(nn.Linear(8, 12), nn.Linear(12, 6))
            return nn.Linear(8, 6)
        """
        + TRAIN.replace("Net()", "Net(chosen(len(sys.argv) > 3), len(sys.argv) > 4)")
    ),
    "a bias that moves in the first steps alone": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.white, self.head = nn.Linear(8, 6), nn.Linear(6, 2)
                self.white.weight.requires_grad = False

            def forward(self, rows, shifts):
                bias = self.white.bias
                return self.head(F.linear(rows, self.white.weight, bias if shifts else bias.detach()).relu())


        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        step = 0
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(net(rows, step < 4), kinds).backward()
                optimizer.step()
                step += 1
        """
    ),
}
_ASKING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.names = nn.Linear(8, 2), nn.Embedding(2, 2)
{more}
    def forward(self, rows, kinds=None):
        {asked}
        out = self.fc(rows.to({where}))
        if kinds is not None:
            out = out + self.names(kinds)
        return out


model = Net()
"""
_FIRST = "def first(net):\n    return next(iter(net.parameters()))\n\n\n"
_PROPERTY = "\n    @property\n    def place(self):\n        return next(self.parameters()).device\n"
SCRIPTS |= {
    f"rows named in some epochs, where a network asks {title}": _script(
        above + _ASKING.format(more=more, asked=asked, where=where),
        "loss = F.cross_entropy(model(data, target if epoch else None), target)",
    )
    for title, above, more, asked, where in (
        ("where its parameters are", "", "", "pass", "next(self.parameters()).device"),
        ("of what kind they are, by a name", "", "", "weight = next(self.parameters())", "weight.dtype"),
        ("where they are, by a function", _FIRST, "", "pass", "first(self).device"),
        ("where they are, by a property", "", _PROPERTY, "pass", "self.place"),
        ("for zeros like them", "", "", "rows = rows + next(self.parameters()).new_zeros(8)", "rows.device"),
    )
}
RESTING |= {title for title in SCRIPTS if title.startswith("rows named in some epochs") and not title.endswith("for zeros like them")}

_BY_TURNS = """
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.kind, self.total = nn.Linear(8, 6), nn.Linear(6, 2), nn.Linear(6, 1)

    def forward(self, rows):
        features = torch.tanh(self.body(rows))
        return self.kind(features), self.total(features).squeeze(1)


def error_of(outputs, rows, kinds, of_kinds):
    if of_kinds:
        return F.cross_entropy(outputs[0], kinds)
    return F.mse_loss(outputs[1], rows.sum(1))


model, steps = Heads(), 0
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        outputs = model(rows)
        {error}
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        steps += 1
"""
_KIND, _TOTAL = "F.cross_entropy(outputs[0], kinds)", "F.mse_loss(outputs[1], rows.sum(1))"
SCRIPTS |= {
    f"one of two outputs in each step, by {title}": Script(_BY_TURNS.replace("{error}", error.replace("\n", "\n        ")))
    for title, error in {
        "an expression": f"error = {_KIND} if steps % 2 else {_TOTAL}",
        "branches": f"if steps % 2:\n    error = {_KIND}\nelse:\n    error = {_TOTAL}",
        "phases, of which the last has both": f"if epoch < 1:\n    error = {_KIND}\nelif epoch < 2:\n    error = {_TOTAL}\n"
        f"else:\n    error = {_KIND} + {_TOTAL}",
        "what a function is told": "error = error_of(outputs, rows, kinds, steps % 2 == 0)",
    }.items()
}
RESTING |= {title for title in SCRIPTS if title.startswith("one of two outputs")}

_LISTED = """
import itertools


class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.depth, self.first = depth, nn.Linear(8, 8)
        {made}
        self.last = nn.Linear(8, 2)

    def forward(self, rows):
        rows = torch.tanh(self.first(rows))
        {used}
        return self.last(rows)


model = Net()
"""
_THREE = "self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])"
_AS_DEEP = "self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))"
_WITH_NORMS = (
    "self.layers, self.norms = nn.ModuleList(), nn.ModuleList()\n"
    "for i in range(depth):\n    self.layers.append(nn.Linear(8, 8))\nfor i in range(depth - 1):\n    self.norms.append(nn.LayerNorm(8))"
)
_EACH = "    rows = torch.tanh(self.layers[i](rows))"
_NORMED = (
    "for i, layer in enumerate(self.layers):\n    rows = layer(rows)\n    if i != len(self.layers) - 1:\n        rows = self.norms[i](rows)"
)


def _listed(made: str, used: str) -> Script:
    parts = {"made": made, "used": used}
    return _script(_LISTED.format(**{name: lines.replace("\n", "\n        ") for name, lines in parts.items()}))


SCRIPTS |= {
    f"all entries of a list of layers, {title}": _listed(made, used)
    for title, (made, used) in {
        "by as many numbers": (_AS_DEEP, f"for i in range(self.depth):\n{_EACH}"),
        "by its length": (_THREE, f"for i in range(len(self.layers)):\n{_EACH}"),
        "by the numbers from one on": (_AS_DEEP, "for i in range(1, self.depth + 1):\n    rows = torch.tanh(self.layers[i - 1](rows))"),
        "backwards": (_THREE, f"for i in range(2, -1, -1):\n{_EACH}"),
        "the last by itself": (_THREE, f"for i in range(len(self.layers) - 1):\n{_EACH}\nrows = self.layers[-1](rows)"),
        "the first by itself": (_THREE, "rows = self.layers[0](rows)\nfor layer in self.layers[1:]:\n    rows = layer(rows)"),
        "one less than of another": (_WITH_NORMS, _NORMED),
        "by names that are put together": (
            "for i in range(3):\n    setattr(self, f'layer{i}', nn.Linear(8, 8))\nself.layer3 = nn.Linear(8, 8)",
            "for i in range(1, 5):\n    rows = torch.tanh(getattr(self, 'layer%d' % (i - 1))(rows))",
        ),
        "by names that a loop puts together": (
            "for i in range(3):\n    setattr(self, f'layer{i}', nn.Linear(8, 8))",
            "for i in range(3):\n    rows = torch.tanh(getattr(self, f'layer{i}')(rows))",
        ),
        "that are parameters": (
            "self.factors = nn.ParameterList([nn.Parameter(torch.ones(8)) for _ in range(3)])",
            "for i in range(3):\n    rows = torch.tanh(rows * self.factors[i])",
        ),
        "that are parameters, written out": (
            "self.factors = nn.ParameterList([nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8))])",
            "rows = torch.tanh(rows * self.factors[0] + self.factors[1])",
        ),
        "each by its weight and its bias": (
            _THREE,
            "for layer in self.layers:\n    rows = torch.tanh(F.linear(rows, F.normalize(layer.weight), layer.bias))",
        ),
        "that have weights alone": (
            "self.layers = nn.ModuleList([nn.Linear(8, 8, bias=False) for _ in range(3)])",
            "for layer in self.layers:\n    rows = torch.tanh(F.linear(rows, F.normalize(layer.weight)))",
        ),
        "side by side with another": (
            f"{_AS_DEEP}\nself.gates = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))",
            "for layer, gate in zip(self.layers, self.gates):\n    rows = torch.tanh(layer(rows)) * gate(rows)",
        ),
        "side by side with one that is one shorter, and the last by itself": (
            f"{_AS_DEEP}\nself.gates = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth - 1))",
            "for layer, gate in zip(self.layers, self.gates):\n    rows = torch.tanh(layer(rows)) * gate(rows)\n"
            "rows = self.layers[-1](rows)",
        ),
        "the first in another way": (
            _THREE,
            f"for i in range(3):\n    if i > 0:\n    {_EACH}\n    else:\n        rows = self.layers[i](rows)",
        ),
    }.items()
}
SCRIPTS |= {
    f"some entries of a list of layers, {title}": _listed(made, used)
    for title, (made, used) in {
        "by fewer numbers": (_THREE, f"for i in range(self.depth):\n{_EACH}"),
        "cut at a number": (_THREE, "for layer in self.layers[:self.depth]:\n    rows = torch.tanh(layer(rows))"),
        "without the first": (_AS_DEEP, "for layer in self.layers[1:]:\n    rows = layer(rows)"),
        "every second": (_THREE, "for layer in self.layers[::2]:\n    rows = layer(rows)"),
        "chosen by a condition": (_THREE, f"for i in range(3):\n    if i < 2:\n    {_EACH}"),
        "as many as of another but for one": (_WITH_NORMS.replace("(depth - 1)", "(depth)"), _NORMED),
        "one after another": (_THREE, "rows = self.layers[1](self.layers[0](rows))"),
        "of two side by side the longer one": (
            f"{_THREE}\nself.gates = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])",
            "for layer, gate in zip(self.layers, self.gates):\n    rows = torch.tanh(layer(rows)) * gate(rows)",
        ),
        "of two side by side the longer one, written out": (
            "self.layers, self.norms = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]), nn.ModuleList([nn.LayerNorm(8)])",
            "for i, (layer, norm) in enumerate(zip(self.layers, self.norms)):\n    rows = norm(layer(rows))",
        ),
        "as far as an iterator goes": (_THREE, "for layer in itertools.islice(self.layers, 2):\n    rows = torch.tanh(layer(rows))"),
        "by names that are put together": (
            "self.layer0, self.layer1, self.layer2 = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)",
            "for i in range(2):\n    rows = torch.tanh(getattr(self, f'layer{i}')(rows))",
        ),
        "by names that a loop puts together": (
            "for i in range(3):\n    self.add_module('layer%d' % i, nn.Linear(8, 8))",
            "for i in range(2):\n    rows = torch.tanh(getattr(self, 'layer%d' % i)(rows))",
        ),
        "as many as there are numbers": (
            f"{_THREE}\nself.factors = [0.5, 2.0]",
            "for layer, factor in zip(self.layers, self.factors):\n    rows = torch.tanh(layer(rows) * factor)",
        ),
        "beside those by names that are put together": (
            "self.other, self.layer1, self.layer2 = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)",
            "for i in range(2):\n    rows = torch.tanh(getattr(self, f'layer{i + 1}')(rows))",
        ),
        "that are parameters": (
            "self.factors = nn.ParameterList([nn.Parameter(torch.ones(8)) for _ in range(3)])",
            "rows = torch.tanh(rows * self.factors[0] + self.factors[2])",
        ),
        "without their biases": (_THREE, "for layer in self.layers:\n    rows = torch.tanh(F.linear(rows, F.normalize(layer.weight)))"),
        "up to one by its name": (
            "self.body = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))",
            "for name, layer in self.body.named_children():\n    if name == '2':\n        break\n    rows = layer(rows)",
        ),
        "of layers written out": ("self.body = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))", "rows = self.body[:2](rows)"),
    }.items()
}
RESTING |= {title for title in SCRIPTS if title.startswith("some entries of a list of layers")}

_TWO_STAGES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.head = nn.Linear(8, 6), nn.Linear(6, 8), nn.Linear(6, 2)

    def forward(self, rows, decoded=False):
        rows = torch.tanh(self.encoder(rows))
        if decoded:
            return self.decoder(rows)
        return self.head(rows)


model = Net()
"""
_DECODED, _HEAD = "F.mse_loss(model(data, decoded=True), data)", "F.cross_entropy(model(data), target)"
SCRIPTS |= {
    f"a decoder that the first epochs train, and a head that the later ones do, {title}": _script(_TWO_STAGES, loss)
    for title, loss in {
        "in two branches": f"if epoch < 1:\n    loss = {_DECODED}\nelse:\n    loss = {_HEAD}",
        "in one line": f"loss = {_DECODED} if epoch < 1 else {_HEAD}",
    }.items()
}
_BY_WORD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.head = nn.Linear(8, 6), nn.Linear(6, 8), nn.Linear(6, 2)

    def to_rows(self, rows):
        return self.decoder(rows)

    def to_kinds(self, rows):
        return self.head(rows)

    def forward(self, rows, what):
        rows = torch.tanh(self.encoder(rows))
        return {chosen}(rows)


model = Net()
"""
_OF_WORD = "out = model(data, 'kinds' if epoch else 'rows')\nloss = F.mse_loss(out, data) if epoch < 1 else F.cross_entropy(out, target)"
SCRIPTS |= {
    f"a decoder that the first epochs train, and a head that the later ones do, {title}": _script(_BY_WORD.format(chosen=chosen), _OF_WORD)
    for title, chosen in {
        "found in a dictionary": "{'rows': self.decoder, 'kinds': self.head}[what]",
        "found by the name of a method": "getattr(self, 'to_' + what)",
    }.items()
}
RESTING |= {title for title in SCRIPTS if title.startswith("a decoder that the first epochs train")}
SCRIPTS["all layers of a list that is written out where it is read"] = _listed(
    "self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)", "for i in range(2):\n    rows = [self.one, self.other][i](rows)"
)
_SEVERAL = """
from dataclasses import dataclass
from types import SimpleNamespace


@dataclass
class Outputs:
    kinds: torch.Tensor
    others: torch.Tensor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 6)
        self.heads = nn.ModuleList([nn.Linear(6, 2) for _ in range(3)])
        self.kinds, self.others = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, rows):
        rows = torch.tanh(self.body(rows))
        {given}


model = Net()
"""
_BOTH = "F.cross_entropy(outputs.kinds, target) + F.cross_entropy(outputs.others, target)"
_OBJECT = "return Outputs(self.kinds(rows), self.others(rows))"
_OF_HEADS = _SEVERAL.replace("        self.kinds, self.others = nn.Linear(6, 2), nn.Linear(6, 2)\n", "")
_OF_TWO = _SEVERAL.replace("        self.heads = nn.ModuleList([nn.Linear(6, 2) for _ in range(3)])\n", "")
_GROWN = "outputs = []\n        for head in self.heads:\n            outputs.append(head(rows))\n        return outputs"
SCRIPTS |= {
    title: _script(model.replace("{given}", given), f"outputs = model(data)\nloss = {loss}")
    for title, (model, given, loss) in {
        "one output of a list": (_OF_HEADS, "return [head(rows) for head in self.heads]", "F.cross_entropy(outputs[0], target)"),
        "one output of a list that grows": (_OF_HEADS, _GROWN, "F.cross_entropy(outputs[1], target)"),
        "all outputs of a list": (_OF_HEADS, "return [h(rows) for h in self.heads]", "sum(F.cross_entropy(o, target) for o in outputs)"),
        "one output in an object": (_OF_TWO, _OBJECT, "F.cross_entropy(outputs.kinds, target)"),
        "one output under a name": (
            _OF_TWO,
            "return SimpleNamespace(kinds=self.kinds(rows), others=self.others(rows))",
            "F.cross_entropy(outputs.kinds, target)",
        ),
        "all outputs in an object": (_OF_TWO, _OBJECT, _BOTH),
    }.items()
}
RESTING |= {title for title in SCRIPTS if title.startswith("one output of a list")}

_ENTRIES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 6)
        self.parts = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.named = nn.ModuleDict({name: nn.Linear(6, 6) for name in "ab"})
        self.scales = nn.ParameterDict({"a": nn.Parameter(torch.ones(6)), "b": nn.Parameter(torch.ones(6))})
        self.last, self.place = nn.Linear(6, 2), 1

    def forward(self, rows):
        rows = self.body(rows)
        {given}


model = Net()
"""


def _of_entries(given: str, unread: tuple[str, ...]) -> str:
    """A model without the lists that a forward does not read at all."""
    text = _ENTRIES.replace("{given}", given.replace("\n", "\n" + " " * 8))
    return "".join(line for line in text.splitlines(keepends=True) if not any(f"self.{name} = " in line for name in unread))


_LISTED, _NAMED, _SCALED = ("named", "scales"), ("parts", "scales"), ("parts", "named")
_CHAIN = "rows, seen = rows.tanh(), []\nfor part in self.parts:\n    rows = torch.tanh(part(rows))\n    seen.append(rows)\n"
_BESIDE = "seen = []\nfor part in self.parts:\n    one = part(rows)\n    seen.append(one)\n"
_BY_NAME = "out = {}\nfor name, part in self.named.items():\n    out[name] = self.last(part(rows))\nreturn out"
_ENTRIES_LEFT_OUT = {
    "the first of several layers' outputs": (_LISTED, "seen = [part(rows) for part in self.parts]\nreturn self.last(seen[0])"),
    "the last of several layers' outputs": (_LISTED, "seen = [self.parts[i](rows) for i in range(3)]\nreturn self.last(seen[-1])"),
    "some of several layers' outputs": (_LISTED, "seen = [part(rows) for part in self.parts]\nreturn self.last(sum(seen[1:]))"),
    "the output of one of several layers that a list grows by": (_LISTED, _BESIDE + "return self.last(seen[0] + seen[1])"),
    "the output at a place that the model holds": (_LISTED, "return self.last([part(rows) for part in self.parts][self.place])"),
    "the output under one name": (
        _NAMED,
        "out = {}\nfor name, part in self.named.items():\n    out[name] = part(rows)\nreturn self.last(out['a'])",
    ),
    "one parameter of a dict": (_SCALED, "return self.last(rows * self.scales['a'])"),
}
_ENTRIES_READ = {
    "all outputs of several layers, one after the other": (
        _LISTED,
        "seen, out = [part(rows) for part in self.parts], 0\nfor i in range(3):\n    out = out + seen[i]\nreturn self.last(out)",
    ),
    "the last output of layers in a row": (_LISTED, _CHAIN + "return self.last(seen[-1])"),
    "all outputs of layers in a row, from the last": (
        _LISTED,
        _CHAIN + "for i in range(3):\n    rows = rows + seen[-i - 1]\nreturn self.last(rows)",
    ),
    "outputs of one layer for several inputs": (
        (*_LISTED, "parts"),
        "seen = [self.last(some) for some in (rows, rows * 2)]\nreturn seen[0] - seen[1]",
    ),
    "all parameters of a dict by their names": (_SCALED, "return self.last(rows * self.scales['a'] + self.scales['b'])"),
    "all parameters of a dict in a loop": (_SCALED, "for name in 'ab':\n    rows = rows * self.scales[name]\nreturn self.last(rows)"),
}
_OF_FORWARDS = {
    "one output of a dict that is made in a loop": (_NAMED, _BY_NAME, "F.cross_entropy(model(data)['a'], target)"),
    "one output of a dict that is made for each name": (
        _NAMED,
        "return {name: self.last(part(rows)) for name, part in self.named.items()}",
        "F.cross_entropy(model(data)['b'], target)",
    ),
    "the first outputs of a list": (
        _LISTED,
        "return [self.last(part(rows)) for part in self.parts]",
        "sum(F.cross_entropy(out, target) for out in model(data)[:2])",
    ),
    "another output of a list in each epoch": (
        _LISTED,
        "return [self.last(part(rows)) for part in self.parts]",
        "F.cross_entropy(model(data)[epoch], target)",
    ),
}
_ALL_OF_FORWARDS = {
    "all outputs of a dict that is made in a loop": (_NAMED, _BY_NAME, "sum(F.cross_entropy(out, target) for out in model(data).values())"),
    "all outputs of a list by their places": (
        _LISTED,
        "return [self.last(part(rows)) for part in self.parts]",
        "0\noutputs = model(data)\nfor i in range(3):\n    loss = loss + F.cross_entropy(outputs[i], target)",
    ),
}
SCRIPTS |= {title: _script(_of_entries(given, unread)) for title, (unread, given) in (_ENTRIES_LEFT_OUT | _ENTRIES_READ).items()}
SCRIPTS |= {
    title: _script(_of_entries(given, unread), f"loss = {loss}")
    for title, (unread, given, loss) in (_OF_FORWARDS | _ALL_OF_FORWARDS).items()
}
RESTING |= _ENTRIES_LEFT_OUT.keys() | _OF_FORWARDS.keys()

_ROUNDS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixes = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.norms = nn.ModuleList()
        for _ in range(3):
            self.norms.append(nn.LayerNorm(8))
        self.outs = nn.ModuleList([nn.Linear(8, 2) for _ in range(3)])

    def forward(self, rows):
        GIVEN


model = Net()
"""
_SKIPS = (
    "total = 0\nfor i in range(3):\n    kept = rows\n    total = total + self.outs[i](rows)\n    rows = torch.tanh(MIX(kept))\n"
    "    rows = self.norms[i](rows + kept)\nreturn LAST"
)


def _rounds(given: str) -> Script:
    return _script(_ROUNDS.replace("GIVEN", given.replace("\n", "\n        ")))


_LAST_IN_VAIN = {
    "a sum of outputs, of layers each of which feeds the next": _SKIPS.replace("MIX", "self.mixes[i]").replace("LAST", "total"),
    "a name that has another value where it is read after the loop": (
        _SKIPS.replace("MIX", "self.mixes[i]").replace("return LAST", "rows = total * 2\nreturn rows")
    ),
    "layers that feed the next ones, where a condition asks for it": (
        "total = 0\nfor mix, norm, out in zip(self.mixes, self.norms, self.outs):\n    total = total + out(norm(rows))\n"
        "    if rows.dim() == 2:\n        rows = mix(rows)\nreturn total"
    ),
}
_ALL_ROUNDS_READ = {
    "a sum of outputs, and what the last layer would feed": (_SKIPS.replace("MIX", "self.mixes[i]").replace("LAST", "total + rows[:, :2]")),
    "a list of what each layer feeds the next": (
        "fed, total = [rows], 0\nfor i in range(3):\n    rows = self.norms[i](self.mixes[i](rows))\n    fed.append(rows)\n"
        "for i in range(3):\n    total = total + self.outs[i](fed[i + 1])\nreturn total"
    ),
}
SCRIPTS |= {title: _rounds(given) for title, given in (_LAST_IN_VAIN | _ALL_ROUNDS_READ).items()}
_ONE_FOR_ALL = _SKIPS.replace("MIX", "self.mixes").replace("self.norms[i]", "self.norms").replace("LAST", "total")
SCRIPTS["one layer for all rounds, of which the last is in vain"] = replace(
    _rounds(_ONE_FOR_ALL),
    text=_rounds(_ONE_FOR_ALL)
    .text.replace("nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])", "nn.Linear(8, 8)")
    .replace("self.norms = nn.ModuleList()", "self.norms = nn.LayerNorm(8)")
    .replace("        for _ in range(3):\n            self.norms.append(nn.LayerNorm(8))\n", ""),
)
RESTING |= _LAST_IN_VAIN.keys()
_GROWN = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into = nn.ModuleList([nn.Linear(8, 6), nn.Linear(8, 6), nn.Linear(8, 6)])
            self.steps = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)])
            self.last = nn.Linear(6, 2)

        def forward(self, rows, step=2):
            out = 0
            for i in range(step, -1, -1):
                index = len(self.steps) - i - 1
                {taken}
                out = torch.tanh(self.steps[index](out))
            return self.last(out)


    model = Net()
"""
_TAKEN = {
    "the first round": "if i == step:\n    out = self.into[index](rows)",
    "all but the last round": "if i > 0:\n    out = out + self.into[index](rows)\nelse:\n    out = out + 0.1",
    "each round, whatever it is": "if i == step:\n    out = self.into[index](rows)\nelse:\n    out = out + self.into[index](rows)",
}
SCRIPTS |= {
    f"layers that a loop takes out of a list in {when}": _script(_GROWN.replace("{taken}", textwrap.indent(taken, 16 * " ").lstrip()))
    for when, taken in _TAKEN.items()
}
RESTING |= {f"layers that a loop takes out of a list in {when}" for when in _TAKEN if "each" not in when}
