"""Scripts whose models are more than plain layers: parts that rest, compiled, checkpointed, halved, hooked, of several dtypes."""

import textwrap

from scripts import Script

_JUDGED = """
import sys


class Trainer:
    def __init__(self, maker, judge):
        self.maker = maker
        self.of_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
        if judge is not None:
            self.judge = judge.cuda()
            self.of_judge = torch.optim.SGD(self.judge.parameters(), lr=0.1)
        else:
            self.judge = None

    def train(self, loader):
        for epoch in range(3):
            for rows, _ in loader:
                made = self.maker(rows)
                loss = F.mse_loss(made, rows)
                if self.judge is not None:
                    loss = loss + F.softplus(-self.judge(made)).mean()
                self.of_maker.zero_grad()
                loss.backward()
                self.of_maker.step()
                if self.judge is not None:
                    wrong = F.softplus(self.judge(made.detach())).mean() + F.softplus(-self.judge(rows)).mean()
                    self.of_judge.zero_grad()
                    wrong.backward()
                    self.of_judge.step()


trainer = Trainer(nn.Linear(8, 8), nn.Linear(8, 1) if "--judge" in sys.argv else None)
trainer.train(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
kept = {"maker": trainer.maker.state_dict()}
if trainer.judge is not None:
    kept["judge"] = trainer.judge.state_dict()
torch.save(kept, "kept.pt")
"""
_BESIDE = """
import sys

body, head = nn.Linear(8, 4), nn.Linear(4, 2)
beside = None
if "--beside" in sys.argv:
    beside = nn.Linear(4, 2)
trained = [*body.parameters(), *head.parameters()]
if beside is not None:
    trained += list(beside.parameters())
optimizer = torch.optim.SGD(trained, lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
        hidden = body(rows)
        loss = F.cross_entropy(head(hidden), kinds)
        if beside is not None:
            loss = loss + 0.1 * F.cross_entropy(beside(hidden), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_IN_A_BRANCH = """
import sys

two = "--two" in sys.argv


class Trainer:
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4).eval(), nn.Linear(4, 2))
        self.of_body = torch.optim.SGD(self.body.parameters(), lr=0.1)
        if two:
            self.head = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 2))
            self.head.apply(lambda m: nn.init.zeros_(m.bias) if isinstance(m, nn.Linear) else None)
        if two:
            self.of_head = torch.optim.SGD(self.head.parameters(), lr=0.1)
        self.loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        self.test = DataLoader(TensorDataset(x, y), batch_size=4)

    def train(self):
        for epoch in range(2):
            for rows, kinds in self.loader:
                out = self.body(rows)
                loss = F.cross_entropy(out, kinds)
                if two:
                    loss = loss + F.cross_entropy(self.head(out), kinds)
                    self.of_head.zero_grad()
                self.of_body.zero_grad()
                loss.backward()
                self.of_body.step()
                if two:
                    self.of_head.step()
            print("right", self.evaluate())

    def evaluate(self):
        self.body.eval()
        right = 0
        with torch.no_grad():
            for rows, kinds in self.test:
                out = self.body(rows)
                if two:
                    out = self.head(out)
                right += (out.argmax(1) == kinds).sum().item()
        return right


Trainer().train()
"""
_LOADED_IN_A_BRANCH = """
import os
import sys

two = "--two" in sys.argv


def main():
    body = nn.Linear(8, 2)
    if two:
        head = nn.Linear(2, 2)
        of_head = torch.optim.SGD(head.parameters(), lr=0.1)
    of_body = torch.optim.SGD(body.parameters(), lr=0.1)
    if os.path.exists("start.pt"):
        start = torch.load("start.pt")
        body.load_state_dict(start["body"])
        if two:
            head.load_state_dict(start["head"])
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            out = body(rows)
            loss = F.cross_entropy(out, kinds)
            if two:
                loss = loss + F.cross_entropy(head(out), kinds)
                of_head.zero_grad()
            of_body.zero_grad()
            loss.backward()
            of_body.step()
            if two:
                of_head.step()
    kept = {"body": body.state_dict()}
    if two:
        kept["head"] = head.state_dict()
    torch.save(kept, "kept.pt")


main()
"""
_MAY_BE_NONE = {
    "a second head that no branch makes or loads": Script(_LOADED_IN_A_BRANCH),
    "a second head that one branch makes and another may load": Script(_LOADED_IN_A_BRANCH, args=("--two",)),
    "a second head that no branch makes": Script(_IN_A_BRANCH, same=("right",)),
    "a second head that one branch makes": Script(_IN_A_BRANCH, same=("right",), args=("--two",)),
    "a judge that is not made": Script(_JUDGED),
    "a judge that an argument asks for": Script(_JUDGED, args=("--judge",)),
    "a second head that is not made": Script(_BESIDE),
    "a second head that an argument asks for": Script(_BESIDE, args=("--beside",)),
}
_SPREAD = """
class Spread(nn.DataParallel):
    \"\"\"A wrapper.\"\"\"

    def {method}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, rows):
        return self.fc(rows)

    def size(self):
        return round(self.fc.weight.pow(2).sum().item(), 3)


torch.manual_seed(0)
model = Net()
if torch.cuda.device_count() > -1:
    model = Spread(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        loss = F.cross_entropy(model(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("size", model.size())
"""
_READS = """__getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)
"""
_GATHERS = """gather(self, outputs, output_device):
        return outputs[0]

    def size(self):
        return self.module.size()
"""
_OWN_WRAPPERS = {
    "a DataParallel of the script's own that lets attributes of the model be read": Script(_SPREAD.format(method=_READS), same=("size",)),
    "a DataParallel of the script's own that gathers in its own way": Script(_SPREAD.format(method=_GATHERS), told=("DDP202",)),
}
SCRIPTS: dict[str, Script] = {
    "a forward without parameters, beside the method that runs the network": Script(
        """
        class Body(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(8, 16)
                self.last = nn.Linear(16, 8)

            def forward(self, rows):
                return self.last(self.first(rows).relu())


        class Noise(nn.Module):
            def __init__(self, body):
                super().__init__()
                self.body = body
                self.bars = torch.linspace(0.1, 0.9, 8)

            def forward(self, rows, kinds):
                bar = self.bars[kinds].unsqueeze(1)
                return bar.sqrt() * rows + (1 - bar).sqrt() * rows.flip(1)

            def backward(self, rows):
                return self.body(rows)


        net = Noise(Body())
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                noisy = net(rows, kinds)
                loss = F.mse_loss(net.backward(noisy), rows.flip(1))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "a DataParallel where no single device is asked for, and one is": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--single", type=int, default=None)
    parser.add_argument("--resume", default="")
    args = parser.parse_args()


    def main(single):
        model = nn.Linear(8, 2)
        if args.single is not None:
            print("on one device")
        else:
            model = nn.DataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if args.resume:
            model.load_state_dict(torch.load(args.resume)["model"])
        for epoch in range(3):
            for data, target in DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            torch.save({"model": model.state_dict(), "epoch": epoch}, "last.pt")


    main(args.single)
""",
        args=("--single", "0"),
    ),
    **_MAY_BE_NONE,
    **_OWN_WRAPPERS,
    "a layer that forward never runs": Script(
        """
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 6)
                self.head = nn.Linear(6, 2)
                self.decoder = nn.Linear(6, 8)

            def features(self, rows):
                return self.body(rows).relu()

            def forward(self, rows):
                return self.head(self.features(rows))

            def reconstruct(self, rows):
                return self.decoder(self.features(rows))


        model = Encoder()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a layer list of which an argument picks some": Script(
        """
        class Deep(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])
                self.out = nn.Linear(8, 2)

            def forward(self, rows, stop=None):
                for i, layer in enumerate(self.layers):
                    if i == stop:
                        break
                    rows = layer(rows).tanh()
                return self.out(rows)


        model = Deep(3)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(4):
            for data, target in loader:
                loss = F.cross_entropy(model(data, stop=1 + epoch), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "an auxiliary head that only training runs": Script(
        """
        class Net(nn.Module):
            def __init__(self, aux_logits=True):
                super().__init__()
                self.aux_logits = aux_logits
                self.stem = nn.Linear(8, 6)
                self.fc = nn.Linear(6, 2)
                if aux_logits:
                    self.aux = nn.Linear(6, 2)

            def forward(self, rows):
                rows = torch.relu(self.stem(rows))
                if self.training and self.aux_logits:
                    return self.fc(rows), self.aux(rows)
                return self.fc(rows)


        model = Net()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for data, target in loader:
                out, side = model(data)
                loss = F.cross_entropy(out, target) + 0.4 * F.cross_entropy(side, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a head for each task, one at a time": Script(
        """
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Linear(8, 6)
                self.heads = nn.ModuleDict({"kind": nn.Linear(6, 2), "size": nn.Linear(6, 1)})

            def forward(self, rows, task):
                return self.heads[task](self.trunk(rows).relu())


        model = Shared()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for task in ("kind", "size"):
                for data, target in loader:
                    out = model(data, task)
                    loss = F.cross_entropy(out, target) if task == "kind" else F.mse_loss(out.squeeze(1), target.float())
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        """,
    ),
    "an output that the loss leaves out": Script(
        """
        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.left, self.right = nn.Linear(8, 2), nn.Linear(8, 3)

            def forward(self, rows):
                return {"kind": self.left(rows), "other": self.right(rows)}


        model = Both()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data)["kind"], target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a parameter that nobody uses": Script(
        """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 2)
                self.temperature = nn.Parameter(torch.ones([]))
                self.gate = nn.Parameter(torch.zeros(2))

            def forward(self, rows):
                return self.fc(rows) + self.gate


        def main():
            net = Scaled()
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
            for epoch in range(2):
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(net(data), target).backward()
                    optimizer.step()


        main()
        """,
    ),
    "frozen layers, which nobody waits for": Script(
        """
        class Tuned(nn.Module):
            def __init__(self):
                super().__init__()
                self.old = nn.Linear(8, 6)
                self.new = nn.Linear(6, 2)
                for p in self.old.parameters():
                    p.requires_grad = False

            def forward(self, rows):
                with torch.no_grad():
                    features = self.old(rows)
                return self.new(features)


        model = Tuned()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "residual blocks whose shortcut is there or not": Script(
        """
        class Piece(nn.Module):
            def __init__(self, before, after, bridge=None):
                super().__init__()
                self.work = nn.Sequential(nn.Linear(before, after), nn.LayerNorm(after))
                self.bridge = bridge

            def forward(self, rows):
                kept = rows if self.bridge is None else self.bridge(rows)
                if self.bridge is not None:
                    kept = kept.tanh()
                return torch.relu(self.work(rows) + kept)


        class Chain(nn.Module):
            def __init__(self, widths=(8, 12), each=2):
                super().__init__()
                pieces, width = [], 8
                for wide in widths:
                    pieces += self.pieces(width, wide, each)
                    width = wide
                self.body, self.head = nn.Sequential(*pieces), nn.Linear(width, 2)

            def pieces(self, before, after, count):
                bridge = nn.Linear(before, after, bias=False) if before != after else None
                out = [Piece(before, after, bridge)]
                while len(out) < count:
                    out.append(Piece(after, after))
                return out

            def forward(self, rows):
                return self.head(self.body(rows))


        model = Chain()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "experts of which a gate picks one for each sample": Script(
        """
        class Mixture(nn.Module):
            def __init__(self, experts=3):
                super().__init__()
                self.gate = nn.Linear(8, experts)
                self.experts = nn.ModuleList(nn.Linear(8, 2) for _ in range(experts))

            def forward(self, rows):
                weight, choice = self.gate(rows).softmax(-1).max(-1)
                out = torch.zeros(len(rows), 2)
                for i, expert in enumerate(self.experts):
                    mine = choice == i
                    if mine.any():
                        out[mine] = weight[mine, None] * expert(rows[mine])
                return out


        model = Mixture()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "compiled before it is trained": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--compile", action="store_true")
        args = parser.parse_args()
        model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
        if args.compile:
            model = torch.compile(model)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        torch.save(model.state_dict(), "model.pt")
        """,
    ),
    "compiled, with the plain model kept for checkpoints": Script(
        """
        net = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
        unoptimized_model = net
        net = torch.compile(net, backend="eager")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            torch.save({"model": unoptimized_model.state_dict(), "epoch": epoch}, "last.pt")
        torch.save(net.state_dict(), "compiled.pt")
        torch.save(net._orig_mod.state_dict(), "plain.pt")
        """,
    ),
    "compiled in place": Script(
        """
        def build():
            model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
            model.compile(backend="eager")
            return model


        model = build()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        torch.save(model.state_dict(), "model.pt")
        """,
    ),
    "a step that is compiled": Script(
        """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)


        @torch.compile(backend="eager")
        def loss_of(data, target):
            return F.cross_entropy(model(data), target)


        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                loss = loss_of(data, target)
                loss.backward()
                optimizer.step()
        """,
    ),
    "activations that are computed again": Script(
        """
        from torch.utils.checkpoint import checkpoint


        class Stack(nn.Module):
            def __init__(self, depth=3):
                super().__init__()
                self.inp = nn.Linear(8, 8)
                self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(depth)])
                self.out = nn.Linear(8, 2)

            def forward(self, rows):
                rows = self.inp(rows)
                for block in self.blocks:
                    rows = checkpoint(block, rows, use_reentrant=False)
                return self.out(rows)


        model = Stack()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "activations that are computed again, the older way, with a part that rests": Script(
        """
        import torch.utils.checkpoint as cp


        class Stack(nn.Module):
            def __init__(self, depth=2, checkpointing=True):
                super().__init__()
                self.checkpointing = checkpointing
                self.inp = nn.Linear(8, 8)
                self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(depth)])
                self.spare = nn.Linear(8, 3)
                self.out = nn.Linear(8, 2)

            def forward(self, rows):
                rows = self.inp(rows)
                for block in self.blocks:
                    if self.checkpointing and rows.requires_grad:
                        rows = cp.checkpoint(block, rows, use_reentrant=True)
                    else:
                        rows = block(rows)
                return self.out(rows)


        model = Stack()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "in double precision, its inputs too": Script(
        """
        model = nn.Linear(8, 2).double()
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = criterion(model(data.double()), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        model.float()
        torch.save(model.state_dict(), "model.pt")
        """,
    ),
    "in half precision where there is a GPU": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv1d(1, 4, 3)
                self.norm = nn.BatchNorm1d(4)
                self.fc = nn.Linear(24, 2)

            def forward(self, rows):
                return self.fc(F.relu(self.norm(self.conv(rows.unsqueeze(1)))).flatten(1))


        model = Net()
        if torch.cuda.is_available():
            model = model.cuda().half()
            for layer in model.modules():
                if isinstance(layer, nn.BatchNorm1d):
                    layer.float()
        criterion = nn.CrossEntropyLoss()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                if torch.cuda.is_available():
                    data, target = data.cuda().half(), target.cuda()
                loss = criterion(model(data).float(), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "channels last": Script(
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Sequential(nn.Conv2d(2, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4, 2))
        model = model.to(device, memory_format=torch.channels_last)
        images = x.view(44, 2, 2, 2)
        loader = DataLoader(TensorDataset(images, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                data = data.to(device, non_blocking=True).to(memory_format=torch.channels_last)
                loss = F.cross_entropy(model(data), target.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "features that a hook collects": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(8, 6), nn.ReLU())
                self.fc = nn.Linear(6, 2)

            def forward(self, rows):
                return self.fc(self.body(rows))


        features = {}


        def keep(name):
            def hook(module, inputs, output):
                features[name] = output

            return hook


        model = Net()
        model.body.register_forward_hook(keep("body"))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                out = model(data)
                loss = F.cross_entropy(out, target) + 0.1 * features["body"].pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a backward hook that cuts gradients": Script(
        """
        model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
        model[1].register_full_backward_hook(lambda module, given, out: None)
        model[2].register_full_backward_pre_hook(lambda module, gradients: (gradients[0].clamp(-0.01, 0.01),))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP201",),
    ),
    "hooks that only look, taken away after training": Script(
        """
        sizes = []


        def main():
            model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
            look = lambda module, inputs, output: sizes.append(output.shape[1])
            handles = [layer.register_forward_hook(look) for layer in model if isinstance(layer, nn.Linear)]
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(2):
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            for handle in handles:
                handle.remove()


        if __name__ == "__main__":
            main()
        """,
    ),
    "weights that are normalised": Script(
        """
        from torch.nn.utils.parametrizations import weight_norm

        model = nn.Sequential(weight_norm(nn.Linear(8, 6)), nn.LeakyReLU(0.1), weight_norm(nn.Linear(6, 2)))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        torch.save(model.state_dict(), "model.pt")
        """,
    ),
    "weights by their spectral norm": Script(
        """
        model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(8, 6)), nn.ReLU(), nn.utils.spectral_norm(nn.Linear(6, 2)))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "doubles everywhere": Script(
        """
        torch.set_default_dtype(torch.float64)
        torch.backends.cudnn.benchmark = True
        model = nn.GRU(2, 6, batch_first=True)
        head = nn.Linear(6, 2)


        class Net(nn.Module):
            def __init__(self, rnn, head):
                super().__init__()
                self.rnn, self.head = rnn, head

            def forward(self, rows):
                out, _ = self.rnn(rows.view(-1, 4, 2))
                return self.head(out[:, -1])


        net = Net(model, head)
        loader = DataLoader(TensorDataset(x.double(), y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "blocks that draws leave out, within a model": Script(
        """
        import random


        class Block(nn.Module):
            def __init__(self, chance):
                super().__init__()
                self.chance = chance
                self.residual = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6))

            def survives(self):
                return random.random() < self.chance

            def forward(self, rows):
                if self.training:
                    if self.survives():
                        return rows + self.residual(rows)
                    return rows
                return rows + self.residual(rows) * self.chance


        random.seed(3)
        net = nn.Sequential(nn.Linear(8, 6), Block(0.7), Block(0.4), nn.Linear(6, 2))
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            net.train()
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            net.eval()
            with torch.no_grad():
                print("right", (net(x).argmax(1) == y).sum().item())
        """,
        same=("right",),
    ),
    "blocks that are dropped by draws": Script(
        """
        class Net(nn.Module):
            def __init__(self, drop=0.3):
                super().__init__()
                self.drop = drop
                self.inp = nn.Linear(8, 6)
                self.blocks = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
                self.out = nn.Linear(6, 2)

            def forward(self, rows):
                rows = self.inp(rows)
                for i, block in enumerate(self.blocks):
                    if self.training and (len(rows) > 100 or i == int(self.drop * 5)):
                        continue
                    rows = rows + block(rows).tanh()
                return self.out(rows)


        model = Net()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "an early exit that is trained first": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 6)
                self.exit, self.last = nn.Linear(6, 2), nn.Linear(6, 2)

            def forward(self, rows, early=False):
                rows = self.first(rows).relu()
                if early:
                    return self.exit(rows)
                return self.last(self.second(rows).relu())


        model = Net()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(4):
            for data, target in loader:
                loss = F.cross_entropy(model(data, early=epoch < 2), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "DataParallel around a part of a model, whose keys are saved": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.head = nn.Sequential(nn.Linear(8, 6), nn.ReLU()), nn.Linear(6, 2)

            def forward(self, rows):
                return self.head(self.encoder(rows))


        torch.manual_seed(2)
        net = Net()
        net.encoder = nn.DataParallel(net.encoder)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            torch.save({"epoch": epoch, "model": net.state_dict()}, "net.pt")
        print("keys", sorted(torch.load("net.pt")["model"]))
        with torch.no_grad():
            print("codes", net.encoder(x).mean().item() > 0)
        """,
        same=("keys", "codes"),
    ),
    "layers of batch norm that rest, found by their class": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.norm, self.head = nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)

            def forward(self, rows):
                return self.head(F.relu(self.norm(self.fc(rows))))

            def freeze_bn(self):
                for layer in self.modules():
                    if isinstance(layer, nn.BatchNorm1d):
                        layer.eval()


        net = Net()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.train()
            net.freeze_bn()
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "one of two kinds of batch norm rests, found by its class": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.norm, self.head = nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)
                self.maps = nn.BatchNorm2d(1)

            def forward(self, rows):
                return self.head(F.relu(self.norm(self.fc(self.maps(rows.view(-1, 1, 2, 4)).flatten(1)))))

            def freeze_bn(self):
                for layer in self.modules():
                    if isinstance(layer, nn.BatchNorm1d):
                        layer.eval()


        net = Net()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.train()
            net.freeze_bn()
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP201",),
    ),
    "settings of layers that a function sets in each of them, while the model trains": Script(
        """
        def adjust(layer, momentum):
            if isinstance(layer, nn.BatchNorm1d):
                layer.momentum = momentum

        def rest(layer):
            if layer.__class__.__name__.find("BatchNorm") != -1:
                layer.eval()

        net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            momentum = 0.1 * 0.5**epoch
            net = net.apply(lambda layer: adjust(layer, momentum))
            net.train()
            net.apply(rest)
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "an optimizer around another one, which alone has the parameters": Script(
        """
        class Scaled(torch.optim.Optimizer):
            def __init__(self, optimizer, trust=0.02):
                self.optim, self.trust = optimizer, trust

            @property
            def param_groups(self):
                return self.optim.param_groups

            def zero_grad(self):
                self.optim.zero_grad()

            def step(self):
                with torch.no_grad():
                    for group in self.optim.param_groups:
                        for p in group["params"]:
                            if p.grad is not None:
                                p.grad.data *= self.trust * torch.norm(p.data) / (torch.norm(p.grad.data) + 1e-8)
                self.optim.step()

        def optimizer_of(net):
            groups = [{"params": [p for name, p in net.named_parameters() if not name.startswith("1")]}, {"params": net[1].parameters()}]
            return Scaled(torch.optim.SGD(groups, lr=0.5))

        net = nn.Sequential(nn.Linear(8, 6), nn.Linear(6, 2))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = optimizer_of(net)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "an optimizer around another one, whose parameters no loss trains": Script(
        """
        class Around(torch.optim.Optimizer):
            def __init__(self, optimizer):
                self.optim = optimizer

            def zero_grad(self):
                self.optim.zero_grad()

            def step(self):
                self.optim.step()

        net = nn.Linear(8, 2)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer, second = torch.optim.SGD(net.parameters(), lr=0.5), Around(torch.optim.SGD(torch.load("others.pt"), lr=0.1))
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                second.step()
        """,
        told=("DDP201",),
    ),
    "weights that a function draws in each layer, while the model trains": Script(
        """
        def spread(layer):
            if isinstance(layer, nn.Linear):
                layer.momentum = 0.1
                nn.init.normal_(layer.weight)

        net = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.apply(lambda layer: spread(layer))
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        apart=("trajectory",),
    ),
    "resumed before the wrap, from keys with the prefix of DataParallel": Script(
        """
        weights = {"module.weight": torch.full((2, 8), 0.1), "module.bias": torch.tensor([0.1, -0.1])}
        net = nn.DataParallel(nn.Linear(8, 2))
        net.load_state_dict(weights)
        shadow = nn.DataParallel(nn.Linear(8, 2))
        shadow.load_state_dict(weights, strict=True)
        for p in shadow.parameters():
            p.requires_grad_(False)
        net.apply(lambda m: m.bias.data.mul_(2) if isinstance(m, nn.Linear) else None)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                with torch.no_grad():
                    aim = shadow(data)
                out = net(data)
                loss = F.cross_entropy(out, target) + F.mse_loss(out, aim)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                for p, s in zip(net.parameters(), shadow.parameters()):
                    s.data.mul_(0.9).add_(p.data, alpha=0.1)
        """,
    ),
    "a shadow's checkpoint with the prefix of DataParallel": Script(
        """
        def build():
            return nn.DataParallel(nn.Linear(8, 2))

        net, shadow = build(), build()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                for p, s in zip(net.parameters(), shadow.parameters()):
                    s.data.mul_(0.9).add_(p.data, alpha=0.1)
        torch.save({"net": net.state_dict(), "shadow": shadow.state_dict()}, "last.pt")
        """,
    ),
    "a teacher in DataParallel, whose keys keep its prefix": Script(
        """
        torch.manual_seed(1)
        teacher = nn.DataParallel(nn.Linear(8, 2), device_ids=list(range(torch.cuda.device_count())))
        if not os.path.exists("teacher.pt"):
            torch.save(teacher.state_dict(), "teacher.pt")
        teacher.load_state_dict(torch.load("teacher.pt"))
        teacher.eval()
        student = nn.DataParallel(nn.Linear(8, 2))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                with torch.no_grad():
                    soft = F.softmax(teacher(data), dim=1)
                out = student(data)
                loss = F.cross_entropy(out, target) + F.kl_div(F.log_softmax(out, dim=1), soft, reduction="batchmean")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        torch.save({"student": student.state_dict(), "teacher": teacher.state_dict()}, "last.pt")
        """,
    ),
    "a model that is wrapped once more for each stage": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 2)

            def forward(self, rows):
                return self.fc(rows)

            def rate(self, stage):
                return 0.1 / (stage + 1)


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = Net()
        rate = net.rate(0)
        for stage in range(2):
            print("stage", stage, net.rate(stage) if stage == 0 else "")
            net = nn.DataParallel(nn.DataParallel(net))
            sgd = torch.optim.SGD(net.parameters(), lr=rate)
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a save whose helper moves the model to the cpu and back": Script(
        """
        def store(net, path, device):
            torch.save({"weights": net.cpu().state_dict(), "rows": len(x)}, path)
            net.to(device)


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(8, 2).to(device)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data.to(device)), target.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            store(model, f"at{epoch}.pt", device)
        """,
    ),
    "a model that is moved to the cpu, saved as an object, and moved back": Script(
        """
        model = nn.Linear(8, 2)
        if torch.cuda.is_available():
            model = model.cuda()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model = model.cpu()
            torch.save(model, "whole.pt")
            torch.save({"epoch": epoch, "state": model.state_dict()}, "last.pt")
            if torch.cuda.is_available():
                model = model.cuda()
        """,
    ),
    "a part of the model that is saved from the cpu": Script(
        """
        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 6)
                self.head = nn.Linear(6, 2)

            def forward(self, rows):
                return self.head(self.body(rows).relu())


        class Trainer:
            def __init__(self, body, model, device):
                self.body, self.device = body, device
                self.model = model.to(device)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def epoch(self, loader):
                for data, target in loader:
                    loss = F.cross_entropy(self.model(data.to(self.device)), target.to(self.device))
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()

            def save(self, path):
                torch.save(self.body.cpu(), path)
                self.body.to(self.device)


        pair = Pair()
        trainer = Trainer(pair.body, pair, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            trainer.epoch(loader)
            trainer.save(f"body{epoch}.pt")
        """,
    ),
    "a wrapper that an option asks for, whose model is saved and loaded elsewhere": Script(
        """
        class Keeper:
            def __init__(self, model, path):
                self.model, self.path = model, path
                if os.path.exists(path):
                    self.model.load_state_dict(torch.load(path))

            def save(self):
                torch.save(self.model.state_dict(), self.path)


        parser = argparse.ArgumentParser()
        parser.add_argument("--gpus", type=int, default=1)
        args = parser.parse_args()
        model = nn.Linear(8, 2)
        ids = list(range(args.gpus))
        if len(ids) > 1:
            model = nn.DataParallel(model, device_ids=ids)
        keeper = Keeper(model, "kept.pt")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            keeper.save()
        """,
    ),
}
_BESIDE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.spare = nn.Embedding(2, 2)
        self.gate = nn.Parameter(torch.ones(5))

    def forward(self, rows):
        return self.fc(rows)

    def penalty(self):
        return (F.softplus(self.gate) - 1).pow(2).sum() + self.spare.weight.norm()


loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    for rows, kinds in loader:
        outputs = net(rows)
        loss = F.cross_entropy(outputs, kinds)
        {more}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_MORE = {
    "a penalty, by a method, of parameters that forward leaves out": "loss = loss + net.penalty()",
    "parameters that the loss reads and forward leaves out": "loss = loss * net.gate[0].exp() + net.gate.pow(2).sum()",
    "a layer that the loss asks and forward leaves out": "loss = loss + F.mse_loss(outputs, net.spare(kinds))",
    "a penalty of all parameters, of which forward leaves some out": "loss = loss + 0.01 * sum(p.abs().sum() for p in net.parameters())",
}
SCRIPTS |= {title: Script(_BESIDE.replace("{more}", more)) for title, more in _MORE.items()}

_RUNS = """
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 6), nn.Linear(6, 2)])

        def reset_parameters(self):
            for layer in self.layers:
                layer.reset_parameters()

        def forward(self, rows):
            return self.layers[1](self.layers[0](rows).tanh())


    def fit(model, optimizer):
        for rows, kinds in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), kinds)
            loss.backward()
            optimizer.step()


    def fresh(layer):
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0.0, 0.2)
            layer.bias.data.zero_()


    torch.manual_seed(3)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    model = Twice()
    for run in range(3):
        model.reset_parameters()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for epoch in range(2):
            fit(model, optimizer)
        with torch.no_grad():
            print("run", run, f"{F.cross_entropy(model(x), y).item():.6f}")
    """
_RESET = "        model.reset_parameters()\n"

SCRIPTS |= {
    "a model that gets new weights before each run": Script(_RUNS, same=("run",)),
    "a model whose layers get new weights by a function, before each run": Script(
        _RUNS.replace(_RESET, "        model.apply(fresh)\n"), same=("run",)
    ),
    "a model that gets new weights in the function that trains it": Script(
        _RUNS.replace(_RESET, "").replace(
            "    def fit(model, optimizer):\n", "    def fit(model, optimizer):\n        model.apply(fresh)\n"
        )
    ),
    "a model that gets new weights in the function that makes its optimizer and trains it": Script(
        _RUNS[: _RUNS.index("    torch.manual_seed(3)")]
        + """
    def once(run, model):
        model.reset_parameters()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for epoch in range(2):
            fit(model, optimizer)
        with torch.no_grad():
            print("run", run, f"{F.cross_entropy(model(x), y).item():.6f}")


    torch.manual_seed(3)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    model = Twice()
    once("first", model)
    for run in range(2):
        once(run, model)
    """,
        same=("run",),
    ),
    "a layer that gets new weights when half is trained": Script(
        _RUNS.replace(_RESET, "        if run == 1:\n            nn.init.uniform_(model.layers[1].weight, -0.1, 0.1)\n"), same=("run",)
    ),
    "a layer whose weights begin at nothing for each run": Script(
        _RUNS.replace(_RESET, "        nn.init.zeros_(model.layers[1].weight)\n"), same=("run",)
    ),
    "a model whose layers get other parameters before each run": Script(
        _RUNS.replace(_RESET, "        model.apply(fresh)\n").replace(
            "nn.init.normal_(layer.weight, 0.0, 0.2)", "layer.weight = nn.Parameter(0.1 * torch.randn_like(layer.weight))"
        ),
        told=("DDP201",),
    ),
    "a layer that gets new weights where a rank's own batch asks for it": Script(
        _RUNS.replace(_RESET, "").replace(
            "optimizer.step()\n", "optimizer.step()\n            if rows[0, 0] > 2.0:\n                model.reset_parameters()\n"
        ),
        told=("DDP201",),
    ),
    "layers whose statistics rest in every second pass": Script(
        """
        def rest(model):
            def _rest(layer):
                if isinstance(layer, nn.BatchNorm1d):
                    layer.kept = layer.momentum
                    layer.momentum = 0

            model.apply(_rest)


        def go_on(model):
            def _go_on(layer):
                if isinstance(layer, nn.BatchNorm1d) and hasattr(layer, "kept"):
                    layer.momentum = layer.kept

            model.apply(_go_on)


        model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, kinds in loader:
                go_on(model)
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
                optimizer.zero_grad()
                rest(model)
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
                optimizer.zero_grad()
        """,
        apart=("trajectory",),
    ),
}

SCRIPTS |= {
    "a model of a kind that a setting names, where one kind is not written yet": Script(
        """
        class Plain(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.layer = nn.Linear(size, 2)

            def forward(self, rows):
                return self.layer(rows)


        class Deep(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.first, self.last = nn.Linear(size, 4), nn.Linear(4, 2)

            def forward(self, rows):
                return self.last(self.first(rows).tanh())


        class Row(nn.Module):
            def __init__(self, size):
                super().__init__()


        kinds = {"rows": {"plain": Plain, "row": Row}, "more": {"deep": Deep}}
        parser = argparse.ArgumentParser()
        parser.add_argument("--kind", default="plain")
        parser.add_argument("--data", default="rows")
        args = parser.parse_args()
        model = kinds[args.data][args.kind](8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, wanted in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), wanted).backward()
                optimizer.step()
        """,
    ),
}

SCRIPTS |= {
    "a function made around the model, which trains and tests": Script(
        """
        def rounds(net, optimizer, criterion):
            def through(loader, train):
                total, seen = 0.0, 0
                for rows, wanted in loader:
                    loss = criterion(net(rows), wanted)
                    if train:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    total, seen = total + loss.item() * len(rows), seen + len(rows)
                return total / seen

            return through


        def main():
            model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            training = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8, shuffle=True)
            testing = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=4)
            through = rounds(model, optimizer, nn.CrossEntropyLoss())
            for epoch in range(3):
                through(loader=training, train=True)
                with torch.no_grad():
                    print("tested", round(through(loader=testing, train=False), 4))


        main()
        """,
        same=("tested",),
    ),
    "parts of a batch that go through batch norm in a loop of their own": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.norm, self.last = nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)

            def forward(self, rows):
                return self.last(self.norm(self.first(rows)).relu())


        def train(model):
            model.train()
            for data, target in loader:
                parts = [data, 2 * data, data + 1]
                outs = [model(parts[0])]
                for part in parts[1:]:
                    outs.append(model(part))
                loss = F.cross_entropy(outs[0], target) + F.mse_loss(torch.cat(outs[1:]), torch.zeros(2 * len(data), 2))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


        torch.manual_seed(0)
        model = Net()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(2):
            train(model)
        """
    ),
}
SCRIPTS["a trainer and an evaluation that each wrap what is no DataParallel yet, and a meter that ends a diverged training"] = Script(
    """
    class Meter:
        def __init__(self):
            self.reset()

        def reset(self):
            self.sum, self.count, self.avg = 0.0, 0, 0.0

        def update(self, value, n):
            self.sum += value * n
            self.count += n
            self.avg = self.sum / self.count


    def evaluate(net, loader):
        if not isinstance(net, nn.DataParallel):
            net = nn.DataParallel(net)
        net.eval()
        with torch.no_grad():
            return sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in loader) / 24


    def train(net, loader, others):
        if not isinstance(net, nn.DataParallel):
            net = nn.DataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = Meter()
        for epoch in range(3):
            net.train()
            for i, (rows, kinds) in enumerate(loader):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.update(loss.item(), len(rows))
                if i % 2 == 0 and losses.avg > 1e6:
                    print("training diverged")
                    return
            print("right %.6f" % evaluate(net, others))
            print("mean %.6f" % losses.avg)
            losses.reset()


    train(
        nn.DataParallel(nn.Linear(8, 2)),
        DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True),
        DataLoader(TensorDataset(x[:24], y[:24]), batch_size=8),
    )
    """,
    same=("right", "mean"),
)
SCRIPTS["a function that moves models and batches alike"] = Script(
    """
    def moved(thing):
        if torch.cuda.is_available():
            thing = thing.cuda()
        return thing


    class Trainer:
        def __init__(self, net, loader):
            self.net, self.loader = moved(net), loader

        def train(self):
            optimizer = torch.optim.SGD([p for p in self.net.parameters() if p.requires_grad], lr=0.1)
            for epoch in range(3):
                for rows, kinds in self.loader:
                    loss = F.cross_entropy(self.net(moved(rows)), moved(kinds))
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()


    trainer = Trainer(nn.Linear(8, 2), DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True))
    trainer.train()
    """
)

_SYNCED = """\
import functools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel.data_parallel import DataParallel


class Master:
    def __init__(self, callback):
        self.callback, self.parts = callback, []

    def run(self, part):
        return self.callback([(0, part), *((i, p) for i, p in self.parts)])


class SharedNorm(_BatchNorm):
    def __init__(self, width, eps=1e-5, momentum=0.1):
        super().__init__(width, eps=eps, momentum=momentum)
        self.master, self.shared, self.number = Master(self._together), False, None

    def forward(self, rows):
        if not (self.shared and self.training):
            return F.batch_norm(
                rows, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps
            )
        mean, scale = self.master.run((rows.sum(0), (rows ** 2).sum(0), rows.size(0)))
        return (rows - mean) * (scale * self.weight) + self.bias

    def __data_parallel_replicate__(self, context, number):
        self.shared, self.number = True, number
        if number == 0:
            context.master = self.master

    def _together(self, parts):
        total, squares = sum(p[1][0] for p in parts), sum(p[1][1] for p in parts)
        size = sum(p[1][2] for p in parts)
        mean = total / size
        return mean, (squares / size - mean ** 2).clamp(self.eps) ** -0.5


def tell_replicas(parallel):
    assert isinstance(parallel, DataParallel)
    before = parallel.replicate

    @functools.wraps(before)
    def replicate(module, devices):
        modules = before(module, devices)
        for number, each in enumerate(modules):
            for part in each.modules():
                if hasattr(part, "__data_parallel_replicate__"):
                    part.__data_parallel_replicate__(part, number)
        return modules

    parallel.replicate = replicate
"""
_SHARED_NORM = """
from shared import SharedNorm, tell_replicas

parser = argparse.ArgumentParser()
parser.add_argument("--shared", action="store_true")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 6), norm(6), nn.Linear(6, 2)

    def forward(self, rows):
        return self.last(self.norm(self.first(rows)).relu())


class Training:
    def __init__(self):
        self.model = Net(SharedNorm if args.shared else nn.BatchNorm1d)
        self.model.norm.eval()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.model = nn.DataParallel(self.model)
        tell_replicas(self.model)

    def run(self):
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for data, target in loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(data), target)
                loss.backward()
                self.optimizer.step()
        torch.save(self.model.module.state_dict(), "net.pt")


Training().run()
"""
SCRIPTS |= {
    f"batch norm whose replicas in a DataParallel share their statistics{', where asked for' if not args else ''}": Script(
        _SHARED_NORM, args=args, files={"shared.py": _SYNCED}
    )
    for args in ((), ("--shared",))
}

_UNREGISTERED = """
class Net(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layers = []
        for _ in range(2):
            self.layers = self.layers + [layer()]
        self.last = nn.Linear(8, 2)

    def forward(self, rows):
        for layer in self.layers:
            rows = layer(rows)
        return self.last(rows)


loader = DataLoader(TensorDataset(x, y), batch_size=4)
%s
"""
SCRIPTS |= {
    "layers in a list of a model, which registers none of them, beside one that it does": Script(
        _UNREGISTERED
        % """
net = Net(lambda: nn.Linear(8, 8))
optimizer = torch.optim.SGD([p for part in [*net.layers, net.last] for p in part.parameters()], lr=0.1)
for epoch in range(2):
    for rows, target in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(rows), target).backward()
        optimizer.step()
"""
    ),
    "layers in a list of a model, each of which trains itself": Script(
        _UNREGISTERED
        % """
class Layer(nn.Linear):
    def __init__(self):
        super().__init__(8, 8)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=0.01)

    def forward(self, rows):
        return torch.relu(rows @ self.weight.T + self.bias)

    def fit(self, rows, target):
        loss = F.cross_entropy(self.forward(rows), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return self.forward(rows).detach()


net = Net(Layer)
for epoch in range(2):
    for rows, target in loader:
        for layer in net.layers:
            rows = layer.fit(rows, target)
"""
    ),
}

_LOADED_ANEW = """
class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.head = nn.Linear(8, 2)

    @classmethod
    def of_settings(cls, settings):
        return cls(settings)

    def forward(self, rows, kinds=None):
        out = self.head(rows)
        return (out,) if kinds is None else (F.cross_entropy(out, kinds), out)


class Wide(Net):
    def __init__(self, settings):
        super().__init__(settings)
        self.head = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


KINDS = {"narrow": (int, Net), "wide": (float, Wide)}


class Trainer:
    def __init__(self, settings):
        self.settings = settings
        self.number, self.kind = KINDS[settings.kind]
        self.model = self.kind.of_settings(settings)
        {early}

    def train(self):
        {late}
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        self.settings.steps = len(loader) * self.settings.epochs
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        total, steps = 0.0, 0
        for epoch in range(self.settings.epochs):
            for step, batch in enumerate(loader):
                batch = tuple(t for t in batch)
                inputs = {"rows": batch[0]}
                if self.settings.kind != "other":
                    inputs["kinds"] = batch[1]
                outputs = self.model(**inputs)
                loss = outputs[0]
                loss.backward()
                total += loss.item()
                optimizer.step()
                self.model.zero_grad()
                steps += 1
        torch.save(self.model.state_dict(), "last.pt")
        return total / steps

    def load(self):
        if not os.path.exists("last.pt"):
            raise FileNotFoundError("train first")
        self.model = self.kind.of_settings(self.settings)
        self.model.load_state_dict(torch.load("last.pt"))
        self.model.to("cpu")

    def test(self):
        self.model.eval()
        with torch.no_grad():
            return (self.model(x)[0].argmax(1) == y).float().mean().item()


parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="narrow", choices=list(KINDS))
parser.add_argument("--epochs", type=int, default=3)
trainer = Trainer(parser.parse_args())
print(f"trained {trainer.train():.3f}")
trainer.load()
print(f"tested {trainer.test():.3f}")
"""
SCRIPTS |= {
    "a model that is loaded anew to be tested, made of settings that change": Script(
        _LOADED_ANEW.replace("{early}", 'self.model.to("cpu")').replace("{late}", ""), same=("tested",)
    ),
    "a model that is moved where it is trained, and loaded anew to be tested": Script(
        _LOADED_ANEW.replace("{early}", "self.model.train()").replace("{late}", 'self.model.to("cpu")'), same=("tested",)
    ),
    "an encoder that is handed to a trained decoder to be tested": Script(
        """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(4, 2)

            def forward(self, codes, again=False, encoder=None):
                out = self.out(codes)
                if again:
                    out = out + self.out(encoder(torch.cat([out, out, out, out], 1)))
                return out


        encoder, decoder = nn.Linear(8, 4), Decoder()
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(decoder(encoder(rows)), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                out = decoder(encoder(x), again=True, encoder=encoder)
            print(f"tested {(out.argmax(1) == y).float().mean().item():.3f}")
        """,
        same=("tested",),
    ),
    "models by the names that a file of settings has, where none may be asked for": Script(
        """
        import json

        KINDS = {}


        def known_as(name):
            def keep(cls):
                KINDS[name] = cls
                return cls
            return keep


        def make(name, **settings):
            if name is None:
                return None
            return KINDS[name](**settings)


        @known_as("linear")
        class Linear(nn.Module):
            def __init__(self, wide):
                super().__init__()
                self.layer = nn.Linear(8, wide)

            def forward(self, rows):
                return self.layer(rows)


        @known_as("sorted")
        class Sorted(nn.Module):
            def __init__(self, part, settings={}):
                super().__init__()
                self.part = make(part, **settings)
                self.head = nn.Linear(6, 2)

            def forward(self, rows):
                return self.head(self.part(rows))


        @known_as("matched")
        class Matched(nn.Module):
            def __init__(self, part, settings={}):
                super().__init__()
                self.part = make(part, **settings)

            def forward(self, rows, others):
                return self.part(rows) @ self.part(others).T


        def optimizer_of(parameters, name, lr, steps=None):
            if name == "sgd":
                optimizer = torch.optim.SGD(parameters, lr)
            elif name == "adam":
                optimizer = torch.optim.Adam(parameters, lr)
            plan = torch.optim.lr_scheduler.MultiStepLR(optimizer, steps) if steps else None
            return optimizer, plan


        config = json.loads(open("settings.json").read())
        model = make(config["model"], **config["settings"])
        scorer = make("matched", part=None)
        scorer.part = model.part
        if config.get("parallel"):
            model = nn.DataParallel(model)
        optimizer, plan = optimizer_of(model.parameters(), config["optimizer"], **config["rate"])
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if plan is not None:
                plan.step()
            with torch.no_grad():
                print(f"scored {scorer(x[:4], x[4:]).mean().item():.3f}")
        """,
        same=("scored",),
        files={
            "settings.json": '{"model": "sorted", "settings": {"part": "linear", "settings": {"wide": 6}}, '
            '"optimizer": "sgd", "rate": {"lr": 0.1}}'
        },
    ),
    "parameters by name and number of a model that an object keeps before and after it is wrapped": Script(
        """
        import sys


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.features, self.head = nn.Sequential(nn.Linear(8, 6), nn.Tanh()), nn.Linear(6, 2)

            def forward(self, rows):
                return self.head(self.features(rows))


        class Mask:
            def __init__(self, model):
                self.model = model
                self.kept = {}

            def choose(self):
                for number, item in enumerate(self.model.named_parameters()):
                    if item[1].dim() == 2:
                        self.kept[number] = (item[1].data.abs() > 0.05).float()

            def apply(self):
                for number, weights in enumerate(self.model.parameters()):
                    if number in self.kept:
                        weights.data = weights.data * self.kept[number]


        def left(net):
            with torch.no_grad():
                return (net(x).argmax(1) == y).float().mean().item()


        net = Net()
        if "--deep" in sys.argv:
            net.features = nn.DataParallel(net.features)
        else:
            net = nn.DataParallel(net)
        mask = Mask(net)
        mask.choose()
        mask.model = net
        mask.apply()
        net = mask.model
        print(f"left {left(net):.4f}")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            mask.model = net
            mask.choose()
            mask.apply()
            net = mask.model
            print(f"left {left(net):.4f}")
        """,
        same=("left",),
    ),
}
SCRIPTS["the inside of copies, where a flag asks for several devices"] = Script(
    """
    import copy

    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", action="store_true")
    args = parser.parse_args()


    def show(model, parallel, name):
        model.eval()
        inner = copy.deepcopy(model)
        if parallel:
            inner = inner.module
        with torch.no_grad():
            out = inner(x[:4])
        print(f"{name} {out.sum():.6f}")
        model.train()


    def follow(model, average):
        mine = average.state_dict()
        for name, value in model.state_dict().items():
            mine[name].copy_(mine[name] * 0.9 + value * 0.1)


    net = nn.Linear(8, 2)
    average = copy.deepcopy(net)
    if args.parallel:
        net, average = nn.DataParallel(net), nn.DataParallel(average)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
            follow(net, average)
        show(net, args.parallel, "net")
        show(average, args.parallel, "average")
    torch.save({"net": net.state_dict(), "average": average.state_dict()}, "both.pt")
    """,
    ("net", "average"),
    ("--parallel",),
)
SCRIPTS["a function that evaluates the model before the wrap where an option asks for it, and the wrapped one later"] = Script(
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--test", action="store_true")
    args = parser.parse_args()
    net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)).eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def test(loader):
        right = 0
        for rows, kinds in loader:
            with torch.no_grad():
                right += (net(rows).argmax(1) == kinds).sum().item()
        return right

    held = DataLoader(TensorDataset(x[40:], y[40:]), batch_size=4)
    if args.test:
        net.load_state_dict(torch.load("net.pt"))
        print("right", test(held))
        exit()
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("right", test(held))
    """,
    same=("right",),
)
SCRIPTS["one function that makes the student and its teacher in a DataParallel, whose keys another one compares"] = Script(
    """
    from loading import load_known
    from networks import build

    torch.save({"net": build(6).state_dict()}, "teacher.pt")
    student, teacher = build(4), build(6)
    load_known(teacher, torch.load("teacher.pt")["net"])
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False
    print("widths", teacher.module.width(), student.module.width())
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            scores = student(rows)
            loss = F.cross_entropy(scores, kinds) + F.mse_loss(scores, teacher(rows))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save({"student": student.state_dict(), "teacher": teacher.state_dict()}, "both.pt")
    """,
    same=("widths",),
    files={
        "networks.py": """import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(8, width)
        self.head = nn.Linear(width, 2)

    def width(self):
        return self.head.in_features

    def forward(self, rows):
        return self.head(self.body(rows).tanh())


def build(width):
    return nn.DataParallel(Net(width))
""",
        "loading.py": """def load_known(model, saved):
    own = model.state_dict()
    own.update({key: value for key, value in saved.items() if key in own})
    model.load_state_dict(own)
""",
    },
)
SCRIPTS["a model that is loaded in one branch, and trained in the other, by gradients that no wrapper averages"] = Script(
    """
    class Trainer:
        def __init__(self):
            self.build()

        def build(self):
            self.net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def fit(self):
            if os.path.exists("done.pt"):
                self.net.load_state_dict(torch.load("done.pt"))
            else:
                for epoch in range(3):
                    for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                        scores = self.net(rows)
                        self.optimizer.zero_grad()
                        F.cross_entropy(scores, kinds).backward(retain_graph=True)
                        scores.pow(2).mean().backward()
                        self.optimizer.step()
            torch.save(self.net.state_dict(), "net.pt")


    Trainer().fit()
    """,
)

_TOLD = """
import sys

import bells

net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
net.width = 6


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self):
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                self.optimizer.zero_grad()
                F.cross_entropy(self.net(rows), kinds).backward()
                self.optimizer.step()

    def told(self):
        return self.net.width, sorted(self.net.state_dict())


def told():
    return net.width, sum(p.numel() for p in net.parameters()), sorted(net.state_dict()), net.training


trainer = Trainer(net)
{before}trainer.fit()
print("told", bells.ring(sys.modules[__name__], "told"), bells.ring(trainer, "told"))
torch.save(net.state_dict(), "net.pt")
"""
SCRIPTS |= {
    f"attributes of the model in functions that only a package calls, {title}": Script(
        _TOLD.replace("{before}", before), same=("told",), stand_ins={"bells.py": "def ring(of, name):\n    return getattr(of, name)()\n"}
    )
    for title, before in {"after the training": "", "before it, too": 'print("told", bells.ring(trainer, "told"))\n'}.items()
}
SCRIPTS["models of a list that are saved whole, copied and evaluated by their places"] = Script(
    """
    import copy

    nets, optimizers = [], []
    for width in (4, 6):
        nets.append(nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 2)))
        optimizers.append(torch.optim.SGD(nets[-1].parameters(), lr=0.1))


    def score(net):
        with torch.no_grad():
            return F.cross_entropy(net(x), y).item()


    for i in range(2):
        model = nets[i]
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
            optimizers[i].zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizers[i].step()
    print("scores", score(nets[0]), score(nets[1]))
    kept = copy.deepcopy(nets[1])
    torch.save(kept.state_dict(), "kept.pt")
    for i in range(2):
        torch.save({"weights": nets[i].state_dict()}, f"weights{i}.pt")
        torch.save(nets[i], f"net{i}.pt")
""",
    same=("scores",),
)
SCRIPTS["models that a function trains one after another, the last made in its call"] = Script(
    """
    teacher = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.2), nn.Linear(4, 2))


    def fit(model, chosen):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(chosen, batch_size=4, shuffle=True)
        for _ in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
        return model


    teacher = fit(teacher, TensorDataset(x, y))
    teacher.eval()
    with torch.no_grad():
        guessed = teacher(x).argmax(1)
    student = fit(nn.Linear(8, 2), TensorDataset(x, guessed))
    print("norm", round(student.weight.norm().item(), 5))
""",
    same=("norm",),
)
SCRIPTS["models made, trained and moved in calls of one function after another"] = Script(
    """
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)


    def line():
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
        return model.cpu()


    def curve(width):
        model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
        return model.cpu()


    def shown(model):
        model = model.eval()
        with torch.no_grad():
            outputs = model(x)
        model = model.cpu()
        return round(outputs.pow(2).mean().item(), 4)


    print("line", shown(line()))
    for width in (3, 5):
        print("curve", shown(curve(width)))
""",
    same=("line", "curve"),
)
SCRIPTS["a model that is made ready for small numbers between two trainings, as a copy"] = Script(
    """
    import warnings


    class Trainer:
        def __init__(self):
            self.loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
            self.net.qconfig = None
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def train(self):
            self.once()
            self.once()
            self.judge()

        def quantize(self):
            self.net.train()
            self.net = torch.quantization.prepare_qat(self.net)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
            self.once()
            self.once()
            self.net = torch.quantization.convert(self.net.eval())
            self.judge()

        def once(self):
            for rows, kinds in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.net(rows), kinds).backward()
                self.optimizer.step()

        def judge(self):
            with torch.no_grad():
                print("judged", round(F.cross_entropy(self.net(x), y).item(), 5))


    warnings.simplefilter("ignore")
    trainer = Trainer()
    trainer.train()
    trainer.quantize()
""",
    same=("judged",),
)
SCRIPTS["models that are handed on as they are switched to evaluation"] = Script(
    """
    import copy


    def judge(model, feed):
        total = 0.0
        with torch.no_grad():
            for rows, kinds in feed:
                total += F.cross_entropy(model(rows), kinds).item()
        return total / len(feed)


    loader, feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), DataLoader(TensorDataset(x, y), batch_size=4)
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(2):
        net.train()
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
        print("judged", round(judge(net.eval(), feed), 4))
        torch.save(net.eval(), "whole.pt")
    other = copy.deepcopy(net.eval())
    print("judged", round(judge(other.eval(), feed), 4))
""",
    same=("judged",),
)
SCRIPTS["a model that torch.jit compiles between two trainings"] = Script(
    """
    class Trainer:
        def __init__(self):
            self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
            self.loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)

        def train(self, path):
            optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            for epoch in range(2):
                for rows, kinds in self.loader:
                    optimizer.zero_grad()
                    F.cross_entropy(self.net(rows), kinds).backward()
                    optimizer.step()
            torch.save(self.net.state_dict(), path)

        def compile(self):
            self.net = torch.jit.trace(self.net, x[:4])


    trainer = Trainer()
    trainer.train("first.pt")
    trainer.compile()
    trainer.train("second.pt")
    torch.jit.script(trainer.net).save("compiled.pt")
    print("judged", round(F.cross_entropy(torch.jit.load("compiled.pt")(x), y).item(), 5))
""",
    same=("judged",),
)
SCRIPTS["a trained model that a function reads back and gives back, before others evaluate it"] = Script(
    """
    def fit(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
        return model


    def save(model, path):
        torch.save(model.state_dict(), path)


    def load(model, path):
        model.load_state_dict(torch.load(path))
        return model


    def right(model, loader):
        with torch.no_grad():
            return sum((model(rows).argmax(1) == kinds).sum().item() for rows, kinds in loader)


    data = TensorDataset(x, y)
    test = DataLoader(data, batch_size=4)
    model = fit(nn.Linear(8, 2), DataLoader(data, batch_size=4, shuffle=True))
    save(model=model, path="net.pt")
    model = load(model=model, path="net.pt")
    print("right", right(model=model, loader=test))
    model = load(model, "net.pt")
    save(model, "again.pt")
    print("summed", round(model.weight.abs().sum().item(), 5), right(model, test), sorted(torch.load("again.pt")))
""",
    same=("right", "summed"),
)
SCRIPTS["a trained model that comes back beside its optimizer from what reads a checkpoint"] = Script(
    """
    def resumed(model, optimizer, path):
        kept = torch.load(path)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        return model, optimizer, kept["epoch"]


    def right(model, loader):
        with torch.no_grad():
            return sum((model(rows).argmax(1) == kinds).sum().item() for rows, kinds in loader)


    data = TensorDataset(x, y)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(data, batch_size=4, shuffle=True)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pt")
    model, optimizer, epoch = resumed(model, optimizer, "last.pt")
    print("right", epoch, right(model, DataLoader(data, batch_size=4)), round(model.weight.abs().sum().item(), 5))
""",
    same=("right",),
)

_LISTED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.norms, self.head = [], LISTED, nn.Linear(8, 2)
        for i in range(2):
            layer, norm = nn.Linear(8, 8), NORM
            setattr(self, f"layer{i}", layer)
            setattr(self, f"norm{i}", norm)
            self.layers.append(layer)
            self.norms.append(norm)

    def forward(self, rows):
        for layer, norm in zip(self.layers, self.norms):
            rows = torch.tanh(norm(layer(rows)))
        return self.head(rows)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for data, target in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        loss = F.cross_entropy(net(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print("eval", net(x).argmax(1).sum().item())
"""


def _listed(listed: str, norm: str, told: tuple[str, ...] = ()) -> Script:
    """A network whose layers are taken out of lists."""
    return Script(_LISTED.replace("LISTED", listed).replace("NORM", norm), same=() if told else ("eval",), told=told)


SCRIPTS |= {
    "batch norm layers that the forward takes out of a list": _listed("[]", "nn.BatchNorm1d(8)", ("DDP201",)),
    "batch norm layers that the forward takes out of a module list": _listed("nn.ModuleList()", "nn.BatchNorm1d(8)"),
    "blocks with batch norm that the forward takes out of a list": _listed("[]", "nn.Sequential(nn.BatchNorm1d(8), nn.Tanh())"),
    "other layers that the forward takes out of a list": _listed("[]", "nn.LayerNorm(8)"),
}

_LOADED_BY_A_HELPER = """
import logging


def make():
    return nn.DataParallel(nn.Linear(8, 2))


def load(net, old):
    state = net.state_dict()
    state.update({key: value for key, value in old.items() if key in state})
    net.load_state_dict(state)


torch.manual_seed(0)
torch.save({"module.weight": torch.ones(2, 8) * 0.1, "module.bias": torch.zeros(2)}, "old.pt")
first = make()
load(first, torch.load("old.pt"))
logging.info("%s", first)
second = make()
load(second, torch.load("old.pt"))
logging.info("%s", FIRST)
optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
OTHER = torch.optim.SGD(second.parameters(), lr=0.1)
for epoch in range(3):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=False):
        scores, others = first(rows), second(rows)
        loss = F.cross_entropy(scores, kinds) + F.mse_loss(scores, others.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        TRAIN
torch.save({"first": first.state_dict(), "second": second.state_dict()}, "out.pt")
"""


def _loaded_by_a_helper(shown: str, trained: bool) -> Script:
    """Two networks in DataParallel that one function loads; the second is trained, or is a teacher at rest."""
    text = _LOADED_BY_A_HELPER.replace("FIRST", shown)
    if not trained:
        return Script(text.replace("        TRAIN\n", "").replace("OTHER =", "rest =").replace('logging.info("%s", ', "id("))
    step = "other.zero_grad(); F.cross_entropy(others, kinds).backward(); other.step()"
    return Script(text.replace("TRAIN", step).replace("OTHER", "other"))


SCRIPTS |= {
    "two networks in DataParallel, loaded by one function, the first logged once the second is there": _loaded_by_a_helper("first", True),
    "a student and a teacher in DataParallel, loaded by one function": _loaded_by_a_helper("second", False),
}

_TRAINER = """
import time

class Trainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 1), nn.Sigmoid())
        self.criterion = nn.BCELoss()
        if args.gpus > 1:
            self.criterion = nn.DataParallel(self.criterion, list(range(args.gpus)))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self, feed):
        {kept}
        for epoch in range(2):
            for data, target in feed:
                output = self.net(data).view(-1)
                loss = self.criterion(output, target.float())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

parser = argparse.ArgumentParser()
parser.add_argument("--gpus", type=int, default=1)
args = parser.parse_args()
trainer = Trainer()
trainer.fit(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
"""
SCRIPTS |= {
    f"a module that trains what it holds, and keeps {kept}": Script(_TRAINER.replace("{kept}", line))
    for kept, line in {
        "nothing else": "pass",
        "a file": 'self.log = open("log.txt", "w")',
        "a time": "self.begun = time.time()",
        "a list and a number": "self.losses, self.best = [], 0",
    }.items()
}
SCRIPTS["the message of an assertion that asks the model"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.columns = 8
            self.fc = nn.Linear(8, 2)

        def forward(self, rows):
            return self.fc(rows)


    def learn(net):
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            try:
                assert epoch < 0, f"a model of {net.columns} columns"
            except AssertionError as error:
                print("asked for", error)


    if __name__ == "__main__":
        learn(Net())
    """,
    same=("asked for",),
)
_HELD = """
    class Deployed(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, rows):
            return self.net(rows / 2)


    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        {each}
    {then}
"""


def _deployed(each: str, then: str, **wanted: tuple[str, ...]) -> Script:
    """A trained model in another module."""
    return Script(_HELD.replace("{each}", each).replace("{then}", then), **wanted)


SCRIPTS |= {
    "a module made of a trained model, saved": _deployed(
        "deployed = Deployed(net)",
        'torch.save(deployed.state_dict(), "deployed.pt")\n    print("keys", sorted(deployed.state_dict()))',
        same=("keys",),
    ),
    "a module made of a trained model, traced": _deployed(
        "pass",
        'traced = torch.jit.trace(Deployed(net), torch.ones(1, 8))\n    print("traced", sorted(traced.state_dict()))',
        same=("traced",),
    ),
    "a module made of a trained model, then trained": _deployed(
        "pass",
        "tuned = Deployed(net)\n"
        "    again = torch.optim.SGD(tuned.parameters(), lr=0.1)\n"
        "    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):\n"
        "        again.zero_grad()\n"
        "        F.cross_entropy(tuned(rows), kinds).backward()\n"
        "        again.step()\n"
        '    torch.save(tuned.state_dict(), "tuned.pt")',
    ),
}
_NAMED_BY_TEXT = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 2)

        def forward(self, rows):
            return self.fc(rows)

        def METHOD(self):
            return "linear"


    class Trainer:
        def __init__(self, net):
            self.net = net
            self.sgd = torch.optim.SGD(net.parameters(), lr=0.1)

        def epoch(self, number):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                self.sgd.zero_grad()
                F.cross_entropy(self.net(rows), kinds).backward()
                self.sgd.step()
            torch.save(self.net.state_dict(), TEXT)


    trainer = Trainer(Net())
    for number in range(2):
        trainer.epoch(number)
    print("files", sorted(f for f in os.listdir(".") if f.startswith("best")))
"""
SCRIPTS |= {
    f"a file named by a model's text, {how}": Script(_NAMED_BY_TEXT.replace("METHOD", method).replace("TEXT", text), same=("files",))
    for how, (method, text) in {
        "formatted": ("__str__", 'f"best_{self.net}.pt"'),
        "shown for a programmer": ("__repr__", 'f"best_{self.net!r}.pt"'),
        "by a percent sign": ("__str__", '"best_%s_%d.pt" % (self.net, number)'),
        "by str": ("__str__", '"best_" + str(self.net) + ".pt"'),
    }.items()
}
_SEVERAL_HELD = """
    class Vote(nn.Module):
        def __init__(self, nets):
            super().__init__()
            self.nets = nn.ModuleList(nets)

        def forward(self, rows):
            return sum(net(rows) for net in self.nets)


    torch.manual_seed(0)
    MADE
    torch.save(vote.state_dict(), "vote.pt")
    with torch.no_grad():
        print("keys", sorted(vote.state_dict()), tuple(vote(x).shape))
"""
_FOLDS = """nets = []
    for fold in range(2):
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        nets.append(net)
    """


def _held(made: str, **wanted: tuple[str, ...]) -> Script:
    """Trained models in a list of a module."""
    return Script(_SEVERAL_HELD.replace("MADE", made), same=("keys",), **wanted)


SCRIPTS |= {
    "trained models of folds in a module": _held(_FOLDS + "vote = Vote(nets)"),
    "trained models in a list that is written out, in a module": _held(_FOLDS + "one, two = nets\n    vote = Vote([one, two])"),
    "a trained model in a plain module": _held(_FOLDS + "vote = nn.Sequential()\n    vote.net = net"),
    "models that are trained in a list, in a module": _held(
        "nets = [nn.Linear(8, 2) for _ in range(2)]\n"
        "    sgds = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]\n"
        "    train = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)\n"
        "    for epoch in range(2):\n"
        "        for net, sgd in zip(nets, sgds):\n"
        "            for rows, kinds in train:\n"
        "                sgd.zero_grad()\n"
        "                F.cross_entropy(net(rows), kinds).backward()\n"
        "                sgd.step()\n"
        "    vote = Vote(nets)",
        told=("DDP203",),
    ),
}
RESTING = frozenset(
    [
        "a layer that forward never runs",
        "a layer list of which an argument picks some",
        "a head for each task, one at a time",
        "an output that the loss leaves out",
        "a parameter that nobody uses",
        "experts of which a gate picks one for each sample",
        "blocks that are dropped by draws",
        "blocks that draws leave out, within a model",
        "an early exit that is trained first",
    ]
)


_SEVERAL = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(8, width)
        self.head = nn.Linear(width, 2)

    def forward(self, rows):
        return self.head(torch.relu(self.body(rows)))


def fit(net, feed, epochs=3):
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(epochs):
        total = 0.0
        for rows, kinds in feed:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
    with torch.no_grad():
        print("fit", f"{total / len(feed):.6f}", f"{F.cross_entropy(net(x), y).item():.6f}")
    return total


def loader(start, stop):
    return DataLoader(TensorDataset(x[start:stop], y[start:stop]), batch_size=6, shuffle=True)


"""
_FITTED = {
    "two models, each by its name": """
        narrow = Net(6)
        fit(narrow, loader(0, 36))
        wide = Net(12)
        fit(wide, loader(0, 36))
        torch.save({"narrow": narrow.state_dict(), "wide": wide.state_dict()}, "nets.pt")
        """,
    "two models by one name, the first of them saved between": """
        net = Net(6)
        fit(net, loader(0, 36))
        torch.save(net.state_dict(), "narrow.pt")
        net = Net(12)
        fit(net, loader(0, 36))
        torch.save(net.state_dict(), "wide.pt")
        """,
    "a model of each fold, and one of all": """
        best, kept = float("inf"), None
        for fold in range(3):
            net = Net(6)
            total = fit(net, loader(12 * fold, 12 * fold + 12))
            if total < best:
                best, kept = total, {name: weight.clone() for name, weight in net.state_dict().items()}
        net = Net(6)
        net.load_state_dict(kept)
        fit(net, loader(0, 36))
        torch.save(net.state_dict(), "net.pt")
        """,
    "a model of each rate, which a call makes, and the last one": """
        for epochs in (1, 2):
            fit(Net(6), loader(0, 36), epochs)
        net = Net(12)
        fit(net, loader(0, 36))
        torch.save(net.state_dict(), "net.pt")
        """,
}
SEVERAL = {
    f"{title}, by one function that trains": Script(_SEVERAL + textwrap.dedent(text).lstrip(), same=("fit",), ranks=(2, 3), rows=36)
    for title, text in _FITTED.items()
}
SCRIPTS |= SEVERAL
