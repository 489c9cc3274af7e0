"""Scripts in which the samples of a batch meet, or only seem to: by the shapes of a loss's operands, or inside a model's forward."""

from dataclasses import replace

from scripts import Script, on_three

from ddpify import Options


def _trained(
    model: str, loss: str = "F.cross_entropy(net(rows), kinds)", data: str = "x, y", more: str = "", told: tuple[str, ...] = ()
) -> Script:
    """A model that is trained on a loss, in a plain loop."""
    body = f"""\
{model}
{more}
feed = DataLoader(TensorDataset({data}), batch_size=4, shuffle=True)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in feed:
        loss = {loss}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
    return Script(body, told=told)


_PLAIN = "def Net():\n    return nn.Linear(8, 1)\n"


def _net(init: str, forward: str) -> str:
    """A module, of the lines of its constructor and of its forward."""
    lines = [f"        {line}" for line in init.strip().splitlines()]
    body = [f"        {line}" for line in forward.strip().splitlines()]
    return "\n".join(
        [
            "class Net(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *lines,
            "",
            "    def forward(self, rows):",
            *body,
            "",
        ]
    )


_SPREAD = """
def spread(scores, kinds):
    if isinstance(scores, tuple):
        return sum(weight * spread(part, kinds) for weight, part in zip((1.0, 0.4), scores))
    apart = (scores - scores.T).pow(2)
    return (apart - (kinds[:, None] != kinds[None, :]).float()).pow(2).mean()
"""

_ATTENDING = _trained(_net("self.fc = nn.Linear(8, 2)", "h = self.fc(rows)\nreturn torch.softmax(h @ h.t(), dim=-1) @ h"))

SCRIPTS: dict[str, Script] = {
    "outputs weighed by whether some numbers are in the batch": Script(
        """
    import numpy as np

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    feed = DataLoader(TensorDataset(x[:42], y[:42], torch.arange(42)), batch_size=6, shuffle=True)
    for epoch in range(2):
        for rows, kinds, numbers in feed:
            weights = torch.from_numpy(1.0 + np.isin(np.arange(2), numbers.numpy())).float()
            loss = F.cross_entropy(net(rows) * weights, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
    ),
    # --- losses: every rank computes that of the whole batch -----------------------------------------------------------
    "a forward of another module that gives the loss of the whole batch, and is evaluated, too": Script(
        """
        from pairs import Pairs


        def judged(net, rows):
            total = 0.0
            with torch.no_grad():
                for part in rows:
                    total += net(*part).item()
            return total / len(rows)


        torch.manual_seed(3)
        net = Pairs()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x[:32], x[:32].flip(1)), batch_size=8, shuffle=True)
        held = DataLoader(TensorDataset(x[32:], x[32:].flip(1)), batch_size=4)
        for epoch in range(3):
            total = 0.0
            for rows, other in feed:
                loss = net(rows, other)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item()
            print(f"epoch {epoch} {total / len(feed):.6f} {judged(net, held):.6f}")
        """,
        same=("epoch",),
        files={
            "pairs.py": """
from torch import nn


def crossed(scores, aims):
    return (-aims * scores.log_softmax(1)).sum(1)


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 4)
        self.two = nn.Linear(8, 4)

    def forward(self, rows, other):
        first = self.one(rows)
        last = self.two(other)
        scores = first @ last.T / 0.5
        aims = ((first @ first.T + last @ last.T) / 2).softmax(1)
        return ((crossed(scores, aims) + crossed(scores.T, aims.T)) / 2).mean()
"""
        },
    ),
    "a forward that gives the loss of the whole batch, whose value without gradients weighs it": Script(
        """
        class Pairs(nn.Module):
            def __init__(self):
                super().__init__()
                self.one = nn.Linear(8, 4)

            def forward(self, rows):
                first = self.one(rows)
                return F.cross_entropy(first @ first.T, torch.arange(len(first)))


        net = Pairs()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for (rows,) in DataLoader(TensorDataset(x[:32]), batch_size=8, shuffle=True):
            with torch.no_grad():
                past = net(rows)
            loss = net(rows) * (1 + past)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        """,
        told=("DDP402",),
    ),
    "a step of training and evaluation, whose loss compares the rows": Script(
        """
        class Pairs(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 4)

            def forward(self, rows):
                return F.normalize(self.body(rows), dim=1)


        def compare(rows, other):
            scores = rows @ other.t() / 0.5
            return F.cross_entropy(scores, torch.arange(len(rows)))


        net = Pairs()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x[:32], x[:32].flip(1)), batch_size=8, shuffle=True)
        held = DataLoader(TensorDataset(x[32:], x[32:].flip(1)), batch_size=4)


        def step(batch):
            rows, other = batch
            first, second = net(rows), net(other)
            return {"loss": compare(first, second), "rows": len(rows)}


        for epoch in range(3):
            net.train()
            for batch in feed:
                out = step(batch)
                sgd.zero_grad()
                out["loss"].backward()
                sgd.step()
            net.eval()
            total = 0.0
            with torch.no_grad():
                for batch in held:
                    total += step(batch)["loss"].item()
            print(f"held {total / len(held):.6f}")
        """,
        same=("held",),
    ),
    "pairs that a collate function stacks in a dict, compared with one another": Script(
        """
        def together(items):
            return {"first": torch.stack([i[0] for i in items]), "second": torch.stack([i[1] for i in items]), "paired": True}


        net = nn.Linear(8, 4)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x, x.flip(1)), batch_size=8, shuffle=True, collate_fn=together, drop_last=True)
        for epoch in range(3):
            for batch in feed:
                batch = {k: v.double() if torch.is_tensor(v) else v for k, v in batch.items()}
                first, second = net(batch["first"]), net(batch["second"])
                scores = F.normalize(first, dim=1) @ F.normalize(second, dim=1).t() / 0.5
                loss = F.cross_entropy(scores, torch.arange(len(scores)))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "a forward that compares the rows of its layers' outputs": Script(
        _net(
            "self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh())\nself.head = nn.Linear(16, 4)",
            "first, second = self.head(self.body(rows)), self.head(self.body(rows.flip(1)))\n"
            "first = (first - first.mean(0)) / first.std(0)\n"
            "second = (second - second.mean(0)) / second.std(0)\n"
            "c = first.T @ second / len(rows)\n"
            "on = (torch.diagonal(c) - 1).pow(2).sum()\n"
            "return on + 0.01 * (c.pow(2).sum() - torch.diagonal(c).pow(2).sum())",
        )
        + """
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.05)
feed = DataLoader(TensorDataset(x), batch_size=8, shuffle=True, drop_last=True)
for epoch in range(3):
    total = 0.0
    for (rows,) in feed:
        loss = net(rows)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.item()
    print(f"loss {total / len(feed):.6f}")
""",
        same=("loss",),
    ),
    "a loss of a list of states, each an average over its steps": Script(
        """
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.mix = nn.Embedding(20, 6), nn.GRU(6, 6, batch_first=True)

            def forward(self, ids, mask):
                states, _ = self.mix(self.words(ids))
                kept = mask.unsqueeze(-1).expand(states.size()).float()
                return torch.sum(states * kept, 1) / torch.clamp(kept.sum(1), min=1e-9)


        class Compared(nn.Module):
            def __init__(self, encoder):
                super().__init__()
                self.encoder = encoder

            def forward(self, texts):
                states = [self.encoder(ids, (ids > 2).long()) for ids in texts]
                first, rest = states[0], torch.cat(states[1:])
                scores = F.normalize(first, dim=1) @ F.normalize(rest, dim=1).t() * 5.0
                return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


        ids = torch.randint(0, 20, (40, 7), generator=torch.Generator().manual_seed(1))
        loss_of = Compared(Encoder())
        adam = torch.optim.Adam(loss_of.parameters(), lr=0.01)
        for epoch in range(3):
            for first, second in DataLoader(TensorDataset(ids, ids.roll(1, 1)), batch_size=8, shuffle=True):
                loss = loss_of([first, second])
                adam.zero_grad()
                loss.backward()
                adam.step()
        """
    ),
    "weights by a softmax over the only dimension": _trained(
        _PLAIN,
        "weighed(net(rows), kinds)",
        more="def weighed(scores, kinds):\n    each = scores.squeeze(-1)\n    return (each.softmax(-1) * (each - kinds) ** 2).sum()\n",
    ),
    "weights by a softmax over each sample's entries": _trained(
        _PLAIN.replace("1", "3"),
        "weighed(net(rows), kinds)",
        more="def weighed(scores, kinds):\n    return (scores.softmax(-1) * (scores - kinds[:, None]) ** 2).sum(-1).mean()\n",
    ),
    "differences of all pairs": _trained(
        _PLAIN,
        "pairs(net(rows), kinds)",
        more="def pairs(scores, kinds):\n    a, b = scores.view(-1), kinds.double()\n"
        "    return ((a.unsqueeze(0) - a.unsqueeze(1)) - (b.unsqueeze(0) - b.unsqueeze(1))).pow(2).mean()\n",
    ),
    "a column less a row": _trained(_PLAIN, "spread(net(rows), kinds)", more="def spread(a, b):\n    return (a - b).pow(2).mean()\n"),
    "a norm of what has one dimension": _trained(
        _PLAIN, "far(net(rows), kinds)", more="def far(scores, kinds):\n    return (scores.flatten() - kinds).norm(dim=-1)\n"
    ),
    # --- divisors ----------------------------------------------------------------------------------------------------
    "a total over the length of a row": Script(
        """
        feed = DataLoader(x, batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        for epoch in range(2):
            for data in feed:
                loss = F.mse_loss(net(data), data, reduction="sum") / len(data[0])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a total over the length of the first of two": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        for epoch in range(2):
            for data in feed:
                loss = F.cross_entropy(net(data[0]), data[1], reduction="sum") / len(data[0])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    # --- inside a forward, which sees a rank's rows alone -----------------------------------------------------------
    "attention among the samples": _ATTENDING,
    "attention among the samples, shown without gradients, too": replace(
        _ATTENDING, text=_ATTENDING.text + "with torch.no_grad():\n    print('shown', f'{net(x[:4]).sum().item():.6f}')\n", same=("shown",)
    ),
    "attention among the samples, shown with gradients, too": replace(
        _ATTENDING, text=_ATTENDING.text + "print(net(x[:4]).sum().item())\n", told=("DDP402",)
    ),
    "a recurrence over the samples": _trained(
        _net("self.rnn = nn.LSTM(2, 4)\nself.fc = nn.Linear(4, 2)", "out, _ = self.rnn(rows.view(-1, 4, 2))\nreturn self.fc(out[:, -1])"),
        told=("DDP402",),
    ),
    "a transformer over the samples": _trained(
        _net(
            "self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), 1)\nself.fc = nn.Linear(4, 2)",
            "out = self.layers(rows.view(rows.size(0), 2, 4))\nreturn self.fc(out.mean(1))",
        ),
        told=("DDP402",),
    ),
    "batch norm by hand": _trained(
        _net("self.fc = nn.Linear(8, 2)", "return F.batch_norm(self.fc(rows), None, None, training=True)"), told=("DDP402",)
    ),
    "a standard score over the batch": _trained(
        _net("self.fc = nn.Linear(8, 2)", "h = self.fc(rows)\nreturn (h - h.mean(0, keepdim=True)) / (h.std(0, keepdim=True) + 1)"),
    ),
    "a softmax over the samples": _trained(
        _net("self.fc = nn.Linear(8, 2)", "h = self.fc(rows)\nreturn h * h.sum(1).softmax(-1)[:, None]"), told=("DDP402",)
    ),
    # --- what only looks so -----------------------------------------------------------------------------------------
    "a recurrence, steps first": _trained(
        _net(
            "self.rnn = nn.LSTM(2, 4)\nself.fc = nn.Linear(4, 2)",
            "out, (last, _) = self.rnn(rows.view(rows.size(0), 4, 2).transpose(0, 1))\nreturn self.fc(out[-1] + last[-1])",
        )
    ),
    "a recurrence, samples first": _trained(
        _net(
            "self.rnn = nn.GRU(2, 4, batch_first=True)\nself.fc = nn.Linear(4, 2)",
            "out, last = self.rnn(rows.view(-1, 4, 2))\nreturn self.fc(out[:, -1, :] + last.squeeze(0))",
        )
    ),
    "a transformer, steps first": _trained(
        _net(
            "layer = nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, dropout=0.0)\n"
            "self.layers = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)\nself.fc = nn.Linear(4, 2)",
            "steps = rows.reshape(len(rows), 2, 4).permute(1, 0, 2)\nreturn self.fc(self.layers(steps).mean(dim=0))",
        ),
    ),
    "attention written out, head by head": _trained(
        _net(
            "self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 2)",
            "b, n, c = rows.view(-1, 2, 4).shape\n"
            "q, k, v = self.qkv(rows.view(b, n, c)).reshape(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4)\n"
            "weights = (q @ k.transpose(-2, -1) * (c // 2) ** -0.5).softmax(dim=-1)\n"
            "return self.out((weights @ v).transpose(1, 2).reshape(b, n, c)).mean(1)",
        ),
    ),
    "attention by two einsums": _trained(
        _net(
            "self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 2)",
            "words = rows.view(rows.shape[0], 2, 4)\n"
            "q, k, v = (part.reshape(rows.shape[0], 2, 2, 2).transpose(1, 2) for part in self.qkv(words).chunk(3, dim=-1))\n"
            "alike = torch.einsum('bhid,bhjd->bhij', q, k).softmax(-1)\n"
            "mixed = torch.einsum('bhij,bhjd->bhid', alike, v)\n"
            "return self.out(mixed.transpose(1, 2).flatten(2)).mean(1)",
        ),
    ),
    "a class token in front of the words": _trained(
        _net(
            "self.token = nn.Parameter(torch.zeros(1, 1, 4))\nself.place = nn.Parameter(torch.zeros(1, 3, 4))\n"
            "self.attend = nn.MultiheadAttention(4, 2, batch_first=True)\nself.norm, self.fc = nn.LayerNorm(4), nn.Linear(4, 2)",
            "words = rows.view(rows.size(0), 2, 4)\n"
            "words = torch.cat((self.token.expand(words.shape[0], -1, -1), words), dim=1) + self.place\n"
            "seen, _ = self.attend(words, words, words)\nreturn self.fc(self.norm(words + seen)[:, 0])",
        ),
    ),
    "statistics of each sample": _trained(
        _net(
            "self.fc = nn.Linear(8, 4)\nself.head = nn.Linear(4, 2)",
            "h = self.fc(rows)\nh = (h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True) + 1)\nreturn self.head(h)",
        )
    ),
    "neighbours of each point, gathered by places in one flat list": _trained(
        _net(
            "self.fc = nn.Linear(4, 2)",
            "b, n = rows.size(0), 4\n"
            "points = rows.view(b, n, 2)\n"
            "near = -torch.cdist(points, points).topk(2, dim=-1, largest=False)[1].neg()\n"
            "places = (near + torch.arange(0, b).view(-1, 1, 1) * n).view(-1)\n"
            "found = points.view(b * n, -1)[places, :].view(b, n, 2, 2)\n"
            "return self.fc(torch.cat((found - points.unsqueeze(2), found), dim=3)).amax((1, 2))",
        )
    ),
    "the next sample's row beside each": _trained(
        _net(
            "self.fc = nn.Linear(16, 2)",
            "after = rows[(torch.arange(rows.size(0)) + 1) % rows.size(0)]\nreturn self.fc(torch.cat((rows, after), 1))",
        ),
        told=("DDP402",),
    ),
    "patterns of einops": _trained(
        _net(
            "self.token = nn.Parameter(torch.zeros(1, 1, 4))\nself.qkv, self.fc = nn.Linear(4, 12), nn.Linear(4, 2)\n"
            "self.cut = Rearrange('b (n c) -> b n c', c=4)",
            "words = self.cut(rows)\n"
            "words = torch.cat((repeat(self.token, '1 1 c -> b 1 c', b=rows.shape[0]), words), dim=1)\n"
            "q, k, v = (rearrange(part, 'b n (h c) -> b h n c', h=2) for part in self.qkv(words).chunk(3, dim=-1))\n"
            "mixed = (q @ k.transpose(-1, -2)).softmax(-1) @ v\n"
            "return self.fc(reduce(rearrange(mixed, 'b h n c -> b n (h c)'), 'b n c -> b c', 'mean'))",
        ).replace("class Net", "from einops import rearrange, reduce, repeat\nfrom einops.layers.torch import Rearrange\n\nclass Net")
    ),
    "patterns of einops with ellipses, packed and unpacked": _trained(
        _net(
            "self.token = nn.Parameter(torch.zeros(1, 4))\nself.qkv, self.fc = nn.Linear(4, 12), nn.Linear(4, 2)\n"
            "self.body = nn.Sequential(Rearrange('b (n m c) -> b n m c', c=4, m=1), nn.LayerNorm(4))\n"
            "self.cut, self.rest = self.body[0], nn.Sequential(*self.body[1:])",
            "words = self.rest(rearrange(self.cut(rows), 'b ... c -> b (...) c'))\n"
            "b, n, heads = *words.shape[:2], 2\n"
            "batch, *_, width, two = words.shape[0], *words.shape[-2:], heads\n"
            "token = repeat(self.token, '... c -> b ... c', b=b)\n"
            "words, sizes = pack([torch.cat((token, words), dim=1).view(batch, n + 1, width // two, two)], 'b * c')\n"
            "(words,) = unpack(words, sizes, 'b * c')\n"
            "parts = self.qkv(words.flatten(2)).chunk(3, dim=-1)\n"
            "q, k, v = map(lambda part: rearrange(part, '... n (h c) -> ... h n c', h=heads), parts)\n"
            "mixed = torch.einsum('... i c, ... j c -> ... i j', q, k).softmax(-1)\n"
            "mixed = einsum(mixed, v, '... row key, ... key c -> ... row c')\n"
            "return self.fc(reduce(rearrange(mixed, '... h n c -> ... n (h c)'), 'b n c -> b c', 'mean'))",
        ).replace(
            "class Net",
            "from einops import einsum, pack, rearrange, reduce, repeat, unpack\nfrom einops.layers.torch import Rearrange\n\nclass Net",
        )
    ),
    "spectra of each sample's signals": _trained(
        _net(
            "self.weight, self.fc = nn.Parameter(torch.ones(2, 3, dtype=torch.cfloat)), nn.Linear(8, 2)",
            "spectrum = torch.fft.rfft(rows.view(-1, 2, 4), dim=-1, norm='ortho')\n"
            "spectrum = torch.complex(spectrum.real + 1, spectrum.imag) * self.weight\n"
            "return self.fc(torch.hstack((torch.fft.irfft(spectrum, n=4, dim=-1).flatten(1),)))",
        )
    ),
    "spectra over the samples": _trained(
        _net("self.fc = nn.Linear(8, 2)", "return self.fc(torch.fft.irfft(torch.fft.rfft(rows, dim=0), n=len(rows), dim=0))"),
        told=("DDP402",),
    ),
    "a number for each sample, of as many dimensions as its rows have": _trained(
        _net(
            "self.fc = nn.Linear(8, 2)",
            "rows = rows.view(-1, 2, 4)\n"
            "kept = torch.ones((rows.shape[0], *((1,) * (rows.ndim - 1)))) * 0.5\n"
            "return self.fc((rows.div(0.5) * kept).flatten(1))",
        )
    ),
    "numbers for each sample's channels, of as many dimensions as its rows have": _trained(
        _net(
            "self.fc = nn.Linear(8, 2)",
            "rows = rows.view(-1, 2, 4)\n"
            "shape = rows.shape[:2] + (1,) * (rows.ndim - 2) if self.training else rows.shape\n"
            "return self.fc((rows * torch.ones(*shape).cumsum(1)).flatten(1))",
        )
    ),
    "numbers of all samples' channels, of as many dimensions as their rows have": _trained(
        _net(
            "self.fc = nn.Linear(8, 2)",
            "rows = rows.view(-1, 2, 4)\nreturn self.fc((rows * torch.ones(rows.shape[:2] + (1,) * (rows.ndim - 2)).cumsum(0)).flatten(1))",
        ),
        told=("DDP402",),
    ),
    "a layer for images or for rows, as an option says": _trained(
        _net(
            "layer = partial(nn.Conv1d, kernel_size=1) if len(sys.argv) > 5 else nn.Linear\n"
            "self.body, self.fc = layer(8, 4), nn.Linear(4, 2)",
            "return self.fc(self.body(rows))",
        ).replace("class Net", "import sys\nfrom functools import partial\n\nclass Net")
    ),
    "modules that are added in a loop": _trained(
        _net(
            "self.body, self.fc = nn.Sequential(), nn.Linear(8, 2)\n"
            "self.body.add_module('cut', nn.Conv1d(2, 2, 1))\n"
            "self.body.add_module('flat', nn.Flatten())\n"
            "for i in range(2):\n"
            "    self.body.add_module(f'fc{i}', nn.Linear(8, 8))\n    self.body.add_module(f'norm{i}', nn.LayerNorm(8))",
            "return self.fc(self.body(rows.view(-1, 2, 4)))",
        )
    ),
    "weights of each sample's own, in a convolution with a group for each": _trained(
        _net(
            "self.kinds, self.weight, self.fc = nn.Linear(8, 3), nn.Parameter(torch.ones(3, 4, 2, 1, 1)), nn.Linear(16, 2)",
            "b, images = len(rows), rows.view(-1, 2, 2, 2)\n"
            "weight = torch.mm(self.kinds(rows).softmax(1), self.weight.view(3, -1)).view(b * 4, 2, 1, 1)\n"
            "images = F.conv2d(images.view(1, -1, 2, 2), weight=weight, groups=b)\n"
            "return self.fc(images.view(b, 4, 2, 2).flatten(1))",
        )
    ),
    "as many learned rows as a batch has samples": _trained(
        _net(
            "self.queries, self.fc = nn.Parameter(torch.randn(4, 4)), nn.Linear(4, 2)",
            "near = (self.queries @ rows.view(-1, 2, 4).transpose(1, 2)).softmax(-1)\n"
            "return self.fc(near.transpose(1, 2).mean(1) @ self.queries)",
        )
    ),
    "an average over the samples by einops": _trained(
        _net("self.fc = nn.Linear(8, 2)", "return self.fc(rows - reduce(rows, 'b c -> 1 c', 'mean'))").replace(
            "class Net", "from einops import reduce\n\nclass Net"
        ),
        told=("DDP402",),
    ),
    "each sample's number of its own class, by a list of places": _trained(
        _net("self.fc = nn.Linear(8, 2)", "return self.fc(rows)"),
        "(-F.log_softmax(net(rows), 1)[torch.LongTensor(range(rows.size(0))), kinds]).mean()",
    ),
    "queries that each sample and head chooses by sampled keys": _trained(
        _net(
            "self.q, self.k, self.v, self.fc = nn.Linear(2, 4), nn.Linear(2, 4), nn.Linear(2, 4), nn.Linear(16, 2)",
            "words = rows.view(-1, 4, 2)\n"
            "b, n, h = words.size(0), words.size(1), 2\n"
            "q, k, v = (part(words).view(b, n, h, -1).transpose(2, 1) for part in (self.q, self.k, self.v))\n"
            "keys = torch.zeros((n, 2), dtype=torch.long) + torch.arange(2)\n"
            "sampled = k.unsqueeze(-3).expand(b, h, n, n, 2)[:, :, torch.arange(n).unsqueeze(1), keys, :]\n"
            "near = torch.matmul(q.unsqueeze(-2), sampled.transpose(-2, -1)).squeeze(-2)\n"
            "top = (near.max(-1)[0] - torch.div(near.sum(-1), n)).topk(2, sorted=False)[1]\n"
            "few = q[torch.arange(b)[:, None, None], torch.arange(h)[None, :, None], top, :]\n"
            "found = torch.softmax(torch.matmul(few, k.transpose(-2, -1)), dim=-1) @ v\n"
            "all_ = v.mean(dim=-2).unsqueeze(-2).expand(b, h, n, v.shape[-1]).clone()\n"
            "all_[torch.arange(b)[:, None, None], torch.arange(h)[None, :, None], top, :] = found\n"
            "return self.fc(all_.transpose(2, 1).reshape(b, -1))",
        )
    ),
    "a sum of products over the batch": _trained(_PLAIN, "0.01 * (net(rows)[:, 0] @ kinds.float())"),
    "centred by the batch in the first entry of a list that more is added to": _trained(
        _net("self.body = nn.Linear(8, 2)", "scores = self.body(rows)\nout = [scores - scores.mean(0)]\nout += [scores]\nreturn out"),
        "F.cross_entropy(net(rows)[0], kinds)",
        told=("DDP402",),
    ),
    "centred by the batch, in a model that is called too deep to be followed, and then in the loop": _trained(
        _net("self.body = nn.Sequential(Centred(), nn.Linear(8, 2))", "return self.body(rows)"),
        more="def call0(rows):\n    return net(rows)\n\n\n"
        + "".join(f"def call{i}(rows):\n    return call{i - 1}(rows)\n\n\n" for i in range(1, 22))
        + "class Centred(nn.Module):\n    def forward(self, rows):\n        return rows - rows.mean(0)\n",
        loss="(call21(rows), F.cross_entropy(net(rows), kinds))[1]",
    ),
    "differences of all pairs, of a tuple and of one tensor": _trained(
        _net("self.near, self.far = nn.Linear(8, 1), nn.Linear(8, 1)", "return self.near(rows), self.far(rows)"),
        "spread(net(rows), kinds)",
        more=_SPREAD,
    ),
    "differences of all pairs, of a list and of one tensor": _trained(
        _net("self.near, self.far = nn.Linear(8, 1), nn.Linear(8, 1)", "return [self.near(rows), self.far(rows)]"),
        "spread(net(rows), kinds)",
        more=_SPREAD.replace("tuple", "list"),
    ),
    "differences of all pairs, of a network that gives a tuple or one tensor": _trained(
        "import sys\n\n\n"
        + _net(
            "self.near, self.far = nn.Linear(8, 1), nn.Linear(8, 1)",
            "return (self.near(rows), self.far(rows)) if len(sys.argv) > 9 else self.near(rows) - self.far(rows)",
        ),
        "spread(net(rows), kinds)",
        more=_SPREAD,
        told=("DDP402",),
    ),
}

SCRIPTS |= {
    f"rows beside those of other places, numbered by torch.arange({ends})": Script(
        f"""
        torch.manual_seed(0)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                n = data.size(0)
                loss = (model(data) - model(data[torch.arange({ends}) % n])).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
        apart=("trajectory",),
    )
    for ends in ("n - 1, -1, -1", "1, n + 1")
}

_PAIRS = """
class Pairs(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return {"one": x[i], "other": x[i].flip(0)}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.far = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, one, other, scale=1.0):
        return self.near(one) * scale, self.far(other)


torch.manual_seed(0)
net = Encoder()
loader = DataLoader(Pairs(), batch_size=8, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for batch in loader:
        BATCH
        scores = one @ other.t()
        loss = F.cross_entropy(scores, torch.arange(len(scores)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    "a batch that is passed by name to a model of the script's own, which is compared with the others'": Script(
        _PAIRS.replace("BATCH", "one, other = net(**batch)")
    ),
    "a batch that is moved entry by entry, and passed by name to a model of the script's own": Script(
        _PAIRS.replace("BATCH", 'batch = {k: v.to("cpu") for k, v in batch.items()}\n        one, other = net(**batch)')
    ),
}
_CRITERIA = """
from torch import nn


class Overlap(nn.Module):
    def forward(self, scores, kinds):
        scores = scores.sigmoid()
        return 1 - 2 * (scores * kinds).sum() / (scores.sum() + kinds.sum())
"""
SCRIPTS["a loss of a package that is not known, scaled"] = Script(
    """
    from criteria_of_others import Overlap

    torch.manual_seed(0)
    net, criterion, scaler = nn.Linear(8, 8), Overlap(), torch.amp.GradScaler("cpu", enabled=False)
    loader = DataLoader(TensorDataset(x, (x > 0).float()), batch_size=8, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = criterion(net(rows), kinds)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    """,
    stand_ins={"criteria_of_others.py": _CRITERIA},
)

SCRIPTS["rows that only one of two kinds of heads may combine, and targets that both get"] = Script(
    """
    class Margin(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.linspace(-1, 1, 8).view(2, 4).clone())
            self.powers = [lambda c: c, lambda c: 2 * c**2 - 1]
            self.power = 1

        def forward(self, points, kinds):
            cosine = F.linear(F.normalize(points), F.normalize(self.weight))
            shifted = self.powers[self.power](cosine)
            chosen = torch.zeros_like(cosine)
            chosen.scatter_(1, kinds.view(-1, 1), 1.0)
            return chosen * (shifted - cosine) / 5 + cosine


    net = nn.Linear(8, 4)
    head = {"margin": Margin(), "linear": nn.Linear(4, 2, bias=False)}[os.environ.get("HEAD", "margin")]
    optimizer = torch.optim.SGD([{"params": net.parameters()}, {"params": head.parameters()}], lr=0.1)
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True, drop_last=True)
    for epoch in range(2):
        for rows, kinds in loader:
            points = net(rows)
            if isinstance(head, nn.Linear):
                points = head(points)
            else:
                points = head(points, kinds)
            loss = F.cross_entropy(points, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)

SCRIPTS["what two domains' features have in common, compared in training mode by a module of its own"] = Script(
    """
    from alignment import Aligned

    torch.manual_seed(0)
    first, second = (torch.utils.data.TensorDataset(part, y[:20]) for part in (x[:20], x[20:40] + 1))
    sources = DataLoader(first, batch_size=4, shuffle=True, drop_last=True)
    targets = DataLoader(second, batch_size=4, shuffle=True, drop_last=True)
    held = DataLoader(TensorDataset(x[40:], y[40:]), batch_size=4)
    model = Aligned()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


    def judge(model):
        model.eval()
        right = 0
        with torch.no_grad():
            for rows, kinds in held:
                scores, _ = model(rows, rows)
                right += (scores.argmax(1) == kinds).sum().item()
        return right


    for epoch in range(3):
        model.train()
        for (rows, kinds), (others, _) in zip(sources, targets):
            scores, distance = model(rows, others)
            loss = F.cross_entropy(scores, kinds) + 0.3 * distance
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("right", judge(model))
    """,
    files={
        "alignment.py": """import torch.nn as nn

import distances


class Aligned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, rows, others):
        distance = 0
        rows = self.body(rows).view(rows.size(0), -1)
        if self.training == True:
            distance = distance + distances.kernel_distance(rows, self.body(others))
        return self.head(rows), distance
""",
        "distances.py": """import torch


def kernels(one, other, widths=3):
    every = torch.cat([one, other], dim=0)
    apart = ((every.unsqueeze(0) - every.unsqueeze(1)) ** 2).sum(2)
    width = apart.detach().sum() / (every.size(0) ** 2 - every.size(0))
    return sum(torch.exp(-apart / (width * 2**i)) for i in range(widths))


def kernel_distance(one, other):
    count = int(one.size(0))
    near = kernels(one, other)
    return (near[:count, :count] + near[count:, count:] - near[:count, count:] - near[count:, :count]).mean()
""",
    },
    same=("right",),
)
_VIEWS = """
    def contrast({given}):
        {views}
        count = len(one)
        views = F.normalize(torch.cat([one, other], dim=0), dim=1)
        apart = (views @ views.t() / 0.5).masked_fill(torch.eye(2 * count, dtype=torch.bool), -1e9)
        return F.cross_entropy(apart, torch.cat([torch.arange(count) + count, torch.arange(count)]))


    torch.manual_seed(0)
    net = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, more in DataLoader(TensorDataset(x[:40], x[:40] * 1.5 + 0.1), batch_size=8, shuffle=True):
            b, width = rows.size()
            features = net(torch.cat([rows.unsqueeze(1), more.unsqueeze(1)], dim=1).view(-1, width))
            loss = contrast(features.view({sizes}))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS["two views of each sample, side by side in the rows of a model and two for each sample again"] = Script(
    _VIEWS.format(given="pairs", views="one, other = torch.unbind(pairs, dim=1)", sizes="b, 2, -1")
)
SCRIPTS["two views of each sample, side by side in the rows of a model and of its loss"] = Script(
    _VIEWS.format(given="rows", views="one, other = rows[0::2], rows[1::2]", sizes="features.size(0), -1"), told=("DDP402",)
)
SCRIPTS["a focal loss of a batch's mean over scores of one head or another, whose labels become arrays in the end"] = Script(
    """
    import numpy as np


    class Margin(nn.Module):
        def __init__(self, width, kinds):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(kinds, width))
            nn.init.xavier_uniform_(self.weight)

        def forward(self, features, kinds):
            cosine = F.linear(F.normalize(features), F.normalize(self.weight))
            chosen = torch.zeros(cosine.size())
            chosen.scatter_(1, kinds.view(-1, 1).long(), 1)
            return 4 * (chosen * (cosine - 0.2) + (1.0 - chosen) * cosine)


    class Focal(nn.Module):
        def __init__(self):
            super().__init__()
            self.ce = nn.CrossEntropyLoss()

        def forward(self, scores, kinds):
            log = self.ce(scores, kinds)
            return ((1 - torch.exp(-log)) ** 2 * log).mean()


    torch.manual_seed(0)
    parser = argparse.ArgumentParser()
    parser.add_argument("--head", default="margin")
    args = parser.parse_args()
    net = nn.DataParallel(nn.Linear(8, 6))
    if args.head == "plain":
        head = nn.Linear(6, 3)
    else:
        head = Margin(6, 3)
    head = nn.DataParallel(head)
    optimizer = torch.optim.SGD([{"params": net.parameters()}, {"params": head.parameters()}], lr=0.1)
    criterion = Focal()
    for epoch in range(3):
        for i, batch in enumerate(DataLoader(TensorDataset(x[:40], y[:40] % 3), batch_size=8, shuffle=True)):
            rows, kinds = batch
            scores = head(net(rows), kinds)
            loss = criterion(scores, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 2 == 0:
                scores = np.argmax(scores.data.cpu().numpy(), axis=1)
                kinds = kinds.data.cpu().numpy()
                print("right", np.mean((scores == kinds).astype(int)))
"""
)

_SHIFTED = """
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            shift = torch.zeros_like(rows)
            %s
            loss = F.cross_entropy(net(rows + shift), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_LENGTH = "rows.norm()"  # of all rows together
_LENGTHS = "rows.norm(dim=1, keepdim=True)"  # of each
_WRITES = {
    "new data": "shift.data = rows / {0}",
    "more data": "shift.data += rows / {0}",
    "all entries": "shift[:] = rows / {0}",
    "some entries of the data": "shift.data[:, :4] = (rows / {0})[:, :4]",
    "data that is added to": "shift.data.add_(rows / {0})",
}
SCRIPTS |= {
    f"{name} of a tensor, by the length of all rows": Script(_SHIFTED % line.format(_LENGTH), told=("DDP402",))
    for name, line in _WRITES.items()
}
SCRIPTS |= {f"{name} of a tensor, by the length of each row": Script(_SHIFTED % line.format(_LENGTHS)) for name, line in _WRITES.items()}
SCRIPTS |= {
    "rows sorted by their lengths, packed, and the last states of both directions put side by side": Script(
        """
        from torch.nn.utils.rnn import pack_padded_sequence


        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(1, 4, bidirectional=True, batch_first=True)
                self.head = nn.Linear(8, 2)

            def forward(self, rows, lengths):
                _, (last, _) = self.lstm(pack_padded_sequence(rows, lengths, batch_first=True))
                return self.head(torch.cat([state for state in last], 1))


        net = Reader()
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        lengths = torch.arange(44) * 5 % 8 + 1
        for epoch in range(2):
            for rows, size, kinds in DataLoader(TensorDataset(x, lengths, y), batch_size=6, shuffle=True):
                size, order = size.sort(0, descending=True)
                rows, kinds = rows[order], kinds[order]
                loss = F.cross_entropy(net(rows.unsqueeze(2), size), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            print("epoch %d %.6f" % (epoch, loss.item()))
        """,
        same=("epoch",),
    ),
    "outputs of a list that is filled in one of two modes, in a loss of the whole batch": Script(
        """
        class Heads(nn.Module):
            def __init__(self, mode):
                super().__init__()
                self.mode, self.one, self.other = mode, nn.Linear(8, 2), nn.Linear(8, 1)

            def forward(self, rows):
                found = []
                if self.mode == "train":
                    found = [self.one(rows), self.other(rows)]
                elif self.mode == "test":
                    pass
                return found


        net = Heads(os.environ.get("MODE", "train"))
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                scores, sizes = net(rows)
                loss = F.cross_entropy(scores, kinds) + torch.pow(torch.sum(torch.pow(sizes.squeeze(1) - kinds, 2)), 0.5)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "a token before the first of each sample, once for each of a batch": Script(
        """
        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.head = nn.Embedding(6, 4), nn.Linear(4, 6)

            def forward(self, words):
                return self.head(self.table(words))


        words = (x.abs() * 5).long()
        net = Words()
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        for epoch in range(2):
            for (told,) in DataLoader(TensorDataset(words), batch_size=4, shuffle=True):
                begin = torch.tensor([5] * told.shape[0]).reshape(-1, 1)
                again = torch.LongTensor([[5]] * len(told))
                scores = net(torch.cat([begin, told[:, :-1]], 1)) + net(torch.cat((again, told[:, :-1]), dim=1))
                loss = F.cross_entropy(scores.reshape(-1, 6), told.reshape(-1))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
}
_READER = """
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(1, 4, batch_first=True)
                self.head = nn.Linear(8, 2)

            def forward(self, rows, lengths):
                lengths, order = torch.sort(lengths, descending=True)
                packed = pack_padded_sequence(rows[order].unsqueeze(2), lengths.tolist(), batch_first=True)
                steps, (last, _) = self.lstm(packed)
                steps, _ = pad_packed_sequence(steps, batch_first=True, total_length=8)
                %s
                return self.head(torch.cat([steps.mean(1), last[-1]], 1))


        net = Reader()
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        lengths = torch.arange(44) * 5 %% 8 + 1
        for epoch in range(2):
            for rows, size, kinds in DataLoader(TensorDataset(x, lengths, y), batch_size=4, shuffle=True):
                loss = F.cross_entropy(net(rows, size), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            print("epoch %%d" %% epoch)
        """
_AFTER_A_SORT = """
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)


        def in_order(numbers):
            return numbers.sort(0)[0]


        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True):
                scores = net(rows)
                %s
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
SCRIPTS |= {
    f"rows that a model sorts by their lengths, and puts back {how}": Script(_READER % line)
    for how, line in {
        "by the sorted order": "back = torch.sort(order)[1]; steps, last = steps[back], last[:, back]",
        "by words": "back = torch.sort(order)[1]; steps, last = steps.index_select(index=back, dim=0), last[:, back]",
        "by the places in the order": "back = order.argsort(); steps, last = steps.index_select(0, back), last.index_select(1, back)",
    }.items()
}
SCRIPTS |= {
    "a summary of each sample, spread over its steps": Script(
        """
        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.steps, self.head = nn.Linear(2, 5), nn.Linear(10, 2)

            def forward(self, rows):
                steps = self.steps(rows.view(-1, 4, 2))
                weights = torch.softmax(steps.max(2)[0], 1).unsqueeze(1)
                summary = torch.bmm(weights, steps).squeeze()
                summary = summary.unsqueeze(1).expand(-1, steps.size(1), -1)
                return self.head(torch.cat((steps, summary * steps), 2).sum(1))


        net = Reader()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            print("epoch", epoch)
        """
    ),
    "outputs of rows that a model has sorted, and the targets as they were": Script(_READER % "pass", told=("DDP402",)),
    "rows and targets sorted alike": Script(
        _AFTER_A_SORT % "order = rows[:, 0].argsort(); loss = F.cross_entropy(net(rows[order]), kinds[order])"
    ),
    **{
        f"a loss of {what}": Script(_AFTER_A_SORT % line)
        for what, line in {
            "sorted scores and sorted targets": "loss = (scores[:, 0].sort(0)[0] - kinds.float().sort(0)[0]).pow(2).mean()",
            "scores and targets that one function sorts": "loss = (in_order(scores[:, 0]) - in_order(kinds.float())).pow(2).mean()",
            "sorted rows and targets as they were": "loss = F.cross_entropy(scores[rows[:, 0].argsort()], kinds)",
            "the largest errors of a batch": "loss = F.mse_loss(scores[:, 0], kinds.float(), reduction='none').sort(0)[0][-2:].mean()",
            "errors weighed by their places among all": "loss = (scores[:, 0].abs().sort(0)[0] * torch.arange(len(rows))).mean()",
            "all rows but the first, of outputs and targets": "loss = F.mse_loss(scores[1:, 0], kinds[1:].float())",
            "the differences of all rows but the first": "loss = (scores[1:] - rows[1:][:, :2]).pow(2).mean()",
            "errors added up in their order": "loss = scores[:, 0].abs().sort(0)[0].cumsum(0).mean()",
        }.items()
    },
}

_SLICED = """
        class Points(Dataset):
            def __getitem__(self, i):
                return x[i], y[i].float()

            def __len__(self):
                return 40


        net = nn.Linear(8, 1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(Points(), batch_size=4, shuffle=True):
                scores = net(rows).squeeze(1)
                %s
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
SCRIPTS |= {
    f"all rows but the first, of a data set of its own, in {what}": Script(_SLICED % line)
    for what, line in {
        "a loss": "loss = F.mse_loss(scores[1:], kinds[1:])",
        "a loss times a tensor that is read by no index": "loss = F.mse_loss(scores[1:], kinds[1:]) * torch.tensor(0.5)[()]",
        "a difference": "loss = (scores[1:] - kinds[1:]).pow(2).mean()",
    }.items()
}
_PICKED = """
    import numpy as np

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    k = 5
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            scores = net(rows)
            each = F.cross_entropy(scores, kinds, reduction="none")
            %s
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
SCRIPTS |= {
    f"samples with small losses, {title}": Script(_PICKED % "\n            ".join(lines))
    for title, lines in {
        "by the first of their order": ("chosen = each.argsort()[:k]", "loss = F.cross_entropy(scores[chosen], kinds[chosen])"),
        "by the last of their order": ("chosen = torch.argsort(-each)[-k:]", "loss = each[chosen].mean()"),
        "by the places that a sort gives": ("_, order = torch.sort(each)", "chosen = order[:k]", "loss = each[chosen].sum() / k"),
        "by an order of numpy": (
            "order = np.argsort(each.detach().numpy())",
            "chosen = order[: int(0.5 * len(order))].copy()",
            "loss = F.cross_entropy(scores[chosen], kinds[chosen])",
        ),
        "by the places of the smallest": ("_, chosen = torch.topk(each, k, largest=False)", "loss = each[chosen].mean()"),
        "by Python's order": ("chosen = sorted(each, key=lambda v: v.item())", "loss = torch.stack(chosen).sort()[0][:k].mean()"),
        "under one that Python's order has": (
            "limit = sorted(each.tolist())[k]",
            "chosen = each <= limit",
            "loss = (each * chosen).sum() / chosen.sum()",
        ),
        "that lie near one another": (
            "chosen = torch.stack(sorted(each, key=lambda v: v.item()))",
            "loss = each.mean() + (chosen[1:] - chosen[:-1]).pow(2).sum()",
        ),
        "in their order, and cut": ("sorted_losses, _ = each.sort()", "loss = sorted_losses[:k].mean()"),
    }.items()
}
SCRIPTS["two inputs of a model, each sorted by lengths of its own"] = Script(
    """
    from torch.nn.utils.rnn import pack_padded_sequence


    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(1, 4, batch_first=True)

        def read(self, rows, lengths):
            return self.lstm(pack_padded_sequence(rows.unsqueeze(2), lengths, batch_first=True))[1][0][-1]

        def forward(self, asked, said, first, second):
            return (self.read(asked, first) * self.read(said, second)).sum(1)


    def in_order(rows, lengths):
        lengths, order = lengths.sort(0, descending=True)
        return rows[order], lengths


    net = Pairs()
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    first, second = torch.arange(44) * 5 % 8 + 1, torch.arange(44) * 3 % 8 + 1
    for epoch in range(2):
        for asked, said, one, other, kinds in DataLoader(TensorDataset(x, x.flip(0), first, second, y), batch_size=6, shuffle=True):
            asked, one = in_order(asked, one)
            said, other = in_order(said, other)
            loss = F.binary_cross_entropy_with_logits(net(asked, said, one, other), kinds.float())
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        print("epoch %d %.6f" % (epoch, loss.item()))
    """,
    same=("epoch",),
    ranks=(2, 3),
)

SCRIPTS |= {
    f"outputs that a loop goes through by a number, as {counts}": Script(
        f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(8, 2), nn.Linear(8, 2)

            def forward(self, x):
                h = self.second(x)
                return self.first(x), h - h.mean(0)


        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=2)
        for data, target in loader:
            outputs, loss, i = model(data), 0, 0
            while i < 2:
                loss = loss + F.cross_entropy(outputs[i], target)
                {counts}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    for counts in ("i += 1", "i = i + 1")
}

_STEPS = "for step in {}:\n    rows = step(rows)\nreturn rows"
_HELD = {  # how a network holds its layers, and how it calls them
    "pairs of names and layers": (
        "self.body = nn.Sequential(OrderedDict([('first', Layer()), ('last', Head())]))",
        "return self.body(rows)",
    ),
    "lists of a name and a layer": (
        "self.body = nn.Sequential(OrderedDict([['first', Layer()], ['last', Head()]]))",
        "return self.body(rows)",
    ),
    "names zipped with layers": (
        "self.body = nn.Sequential(OrderedDict(zip(('first', 'last'), (Layer(), Head()))))",
        "return self.body(rows)",
    ),
    "a dict that is updated": (
        "steps = OrderedDict()\nsteps.update([('first', Layer())])\nsteps.update(last=Head())\nself.body = nn.Sequential(steps)",
        "return self.body(rows)",
    ),
    "some children of another network": (
        "self.body = nn.Sequential(*list(nn.Sequential(Layer(), Head(), nn.Tanh()).children())[:-1])",
        "return self.body(rows)",
    ),
    "a part of another sequence": ("self.body = nn.Sequential(*nn.Sequential(Layer(), Head(), nn.Tanh())[:-1])", "return self.body(rows)"),
    "its own dict of layers": ("self.first, self.last = Layer(), Head()", _STEPS.format("self._modules.values()")),
    "its own dict of layers, by their names": (
        "self._modules['first'], self.last = Layer(), Head()",
        "return self.last(self._modules['first'](rows))",
    ),
    "layers by the names of a dict": (
        "self.body = nn.ModuleDict({'first': Layer(), 'last': Head()})",
        _STEPS.replace("step in", "name, step in").format("self.body.items()"),
    ),
    "a dict of layers that is updated": (
        "self.body = nn.ModuleDict()\nself.body.update({'first': Layer(), 'last': Head()})",
        "return self.body['last'](self.body['first'](rows))",
    ),
    "layers by the paths to them": (
        "self.body = nn.Sequential(Layer(), Head())",
        "return self.get_submodule('body.1')(self.get_submodule('body.0')(rows))",
    ),
    "lists of layers that are joined": (
        "self.body = nn.ModuleList([Layer()]) + nn.ModuleList([Head()])",
        _STEPS.format("self.body"),
    ),
    "layers that are reduced over": (
        "self.body = nn.ModuleList([Layer(), Head()])",
        "return reduce(lambda before, step: step(before), self.body, rows)",
    ),
    "layers that are computed again in parts": (
        "self.body = nn.Sequential(Layer(), Head())",
        "return checkpoint_sequential(self.body, 2, rows, use_reentrant=False)",
    ),
    "a layer by its method": ("self.first, self.last = Layer(), Head()", "return self.last.__call__(self.first.__call__(rows))"),
}
_LAYERS = """
from collections import OrderedDict
from functools import reduce

from torch.utils.checkpoint import checkpoint_sequential


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, rows):
        return self.fc(rows - rows.mean({}))


def Head():
    return nn.Linear(8, 2)


"""
SCRIPTS |= {
    f"layers that centre {what}, as {how}": _trained(
        _LAYERS.format(over) + _net(*net), told=("DDP402",) if what == "the batch" and how == "layers by the paths to them" else ()
    )
    for what, over in (("the batch", "0"), ("each sample", "1, keepdim=True"))
    for how, net in _HELD.items()
}
_CUT = """
    import numpy as np


    def contrast(one, other):
        alike = torch.einsum("btc,dtc->tbd", one, other)
        return F.cross_entropy(alike.flatten(0, 1), torch.arange(one.size(0)).repeat(one.size(1)))


    np.random.seed(3)
    series = torch.stack([x[:36] * k for k in range(1, 7)], 1)
    loader = DataLoader(TensorDataset(series), batch_size=6, shuffle=True)
    net = nn.Linear(8, 4)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for (rows,) in loader:
            length = np.random.randint(low=2, high=rows.size(1) + 1)
            start = np.random.randint(rows.size(1) - length + 1)
            loss = contrast(net({cut}), net({cut} + 0.1))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"rows that are gathered, {name}": Script(_CUT.replace("{cut}", cut))
    for name, cut in {
        "cut where a draw says": "rows[:, start : start + length]",
        "the ends of which a draw cuts off": "rows[:, -length:]",
        "taken by numbers up to a draw": "rows[:, torch.arange(length)]",
        "padded as a draw says": "F.pad(rows, (0, 0, 0, length))",
        "narrowed as a draw says": "rows.narrow(1, 0, length)",
        "resized as a draw says": "F.interpolate(rows.transpose(1, 2), size=length).transpose(1, 2)",
    }.items()
}

_COLLATED = """
import numpy as np


def collate(batch):
    rows, kinds = torch.stack([sample[0] for sample in batch]), torch.stack([sample[1] for sample in batch])
    {statements}
    return rows, kinds


net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, collate_fn=collate):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {
    f"a collate function in which samples meet, {title}": Script(_COLLATED.replace("{statements}", statements))
    for title, statements in {
        "by their average": "rows = rows - rows.mean(0)",
        "by their largest number": "rows /= rows.abs().max()",
        "by the share of a kind": "share = kinds.double().mean()\n    rows = rows * (1 + share)",
        "beside those in another order": "rows = 0.7 * rows + 0.3 * rows.flip(0)",
        "beside those in an order of places": "order = torch.arange(len(rows) - 1, -1, -1)\n    rows = 0.7 * rows + 0.3 * rows[order]",
        "with half of each from another": "rows[:, 4:] = rows.roll(1, 0)[:, 4:]",
        "beside the first": "rows = rows - rows[0]",
        "by their sums so far": "if len(rows) > 1:\n        rows = rows.cumsum(0)",
        "by a list of them": "rows = rows - torch.from_numpy(np.mean([s[0].numpy() for s in batch], axis=0))",
        "by those above the average": "rows = rows * (rows.sum(1) > rows.sum(1).mean())[:, None]",
        "at the later of two ends": "if len(batch) < 2:\n        return rows, kinds\n    rows = rows - rows.mean(0)",
        "stacked by a map": "rows, kinds = map(torch.stack, zip(*batch))\n    rows = rows - rows.mean(0)",
        "changed in place": "rows.sub_(rows.mean(0))",
        "stacked by torch": "rows, kinds = torch.utils.data.default_collate(batch)\n    rows = rows + rows.flip(0)",
    }.items()
}

_LISTED = """
import collections
import heapq
import itertools
from itertools import combinations as pairs

loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for rows, kinds in loader:
        n, numbers = len(rows), kinds.tolist()
        {statements}
        loss = F.cross_entropy(net(rows + 0.5 * other), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
_SORTED = "order = sorted(range(n), key=lambda i: float(rows[i].sum()))"
SCRIPTS |= {
    f"rows beside what a batch as a whole tells, {title}": Script(_LISTED.format(statements=statements.replace("\n", "\n        ")))
    for title, statements in {
        "by numbers that are sorted": f"{_SORTED}\nother = rows[order]",
        "by numbers sorted in place": "order = list(range(n))\norder.sort(key=lambda i: float(rows[i].sum()))\nother = rows[order]",
        "by numbers from behind": "order = list(range(n))\norder.reverse()\nother = rows[order]",
        "by the numbers after theirs": "order = [(i + 1) % n for i in range(n)]\nother = rows[order]",
        "by even numbers first": "order = list(range(0, n, 2)) + list(range(1, n, 2))\nother = rows[order]",
        "by numbers in pairs": "order = [i for _, i in sorted(zip(rows[:, 0].tolist(), range(n)))]\nother = rows[order]",
        "as a list from behind": "listed = list(rows)\nlisted.reverse()\nother = torch.stack(listed)",
        "as a deque that is turned": "turned = collections.deque(rows)\nturned.rotate(1)\nother = torch.stack(list(turned))",
        "by a function of their numbers": "other = torch.stack(list(map(lambda i: rows[n - 1 - i], range(n))))",
        "of the first of their kind": (
            "first = {}\nfor row, kind in zip(rows, numbers):\n    first.setdefault(kind, []).append(row)\n"
            "other = torch.stack([first[kind][0] for kind in numbers])"
        ),
        "at the place that their kind says": "other = rows.clone()\nfor i, kind in enumerate(numbers):\n    other[i] = rows[kind]",
        "divided by how many are of their kind": (
            "many = collections.Counter(numbers)\nother = torch.stack([row / many[int(kind)] for row, kind in zip(rows, kinds)])"
        ),
        "divided by how many kinds there are": "other = rows / len(set(numbers))",
        "divided by how many are of a kind": "other = rows / (1 + sum(1 for kind in numbers if kind == 1))",
        "with what each pair has in common": "other = rows * sum((rows[i] * rows[j]).mean() for i, j in pairs(range(n), 2))",
        "added to the least": "other = rows + heapq.nsmallest(1, rows[:, 0].tolist())[0]",
        "added to the place of a first": "other = rows + next((i for i, kind in enumerate(numbers) if kind == 1), 0)",
        "added to the sums so far": "other = rows + torch.tensor(list(itertools.accumulate(rows[:, 0].tolist())))[:, None]",
        "times a number that they choose": "scale = 1.0\nif rows.mean() > 0:\n    scale = 2.0\nother = rows * scale",
        "times entries that are written": "written = torch.zeros(2)\nwritten[0] = rows.mean()\nother = rows * written.sum()",
        "times entries that are counted up": "many = torch.zeros(2)\nfor k in numbers:\n    many[k] += 1\nother = rows / (1 + many[0])",
        "with what is left of those before": (
            "left, kept = torch.zeros(8), []\nfor row in rows:\n    left = 0.5 * left + 0.5 * row\n    kept.append(left)\n"
            "other = torch.stack(kept)"
        ),
    }.items()
}
SCRIPTS |= {
    f"rows that are all put in one order, {title}": Script(_LISTED.replace("{statements}", statements.replace("\n", "\n        ")))
    for title, statements in {
        "sorted by numbers of their own": f"{_SORTED}\nrows, kinds = rows[order], kinds[order]\nother = rows.flip(1)",
        "the last first": "order = torch.argsort(rows[:, 0]).flip(0)\nrows, kinds = rows[order], kinds[order]\nother = rows.flip(1)",
        "in the order that they have": "order = [i for i in range(n)]\nother = rows[order]",
    }.items()
}
_SCALED = """
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            {scaled}
            optimizer.zero_grad()
            scores = net(rows)
            loss = F.cross_entropy({scores}, kinds)
            loss.backward()
            optimizer.step()
"""


def _scaled(scaled: str, scores: str = "scores", told: tuple[str, ...] = ()) -> Script:
    return Script(_SCALED.replace("{scaled}", scaled).replace("{scores}", scores), told=told, options=Options(whole_batches="never"))


SCRIPTS |= {
    "rows between the extremes of their batch": _scaled("rows = (rows - rows.min()) / (rows.max() - rows.min())"),
    "rows by the largest of their batch, as a number": _scaled("rows = rows / rows.abs().max().item()"),
    "scores by the largest of them, which no gradient goes through": _scaled("rows = rows * 2", "scores / scores.detach().abs().max()"),
    "scores by the largest of them, which gradients go through": _scaled("rows = rows * 2", "scores / scores.abs().max()"),
    "rows between the extremes of each column": _scaled("rows = rows / rows.abs().max(0)[0]", told=("DDP402",)),
    "rows by the largest of how far they are from their mean": _scaled("rows = rows / (rows - rows.mean(0)).abs().max()", told=("DDP402",)),
}
_VIEWS = """
    import copy

    class Views(Dataset):
        {turn}
        def __len__(self):
            return 40

        def __getitem__(self, i):
            {views}


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.last = nn.Linear(8, 16), nn.Linear(16, 6)

        def forward(self, views):
            if not isinstance(views, list):
                views = [views]
            return self.last(torch.tanh(self.body(torch.cat(views))))


    torch.manual_seed(0)
    pupil = Net()
    teacher = copy.deepcopy(pupil).requires_grad_(False)
    middle = torch.zeros(1, 6)
    optimizer = torch.optim.SGD(pupil.parameters(), lr=0.1)
    for epoch in range(3):
        for views, _ in DataLoader(Views(), batch_size=8, shuffle=True, drop_last=True):
            views = [view.to("cpu") for view in views]
            targets = teacher(views[:2])
            guessed = pupil(views)
            guesses = guessed.log_softmax(-1).chunk(3)
            wanted = ((targets - middle) / 0.5).softmax(-1).chunk(2)
            loss = 0
            for i, w in enumerate(wanted):
                for j, g in enumerate(guesses):
                    if i != j:
                        loss -= (w * g).sum(-1).mean()
            middle = 0.9 * middle + 0.1 * targets.mean(0, keepdim=True)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_WRITTEN_OUT = {
    "in the data set": ("", "return [x[i], x[i].flip(0), 0.5 * x[i]], 0"),
    "in the data set, with a name": ("", "views = [turn * x[i] for turn in (1, -1, 0.5)]\n            return views, 0"),
    "in a method that the data set calls": (
        "def turned(self, row):\n            views = []\n            for turn in (1, -1, 0.5):\n                views.append(turn * row)\n"
        "            return views\n",
        "return self.turned(x[i]), 0",
    ),
}
SCRIPTS |= {
    f"several views of each sample in a list, written out {title}, of which a teacher sees two": Script(
        _VIEWS.replace("{turn}", turn).replace("{views}", views), rows=40
    )
    for title, (turn, views) in _WRITTEN_OUT.items()
}
SCRIPTS["several views of each sample in what a function of Python makes a list, of which a teacher sees two"] = Script(
    _VIEWS.replace("{turn}", "").replace("{views}", "return list((x[i], x[i].flip(0), 0.5 * x[i])), 0"), rows=40, told=("DDP402",)
)

_BODY = "return self.last(torch.tanh(self.body(torch.cat(views))))"
_IN_CHUNKS = (
    _VIEWS.replace("{turn}", "")
    .replace("{views}", "return [x[i], x[i].flip(0), 0.5 * x[i]], 0")
    .replace(_BODY, f"{_BODY}.chunk(len(views))")
    .replace("            middle = 0.9 * middle + 0.1 * targets.mean(0, keepdim=True)\n", "")
)
SCRIPTS |= {
    "several views of each sample, which a network gives back in chunks": Script(
        _IN_CHUNKS.replace("guessed.log_softmax(-1).chunk(3)", "guessed")
        .replace("((targets - middle) / 0.5).softmax(-1).chunk(2)", "targets")
        .replace("(w * g).sum(-1)", "(F.softmax(w, -1) * F.log_softmax(g, -1)).sum(-1)"),
        rows=40,
    ),
    "several views of each sample, which a network gives back in chunks, each computed with in a list": Script(
        _IN_CHUNKS.replace("guessed.log_softmax(-1).chunk(3)", "[g.log_softmax(-1) for g in guessed]").replace(
            "((targets - middle) / 0.5).softmax(-1).chunk(2)", "[(t / 0.5).softmax(-1) for t in targets]"
        ),
        rows=40,
    ),
    "several views of each sample, which a network gives back in fewer chunks": Script(
        _IN_CHUNKS.replace("chunk(len(views))", "chunk(len(views) - 1)")
        .replace("guessed.log_softmax(-1).chunk(3)", "[g.log_softmax(-1) for g in guessed]")
        .replace("((targets - middle) / 0.5).softmax(-1).chunk(2)", "[(t / 0.5).softmax(-1) for t in targets]")
        .replace("(w * g).sum(-1)", "(w[:8] * g[:8]).sum(-1)")
        .replace("if i != j", "if i <= j"),
        rows=40,
        told=("DDP402",),
    ),
}
_FAKE_DATA = """
import torch


class FakeData(torch.utils.data.Dataset):
    def __init__(self, size, transform=None):
        self.size, self.transform = size, transform

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        row = torch.sin(torch.arange(8.0) * i)
        return row if self.transform is None else self.transform(row), i % 2
"""
_BY_TRANSFORM = (
    _VIEWS.split("    class Views")[0]
    + """
    from torchvision.datasets import FakeData


    class Turned:
        def __init__(self, number):
            self.number = number

        def __call__(self, row):
            rows = [row, row.flip(0)]
            {more}
            return {rows}


    class Net"""
    + _VIEWS.split("class Net", 1)[1].replace("Views()", "FakeData(40, transform=Turned(1))")
)


def _by_transform(more: str, rows: str, told: tuple[str, ...] = ()) -> Script:
    body = _BY_TRANSFORM.replace("{more}", more).replace("{rows}", rows)
    return Script(body, rows=40, told=told, stand_ins={"torchvision/__init__.py": "", "torchvision/datasets.py": _FAKE_DATA})


SCRIPTS |= {
    "several views of each picture, which a transform makes": _by_transform("rows += [0.5 * row for _ in range(self.number)]", "rows"),
    "several views of each picture, which a transform makes a list by a function of Python": _by_transform(
        "rows += [0.5 * row for _ in range(self.number)]", "list(rows)", ("DDP402",)
    ),
}

_STEPS_IN_FRONT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.size = 2, 2
        self.q, self.k, self.v, self.out = (nn.Linear(4, 4) for _ in range(4))
        self.skipped, self.head = nn.GRU(2, 3), nn.Linear(10, 2)

    def attend(self, query):
        steps, batch, size = query.size()
        q, k, v = self.q(query), self.k(query), self.v(query)
        q = q.contiguous().view(steps, batch * self.heads, self.size).transpose(0, 1)
        k = k.contiguous().view(-1, batch * self.heads, self.size).transpose(0, 1)
        v = v.contiguous().view(-1, batch * self.heads, self.size).transpose(0, 1)
        seen = torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1), v)
        return self.out(seen.transpose(0, 1).contiguous().view(steps, batch, size))

    def forward(self, rows):
        batch = rows.size(0)
        every = rows.view(batch, 2, STEPS).permute(2, 0, 3, 1).contiguous()
        _, last = self.skipped(every.view(2, batch * 2, 2))
        OTHER
        seen = self.attend(rows.view(batch, 2, 4).transpose(0, 1)).mean(0)
        return self.head(torch.cat((last.view(batch, 6), seen), 1))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8):
        loss = F.cross_entropy(model(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_STEPS_OF_ROWS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, rows):
        batch = rows.size(0)
        steps = rows.view(batch, 4, 2).transpose(0, 1).contiguous()
        steps = steps.view(STEPS)
        return self.head(steps.transpose(0, 1).reshape(batch, 8))

"""


def _steps_in_front(steps: str, other: str = "") -> str:
    return _STEPS_IN_FRONT.replace("STEPS", steps).replace("OTHER", other or "pass")


def _steps_of_rows(sizes: str) -> str:
    return _STEPS_OF_ROWS.replace("STEPS", sizes) + _STEPS_IN_FRONT.split("return self.head")[1].split("\n", 1)[1]


SCRIPTS |= {
    "several rows of each sample behind the steps": Script(_steps_in_front("2, 2")),
    "several rows of each sample behind fewer steps": Script(_steps_in_front("4, 1"), told=("DDP402",)),
    "several rows of each sample behind the steps, less the average of all": Script(
        _steps_in_front("2, 2", "last = last - last.mean(1, keepdim=True)"), told=("DDP402",)
    ),
    "steps in front of the samples, viewed as they were": Script(_steps_of_rows("4, batch, 2")),
    "steps in front of the samples, viewed as fewer": Script(_steps_of_rows("2, batch, 4"), told=("DDP402",)),
}

_REPEATED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(2, 6, batch_first=True)
        self.decoder = nn.LSTM(6, 6, batch_first=True)
        self.out = nn.Linear(6, 2)

    def forward(self, rows):
        n = rows.shape[0]
        _, (hidden, _) = self.encoder(rows.reshape(n, 4, 2))
        code = hidden.reshape((n, 6))
        {code}
        made, _ = self.decoder(code)
        return self.out(made).reshape(n, 8)
"""
SCRIPTS |= {
    f"the code of a sequence {title}": _trained(_REPEATED.replace("{code}", f"code = {code}"), "F.mse_loss(net(rows), rows)", told=told)
    for title, code, told in (
        ("for each of its steps", "code.unsqueeze(1).repeat(1, 4, 1)", ()),
        ("for each of its steps, in one row", "code.repeat(1, 4).view(n, 4, 6)", ()),
        ("repeated, of which other samples get the rows", "code.repeat(4, 1).reshape((n, 4, 6))", ("DDP402",)),
        ("several times one after another, which mixes samples", "torch.cat([code, code, code, code]).view(n, 4, 6)", ("DDP402",)),
        ("and another, apart again by their number", "torch.cat([code, 2 * code])[:n].view(n, 1, 6).repeat(1, 4, 1)", ()),
    )
}
_MASKED = """
    class Rows(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            return x[i, : 2 + i % 5], y[i]

    def together(batch):
        texts, kinds = zip(*batch)
        lengths = torch.tensor([len(text) for text in texts])
        longest = LONGEST
        padded = torch.zeros(len(texts), longest)
        for i, text in enumerate(texts):
            padded[i, : len(text)] = text
        return padded, torch.stack(kinds), lengths, longest

    def padding(lengths, longest):
        numbers = torch.arange(0, longest).unsqueeze(0).expand(lengths.shape[0], -1)
        return numbers >= lengths.unsqueeze(1).expand(-1, longest)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.each, self.out = nn.Linear(1, 6), nn.Linear(6, 2)

        def forward(self, rows, lengths, longest):
            mask = padding(lengths, longest)
            each = torch.tanh(self.each(rows.unsqueeze(-1)))[:, : mask.shape[1]]
            return self.out(each.masked_fill(mask.unsqueeze(-1), 0).sum(1) / lengths.unsqueeze(1))

    feed = DataLoader(Rows(), batch_size=8, shuffle=True, collate_fn=together)
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds, lengths, longest in feed:
            loss = F.cross_entropy(net(rows, lengths, longest), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"a mask of lengths, expanded to the longest, which a collate function knows as {what}": Script(_MASKED.replace("LONGEST", longest))
    for what, longest in (
        ("the largest of them", "max(lengths).item()"),
        ("that of a text", "max(len(text) for text in texts)"),
    )
}
SCRIPTS["a mask of lengths that a list tells"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.each, self.out = nn.Linear(1, 6), nn.Linear(6, 2)

        def forward(self, rows, lengths):
            mask = torch.arange(0, 6).unsqueeze(0) >= lengths.unsqueeze(1)
            each = torch.tanh(self.each(rows.unsqueeze(-1)))[:, : mask.shape[1]]
            return self.out(each.masked_fill(mask.unsqueeze(-1), 0).sum(1) / lengths.unsqueeze(1))

    lengths = torch.tensor([2 + i % 5 for i in range(44)])
    feed = DataLoader(TensorDataset(x, y, lengths), batch_size=8, shuffle=True)
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds, number in feed:
            loss = F.cross_entropy(net(rows, number), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
)
_WRITTEN_AGAIN = """
    class Steps(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            return x[i].view(4, 2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.each, self.out = nn.Conv1d(2, 3, 3, padding=1), nn.Linear(3, 2)

        def forward(self, steps):
            return self.out(torch.tanh(self.each(steps.transpose(2, 1))).transpose(1, 2))AFTER

    feed = DataLoader(Steps(), batch_size=8, shuffle=True)
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for steps in feed:
            loss = LOSS
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"what was read, written again {how}, beside it, {by}": Script(_WRITTEN_AGAIN.replace("AFTER", after).replace("LOSS", loss))
    for how, after in (("with one dimension more", ".unsqueeze(1)"), ("as it was", ""))
    for by, loss in (("by a loss", "F.mse_loss(net(steps), steps)"), ("one less the other", "(net(steps) - steps).abs().mean()"))
}
SCRIPTS["a forward that couples samples in training, evaluated with gradients, of loaders that a setting chooses"] = Script(
    """
    class Codes(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.code = nn.Linear(8, 6), nn.Linear(6, 4)

        def forward(self, rows):
            codes = self.code(self.body(rows))
            if not self.training:
                return codes.sign()
            centred = codes - codes.mean(0)
            return ((centred.t() @ centred / (len(codes) - 1)) ** 2).sum() + codes.std(0).mean()


    def of_one_size(config):
        train = DataLoader(TensorDataset(x, y), batch_size=config["size"], shuffle=True)
        return train, DataLoader(TensorDataset(x, y), batch_size=config["size"])


    def loaders_of(config):
        if "small" in config["data"]:
            return of_one_size(config)
        loaders = {}
        for kind in ["train", "test"]:
            loaders[kind] = DataLoader(TensorDataset(x, y), batch_size=config["size"], shuffle=(kind == "train"))
        return loaders["train"], loaders["test"]


    train, test = loaders_of({"data": "small one", "size": 4})
    net = Codes()
    sgd = torch.optim.SGD(net.parameters(), lr=0.001)
    for epoch in range(2):
        net.train()
        for rows, _ in train:
            sgd.zero_grad()
            net(rows).backward()
            sgd.step()
        net.eval()
        print("codes", len(torch.cat([net(rows).data for rows, _ in test])))
    """,
    told=("DDP402",),
)
SCRIPTS["classes by rows of a unit matrix, smoothed by the script's own, in a loss without the library's"] = Script(
    """
    def one_hot(kinds, n):
        return torch.eye(n)[kinds, :]


    def smooth(kinds, n, part=0.3):
        spread = torch.empty(size=torch.Size((kinds.size(0), n)))
        spread.fill_(part / (n - 1))
        _, index = torch.max(kinds, 1)
        spread.scatter_(1, index.unsqueeze(1), 1 - part)
        return spread


    def cross_entropy(out, kinds):
        return torch.mean(torch.sum(-kinds * nn.LogSoftmax(dim=1)(out), dim=1))


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    for epoch in range(2):
        for rows, kinds in loader:
            kinds = one_hot(kinds, 2)
            loss = 0.7 * cross_entropy(net(rows), smooth(kinds, 2))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """,
)
SCRIPTS["a loss of all ranks' rows, weighed by how they were mixed"] = Script(
    """
    def one_hot(kinds, n):
        return torch.eye(n)[kinds, :]


    def smooth(kinds, n, part=0.3):
        spread = torch.empty(size=torch.Size((kinds.size(0), n)))
        spread.fill_(part / (n - 1))
        _, index = torch.max(kinds, 1)
        spread.scatter_(1, index.unsqueeze(1), 1 - part)
        return spread


    def cross_entropy(out, kinds):
        return torch.mean(torch.sum(-kinds * nn.LogSoftmax(dim=1)(out), dim=1))


    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    for epoch in range(2):
        for rows, kinds in loader:
            part = torch.rand(1).item()
            kinds = one_hot(kinds, 2)
            loss = part * cross_entropy(net(part * rows), smooth(kinds, 2))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """,
)

SCRIPTS["the values of a batch's dict, of which a convolution takes one, less what a layer makes of another"] = Script(
    """
    class Moved(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return {"picture": x[i].view(1, 2, 4), "move": y[i].float().repeat(3)}


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen, self.last, self.mean = nn.Conv2d(1, 2, 1), nn.Linear(16, 2), nn.Linear(3, 2)

        def forward(self, pictures, moves):
            return self.last(self.seen(pictures).flatten(1)) - self.mean(moves)


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in DataLoader(Moved(), batch_size=8, shuffle=True):
            pictures, moves = batch.values()
            loss = net(pictures[:, -1].unsqueeze(1), moves[:, :3]).pow(2).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
)
_TIMES_WEIGHTS = """
    import numpy as np

    np.save("rows.npy", x.numpy())
    rows = torch.tensor(np.load("rows.npy"))


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.linspace(-1, 1, 16).view(8, 2))

        def forward(self, rows):
            return {product}


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for given, kinds in DataLoader(TensorDataset(rows, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(given), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"rows of a file, times a matrix of weights: {product}": Script(_TIMES_WEIGHTS.format(product=product))
    for product in (
        "torch.matmul(rows, self.weight).reshape(-1, 2)",
        "torch.concat([rows.view(-1, 1, 8)[..., :1], (rows @ self.weight).reshape(-1, 1, 2)], 2).sum(1)",
    )
}
_SHRINKING = """\
from torch.nn.utils.rnn import pack_padded_sequence


class Says(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.step, self.out = nn.Embedding(9, 4), nn.LSTMCell(4 + 2, 6), nn.Linear(6, 9)
        self.begin, self.look = nn.Linear(2, 6), nn.Linear(6, 4)

    def forward(self, seen, texts, lengths):
        lengths, order = lengths.squeeze(1).sort(dim=0, descending=True)
        seen, texts = seen[order], texts[order]
        words = self.words(texts)
        h = c = self.begin(seen.mean(1))
        lengths = (lengths - 1).tolist()
        said = torch.zeros(len(seen), max(lengths), 9)
        looked = torch.zeros(len(seen), max(lengths), seen.size(1))
        for t in range(max(lengths)):
            n = sum([l > t for l in lengths])
            near = self.look(h[:n]).softmax(1)
            found = (seen[:n] * near.unsqueeze(2)).sum(1)
            h, c = self.step(torch.cat([words[:n, t, :], found], dim=1), (h[:n], c[:n]))
            said[:n, t, :] = self.out(h)
            looked[:n, t, :] = near
        return said, texts, lengths, looked, 0.0


net = Says()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
sizes = (torch.arange(len(x)) * 5 % 7 + 2).unsqueeze(1)
texts = torch.arange(len(x) * 8).view(-1, 8) * 7 % 8 + 1
for epoch in range(2):
    for rows, text, size in DataLoader(TensorDataset(x, texts, sizes), batch_size=6, shuffle=True):
        said, text, lengths, looked, more = net(rows.view(-1, 4, 2), text, size)
        said = pack_padded_sequence(said, lengths, batch_first=True).data
        wanted = pack_padded_sequence(text[:, 1:], lengths, batch_first=True).data
        loss = F.cross_entropy(said, wanted)
        loss += 0.5 * ((1.0 - looked.sum(dim=1)) ** 2).mean() + more
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""


def _shrinking(*changes: tuple[str, str]) -> str:
    """The script with some of its text written in another way."""
    text = _SHRINKING
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


_COUNT = "sum([l > t for l in lengths])"
_BEGUN = "h = c = self.begin(seen.mean(1))"
_RETURN = "return said, texts, lengths, looked, "
SCRIPTS |= on_three(
    {
        "a decoder of fewer and fewer rows, sorted by their lengths": Script(_SHRINKING),
        "the same, from a state of zeros": Script(_shrinking((_BEGUN, "h, c = torch.zeros(len(seen), 6), torch.zeros(len(seen), 6)"))),
        "the same, in an order of something else before": Script(
            _shrinking(
                (
                    "        lengths, order",
                    "        other = texts[:, 0].argsort()\n"
                    "        seen, texts, lengths = seen[other], texts[other], lengths[other]\n"
                    "        lengths, order",
                )
            )
        ),
        "the same, counted by a tensor of the lengths": Script(
            _shrinking(
                ("(lengths - 1).tolist()", "lengths - 1"), (_COUNT, "(lengths > t).sum().item()"), ("max(lengths)", "int(lengths.max())")
            )
        ),
        "the same, counted by a generator, with as many steps for all": Script(
            _shrinking((_COUNT, "sum(t < l for l in lengths)"), ("zeros(len(seen), max(lengths)", "zeros(len(seen), 8"))
        ),
    },
    rows=42,
)
SCRIPTS |= {
    f"a decoder of fewer and fewer rows, {title}": Script(_shrinking(*changes), told=("DDP402",))
    for title, changes in {
        "the shortest first": (("descending=True", "descending=False"), ("batch_first=True)", "batch_first=True, enforce_sorted=False)")),
        "as many as are shorter": (("l > t", "l < t + 9"),),
        "which are not sorted": (("seen, texts = seen[order], texts[order]", "texts = texts[order]"),),
        "from a state that is filled before they are sorted": (
            (
                "        lengths, order",
                "        h, c = torch.zeros(len(seen), 6), torch.zeros(len(seen), 6)\n"
                "        h[:, :2] = seen.mean(1)\n"
                "        lengths, order",
            ),
            (_BEGUN, "pass"),
        ),
        "and one more": ((_COUNT, f"{_COUNT} + 1"),),
        "and half of them": ((_COUNT, f"max({_COUNT} // 2, 1)"),),
        "by other numbers than they are sorted by": (("l > t for l in lengths", "l > t for l in texts[:, 0].tolist()"),),
        "by what their lengths are turned into": (("l > t for l in lengths", "l > t for l in (9 - q for q in lengths)"),),
        "with an average over all steps": (("looked.sum(dim=1)", "looked.mean(dim=1)"),),
        "with a total over padding that is not 0": (("looked.sum(dim=1)", "looked.exp().sum(dim=1)"),),
        "with all steps written": (("looked[:n, t, :] = near", "looked[:n, :, 0] += near[:, :1]"),),
        "with a row moved": (("said[:n, t, :] = self.out(h)", "said[1:n, t, :] = self.out(h)[:-1]"),),
        "with a term of the last step": ((f"{_RETURN}0.0", f"{_RETURN}(h**2).mean()"),),
        "with a total of the last step": (
            ("            looked[:n", "            last = near.sum() / len(seen)\n            looked[:n"),
            (f"{_RETURN}0.0", f"{_RETURN}last"),
        ),
        "with a term that each step makes smaller": (
            ("            looked[:n", "            seen = seen * 0.9\n            looked[:n"),
            (f"{_RETURN}0.0", f"{_RETURN}seen.mean() * self.begin.bias.sum()"),
        ),
    }.items()
}
SCRIPTS["a state that takes as many steps as the longest of a rank's samples"] = Script(
    """
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.step, self.out = nn.GRUCell(8, 6), nn.Linear(6, 2)

        def forward(self, rows, lengths):
            h = torch.zeros(len(rows), 6)
            for _ in range(max(lengths.tolist())):
                h = self.step(rows, h)
            return self.out(h)


    net = Reader()
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    lengths = torch.arange(44) * 5 % 8 + 1
    for epoch in range(2):
        for rows, size, kinds in DataLoader(TensorDataset(x, lengths, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows, size), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """,
    told=("DDP402",),
)
SCRIPTS["rows of batches of two loaders that one method sorts, and puts back, each with all of its entries"] = Script(
    """
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 2)

        def loss(self, rows, kinds):
            lengths = rows.gt(-0.9).sum(1)
            lengths, order = lengths.sort(descending=True)
            packed = pack_padded_sequence(rows.unsqueeze(2)[order, :], lengths=lengths, batch_first=True)
            steps, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            _, back = order.sort()
            return F.cross_entropy(self.out(steps[back, :].sum(1)), kinds)


    def assess(net, loader):
        with torch.no_grad():
            losses, sizes = zip(*[(net.loss(rows, kinds), len(rows)) for rows, kinds in loader])
            return (torch.stack(losses) * torch.tensor(sizes)).sum() / sum(sizes)


    net = Tagger()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    train_loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
    valid_loader = DataLoader(TensorDataset(x[:30], y[:30]), batch_size=4)
    best = 1e4
    for epoch in range(2):
        for rows, kinds in train_loader:
            loss = net.loss(rows, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        error = assess(net, valid_loader).item()
        if error < best:
            best = error
            print("best %.4f" % best)
    """,
    same=("best",),
)
