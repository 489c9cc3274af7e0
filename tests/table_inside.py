"""Scripts whose batches reach further than the loss: into hooks, buffers, data sets, and layers that go over the samples."""

from scripts import Script, on_three

from ddpify import Options

PLAIN = """
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_NORM = """
    rows_each = 6
    net = nn.Sequential(nn.Linear(8, 4), nn.LayerNorm([{sizes}]), nn.Linear(4, 2))
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=rows_each, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS: dict[str, Script] = {
    "a norm over all samples of a batch": Script(_NORM.format(sizes="rows_each, 4"), told=("DDP402",)),
    "a norm over what each sample has, in a list": Script(_NORM.format(sizes="4")),
    # --- hooks ------------------------------------------------------------------------------------------------------------
    "features that hooks keep, compared sample by sample": Script(
        """
    kept = {}

    def keep(name):
        def note(module, given, out):
            kept[name] = out

        return note

    guide = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2)).eval()
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    guide[1].register_forward_hook(keep("guide"))
    net[1].register_forward_hook(keep("net"))
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            with torch.no_grad():
                guide(rows)
            loss = F.cross_entropy(net(rows), labels) + F.mse_loss(kept["net"], kept["guide"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "features that hooks keep, compared pair by pair": Script(
        """
    kept = {}

    def keep(module, given, out):
        kept["features"] = out

    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    net[1].register_forward_hook(keep)
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            loss = loss + torch.cdist(kept["features"], kept["features"]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "the sizes of gradients that a hook sees, averaged": Script(
        """
    net, head = nn.Linear(8, 6), nn.Linear(6, 2)
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    sizes = []

    def note(gradient):
        sizes.append(gradient.norm().item())

    for epoch in range(2):
        for rows, labels in loader:
            inner = torch.tanh(net(rows))
            inner.register_hook(note)
            loss = F.cross_entropy(head(inner), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("gradients of size", sum(sizes) / len(sizes))
""",
        told=("DDP404",),
    ),
    "how often a layer is active, counted by a hook": Script(
        """
    counts = {"on": 0.0, "all": 0}

    def count(module, given, out):
        counts["on"] += (out > 0).double().sum().item()
        counts["all"] += out.numel()

    net = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
    net[1].register_forward_hook(count)
"""
        + PLAIN
        + """
        print("active", counts["on"] / counts["all"])
""",
        same=("",),
    ),
    # --- layers that go over the samples ----------------------------------------------------------------------------------
    "samples that attend to one another": Script(
        """
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
            self.head = nn.Linear(8, 2)

        def forward(self, rows):
            return self.head(self.mix(rows.unsqueeze(1)).squeeze(1))

    net = Mixed()
"""
        + PLAIN,
        told=("DDP402",),
    ),
    "a recurrence over the first dimension of the batches": Script(
        """
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.GRU(4, 6)
            self.head = nn.Linear(6, 2)

        def forward(self, rows):
            return self.head(self.steps(rows.view(rows.size(0), 2, 4))[0][:, -1])

    net = Steps()
"""
        + PLAIN,
        told=("DDP402",),
    ),
    "a recurrence and attention with the batch first, or turned": Script(
        """
    class Steps(nn.Module):
        def __init__(self, **options):
            super().__init__()
            self.steps = nn.GRU(4, 8, **options)
            self.mix = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1, enable_nested_tensor=False
            )
            self.head = nn.Linear(8, 2)

        def forward(self, rows):
            out = self.steps(rows.view(rows.size(0), 2, 4))[0]
            return self.head(self.mix(out.permute(1, 0, 2))[-1])

    net = Steps(batch_first=True)
"""
        + PLAIN
    ),
    "a layer within a Sequential that adds the spread of the batch": Script(
        """
    class Spread(nn.Module):
        def forward(self, rows):
            return torch.cat([rows, rows.std(0).mean().expand(rows.size(0), 1)], 1)

    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), Spread(), nn.Linear(7, 2))
"""
        + PLAIN,
        ranks=(2, 3),
    ),
    "layers of one's own within Sequentials": Script(
        """
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh())

        def forward(self, rows):
            return rows + self.inner(rows)

    layers = [nn.Linear(8, 6)]
    for depth in range(2):
        layers.append(nn.Sequential(Block(6), Block(6)))
    net = nn.Sequential(*layers, nn.Linear(6, 2))
"""
        + PLAIN
    ),
    # --- buffers ----------------------------------------------------------------------------------------------------------
    "a buffer that follows the mean of the batches": Script(
        """
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
            self.register_buffer("centre", torch.zeros(8))

        def forward(self, rows):
            if self.training:
                self.centre.mul_(0.9).add_(0.1 * rows.detach().mean(0))
            return self.layer(rows - self.centre)

    net = Centred()
"""
        + PLAIN
        + """
    torch.save(net.state_dict(), "centred.pt")
"""
    ),
    "a buffer that follows the mean of batches beside which others are read": Script(
        """
    import itertools

    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
            self.register_buffer("centre", torch.zeros(8))

        def forward(self, rows):
            if self.training:
                self.centre.mul_(0.9).add_(0.1 * rows.detach().mean(0))
            return self.layer(rows - self.centre)

    net = Centred()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train_loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12, shuffle=True)
    others = DataLoader(TensorDataset(x[36:]), batch_size=4, shuffle=True)
    for epoch in range(4):
        for (rows, kinds), (more,) in zip(train_loader, itertools.cycle(others)):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    torch.save(net.state_dict(), "centred.pt")
"""
    ),
    "a buffer that counts steps": Script(
        """
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, rows):
            self.steps += 1
            return self.layer(rows) / (1 + 0.01 * self.steps)

    net = Counting()
"""
        + PLAIN
    ),
    "a code book that moves to the rows nearest to its entries": Script(
        """
    class Book(nn.Module):
        def __init__(self, entries, width):
            super().__init__()
            self.register_buffer("book", torch.cos(torch.arange(1.0 * entries * width)).view(entries, width))
            self.register_buffer("totals", self.book.clone())

        def forward(self, rows):
            nearest = torch.cdist(rows, self.book).argmin(1)
            chosen = F.one_hot(nearest, len(self.book)).to(rows.dtype)
            if self.training:
                self.totals.data.mul_(0.9).add_(chosen.t() @ rows.detach(), alpha=0.1)
                self.book.data.copy_(self.totals / 2)
            return rows + (self.book[nearest] - rows).detach()

    net = nn.Sequential(nn.Linear(8, 4), Book(5, 4), nn.Linear(4, 2))
"""
        + PLAIN,
    ),
    "a scale that the first batch sets": Script(
        """
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(8))
            self.register_buffer("ready", torch.tensor(False))

        def forward(self, rows):
            if not self.ready.item():
                self.scale.data.copy_(1 / rows.detach().std(0))
                self.ready.fill_(True)
            return rows * self.scale

    net = nn.Sequential(Scaled(), nn.Linear(8, 2))
"""
        + PLAIN,
    ),
    "a factor that the first batch sets": Script(
        """
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
            self.largest = None
            self.shown = 0.0

        def forward(self, rows):
            if self.largest is None:
                self.largest = rows.detach().abs().max().item()
            self.shown = rows.detach().mean().item()
            return self.layer(rows / self.largest)

    net = Scaled()
"""
        + PLAIN,
        ranks=(2, 3),
    ),
    # --- data sets --------------------------------------------------------------------------------------------------------
    "labels that training corrects in its data": Script(
        """
    class Noisy(Dataset):
        def __init__(self):
            self.labels = y[:42].clone()

        def __len__(self):
            return 42

        def __getitem__(self, index):
            return x[index], self.labels[index], index

    data, net = Noisy(), nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    for epoch in range(3):
        for rows, labels, places in DataLoader(data, batch_size=6, shuffle=True):
            out = net(rows)
            loss = F.cross_entropy(out, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sure = out.softmax(1).max(1)[0] > 0.6
            data.labels[places[sure]] = out.argmax(1)[sure]
""",
        told=("DDP408",),
    ),
    "weights of samples that training writes into its data": Script(
        """
    class Weighed(Dataset):
        def __init__(self):
            self.weights = torch.ones(42)

        def __len__(self):
            return 42

        def __getitem__(self, index):
            return x[index], y[index], self.weights[index], index

    data, net = Weighed(), nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    for epoch in range(3):
        for rows, labels, weights, places in DataLoader(data, batch_size=6, shuffle=True):
            each = F.cross_entropy(net(rows), labels, reduction="none")
            loss = (each * weights).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            data.weights[places] = each.detach()
"""
    ),
    "labels made of what a pass over the data in order gives": Script(
        """
    net, head = nn.Linear(8, 4), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.3)
    in_order = DataLoader(TensorDataset(x[:42]), batch_size=6)

    def guesses():
        with torch.no_grad():
            found = torch.cat([net(rows) for (rows,) in in_order])
        return (found[:, 0] > found[:, 0].mean()).long()

    for epoch in range(3):
        loader = DataLoader(TensorDataset(x[:42], guesses()), batch_size=6, shuffle=True)
        for rows, labels in loader:
            loss = F.cross_entropy(head(net(rows)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    # --- what is made once for all batches --------------------------------------------------------------------------------
    "labels of a batch, kept by a trainer": Script(
        """
    SIZE = 6

    class Trainer:
        def __init__(self, net):
            self.net = net
            self.wanted = torch.full((SIZE, 1), 0.9)
            self.margin = torch.tensor([[0.1]]).expand(SIZE, 1)
            self.others = torch.tensor([[0.2]] * SIZE)
            self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def fit(self, loader):
            for (rows,) in loader:
                out = self.net(rows)
                loss = F.binary_cross_entropy_with_logits(out - self.margin, self.wanted) + F.mse_loss(out, self.others)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    trainer = Trainer(nn.Linear(8, 1))
    loader = DataLoader(TensorDataset(x[:42]), batch_size=SIZE, shuffle=True)
    for epoch in range(2):
        trainer.fit(loader)
"""
    ),
    "a weight for each place in the batch": Script(
        """
    size = 6
    net = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    rising = torch.linspace(0.5, 1.5, size)
    turns = torch.tensor([0.5, 1.0]).repeat(size // 2)
    for epoch in range(2):
        for rows, labels in DataLoader(TensorDataset(x[:42], y[:42]), batch_size=size, shuffle=True):
            loss = (rising * turns * (net(rows).squeeze(1) - labels) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    ),
    "hits divided by the samples seen, counted by steps": Script(
        """
    size = 6
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        hits = 0
        for step, (rows, labels) in enumerate(DataLoader(TensorDataset(x[:42], y[:42]), batch_size=size, shuffle=True)):
            out = net(rows)
            loss = F.cross_entropy(out, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (out.argmax(1) == labels).sum().item()
            share = hits / ((step + 1) * size)
        print(f"right {share:.6f}")
""",
        same=("right",),
    ),
}
SCRIPTS = on_three(SCRIPTS, rows=42)
SCRIPTS["activations that hooks of all layers keep"] = Script(
    """
    seen = {}


    def keep(name):
        def hook(layer, given, out):
            seen.setdefault(name, []).append(out.detach().abs().mean().item())

        return hook


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    for name, layer in net.named_modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(keep(name))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for name, values in seen.items():
            print(name, "%.9f" % (sum(values) / len(values)))
    """,
    same=("",),
)
SCRIPTS["layers that are found by name and pruned by a method that prints"] = Script(
    """
    torch.manual_seed(0)


    class Masked(nn.Linear):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.register_buffer("mask", torch.ones_like(self.weight))

        def forward(self, rows):
            return F.linear(rows, self.weight * self.mask, self.bias)

        def prune(self, threshold):
            self.mask.data = (self.weight.data.abs() >= threshold).float()


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Masked(8, 8)
            self.last = nn.Linear(8, 2)

        def forward(self, rows):
            return self.last(F.relu(self.first(rows)))

        def prune_smallest(self, share):
            for name, layer in self.named_modules():
                if name == "first":
                    threshold = layer.weight.data.std().item() * share
                    print("threshold", name, f"{threshold:.5f}")
                    layer.prune(threshold)


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.prune_smallest(0.5)
    print("left", net.first.mask.sum().item())
    """,
    same=("threshold", "left"),
)
SCRIPTS |= {
    "heads whose outputs are put into lists that were empty, made by list()": Script(
        """
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.ModuleList([nn.Linear(8, 6), nn.Linear(6, 6)])
            self.heads = nn.ModuleList([nn.Linear(6, 2), nn.Linear(6, 3)])

        def forward(self, rows):
            sources, found = list(), list()
            for layer in self.body:
                rows = torch.tanh(layer(rows))
                sources.append(rows)
            for source, head in zip(sources, self.heads):
                found.append(head(source).contiguous())
            return torch.cat([part.view(part.size(0), -1) for part in found], 1)

    net = Heads()
    """
        + PLAIN.replace("F.cross_entropy(net(rows), labels)", "net(rows).pow(2).mean()")
    ),
    "totals of losses in a list that was empty, made by list()": Script(
        """
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        losses = list()
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"loss {sum(losses) / len(losses):.6f}")
    """,
        same=("loss",),
    ),
    "layers of one class, the last of which might give its features, too": Script(
        """
    class Layer(nn.Module):
        def __init__(self, size, is_last=False):
            super().__init__()
            self.is_last = is_last
            self.inner, self.outer = nn.Linear(size, size), nn.Linear(size, size)
            self.beside = nn.Sequential() if size == 8 else nn.Sequential(nn.Linear(size, size))

        def forward(self, rows):
            before = self.outer(torch.tanh(self.inner(rows)))
            before += self.beside(rows)
            after = torch.tanh(before)
            if self.is_last:
                return after, before
            return after

    class Layers(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.first = self.stage(8, count)
            self.second, self.third = self.stage(8, count), self.stage(8, count)
            self.out = nn.Linear(8, 2)

        def stage(self, size, count):
            return nn.Sequential(*[Layer(size) for _ in range(count)])

        def forward(self, rows):
            return self.out(torch.flatten(self.third(self.second(self.first(rows))), 1))

    torch.manual_seed(0)
    net = Layers(2)
    """
        + PLAIN
    ),
    "rows with a zero at their end, and none above or below": Script(
        """
    class Padded(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(9, 2)

        def forward(self, rows):
            return self.inner(F.pad(rows, (0, 1, 0, 0)))

    net = Padded()
    """
        + PLAIN
    ),
    "outputs that a module keeps in a dict which each forward makes anew, by either of two ways": Script(
        """
    import sys

    class Levels(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)
            self.heads = nn.ModuleList([nn.Linear(8, 2) for _ in range(2)])

        def forward(self, rows):
            self.outputs = {}
            for level in range(1, -1, -1):
                rows = torch.tanh(self.body(rows))
                if level in (0, 1):
                    self.outputs[("scores", level)] = self.heads[level](rows)
            return self.outputs

    torch.manual_seed(0)
    models = {"levels": Levels()}
    optimizer = torch.optim.SGD(models["levels"].parameters(), lr=0.1)
    shared = len(sys.argv) > 1

    def process(rows, kinds):
        if shared:
            outputs = models["levels"](rows)
        else:
            outputs = models["levels"](2 * rows)
        losses, total = {}, 0
        for level in range(2):
            loss = F.cross_entropy(outputs[("scores", level)], kinds)
            losses["loss/{}".format(level)] = loss
            total = total + loss
        losses["loss"] = total / 2
        return outputs, losses

    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            outputs, losses = process(rows, kinds)
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
    """
    ),
    "points that are chosen for each sample, by lists of sizes": Script(
        """
        def chosen(points, places):
            view_shape = list(places.shape)
            view_shape[1:] = [1] * (len(view_shape) - 1)
            repeat_shape = list(places.shape)
            repeat_shape[0] = 1
            samples = torch.arange(points.shape[0]).view(view_shape).repeat(repeat_shape)
            return points[samples, places, :]


        class Cloud(nn.Module):
            def __init__(self):
                super().__init__()
                self.lift = nn.Linear(2, 6)
                self.head = nn.Linear(6, 2)

            def forward(self, points):
                some = torch.topk(points[:, :, 0], 3, dim=-1)[1]
                centres = chosen(points, some)
                near = torch.cdist(centres, points).topk(2, dim=-1, largest=False)[1]
                groups = chosen(self.lift(points), near)
                return self.head(groups.max(2)[0].max(1)[0])


        net = Cloud()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x.view(44, 4, 2), y), batch_size=4, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "tables whose rows are chosen by columns of a batch": Script(
        """
        class Triples(Dataset):
            def __getitem__(self, i):
                return torch.tensor([i % 7, i % 3, (i * i) % 7]), y[i]

            def __len__(self):
                return 44


        class Scores(nn.Module):
            def __init__(self):
                super().__init__()
                self.things = nn.Parameter(torch.cos(torch.arange(28.0)).view(7, 4))
                self.links = nn.Parameter(torch.sin(torch.arange(12.0)).view(3, 4))

            def forward(self, triples):
                head = torch.index_select(self.things, dim=0, index=triples[:, 0]).unsqueeze(1)
                link = torch.index_select(self.links, dim=0, index=triples[:, 1]).unsqueeze(1)
                tail = torch.index_select(self.things, dim=0, index=triples[:, 2]).unsqueeze(1)
                return (head * link * tail).sum(dim=2).squeeze(1)


        net = Scores()
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        for epoch in range(2):
            for triples, kinds in DataLoader(Triples(), batch_size=4, shuffle=True):
                loss = F.binary_cross_entropy_with_logits(net(triples), kinds.float())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "frames in sizes of which only the first are written out, and turned by numpy": Script(
        """
        class Clips(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(4, 2)

            def forward(self, clips):
                frames = clips.view((-1, 2, 1) + clips.size()[2:])
                steps = frames[:, 1:] - frames[:, :-1]
                return self.head(steps.flatten(1))


        net = Clips()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for clips, kinds in DataLoader(TensorDataset(x.view(44, 2, 2, 2), y), batch_size=4, shuffle=True):
                turned = torch.from_numpy(clips.numpy().transpose((0, 1, 3, 2)).copy())
                loss = F.cross_entropy(net(turned), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
}
SCRIPTS |= {
    "weights that are no module's, and turned": Script(
        """
        torch.manual_seed(3)
        first = nn.Parameter(torch.randn(5, 8) * 0.3)
        second = torch.randn(2, 5, requires_grad=True)
        sgd = torch.optim.SGD([first, second], lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True):
                scores = torch.tanh(rows @ first.t()) @ second.transpose(0, 1)
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "noise that is drawn of distributions for as many samples as a batch has": Script(
        """
        from torch import distributions as dists

        size = 12
        maker, judge = nn.Linear(8, 8), nn.Linear(8, 1)
        for_maker = torch.optim.SGD(maker.parameters(), lr=0.05)
        for_judge = torch.optim.SGD(judge.parameters(), lr=0.05)
        prior = dists.Normal(torch.zeros(8), torch.ones(8))
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=size):
                made = maker(prior.sample((size,)) * 0 + 0.5).detach()
                for_judge.zero_grad()
                loss = (F.softplus(-judge(rows)) + F.softplus(judge(made))).mean()
                loss.backward()
                for_judge.step()
                for_maker.zero_grad()
                made = maker(dists.Uniform(-1, 1).sample(torch.Size((size, 8))) * 0 + 0.5)
                loss = F.softplus(-judge(made)).mean()
                loss.backward()
                for_maker.step()
        """
    ),
    "a softmax without a dimension, over volumes of which one side was squeezed out": Script(
        """
        class Depths(nn.Module):
            def __init__(self):
                super().__init__()
                self.costs, self.out = nn.Conv3d(1, 1, 1), nn.Linear(8, 2)

            def forward(self, rows):
                costs = torch.squeeze(self.costs(rows.view(-1, 1, 2, 2, 2)), 1)
                return self.out(F.softmax(costs).flatten(1))


        net = Depths()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "noise that is drawn of a distribution of plain numbers for each sample of a batch": Script(
        """
        maker, judge = nn.Linear(8, 8), nn.Linear(8, 1)
        for_maker = torch.optim.SGD(maker.parameters(), lr=0.05)
        for_judge = torch.optim.SGD(judge.parameters(), lr=0.05)
        low, high = -1, 1
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                noise = torch.distributions.uniform.Uniform(low=low, high=high).sample([rows.shape[0], 8]) * 0 + 0.5
                for_judge.zero_grad()
                loss = F.softplus(-judge(rows)).mean() + F.softplus(judge(maker(noise))).mean()
                loss.backward()
                for_judge.step()
                for_maker.zero_grad()
                noise = torch.distributions.Uniform(low, high).sample((len(rows), 8)) * 0 + 0.5
                loss = F.softplus(-judge(maker(noise))).mean()
                loss.backward()
                for_maker.step()
        """
    ),
    "rows added and copied to places along another dimension, and a product of a list": Script(
        """
        class Overlapping(nn.Module):
            def __init__(self):
                super().__init__()
                self.lift, self.head = nn.Linear(4, 4), nn.Linear(8, 2)

            def forward(self, rows):
                parts = self.lift(rows.view(rows.size(0), 2, 4))
                whole = parts.new_zeros(rows.size(0), 8)
                places = torch.tensor([0, 2, 4, 6])
                whole.index_add_(1, places, parts[:, 0])
                whole = whole.index_copy(-1, places + 1, parts[:, 1])
                return self.head(whole) + torch.einsum("bij,bij->bi", [parts, parts])


        net = Overlapping()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
}
_SCALED = """
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.scale = nn.Linear(8, 2), 1.0
            self.register_buffer("factor", torch.ones(1))

        def forward(self, rows):
            return self.inner(rows) * self.scale * self.factor


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            {step}
        {end}
        print("scale", f"{{model.scale:.5f}} {{model.factor.item():.5f}}")
"""
SCRIPTS["a number of the model's that follows the average loss"] = Script(
    _SCALED.format(step="", end="model.scale = 0.5 + total / len(loader)"), same=("scale",)
)
SCRIPTS["a buffer of the model's that follows each loss"] = Script(
    _SCALED.format(step="model.factor.fill_(0.5 + loss.item())", end=""), same=("scale",)
)
SCRIPTS["a number of the model's that grows by each loss"] = Script(
    _SCALED.format(step="model.scale += 0.1 * loss.item()", end=""), same=("scale",)
)
SCRIPTS["a number of the model's that is each loss"] = Script(
    _SCALED.format(step="model.scale = loss.item()", end=""), told=("DDP402", "DDP404")
)

_BY_STEP = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Conv1d(1, 3, 3, padding=1)
            self.cell, self.out = nn.Linear(6, 3), nn.Linear(3, 2)

        def forward(self, rows):
            steps = rows.view(len(rows), 4, 1, 2).transpose(0, 1)
            {steps}
            state = torch.zeros(steps.size(1), 3, 2)
            kept = []
            for i in range(4):
                state = torch.tanh(self.cell(torch.cat((steps[i, ...], state), 1).transpose(1, 2)).transpose(1, 2))
                kept.append(state)
            return self.out(torch.stack(kept).transpose(0, 1).mean(1).mean(2))

    net = Net()
"""
_APART = {
    "reshaped by its sizes": """
            number, batch, channels, wide = steps.size()
            steps = torch.reshape(steps, (-1, channels, wide))
            steps = torch.relu(self.inner(steps))
            steps = torch.reshape(steps, (number, batch, steps.size(1), steps.size(2)))
    """,
    "flattened, and unflattened": """
            batch = steps.shape[1]
            steps = self.inner(steps.flatten(0, 1)).relu().unflatten(0, (-1, batch))
    """,
}
SCRIPTS |= on_three(
    {
        f"steps of sequences that go through a layer at once, the steps first, {how}": Script(
            _BY_STEP.replace("{steps}", lines.strip()) + PLAIN, rows=42
        )
        for how, lines in _APART.items()
    },
    42,
)
SCRIPTS["steps of sequences, the steps first, of which rows of several samples are put together"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = nn.Linear(2, 3), nn.Linear(3, 2)

        def forward(self, rows):
            steps = rows.view(len(rows), 4, 2).transpose(0, 1).flatten(0, 1)
            steps = torch.tanh(self.inner(steps)).view(-1, 4, 3)
            return self.out(steps.mean(1))

    net = Net()
"""
    + PLAIN,
    told=("DDP402",),
)
_DECODER = """
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.told, self.ask = nn.Embedding(5, 3), nn.Linear(3, 2)
            self.gru, self.out = nn.GRU(5, 3), nn.Linear(5, 4)

        def forward(self, words, state, steps):
            told = self.told(words).unsqueeze(0)
            weights = F.softmax(torch.bmm(self.ask(state[-1]).unsqueeze(1), steps.transpose(1, 2)), dim=2)
            {context}
            output, state = self.gru(torch.cat((told, context), dim=2), state)
            return self.out(torch.cat((output.squeeze(0), context.squeeze(0)), dim=1)), state


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.GRU(2, 2), Decoder()
            self.start = nn.Linear(2, 3)

        def forward(self, rows):
            steps, state = self.encoder(rows.view(len(rows), 4, 2).transpose(0, 1))
            words, state = (rows[:, 0] > 0).long(), torch.tanh(self.start(state))
            outputs = torch.zeros(3, len(rows), 4)
            for t in range(3):
                output, state = self.decoder(words, state, steps.transpose(0, 1))
                outputs[t] = output
                words = output.argmax(1)
            return outputs[2]

    net = Net()
"""
_CONTEXTS = {
    "permuted": "context = torch.bmm(weights, steps).permute(1, 0, 2)",
    "transposed": "context = weights.bmm(steps).transpose(0, 1)",
}
SCRIPTS |= {
    f"a decoder attends to the steps of its encoder, what it takes of them {how}": Script(
        _DECODER.replace("{context}", line) + PLAIN, rows=42, options=Options(whole_batches="never")
    )
    for how, line in _CONTEXTS.items()
}
_SECOND = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.out, self.spread = nn.Linear(8, 2), nn.Conv1d(1, 3, 1)

        def forward(self, rows):
            one, some = rows.unsqueeze(1), torch.arange(len(rows)) % 3
            one = {one}
            return self.out(one)

    net = Net()
"""
_MOVED = {  # what becomes of it, and what is told of where it is not one any more
    "which is first then": ("torch.tanh(one).unsqueeze(1).transpose(0, 1).squeeze(0).squeeze(1)", ()),
    "which is longer then": ("one.expand(-1, 3, -1).transpose(0, 1).squeeze(0).mean(1)[some]", ("DDP402",)),
    "which a layer spreads": ("self.spread(one).transpose(0, 1).squeeze(0).mean(1)[some]", ("DDP402",)),
    "which is added to more": ("(one + rows[:, :3].unsqueeze(2)).permute(1, 0, 2).squeeze(0).mean(1)[some]", ("DDP402",)),
}
SCRIPTS |= {
    f"rows with a dimension of one entry behind the samples, {how}": Script(
        _SECOND.replace("{one}", one) + PLAIN, rows=42, told=told, options=Options(whole_batches="never")
    )
    for how, (one, told) in _MOVED.items()
}

_CARRIED = """
    {above}
    def default(value, otherwise):
        return value if exists(value) else otherwise


    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(6, 6)

        def forward(self, steps, before=None):
            steps = torch.tanh(self.inner(steps))
            if exists(before):
                steps = torch.cat((before.mean(0, keepdim=True).expand(len(steps), -1, -1), steps), dim=1)
            return steps[:, -4:], steps[:, -1:]


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers, self.out = nn.Embedding(9, 6), nn.ModuleList([Step(), Step()]), nn.Linear(6, 9)

        def forward(self, words, carried=None):
            steps, carried, kept = self.words(words[:, :-1]), iter(default(carried, [])), []
            for layer in self.layers:
                steps, last = layer(steps, next(carried, None))
                kept.append(last)
            return F.cross_entropy(self.out(steps).transpose(1, 2), words[:, 1:]), kept


    class Words(Dataset):
        def __len__(self):
            return 42

        def __getitem__(self, i):
            return torch.arange(i, i + 5) % 9


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for words in DataLoader(Words(), batch_size=6, shuffle=True):
            loss, _ = net(words)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        _, carried = net(Words()[3][None])
        print("carried", round(net(Words()[4][None], carried)[0].item(), 5))
"""
SCRIPTS |= {
    f"states that are carried on only where there are some, {title}": Script(
        _CARRIED.replace("{above}", above), same=("carried",), rows=42, told=(), options=Options(whole_batches="never")
    )
    for title, above in {
        "asked by a function": "def exists(value):\n        return value is not None\n\n",
        "asked by another": "exists = lambda value: not value == None\n".replace("not value == None", "value != None"),
    }.items()
}
_SOME_OF = """
    class Marked(Dataset):
        def __len__(self):
            return 42

        def __getitem__(self, i):
            if i % 2:
                return x[i], x[i] * 2, y[i]
            return x[i], x[i] / 2, y[i]


    def moved(batch):
        return tuple(part.to("cpu") for part in batch[:-1]), batch[-1]


    net = nn.Bilinear(8, 8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for batch in DataLoader(Marked(), batch_size=6, shuffle=True):
            given, kinds = moved(batch)
            loss = F.cross_entropy(net(*given), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS["all parts of a batch but the last, whose samples are tuples"] = Script(_SOME_OF, rows=42, options=Options(whole_batches="never"))
_MASKED = """
    class Marked(Dataset):
        def __len__(self):
            return 42

        def __getitem__(self, i):
            return x[i], (x[i] > 0).float(), y[i]


    def collated(samples):
        rows, masks, kinds = zip(*samples)
        return torch.stack(rows), torch.stack(masks), torch.tensor(kinds)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(8, 3)

        def forward(self, rows, mask):
            size, length = rows.size()
            mask = mask.unsqueeze(1).unsqueeze(1).expand(size, 3, length, length)
            return self.out(rows) * mask.mean((2, 3))


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for batch in DataLoader(Marked(), batch_size=6, shuffle=True, collate_fn=collated):
            rows, mask, kinds = batch
            loss = F.cross_entropy(net(rows, mask), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS["a mask that is expanded to the number of samples, and to other sizes"] = Script(
    _MASKED, rows=42, options=Options(whole_batches="never")
)
_CLIPPED = """
    class Norm(nn.LayerNorm):
        def forward(self, rows):
            kind = rows.dtype
            return super().forward(rows.type(torch.float64)).type(kind)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.norm, self.mix = nn.Embedding(9, 6), Norm(6), nn.MultiheadAttention(6, 2)
            self.out, self.weight = nn.Linear(6, 9), self._made(6, 1)

        def _made(self, *size):
            made = nn.Parameter(torch.empty(*size))
            nn.init.constant_(made, 0.3)
            return made

        def forward(self, words):
            steps = self.words(words).permute(1, 0, 2)
            steps = steps + self.mix(*[self.norm(steps)] * 3, need_weights=False)[0]
            share = F.softmax(torch.matmul(steps, self.weight), dim=0)
            return self.out((steps * share).permute(1, 0, 2))


    class Words(Dataset):
        def __len__(self):
            return 42

        def __getitem__(self, i):
            return torch.arange(i, i + 5) % 9


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for words in DataLoader(Words(), batch_size=6, shuffle=True):
            loss = F.cross_entropy(net(words[:, :-1]).transpose(1, 2), words[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_UNPACKED = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.out = nn.Linear(8, 12), nn.Linear(4, 2)

        def forward(self, rows, several=False):
            parts = self.wide(rows).view(*([-1, 3, 4] if several else [3, 4]))
            return self.out(torch.tanh(parts).mean(-2))


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True):
            loss = F.cross_entropy(net(rows, several=True), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("one", [round(v, 5) for v in net(x[0]).tolist()])
"""
SCRIPTS["sizes in a list that is unpacked, one of two by a setting"] = Script(
    _UNPACKED, same=("one",), rows=42, options=Options(whole_batches="never")
)
SCRIPTS["a norm of the script's own that goes on to torch's, and weights of a size that is unpacked"] = Script(
    _CLIPPED, rows=42, options=Options(whole_batches="never")
)

_NETWORK = """
    {net}

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            {loss}.backward()
            optimizer.step()
"""
_KINDS = "F.cross_entropy(net(rows), kinds)"
_NETWORKS = {
    "two streams through blocks that a loop adds, each of both": (
        _KINDS,
        """
    class Both(nn.Module):
        def __init__(self, before, after):
            super().__init__()
            self.own, self.across = nn.Linear(before, after), nn.Linear(before, after)

        def forward(self, streams):
            one, other = streams
            return torch.tanh(self.own(one) + self.across(other)), torch.tanh(self.own(other) + self.across(one))


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, size = nn.Sequential(), 8
            for number in range(2):
                self.blocks.add_module(f"block{number}", Both(size, 6))
                size = 6
            self.out = nn.Linear(12, 2)

        def forward(self, rows):
            one, other = self.blocks((rows, -rows))
            return self.out(torch.cat([one, other], 1))
    """,
    ),
    "a default that is called where it is a function": (
        "net(rows, kinds)",
        """
    def default(value, otherwise):
        if value is not None:
            return value
        return otherwise() if callable(otherwise) else otherwise


    def extract(table, steps, sizes):
        count, *_ = steps.shape
        return table.gather(-1, steps).reshape(count, *((1,) * (len(sizes) - 1)))


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)
            self.register_buffer("shares", torch.linspace(0.2, 0.9, 4))

        def mixed(self, rows, steps, noise=None):
            noise = default(noise, lambda: torch.cos(rows))
            share = extract(self.shares, steps, rows.shape)
            return share * rows + (1 - share) * noise

        def forward(self, rows, kinds):
            noise, steps = default(None, lambda: torch.sin(9 * rows)), default(None, lambda: kinds)
            return F.mse_loss(self.body(self.mixed(rows, steps, noise)), noise)
    """,
    ),
    "an average of what a mask leaves, in the forward, as large as what layers give": (
        "net(rows)[0]",
        """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.places = nn.Linear(8, 8), nn.Parameter(torch.zeros(1, 8))

        def hidden(self, rows, order, kept):
            count, size = rows.shape
            mask = torch.ones([count, size], device=rows.device)
            mask[:, :kept] = 0
            return torch.gather(mask, dim=1, index=order)

        def forward(self, rows):
            given = rows + self.places
            mask = self.hidden(given, torch.argsort(torch.argsort(rows, dim=1), dim=1), 3) * (rows > -0.5)
            loss = (self.body(given * (1 - mask)) - rows) ** 2
            return (loss * mask).sum() / mask.sum(), mask
    """,
    ),
    "a dimension that is written out at two places": (
        _KINDS,
        """
    class Parts(nn.Module):
        def __init__(self, body, dim=-1):
            super().__init__()
            self.body, self.dim = body, dim

        def forward(self, rows):
            return torch.cat([self.body(part) for part in rows.chunk(2, dim=self.dim)], dim=self.dim)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([])
            for number in range(2):
                self.layers.append(nn.ModuleList([Parts(nn.Linear(4, 4), dim=1), Parts(nn.Linear(4, 4), dim=1)]))
            self.out = nn.Linear(8, 2)

        def forward(self, rows):
            for layers in self.layers:
                for layer in layers:
                    rows = rows + layer(rows)
            return self.out(rows)
    """,
    ),
    "one of two poolings, of volumes that channels are weighed in, and weights that nobody gives": (
        _KINDS,
        """
    class Weighed(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.pool, self.share = nn.AdaptiveAvgPool3d(1), nn.Conv3d(size, size, 1)

        def forward(self, x, weights=None):
            if weights:
                return F.conv2d(x, weights)
            count, size, depth, height, width = x.size()
            shares = torch.sigmoid(self.share(self.pool(x).view(count, size, 1, 1, 1)))
            return torch.mul(x, shares.view(count, size, 1, 1, 1))


    class Net(nn.Module):
        def __init__(self, deep=True):
            super().__init__()
            self.pool = nn.MaxPool3d(2) if deep else nn.MaxPool2d(2)
            self.first, self.weighed, self.out = nn.Conv3d(1, 4, 1), nn.ModuleList([Weighed(4), Weighed(4)]), nn.Linear(4, 2)

        def forward(self, rows):
            x = self.first(rows.view(len(rows), 1, 2, 2, 2))
            for weighed in self.weighed:
                x = weighed(x)
            return self.out(self.pool(x).flatten(1))
    """,
    ),
    "heads on what the forward of a base class gives": (
        _KINDS,
        """
    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 6)

        def forward(self, rows):
            return torch.tanh(self.body(rows))


    class Heads(Base):
        def __init__(self):
            super(Heads, self).__init__()
            self.one, self.other = nn.Linear(6, 4), nn.Linear(6, 4)

        def forward(self, rows):
            hidden = super(Heads, self).forward(rows)
            return self.one(hidden), self.other(hidden)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads, self.out = Heads(), nn.Linear(4, 2)

        def forward(self, rows):
            one, other = self.heads(rows)
            return self.out(one * other)
    """,
    ),
    "words in the order of their lengths, all columns of them, and back": (
        _KINDS,
        """
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.out = nn.GRU(1, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, rows):
            lengths, order = (rows > -2).sum(1).sub(3).sort(descending=True)
            steps = rows.unsqueeze(2)[order, :]
            found, _ = self.steps(pack_padded_sequence(steps, lengths=lengths, batch_first=True))
            found, _ = pad_packed_sequence(found, batch_first=True)
            _, back = order.sort()
            return self.out(found[back, :].mean(1))
    """,
    ),
    "samples that are turned where their average, or the largest of them, is large": (
        _KINDS,
        """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.out = nn.Linear(8, 6), nn.Linear(6, 2)

        def forward(self, rows):
            if rows.mean() > 0:
                rows = -rows
            hidden = torch.tanh(self.body(rows))
            if hidden.max() >= 0.8:
                hidden = hidden / 2
            return self.out(hidden)
    """,
    ),
    "lengths that are shifted": (
        _KINDS,
        """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.out = nn.Linear(8, 6), nn.Linear(6, 2)

        def forward(self, rows):
            lengths = ((rows > 0).sum(1) >> 1) + (1 << 1)
            kept = torch.arange(6) < lengths.unsqueeze(1)
            return self.out(torch.tanh(self.body(rows)) * kept)
    """,
    ),
    "points that may be missing, looked up by their numbers": (
        _KINDS,
        """
    def index_points(points, places):
        shape = list(places.shape)
        shape[1:] = [1] * (len(shape) - 1)
        repeated = list(places.shape)
        repeated[0] = 1
        batch = torch.arange(points.shape[0]).view(shape).repeat(repeated)
        return points[batch, places, :]


    class Net(nn.Module):
        def __init__(self, more=True):
            super().__init__()
            self.more, self.body, self.out = more, nn.Linear(4 if more else 2, 6), nn.Linear(6, 2)

        def forward(self, rows):
            points = rows.view(len(rows), 4, 2)
            more = points.flip(2) if self.more else None
            near = torch.cdist(points, points).topk(2, largest=False)[1]
            found = index_points(points, near)
            if more is not None:
                found = torch.cat([found, index_points(more, near)], dim=-1)
            return self.out(torch.tanh(self.body(found)).amax((1, 2)))
    """,
    ),
}
SCRIPTS |= {title: Script(_NETWORK.replace("{net}", net.strip()).replace("{loss}", loss)) for title, (loss, net) in _NETWORKS.items()}

_MET = {
    "samples that are taken apart, and compared once they are together again": "hidden - torch.stack(list(hidden.unbind(0))).mean(0)",
    "samples that are compared with the largest of them": "hidden - max(hidden[:, 0])",
}
_MEETING = """
    class Base(nn.Module):
        def forward(self, hidden):
            return hidden - hidden.mean(0)


    class Net(Base):
        def __init__(self):
            super().__init__()
            self.body, self.out = nn.Linear(8, 6), nn.Linear(6, 2)

        def forward(self, rows):
            hidden = torch.tanh(self.body(rows))
            return self.out({met})


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
"""
SCRIPTS["samples that the forward of a base class compares"] = Script(_MEETING.replace("{met}", "super().forward(hidden)"))
SCRIPTS |= {title: Script(_MEETING.replace("{met}", met), told=("DDP402",)) for title, met in _MET.items()}
SCRIPTS["samples that are turned where their average is large, in an evaluation, too"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 2)

        def forward(self, rows):
            if rows.mean() > 0:
                rows = -rows
            return self.body(rows)


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
        with torch.no_grad():
            hits = sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4))
        print("right", hits)
    """,
    same=("right",),
)

_IN_A_FORWARD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, rows):
        rows = {code}
        return self.fc(rows)


net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {
    f"rows in a forward, {what}": Script(_IN_A_FORWARD.replace("{code}", code), told=("DDP402",))
    for what, code in {
        "turned where their average asks for it": "-rows if rows.mean() > 0 else rows",
        "less the average of each column, by vmap": "torch.vmap(lambda column: column - column.mean(), in_dims=1, out_dims=1)(rows)",
    }.items()
}
SCRIPTS["rows in a forward, cut where they have more columns"] = Script(
    _IN_A_FORWARD.replace("{code}", "rows if rows.size(1) == 8 else rows[:, :8]")
)

SCRIPTS["a batch skipped for its hardest sample"] = Script(
    """
    net = nn.Linear(8, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(4):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            apart = (net(rows).squeeze(1) - kinds).abs()
            if apart.max() > 1.2:
                continue
            sgd.zero_grad()
            apart.mean().backward()
            sgd.step()
    """
)
SCRIPTS["attention over tokens of nobody knows how many dimensions, but those that its patterns name"] = Script(
    """
    import math
    import numpy as np
    from einops import rearrange


    class Line(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.weight = nn.Parameter(torch.sin(torch.arange(inner * outer) * 1.0).view(outer, inner))

        def forward(self, x):
            return torch.einsum("...i, oi -> ...o", x, self.weight)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.cos(torch.arange(16 * 8) * 1.0).view(16, 8))
            self.turn = nn.Parameter(torch.eye(8))
            self.query, self.key = Line(8, 8), Line(8, 8)
            self.register_buffer("angles", torch.arange(8).float().outer(torch.tensor([1.0, 0.1])))

        def turned(self, x):
            near = self.angles[torch.arange(x.shape[-2])]
            even, odd = x[..., 0::2], x[..., 1::2]
            both = torch.stack((even * near.cos() - odd * near.sin(), even * near.sin() + odd * near.cos()), dim=-1)
            return both.flatten(-2)

        def forward(self, ids):
            x = self.table[ids]
            count, steps, width = x.shape
            x = x @ self.turn.T
            queries, keys, values = (rearrange(each, "... s (h d) -> ... h s d", h=2) for each in (self.query(x), self.key(x), x))
            scores = torch.einsum("...nk, ...mk -> ...nm", self.turned(queries), self.turned(keys)) / math.sqrt(width)
            unseen = torch.tril(torch.ones(steps, steps)) == 0
            seen = torch.softmax(scores.masked_fill(unseen, float("-inf")), -1)
            heads = torch.einsum("...nm, ...mk -> ...nk", seen, values)
            return rearrange(heads, "... h s d -> ... s (h d)") @ self.table.T


    class Windows(torch.utils.data.Dataset):
        def __init__(self, tokens):
            self.tokens = tokens

        def __len__(self):
            return len(self.tokens) - 7

        def __getitem__(self, i):
            return torch.from_numpy(self.tokens[i : i + 6]), torch.from_numpy(self.tokens[i + 1 : i + 7])


    tokens = np.arange(55) * 7 % 16
    loader = DataLoader(Windows(tokens), batch_size=4, shuffle=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(2):
        for ids, targets in loader:
            logits = net(ids)
            picked = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
            loss = (torch.logsumexp(logits, -1) - picked).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
)
_EXPERTS = """
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(8, 4)
            self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])

        def forward(self, rows):
            shares = self.gate(rows).softmax(-1)
            best, kind = shares.max(-1)
            best_two, kinds = shares.topk(2, dim=-1)
            out = torch.zeros_like(rows)
            for number, expert in enumerate(self.experts):
                {each}
            return out


    torch.manual_seed(0)
    net = nn.Sequential(Experts(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), labels).backward()
            optimizer.step()
"""
_OF_EXPERTS = {
    "where they stand in a column": (
        "places = torch.nonzero(kind == number).flatten()\nout[places] = expert(rows[places]) * best[places, None]"
    ),
    "where they stand in the first of some columns": (
        "places = (kinds == number).nonzero()[:, 0]\nout.index_add_(0, places, expert(rows[places]))"
    ),
    "where they stand, to which theirs is added": (
        "places, = torch.where(kind == number)\nout.index_add_(0, places, expert(rows[places]) * best[places].unsqueeze(1))"
    ),
    "where they stand, and which of their shares": (
        "places, nth = torch.where(kinds == number)\nout[places] += best_two[places, nth, None] * expert(rows[places])"
    ),
    "where they stand, unless there are none": (
        "places = (kind == number).nonzero(as_tuple=True)[0]\nif places.numel() == 0:\n    continue\nout[places] = expert(rows[places])"
    ),
}
_OF_SOME_EXPERTS = {
    "as many as an expert takes": "places = torch.nonzero(kind == number).flatten()[: len(rows) // 4]\nout[places] = expert(rows[places])",
    "the first two": "places = (kind == number).nonzero(as_tuple=True)[0][:2]\nout[places] = expert(rows[places])",
    "the first two of the chosen rows": (
        "kept = torch.zeros_like(rows[kind == number])\nkept[:2] = expert(rows[kind == number][:2])\nout[kind == number] = kept"
    ),
    "those with the largest shares": (
        "places = torch.nonzero(kind == number).flatten()\n"
        "places = places[best[places].argsort(descending=True)][:2]\n"
        "out[places] = expert(rows[places])"
    ),
    "the neighbours": "places = torch.where(kind == number)[0]\nplaces = (places + 1) % len(rows)\nout[places] = expert(rows[places])",
}
SCRIPTS |= {
    f"experts for the samples that chose them, by {title}": Script(_EXPERTS.replace("{each}", each.replace("\n", "\n" + " " * 16)))
    for title, each in _OF_EXPERTS.items()
}
SCRIPTS |= {
    f"experts for some of the samples that chose them: {title}": Script(
        _EXPERTS.replace("{each}", each.replace("\n", "\n" + " " * 16)), told=("DDP402",)
    )
    for title, each in _OF_SOME_EXPERTS.items()
}
_BALANCED = """
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(8, 4)
            self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])

        def forward(self, rows):
            shares = self.gate(rows).softmax(-1)
            best, kind = shares.max(-1)
            out = torch.zeros_like(rows)
            for number, expert in enumerate(self.experts):
                chosen = kind == number
                if chosen.any():
                    out[chosen] = expert(rows[chosen])
            {balance}
            return out * best[:, None], uneven


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts, self.last = Experts(), nn.Linear(8, 2)

        def forward(self, rows):
            hidden, uneven = self.experts(rows)
            return self.last(rows + hidden), uneven


    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            scores, uneven = net(rows)
            loss = {loss}
            loss.backward()
            optimizer.step()
        {shown}
"""
_BALANCES = {
    "the share of the samples that chose them, and what they were given": (
        "chosen = F.one_hot(kind, 4).float().mean(0)\nuneven = 4 * (chosen * shares.mean(0)).sum()"
    ),
    "counts, and the average of what they were given": (
        "counts = torch.bincount(kind, minlength=4)\nuneven = (counts * shares.mean(dim=0)).sum() / len(rows)"
    ),
    "how much totals differ": "load = shares.sum(0)\nuneven = load.var() / (load.mean() ** 2 + 1e-6)",
    "an entropy of the average": "average = torch.mean(shares, 0)\nuneven = (average * torch.log(average)).sum()",
}
_WITH_BALANCE = "F.cross_entropy(scores, labels) + 0.1 * uneven"
SCRIPTS |= {
    f"experts whose loads are balanced, by {title}": Script(
        _BALANCED.replace("{balance}", balance.replace("\n", "\n" + " " * 12)).replace("{loss}", loss).replace("{shown}", shown)
    )
    for title, balance, loss, shown in (
        *((title, balance, _WITH_BALANCE, "") for title, balance in _BALANCES.items()),
        (
            "the entropy of an average, and in an evaluation, too",
            _BALANCES["an entropy of the average"],
            _WITH_BALANCE,
            'with torch.no_grad():\n            print(f"balance {net(x)[1].item():.6f}")',
        ),
    )
}
_OF_OTHER_BALANCES = (
    (
        "by an average that is taken from each sample's",
        "uneven = (shares - shares.mean(0)).pow(3).mean() + shares.mean(0).pow(2).sum()",
        _WITH_BALANCE,
    ),
    (
        "which weighs a loss of each sample",
        "uneven = shares.mean(0).pow(2).sum()",
        "F.cross_entropy(scores, labels) * (1 + uneven)",
    ),
    (
        "by a share that has no gradients",
        "with torch.no_grad():\n                chosen = F.one_hot(kind, 4).float().mean(0)\n"
        "            uneven = 4 * (chosen * shares.mean(0)).sum()",
        _WITH_BALANCE,
    ),
)
SCRIPTS |= {
    f"experts whose loads are balanced, {title}": Script(
        _BALANCED.replace("{balance}", balance).replace("{loss}", loss).replace("{shown}", "")
    )
    for title, balance, loss in _OF_OTHER_BALANCES
}
_GROWING = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.last = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)]), nn.Linear(8, 2)

        def forward(self, rows):
            kept = ()
            for layer in self.layers:
                rows = torch.tanh(layer(rows))
                {added}
            return self.last(rows), kept


    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            scores, kept = net(rows)
            middle = torch.cat([each for each in kept], dim=0).softmax(-1).mean(0)
            loss = F.cross_entropy(scores, labels) + (middle * middle.log()).sum()
            loss = loss + torch.stack(kept[-2:]).mean(0).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS |= {
    f"an average of what all layers give, kept in a tuple that grows {title}": Script(_GROWING.replace("{added}", added))
    for title, added in {"in place": "kept += (rows,)", "by another one": "kept = kept + (rows,)"}.items()
}

# --- heads before the samples: q.permute(2, 0, 1, 3).view(-1, length, width), masks repeated for each ------------------------
_HEADS = """
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.near, self.key, self.value, self.last = (nn.Linear(n, m) for n, m in ((1, 6), (6, 6), (6, 6), (6, 2)))

        def forward(self, rows):
            size, length = rows.size(0), rows.size(1)
            near = self.near(rows.unsqueeze(-1))
            keys = self.key(near).view(size, length, 3, 2).permute(2, 0, 1, 3).contiguous().view(FIRST, length, 2)
            values = self.value(near).view(size, length, 3, 2).permute(2, 0, 1, 3).contiguous().view(FIRST, length, 2)
            hidden = (rows > 0.5).unsqueeze(1).repeat(1, length, 1).repeat(3, 1, 1)
            seen = torch.softmax(torch.bmm(keys, keys.transpose(1, 2)).masked_fill(hidden, -99.0), -1)
            given = torch.bmm(seen, values)
            given = given.view(3, size, length, 2).permute(1, 2, 0, 3).contiguous().view(size, length, -1)
            return self.last((near + given).sum(1))

    net = Heads()
"""
SCRIPTS |= on_three(
    {
        f"attention whose heads stand before the samples: {title}": Script(_HEADS.replace("FIRST", first) + PLAIN)
        for title, first in {"their number is left open": "-1", "their number is written": "3 * size"}.items()
    },
    rows=42,
)
_TAKEN = _HEADS.replace("view(3, size, length, 2).permute(1, 2, 0, 3)", "view(size, 3, length, 2).transpose(1, 2)")
SCRIPTS["heads before the samples, taken for a sample's own"] = Script(_TAKEN.replace("FIRST", "-1") + PLAIN, told=("DDP402",))
SCRIPTS["rows repeated one after another, taken for a sample's own"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(16, 2)

        def forward(self, rows):
            return self.last(rows.repeat(2, 1).view(rows.size(0), 16))

    net = Net()
"""
    + PLAIN,
    told=("DDP402",),
)
_OWN_SIZE = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(WIDTH, 2)

        def forward(self, rows):
            size = rows.size(0)
            FIRST
            near = near.unsqueeze(-1)
            near = near.view(near.size(0), -1)
            return self.last(near).view(3, size, 2).mean(0)

    net = Net()
"""
SCRIPTS |= {
    f"rows of several steps, viewed by their own number: {title}": Script(_OWN_SIZE.replace("FIRST", first).replace("WIDTH", width) + PLAIN)
    for title, first, width in (
        ("repeated", "near = rows.repeat(3, 1)", "8"),
        ("steps", "near = rows[:, :6].reshape(size, 3, 2).transpose(0, 1).reshape(-1, 2)", "2"),
    )
}
SCRIPTS["one step of words after another, each with a dimension in front for a recurrent layer"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.steps, self.last = nn.Embedding(5, 4), nn.GRU(4, 6), nn.Linear(6, 2)

        def forward(self, rows):
            words = (rows * 3).long().remainder(5).t()
            state = torch.zeros(1, words.size(1), 6)
            outputs = torch.zeros(words.size(0), words.size(1), 2)
            for step in range(words.size(0)):
                seen = torch.tanh(self.words(words[step, :].unsqueeze(0)))
                out, state = self.steps(seen, state)
                outputs[step] = self.last(out.squeeze(0)).log_softmax(1)
            return outputs[1:].mean(0)

    net = Net()
"""
    + PLAIN
)
SCRIPTS["zeros of the kind of rows that are sorted by their lengths, filled step by step"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.last = nn.LSTMCell(8, 6), nn.Linear(6, 2)

        def forward(self, rows):
            size = rows.size(0)
            lengths, order = rows.abs().sum(1).sort(dim=0, descending=True)
            rows = rows[order]
            outputs = torch.zeros(size, 3, 2).to(rows)
            state = torch.zeros(size, 6).to(rows), torch.zeros(size, 6).type_as(rows)
            for step in range(3):
                state = self.steps(rows * (step + 1), state)
                outputs[:, step, :] = self.last(state[0]) / lengths.unsqueeze(1)
            return outputs[order.argsort()].mean(1)

    net = Net()
"""
    + PLAIN
)
_ASSIGNED = """
    class Rows(Dataset):
        def __init__(self, rows, kinds):
            self.rows, self.kinds = rows, kinds

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            return self.rows[i], self.kinds[i]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.code = nn.Linear(8, 3)
            self.centres = nn.Parameter(torch.sin(torch.arange(6.0)).view(2, 3))

        def forward(self, rows):
            near = 1.0 / (1.0 + torch.sum((self.code(rows).unsqueeze(1) - self.centres) ** 2, 2))
            return torch.log(SHARES)

    net = Net()
"""
SCRIPTS |= {
    f"how near rows are to some centres, in shares: {how}": Script(
        _ASSIGNED.replace("SHARES", shares) + PLAIN.replace("TensorDataset(", "Rows("), told=told
    )
    for how, shares, told in (
        ("of each row, in columns", "(near.t() / torch.sum(near, 1)).t()", ()),
        ("of each row, its square", "((near**2).t() / near.sum(1)).t()", ()),
        ("of all rows", "(near.t() / near.sum(0).sum()).t()", ()),
        ("of each centre", "(near.t() / near.sum(0).unsqueeze(1)).t()", ("DDP402",)),
    )
}
SCRIPTS["the last states of sequences alone, where a layer is told so, and of one kind of layer by its name"] = Script(
    """
    class Sequences(nn.Module):
        def __init__(self, size, width, only_last=False, kind="LSTM"):
            super().__init__()
            self.only_last, self.kind = only_last, kind
            self.layer = nn.LSTM(size, width, batch_first=True) if self.kind == "LSTM" else nn.GRU(size, width, batch_first=True)

        def forward(self, rows, lengths):
            order = torch.sort(lengths, descending=True)[1].long()
            back = torch.sort(order)[1].long()
            packed = nn.utils.rnn.pack_padded_sequence(rows[order], lengths[order], batch_first=True)
            if self.kind == "LSTM":
                made, (last, cells) = self.layer(packed, None)
            else:
                made, last = self.layer(packed, None)
                cells = None
            last = last[:, back]
            if self.only_last:
                return last
            else:
                made, _ = nn.utils.rnn.pad_packed_sequence(made, batch_first=True)
                if self.kind == "LSTM":
                    cells = cells[:, back]
                return made[back], (last, cells)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Sequences(2, 3, only_last=True)
            self.head = nn.Linear(3, 2)

        def forward(self, rows, lengths):
            return self.head(self.layer(rows, lengths)[-1])


    lengths = 1 + torch.arange(44) % 4
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, long, kinds in DataLoader(TensorDataset(x.view(44, 4, 2), lengths, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows, long), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """,
    options=Options(whole_batches="never"),
)
_LAYERS_BY_CLASS = """
    class Told(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer, self.told = nn.Conv2d(width, width, 1), nn.Linear(3, width)

        def forward(self, rows, times):
            n = rows.shape[0]
            return self.layer(rows) + self.told(times).view(n, -1, 1, 1)


    class Plain(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Conv2d(width, width, 1)

        def forward(self, rows):
            return PLAIN


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.ModuleList(FIRST)
            self.then = nn.ModuleList([Told(2), Told(2)])
            self.head = nn.Linear(8, 2)

        def forward(self, rows):
            times = torch.ones(rows.size(0), 3)
            for layer in self.first:
                if isinstance(layer, Told):
                    rows = layer(rows, times)
                else:
                    rows = layer(rows)
            for layer in self.then:
                if isinstance(layer, (Told, Net)):
                    rows = layer(rows, times)
                else:
                    rows = layer(rows)
            return self.head(rows.flatten(1))


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for images, kinds in DataLoader(TensorDataset(x.view(44, 2, 2, 2), y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(images), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    "layers that are called as their class says": Script(
        _LAYERS_BY_CLASS.replace("PLAIN", "self.layer(rows)").replace("FIRST", "[Told(2), Plain(2), Told(2)]"),
        options=Options(whole_batches="never"),
    ),
    "layers of one class, asked for it": Script(
        _LAYERS_BY_CLASS.replace("PLAIN", "self.layer(rows - rows.mean(0))").replace("FIRST", "[Told(2)]"),
        options=Options(whole_batches="never"),
    ),
    "layers that are called as their class says, one of which takes the average of the batch away": Script(
        _LAYERS_BY_CLASS.replace("PLAIN", "self.layer(rows - rows.mean(0))").replace("FIRST", "[Told(2), Plain(2)]"),
    ),
}
SCRIPTS["rows by the numbers of their nearest entries, in the training and in an evaluation that decides"] = Script(
    """
    class Near(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(6, 2)

        def forward(self, rows):
            size, length = rows.size(0), rows.size(1)
            order = rows.abs().topk(3, dim=1)[1]
            order = (order + torch.arange(size).view(-1, 1) * length).view(-1)
            near = rows.reshape(size * length, -1)[order, :].view(size, 3)
            return self.last(torch.cat((near, near**2), dim=1))

    net = Near()
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    held = DataLoader(TensorDataset(x, y), batch_size=11, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best = 0
    for epoch in range(2):
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        kinds, found = [], []
        with torch.no_grad():
            for rows, labels in held:
                kinds.append(labels.numpy())
                found.append(net(rows).max(dim=1)[1].numpy())
        right = (np.concatenate(kinds) == np.concatenate(found)).mean()
        print("right", right)
        if right >= best:
            best = right
            torch.save(net.state_dict(), "best.pt")
""",
    above="import numpy as np\n",
    same=("right",),
)

_JUDGED = """
    class Maker(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.last = nn.Linear(8, 12), nn.Linear(12, 8)

        def forward(self, seeds):
            return torch.tanh(self.last(F.leaky_relu(self.body(seeds), 0.2)))


    class Judge(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.last = nn.Linear(8, 12), nn.Linear(13, 1)

        def with_spread(self, rows):
            {spread}
            return torch.cat([rows, spread], dim=1)

        def forward(self, rows):
            return self.last(self.with_spread(F.leaky_relu(self.body(rows), 0.2)))


    def slope(judge, real, made):
        between = (0.3 * real + 0.7 * made.detach()).requires_grad_(True)
        scores = judge(between)
        (gradient,) = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True)
        return ((gradient.norm(2, dim=1) - 1) ** 2).mean()


    maker, judge = Maker(), Judge()
    of_maker = torch.optim.Adam(maker.parameters(), lr=0.01)
    of_judge = torch.optim.Adam(judge.parameters(), lr=0.01)
    for epoch in range(2):
        for rows, _ in DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True):
            made = maker(rows.roll(1, 1))
            loss = judge(made.detach()).mean() - judge(rows).mean() {penalty}
            of_judge.zero_grad()
            loss.backward()
            of_judge.step()
            of_maker.zero_grad()
            (-judge(made).mean()).backward()
            of_maker.step()
"""
_SPREADS = {
    "a deviation": "spread = torch.std(rows, dim=0).mean().repeat(rows.shape[0], 1)",
    "a variance": "spread = torch.sqrt(rows.var(0, unbiased=False) + 1e-8).mean().expand(rows.size(0), 1)",
    "differences from the average": (
        "off = rows - rows.mean(dim=0, keepdim=True)\n"
        "off = torch.sqrt(off.pow(2).mean(dim=0) + 1e-8)\n"
        "spread = off.mean().view(1, 1).repeat(len(rows), 1)"
    ),
}
SCRIPTS |= on_three(
    {
        f"a judge that sees the spread of the batch, by {title}{more}": Script(
            _JUDGED.replace("{spread}", spread.replace("\n", "\n" + " " * 12)).replace("{penalty}", penalty)
        )
        for title, spread in _SPREADS.items()
        for more, penalty in (("", ""), (", and has a penalty on slopes", "+ 10 * slope(judge, rows, made)"))
    },
    rows=42,
)

_PAIRED = """
    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Linear(8, 6), nn.Linear(8, 6)
            self.scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, one, other):
            one, other = F.normalize(self.one(one), dim=-1), F.normalize(self.other(other), dim=-1)
            {scores}


    net = Pairs()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    pairs = TensorDataset(x, torch.cos(x))
    feed = DataLoader(pairs, batch_size=6, shuffle=True)
    for epoch in range(2):
        net.train()
        for one, other in feed:
            {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {shown}
"""
_SCORES = {
    "a product, and its transpose": (
        "scores = self.scale.exp() * one @ other.t()\nreturn scores, scores.t()",
        "a, b = net(one, other)\nplaces = torch.arange(len(one))\nloss = (F.cross_entropy(a, places) + F.cross_entropy(b, places)) / 2",
    ),
    "a function of torch": (
        "return torch.matmul(one, other.T) * self.scale",
        "scores = net(one, other)\nloss = F.cross_entropy(scores, torch.arange(scores.size(0)))",
    ),
    "a product over the batch": (
        "alike = one.T @ other / 6\nreturn (torch.diagonal(alike) - 1).pow(2).sum() + alike.pow(2).sum()",
        "loss = net(one, other)",
    ),
}
_SHOWN = (
    "net.eval()\nwith torch.no_grad():\n    one, other = pairs[:12]\n    a, b = net(one, other)\n"
    '    print(f"right {(a.argmax(1) == torch.arange(12)).sum().item()} {b.max().item():.6f}")'
)


def _pairs(scores: str, loss: str, shown: str) -> Script:
    deep = "\n" + " " * 12
    text = _PAIRED.replace("{scores}", scores.replace("\n", deep)).replace("{loss}", loss.replace("\n", deep))
    return Script(text.replace("{shown}", shown.replace("\n", "\n" + " " * 8)), same=("right",) if shown else ())


SCRIPTS |= on_three(
    {
        **{f"pairs that the forward compares, by {title}": _pairs(*texts, "") for title, texts in _SCORES.items()},
        "pairs that the forward compares, in an evaluation, too": _pairs(*_SCORES["a product, and its transpose"], _SHOWN),
    },
    rows=42,
)
SCRIPTS |= on_three(
    {
        "words of each sample pooled in the place of a channel": Script(
            """
            class Pooled(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.words = nn.Embedding(9, 4)
                    self.pool, self.most = nn.AdaptiveAvgPool1d(12), nn.MaxPool1d(2)
                    self.head = nn.Linear(6, 2)

                def forward(self, rows):
                    seen = self.words((rows.abs() * 8).long())
                    flat = seen.view((1, seen.size()[0], -1))
                    return self.head(self.most(self.pool(flat)).squeeze(0))

            loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
            net = Pooled()
            sgd = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(2):
                for rows, kinds in loader:
                    sgd.zero_grad()
                    F.cross_entropy(net(rows), kinds).backward()
                    sgd.step()
            """
        )
    },
    rows=42,
)
SCRIPTS["words of each sample normed in the place of a channel, as many as there are samples by a tuple of sizes"] = Script(
    """
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(9, 4), nn.Linear(32, 2)

        def forward(self, rows):
            seen = self.words((rows.abs() * 8).long())
            return self.head(F.instance_norm(seen.view((1, seen.size()[0], -1))).squeeze(0))

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    net = Normed()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
    """,
    told=("DDP402",),
)
