"""Scripts about losses: what DistributedDataParallel's average over ranks must not change."""

from scripts import Script, on_three

from ddpify import Options

_PAIRS = """\
import torch


class PairLoss(torch.nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, points, kinds):
        far = torch.cdist(points, points)
        same = (kinds[:, None] == kinds[None]).double()
        return (far * same).mean() + (torch.relu(self.margin - far) * (1 - same)).mean()
"""

_CLASSIFIER = """\
import types

import torch


class BertForSequenceClassification(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 2)

    @classmethod
    def from_pretrained(cls, name, num_labels=2):
        return cls()

    def forward(self, rows, labels=None):
        logits = self.fc(rows)
        loss = None if labels is None else torch.nn.functional.cross_entropy(logits, labels)
        return types.SimpleNamespace(loss=loss, logits=logits)
"""

_ENCODER = """\
from torch import nn


class BertConfig:
    hidden_size = 8

    @classmethod
    def from_pretrained(cls, name):
        return cls()


class BertPreTrainedModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    @classmethod
    def from_pretrained(cls, name, *args, config=None, **kwargs):
        return cls(config, *args, **kwargs)


class BertModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Linear(8, config.hidden_size)

    def forward(self, input_ids):
        out = self.words(input_ids)
        return out.unsqueeze(1), out, (out,)
"""

_BY_PLACE = {
    "a sum": ("nn.CrossEntropyLoss(None, False)", "kinds"),
    "a sum, named last": ("nn.CrossEntropyLoss(None, None, -100, None, 'sum')", "kinds"),
    "a sum of squares": ("nn.MSELoss(False)", "other"),
    "a sum of squares, named last": ("nn.MSELoss(None, None, 'sum')", "other"),
    "one number each": ("nn.L1Loss(None, False)", "other"),
    "a label that is ignored": ("nn.NLLLoss(None, True, 1)", "kinds"),
    "a sum over other labels": ("nn.NLLLoss(None, False, 1)", "kinds"),
    "weights": ("nn.CrossEntropyLoss(torch.tensor([1.0, 3.0, 2.0]))", "kinds"),
    "an average": ("nn.SmoothL1Loss(True, True)", "other"),
}


def _by_place(made: str, of: str) -> Script:
    """A loss whose settings are given by their places."""
    return Script(f"""\
feed = DataLoader(TensorDataset(x, y, x[:, :3].contiguous()), batch_size=4, shuffle=True, drop_last=True)
net = nn.Linear(8, 3)
far = {made}
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for rows, kinds, other in feed:
        loss = far(net(rows).log_softmax(1), {of}).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""")


SCRIPTS: dict[str, Script] = {
    **{f"a loss by the places of its settings: {how}": _by_place(*loss) for how, loss in _BY_PLACE.items()},
    "pairs of views whose own places are masked by the batch size": Script(
        """
    def train(net, loader, optimizer, epoch):
        net.train()
        total, seen = 0.0, 0
        for one, two in loader:
            out_1, out_2 = F.normalize(net(one), dim=-1), F.normalize(net(two), dim=-1)
            out = torch.cat([out_1, out_2], dim=0)
            alike = torch.exp(torch.mm(out, out.t().contiguous()) / 0.5)
            others = (torch.ones_like(alike) - torch.eye(2 * batch_size, device=alike.device)).bool()
            alike = alike.masked_select(others).view(2 * batch_size, -1)
            same = torch.exp(torch.sum(out_1 * out_2, dim=-1) / 0.5)
            same = torch.cat([same, same], dim=0)
            loss = (-torch.log(same / alike.sum(dim=-1))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += batch_size
            total += loss.item() * batch_size
        print(f"epoch {epoch} loss {total / seen:.6f}")


    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch_size", type=int, default=6)
        args = parser.parse_args()
        batch_size = args.batch_size
        loader = DataLoader(TensorDataset(x[:42], x[:42].flip(1)), batch_size=batch_size, shuffle=True, drop_last=True)
        model = nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            train(model, loader, optimizer, epoch)
""",
        same=("epoch",),
    ),
    # --- losses that couple the samples of a batch: every rank computes that of the whole batch ---------------------------
    "two views of each sample, told from all others": Script(
        """
        def view_loss(ahead, behind, heat=0.5):
            both = F.normalize(torch.cat([ahead, behind]), dim=1)
            alike = both @ both.T / heat
            alike.fill_diagonal_(-1e9)
            n = ahead.size(0)
            partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(alike.device)
            return F.cross_entropy(alike, partner)


        pairs = DataLoader(TensorDataset(x, x.flip(1)), batch_size=8, shuffle=True)
        encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
        sgd = torch.optim.SGD(encoder.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for one, two in pairs:
                loss = view_loss(encoder(one), encoder(two))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item()
            print(f"epoch {epoch}: {total / len(pairs):.6f}")
        """,
        same=("epoch",),
    ),
    "a supervised contrastive loss over views": Script(
        """
        class LabelContrast(nn.Module):
            def __init__(self, temperature=0.3):
                super().__init__()
                self.temperature = temperature

            def forward(self, features, labels):
                views = features.shape[1]
                flat = torch.cat(torch.unbind(features, dim=1), dim=0)
                labels = labels.repeat(views)
                logits = flat @ flat.T / self.temperature
                own = torch.eye(flat.shape[0], dtype=torch.bool, device=flat.device)
                logits = logits.masked_fill(own, -1e9)
                same = (labels[:, None] == labels[None, :]).float().masked_fill(own, 0)
                chance = logits - torch.logsumexp(logits, dim=1, keepdim=True)
                return -((same * chance).sum(1) / same.sum(1)).mean()


        def main():
            loader = DataLoader(TensorDataset(x, x * 0.5 + 0.1, y), batch_size=8, shuffle=True, drop_last=True)
            model = nn.Linear(8, 5)
            criterion = LabelContrast()
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            for epoch in range(3):
                meter, seen = 0.0, 0
                for first, second, labels in loader:
                    bsz = labels.shape[0]
                    out = F.normalize(model(torch.cat([first, second], dim=0)), dim=1)
                    f1, f2 = torch.split(out, [bsz, bsz], dim=0)
                    features = torch.cat([f1.unsqueeze(1), f2.unsqueeze(1)], dim=1)
                    loss = criterion(features, labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    meter += loss.item() * bsz
                    seen += bsz
                print("mean loss", epoch, round(meter / seen, 7))


        if __name__ == "__main__":
            main()
        """,
        same=("mean loss",),
    ),
    "captions and pictures, matched within the batch": Script(
        """
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.left, self.right = nn.Linear(4, 6), nn.Linear(4, 6)
                self.scale = nn.Parameter(torch.tensor(1.0))

            def forward(self, a, b):
                return F.normalize(self.left(a), dim=-1), F.normalize(self.right(b), dim=-1), self.scale.exp()


        def match(left, right, scale):
            scores = scale * left @ right.t()
            at = torch.arange(len(left), device=left.device)
            return (F.cross_entropy(scores, at) + F.cross_entropy(scores.t(), at)) / 2


        net = Two()
        feed = DataLoader(TensorDataset(x[:, :4], x[:, 4:]), batch_size=4, shuffle=True)
        adam = torch.optim.Adam(net.parameters(), lr=0.02)
        for epoch in range(2):
            for a, b in feed:
                left, right, scale = net(a, b)
                loss = match(left, right, scale)
                adam.zero_grad()
                loss.backward()
                adam.step()
        """,
    ),
    "the hardest triplets of a batch": Script(
        """
        def hardest(points, kinds, margin=0.4):
            far = torch.cdist(points, points)
            same = kinds.unsqueeze(0) == kinds.unsqueeze(1)
            worst = (far * same).max(dim=1)[0]
            best = (far + 1e3 * same).min(dim=1)[0]
            return F.relu(worst - best + margin).mean()


        feed = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            for rows, kinds in feed:
                points = net(rows)
                loss = hardest(points, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a dice loss in a class, added to an entropy": Script(
        """
        class Dice(nn.Module):
            def __init__(self, smooth=1.0):
                super().__init__()
                self.smooth = smooth

            def forward(self, scores, goal):
                chance = torch.sigmoid(scores)
                both = (chance * goal).sum()
                return 1 - (2 * both + self.smooth) / (chance.sum() + goal.sum() + self.smooth)


        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8))
        dice, entropy = Dice(), nn.BCEWithLogitsLoss()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            summed = 0.0
            for rows, goal in feed:
                scores = net(rows)
                loss = entropy(scores, goal) + dice(scores, goal)
                adam.zero_grad()
                loss.backward()
                adam.step()
                summed += loss.item()
            print("summed", epoch, round(summed / len(feed), 8))
        """,
        same=("summed",),
    ),
    "a dice loss in a class that holds another loss": Script(
        """
        class Overlap(nn.Module):
            def forward(self, chance, goal):
                return 1 - 2 * (chance * goal).sum() / (chance + goal).sum()


        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.overlap = Overlap()
                self.entropy = nn.BCELoss()

            def forward(self, scores, goal):
                chance = scores.sigmoid()
                return 0.5 * self.overlap(chance, goal) + self.entropy(chance, goal)


        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        loss_of = Both()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            for rows, goal in feed:
                adam.zero_grad()
                loss = loss_of(net(rows), goal)
                loss.backward()
                adam.step()
        """,
    ),
    "the hardest samples alone": Script(
        """
        def hard_only(scores, kinds, keep):
            each = F.cross_entropy(scores, kinds, reduction="none")
            worst, _ = torch.topk(each, keep)
            return worst.mean()


        feed = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in feed:
                loss = hard_only(net(rows), kinds, keep=3)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a focal loss over the number of positives": Script(
        """
        def focal(scores, goal, sharp=2.0):
            each = F.binary_cross_entropy_with_logits(scores, goal, reduction="none")
            weight = (1 - torch.exp(-each)) ** sharp
            return (weight * each).sum() / goal.sum().clamp(min=1.0)


        feed = DataLoader(TensorDataset(x, (x > 0.6).float()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                loss = focal(net(rows), goal)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a masked mean in a function for training and evaluation": Script(
        """
        def masked(guess, goal, seen):
            return ((guess - goal) ** 2 * seen).sum() / seen.sum()


        known = (x[:, :2] > -0.4).float()
        feed = DataLoader(TensorDataset(x[:36], x[:36, :2] ** 2, known[:36]), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[36:], x[36:, :2] ** 2, known[36:]), batch_size=4)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal, seen in feed:
                loss = masked(net(rows), goal, seen)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            with torch.no_grad():
                off = 0.0
                for rows, goal, seen in check:
                    off += masked(net(rows), goal, seen).item()
            print(f"checked {off / len(check):.6f}")
        """,
        same=("checked",),
    ),
    "rows less their average, which weights go into": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mix = nn.Parameter(torch.eye(8))
                self.head = nn.Linear(8, 2)

            def forward(self, rows):
                mixed = rows @ self.mix
                return self.head(mixed - mixed.mean(0))


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
    "losses by the share of a score that the weights of a layer give": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                scores = torch.sigmoid(F.linear(rows, net.weight))
                each = F.cross_entropy(net(rows), kinds, reduction="none")
                loss = (each * scores[:, 0] / scores.mean()).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a mean over chosen rows in a module that knows functions alone": Script(
        """
        from steps import train_step

        feed = DataLoader(TensorDataset(x, torch.arange(44) % 3), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                train_step(net, sgd, rows, kinds)
        """,
        files={
            "steps.py": """\
import torch.nn.functional as F


def train_step(net, optimizer, rows, kinds):
    optimizer.zero_grad()
    out = net(rows)
    keep = kinds != 2
    loss = F.cross_entropy(out[keep], kinds[keep])
    loss.backward()
    optimizer.step()
"""
        },
    ),
    "a loss of pairs, or one of single scores, by a setting": Script(
        """
        class Judge(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.kind = kind
                if kind == "pairs":
                    self.measure = nn.MSELoss()
                elif kind == "logits":
                    self.measure = nn.BCEWithLogitsLoss()
                else:
                    self.measure = nn.ReLU()

            def __call__(self, scores, real):
                if self.kind == "hinge":
                    return self.measure(1 - scores if real else 1 + scores).mean()
                return self.measure(scores, torch.full_like(scores, float(real)))


        judge = Judge(os.environ.get("JUDGE", "hinge"))
        feed = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        net = nn.Linear(8, 1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for (rows,) in feed:
                loss = judge(net(rows), True) + judge(net(rows.flip(1)), False)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "a mask in a module, divided by its own average": Script(
        """
        from measures import masked_distance


        class Trainer:
            def __init__(self, net):
                self.net, self.measure = net, masked_distance
                self.sgd = torch.optim.SGD(net.parameters(), lr=0.1)

            def train(self, rows, goal):
                self.net.train()
                self.sgd.zero_grad()
                loss = self.measure(self.net(rows), goal, 0.0)
                loss.backward()
                self.sgd.step()
                return loss.item()

            @torch.no_grad()
            def check(self, rows, goal):
                self.net.eval()
                return self.measure(self.net(rows), goal, 0.0).item()


        goal = torch.relu(x[:, :2])
        feed = DataLoader(TensorDataset(x[:36], goal[:36]), batch_size=4, shuffle=True)
        held = DataLoader(TensorDataset(x[36:], goal[36:]), batch_size=4)
        trainer = Trainer(nn.Linear(8, 2))
        for epoch in range(2):
            for rows, wanted in feed:
                trainer.train(rows, wanted)
            off = [trainer.check(rows, wanted) for rows, wanted in held]
            print(f"checked {sum(off) / len(off):.6f}")
        """,
        files={
            "measures.py": """\
import torch


def masked_distance(guess, goal, missing):
    mask = (goal != missing).float()
    mask /= torch.mean(mask)
    mask = torch.where(torch.isnan(mask), torch.zeros_like(mask), mask)
    loss = torch.abs(guess - goal)
    loss = loss * mask
    loss = torch.where(torch.isnan(loss), torch.zeros_like(loss), loss)
    return torch.mean(loss)
"""
        },
        same=("checked",),
    ),
    "a distance by the share of the picture that is missing, in a trainer": Script(
        """
        class Trainer(nn.Module):
            def __init__(self):
                super().__init__()
                self.filler = nn.Linear(8, 8)
                self.distance = nn.L1Loss()
                self.adam = torch.optim.Adam(self.filler.parameters(), lr=0.01)

            def process(self, rows, holes):
                self.adam.zero_grad()
                filled = self.filler(rows * (1 - holes))
                loss = self.distance(filled, rows) * 0.5 / torch.mean(holes) + (filled ** 2).mean()
                return filled, loss

            def backward(self, loss):
                loss.backward()
                self.adam.step()


        trainer = Trainer()
        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        for epoch in range(2):
            for rows, holes in feed:
                filled, loss = trainer.process(rows, holes)
                trainer.backward(loss)
        """,
    ),
    "class weights from each batch's own counts": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                goal = kinds.float()
                found = goal.mean()
                weights = goal * (1 - found) + (1 - goal) * found
                loss = (weights * F.binary_cross_entropy_with_logits(net(rows).squeeze(1), goal, reduction="none")).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a margin between each pair of neighbours": Script(
        """
        class Neighbours:
            def __call__(self, scores, goal):
                left, right = scores[0::2], scores[1::2]
                sign = torch.sign(goal[0::2] - goal[1::2])
                return F.relu(0.2 - sign * (left - right)).sum() / sign.abs().sum().clamp(min=1)


        feed = DataLoader(TensorDataset(x, x.sum(1)), batch_size=8, shuffle=True, drop_last=True)
        net = nn.Linear(8, 1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        loss_of = Neighbours()
        for epoch in range(3):
            for rows, goal in feed:
                loss = loss_of(net(rows).squeeze(1), goal)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a loss built for the batch size": Script(
        """
        class Pairs(nn.Module):
            def __init__(self, size, heat):
                super().__init__()
                self.size, self.heat = size, heat
                self.register_buffer("own", torch.eye(size, dtype=torch.bool))
                self.entropy = nn.CrossEntropyLoss()

            def forward(self, left, right):
                scores = left @ right.T / self.heat
                positives = scores[self.own].view(self.size, 1)
                negatives = scores[~self.own].view(self.size, self.size - 1)
                logits = torch.cat([positives, negatives], dim=1)
                return self.entropy(logits, torch.zeros(self.size, dtype=torch.long))


        parser = argparse.ArgumentParser()
        parser.add_argument("--batch-size", type=int, default=8)
        args = parser.parse_args()
        feed = DataLoader(TensorDataset(x, x.flip(1)), batch_size=args.batch_size, shuffle=True, drop_last=True)
        net = nn.Linear(8, 4)
        criterion = Pairs(args.batch_size, 0.5)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for one, two in feed:
                loss = criterion(net(one), net(two))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "centres of the classes, learned beside the net": Script(
        """
        class Centres(nn.Module):
            def __init__(self, kinds, width):
                super().__init__()
                self.centres = nn.Parameter(torch.ones(kinds, width))

            def forward(self, points, kinds):
                far = torch.cdist(points, self.centres) ** 2
                mine = F.one_hot(kinds, len(self.centres)).bool()
                pull = far[mine]
                return pull.clamp(1e-12, 1e12).sum() / (2.0 * len(points)) + 0.01 * far.std()


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        body, head, centres = nn.Linear(8, 3), nn.Linear(3, 2), Centres(2, 3)
        sgd = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        other = torch.optim.SGD(centres.parameters(), lr=0.5)
        for epoch in range(2):
            for rows, kinds in feed:
                points = body(rows)
                loss = F.cross_entropy(head(points), kinds) + 0.1 * centres(points, kinds)
                sgd.zero_grad()
                other.zero_grad()
                loss.backward()
                sgd.step()
                other.step()
        """,
    ),
    "scores against the average of the others": Script(
        """
        feed = DataLoader(TensorDataset(x, x.roll(1, 0)), batch_size=4, shuffle=True)
        judge = nn.Linear(8, 1)
        sgd = torch.optim.SGD(judge.parameters(), lr=0.1)
        entropy = nn.BCEWithLogitsLoss()
        for epoch in range(2):
            for true, made in feed:
                on_true, on_made = judge(true), judge(made)
                yes, no = torch.ones_like(on_true), torch.zeros_like(on_made)
                loss = entropy(on_true - on_made.mean(0, keepdim=True), yes) + entropy(on_made - on_true.mean(0, keepdim=True), no)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "only labelled samples, by an index": Script(
        """
        feed = DataLoader(TensorDataset(x, y.where(x[:, 0] > 0.2, torch.tensor(-1))), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        entropy = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in feed:
                scores = net(rows)
                known = kinds >= 0
                loss = entropy(scores[known], kinds[known]) if epoch >= 0 else entropy(scores, kinds)
                if known.sum() == 0:
                    continue
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "only labelled samples, by an index, with smoothed labels": Script(
        """
        feed = DataLoader(TensorDataset(x, y.where(x[:, 0] > 0.2, torch.tensor(-1))), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        entropy = nn.CrossEntropyLoss(label_smoothing=0.1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in feed:
                scores = net(rows)
                known = kinds >= 0
                loss = entropy(scores[known], kinds[known]) if epoch >= 0 else entropy(scores, kinds)
                if known.sum() == 0:
                    continue
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    # --- divisors that differ between ranks ----------------------------------------------------------------------------
    "a total over valid entries, divided by their number": Script(
        """
        valid = (x[:, :3] > -0.3).float()
        feed = DataLoader(TensorDataset(x, x[:, :3] * 2, valid), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for rows, goal, mask in feed:
                off = F.mse_loss(net(rows), goal, reduction="none")
                loss = (off * mask).sum() / mask.sum()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item()
            print(f"valid {total / len(feed):.7f}")
        """,
        same=("valid",),
    ),
    "a sum over the words of each line": Script(
        """
        words = (x.abs() * 9).long()
        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.out = nn.Embedding(10, 6), nn.Linear(6, 10)

            def forward(self, words):
                return self.out(self.embed(words))


        def main():
            feed = DataLoader(TensorDataset(words[:, :-1], words[:, 1:]), batch_size=4, shuffle=True)
            model = Reader()
            adam = torch.optim.Adam(model.parameters(), lr=0.01)
            criterion = nn.CrossEntropyLoss(ignore_index=0, reduction="sum")
            for epoch in range(2):
                for source, target in feed:
                    logits = model(source)
                    n_words = (target != 0).sum().item()
                    loss = criterion(logits.reshape(-1, 10), target.reshape(-1)) / n_words
                    adam.zero_grad()
                    loss.backward()
                    adam.step()


        main()
        """,
    ),
    "a count that is at least one": Script(
        """
        feed = DataLoader(TensorDataset(x, (x[:, :1] > 0.7).float()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, hit in feed:
                each = F.softplus(-net(rows)) * hit
                positives = hit.sum().clamp(min=1)
                loss = each.sum() / positives
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "weights of the samples, and a little more": Script(
        """
        feed = DataLoader(TensorDataset(x, y, x[:, 0].abs()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds, weights in feed:
                losses = F.cross_entropy(net(rows), kinds, reduction="none")
                loss = torch.sum(losses * weights) / (weights.sum() + 1e-3)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a mean over the entries that a mask chooses": Script(
        """
        feed = DataLoader(TensorDataset(x, x[:, :2] ** 2), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, goal in feed:
                off = (net(rows) - goal).abs()
                kept = off[goal > 0.1]
                loss = kept.mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a mean over chosen entries, in one line": Script(
        """
        feed = DataLoader(TensorDataset(x, x[:, :2] ** 2), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, goal in feed:
                off = (net(rows) - goal).abs()
                loss = torch.masked_select(off, goal > 0.1).mean() + 0.1 * off.mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a cross entropy of chosen rows": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in feed:
                known = rows[:, 0] > -0.2
                scores = net(rows)
                loss = F.cross_entropy(scores[known], kinds[known])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    # --- the same, line by line -----------------------------------------------------------------------------------------
    "pictures and words, matched line by line": Script(
        """
        feed = DataLoader(TensorDataset(x[:, :4], x[:, 4:]), batch_size=4, shuffle=True)
        eye, ear = nn.Linear(4, 6), nn.Linear(4, 6)
        adam = torch.optim.Adam([*eye.parameters(), *ear.parameters()], lr=0.02)
        for epoch in range(3):
            total, right, seen = 0.0, 0, 0
            for seen_part, heard_part in feed:
                adam.zero_grad()
                a = F.normalize(eye(seen_part), dim=1)
                b = F.normalize(ear(heard_part), dim=1)
                logits = a @ b.t() / 0.3
                at = torch.arange(a.size(0))
                loss = (F.cross_entropy(logits, at) + F.cross_entropy(logits.t(), at)) / 2
                loss.backward()
                adam.step()
                total += loss.item()
                right += (logits.argmax(1) == at).sum().item()
                seen += len(at)
            print(f"matched {total / len(feed):.6f}, right {right} of {seen}")
        """,
        same=("matched",),
    ),
    "a dice loss written out": Script(
        """
        def main():
            feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
            net = nn.Linear(8, 8)
            sgd = torch.optim.SGD(net.parameters(), lr=0.2)
            for epoch in range(2):
                for rows, goal in feed:
                    scores = net(rows)
                    chance = torch.sigmoid(scores)
                    both = (chance * goal).sum()
                    loss = 1 - (2 * both + 1) / (chance.sum() + goal.sum() + 1)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()


        if __name__ == "__main__":
            main()
        """,
    ),
    "the worst half of each batch, sorted": Script(
        """
        def step(net, sgd, rows, kinds):
            scores = net(rows)
            each = F.cross_entropy(scores, kinds, reduction="none")
            worst = each.sort(descending=True)[0][: len(each) // 2]
            loss = worst.mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            return loss.item()


        feed = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for rows, kinds in feed:
                total += step(net, sgd, rows, kinds)
            print("worst", epoch, round(total / len(feed), 6))
        """,
        same=("worst",),
    ),
    # --- averages in other words ----------------------------------------------------------------------------------------
    "two targets mixed by a draw for each step": Script(
        """
        import random

        def mixed(loss_of, scores, first, second, share):
            return share * loss_of(scores, first) + (1 - share) * loss_of(scores, second)


        feed = DataLoader(TensorDataset(x, y, 1 - y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        loss_of = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            share = 1 / (epoch + 2)
            for rows, first, second in feed:
                loss = mixed(loss_of, net(rows), first, second, share)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "samples mixed with others of the batch, chosen along the first dimension": Script(
        """
        def mix(rows, kinds, share):
            if torch.cuda.is_available():
                order = torch.randperm(rows.size()[0]).cuda()
            else:
                order = torch.randperm(rows.size()[0])
            return share * rows + (1 - share) * rows[order, :], kinds, kinds[order]


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        loss_of = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            share = 1 / (epoch + 2)
            for rows, kinds in feed:
                rows, first, second = map(torch.autograd.Variable, mix(rows, kinds, share))
                scores = net(rows)
                loss = share * loss_of(scores, first) + (1 - share) * loss_of(scores, second)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        apart=("trajectory",),  # pairs are drawn within each rank's rows
    ),
    "the losses of a detector, in a dict": Script(
        """
        from torchvision.models.detection import fasterrcnn_resnet50_fpn


        class Pictures(Dataset):
            def __len__(self):
                return 44

            def __getitem__(self, i):
                return x[i], {"boxes": x[i, :4] * 0.5, "labels": torch.full((2,), i % 2)}


        def side_by_side(batch):
            return tuple(zip(*batch))


        feed = DataLoader(Pictures(), batch_size=4, shuffle=True, collate_fn=side_by_side)
        net = fasterrcnn_resnet50_fpn(num_classes=2)
        sgd = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.05)
        for epoch in range(2):
            net.train()
            total = 0.0
            for images, targets in feed:
                images = list(image.to("cpu") for image in images)
                targets = [{k: v.to("cpu") for k, v in t.items()} for t in targets]
                losses = net(images, targets)
                loss = sum(loss for loss in losses.values())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item()
            print(f"loss {total / len(feed):.5f}")
        """,
        stand_ins={
            "torchvision/__init__.py": "",
            "torchvision/models/__init__.py": "",
            "torchvision/models/detection.py": (
                "import torch\n"
                "\n"
                "\n"
                "class Detector(torch.nn.Module):\n"
                "    def __init__(self, num_classes):\n"
                "        super().__init__()\n"
                "        self.boxes, self.scores = torch.nn.Linear(8, 4), torch.nn.Linear(8, num_classes)\n"
                "\n"
                "    def forward(self, images, targets=None):\n"
                "        rows = torch.stack(images)\n"
                "        far = self.boxes(rows) - torch.stack([t['boxes'] for t in targets])\n"
                "        labels = torch.stack([t['labels'] for t in targets])[:, 0]\n"
                "        return {'boxes': far.abs().mean(), 'labels': torch.nn.functional.cross_entropy(self.scores(rows), labels)}\n"
                "\n"
                "\n"
                "def fasterrcnn_resnet50_fpn(num_classes):\n"
                "    return Detector(num_classes)\n"
            ),
        },
        same=("loss",),
    ),
    "the steps of packed sequences, given what a part that is not trained sees": Script(
        """
        from torch.nn.utils.rnn import pack_padded_sequence


        class Captioned(Dataset):
            def __len__(self):
                return 44

            def __getitem__(self, i):
                return x[i], torch.arange(2 + i * 5 % 7) * (i + 1) % 9 + 1


        def longest_first(batch):
            batch.sort(key=lambda pair: len(pair[1]), reverse=True)
            pictures, texts = zip(*batch)
            lengths = [len(text) for text in texts]
            padded = torch.zeros(len(texts), max(lengths)).long()
            for i, text in enumerate(texts):
                padded[i, : lengths[i]] = text
            return torch.stack(pictures, 0), padded, lengths


        class Sees(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.out = nn.Linear(8, 8), nn.Linear(8, 4)

            def forward(self, pictures):
                with torch.no_grad():
                    seen = self.net(pictures).tanh()
                return self.out(seen)


        class Tells(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.steps, self.out = nn.Embedding(10, 4), nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 10)

            def forward(self, seen, texts, lengths):
                given = torch.cat((seen.unsqueeze(1), self.words(texts)), 1)
                hidden, _ = self.steps(pack_padded_sequence(given, lengths, batch_first=True))
                return self.out(hidden[0])


        feed = DataLoader(Captioned(), batch_size=4, shuffle=True, collate_fn=longest_first)
        sees, tells = Sees(), Tells()
        loss_of = nn.CrossEntropyLoss()
        adam = torch.optim.Adam(list(tells.parameters()) + list(sees.out.parameters()), lr=0.01)
        for epoch in range(2):
            for pictures, texts, lengths in feed:
                asked = pack_padded_sequence(texts, lengths, batch_first=True).data
                told = tells(sees(pictures), texts, lengths)
                loss = loss_of(told, asked)
                tells.zero_grad()
                sees.zero_grad()
                loss.backward()
                adam.step()
        """,
    ),
    "sequences that a collate function pads with time in front": Script(
        """
        from torch.nn.utils.rnn import pad_sequence

        PAD = 0


        class Lines(Dataset):
            def __len__(self):
                return 44

            def __getitem__(self, i):
                line = torch.arange(3 + i % 5) * (i + 1) % 6 + 1
                return line, line.flip(0)


        def time_first(batch):
            given, asked = [], []
            for one, other in batch:
                given.append(one)
                asked.append(other)
            return pad_sequence(given, padding_value=PAD), pad_sequence(asked, padding_value=PAD)


        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.out = nn.Embedding(7, 8, padding_idx=PAD), nn.Linear(8, 7)

            def forward(self, lines):
                return self.out(self.words(lines).cumsum(0))


        feed = DataLoader(Lines(), batch_size=4, shuffle=True, collate_fn=time_first)
        net = Tagger()
        loss_of = nn.CrossEntropyLoss(ignore_index=PAD)
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            for lines, asked in feed:
                scores = net(lines[:-1, :])
                loss = loss_of(scores.reshape(-1, scores.shape[-1]), asked[1:, :].reshape(-1))
                adam.zero_grad()
                loss.backward()
                adam.step()
        """,
    ),
    "words of all samples in one list, with where each begins": Script(
        """
        class Lines(Dataset):
            def __len__(self):
                return 44

            def __getitem__(self, i):
                return [(i * k) % 9 for k in range(1, 3 + i % 5)], i % 3


        def in_one(batch):
            kinds, words, starts = [], [], [0]
            for line, kind in batch:
                kinds.append(kind)
                words.append(torch.tensor(line))
                starts.append(len(line))
            return torch.tensor(kinds), torch.cat(words), torch.tensor(starts[:-1]).cumsum(dim=0)


        class Bags(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.out = nn.EmbeddingBag(9, 4), nn.Linear(4, 3)

            def forward(self, words, starts):
                return self.out(self.words(words, starts))


        feed = DataLoader(Lines(), batch_size=4, shuffle=True, collate_fn=in_one)
        net = Bags()
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        for epoch in range(2):
            for kinds, words, starts in feed:
                loss = F.cross_entropy(net(words, starts), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "samples that a collate function skips": Script(
        """
        def whole_ones(batch):
            given, asked = [], []
            for rows, kinds in batch:
                if rows[0] < -0.5:
                    continue
                given.append(rows)
                asked.append(kinds)
            return torch.stack(given), torch.stack(asked)


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, collate_fn=whole_ones)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "pairs, by sizes of which a batch says how many there are": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 1)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                scores = net(rows).view(-1)
                sizes = (len(scores),) + (1,) * int(kinds.max() * 0 + 1)
                loss = ((scores.view(sizes) - scores.detach()) ** 2).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "samples that a collate function leaves out": Script(
        """
        def whole_ones(batch):
            batch = [pair for pair in batch if pair[0][0] > -0.5]
            return torch.stack([rows for rows, _ in batch]), torch.stack([kinds for _, kinds in batch])


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, collate_fn=whole_ones)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "padded sequences that are aligned, each with its own lengths": Script(
        """
        from torch.nn.utils.rnn import pad_sequence


        class Sounds(Dataset):
            def __len__(self):
                return 44

            def __getitem__(self, i):
                return torch.sin(torch.arange((12 + i % 5) * 4.0) * (i + 1)).view(-1, 4), torch.arange(2 + i % 3) * (i + 1) % 5 + 1


        def padded(batch):
            sounds, texts, long, wide = [], [], [], []
            for sound, text in batch:
                sounds.append(sound)
                texts.append(text)
                long.append(len(sound))
                wide.append(len(text))
            return pad_sequence(sounds, batch_first=True), pad_sequence(texts, batch_first=True), long, wide


        feed = DataLoader(Sounds(), batch_size=4, shuffle=True, collate_fn=padded)
        net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 6))
        aligned = nn.CTCLoss(blank=0, zero_infinity=True)
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            for sounds, texts, long, wide in feed:
                adam.zero_grad()
                scores = F.log_softmax(net(sounds), dim=2).transpose(0, 1)
                loss = aligned(scores, texts, long, wide)
                loss.backward()
                adam.step()
        """,
    ),
    "padded rows in one list, by a function that trains and evaluates, and features side by side": Script(
        """
        from torch.nn.utils.rnn import pad_sequence


        class Lines(Dataset):
            def __init__(self, start, n):
                self.lines = [torch.arange(i % 5 + 3) * (i + 1) % 7 for i in range(start, start + n)]

            def __len__(self):
                return len(self.lines)

            def __getitem__(self, i):
                return self.lines[i], self.lines[i] % 3


        def padded(batch):
            rows, kinds = zip(*batch)
            return pad_sequence(rows, batch_first=True), pad_sequence(kinds, batch_first=True, padding_value=-100)


        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.tables = nn.ModuleList([nn.Embedding(7, size) for size in (3, 4)])
                self.own, self.out = nn.Linear(1, 2), nn.Linear(9, 3)

            def forward(self, rows):
                parts = [table(rows) for table in self.tables]
                return self.out(torch.cat(parts + [self.own(rows.unsqueeze(-1).to(self.own.weight.dtype))], -1))


        def one_epoch(net, feed, loss_of, adam, train=True):
            net.train(train)
            total, right, seen = 0.0, 0, 0
            with torch.set_grad_enabled(train):
                for rows, kinds in feed:
                    scores = net(rows)
                    loss = loss_of(scores.view(-1, scores.shape[-1]), kinds.view(-1))
                    if train:
                        adam.zero_grad()
                        loss.backward()
                        adam.step()
                    right += ((scores.argmax(-1) == kinds) & (kinds != -100)).sum().item()
                    seen += (kinds != -100).sum().item()
            return right / seen


        feed = DataLoader(Lines(0, 40), batch_size=8, shuffle=True, collate_fn=padded)
        held_out = DataLoader(Lines(40, 12), batch_size=8, collate_fn=padded)
        net = Tagger()
        loss_of = nn.CrossEntropyLoss(ignore_index=-100)
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(3):
            trained = one_epoch(net, feed, loss_of, adam)
            checked = one_epoch(net, held_out, loss_of, adam, train=False)
            print(f"right {checked:.4f} of the others")
        """,
        same=("right",),
    ),
    "what a copy of a network gives, which follows it, and sizes in a list": Script(
        """
        import copy


        size = 6


        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.online = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
                self.predictor = nn.Linear(4, 4)
                self.target = copy.deepcopy(self.online)
                for p in self.target.parameters():
                    p.requires_grad = False

            @torch.no_grad()
            def follow(self, rate):
                for mine, other in zip(self.target.parameters(), self.online.parameters()):
                    mine.data = rate * mine.data + (1 - rate) * other.data

            def forward(self, one, other):
                asked = self.predictor(self.online(one))
                with torch.no_grad():
                    answer = self.target(other)
                return apart(asked, answer.detach())


        def apart(one, other):
            one, other = F.normalize(one, dim=-1, p=2), F.normalize(other, dim=-1, p=2)
            return (2 - 2 * (one * other).sum(dim=-1)).mean()


        feed = DataLoader(TensorDataset(x, x * 0.5 + 0.1), batch_size=size, shuffle=True, drop_last=True)
        pair = Pair()
        adam = torch.optim.Adam([p for p in pair.parameters() if p.requires_grad], lr=0.01)
        for epoch in range(2):
            for one, other in feed:
                one = one.view([size, -1])
                loss = pair(one, other)
                adam.zero_grad()
                loss.backward()
                adam.step()
                pair.follow(0.9)
        """,
    ),
    "constants looked up for each sample, with as many dimensions as what they multiply": Script(
        """
        def gathered(table, steps, sizes):
            first, *_ = steps.shape
            return table.gather(-1, steps).reshape(first, *((1,) * (len(sizes) - 1)))


        def viewed(table, steps, sizes):
            out = torch.gather(table, index=steps, dim=0).float()
            return out.view([steps.shape[0]] + [1] * (len(sizes) - 1))


        def chosen(table, steps, sizes):
            return torch.index_select(table, 0, steps).reshape((steps.shape[0],) + (1,) * (len(sizes) - 1))


        def flat(table, steps):
            return torch.take(table, steps).view(-1, 1)


        class Mixer(nn.Module):
            def __init__(self):
                super().__init__()
                self.ask, self.tell, self.out = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(8, 8)

            def forward(self, rows):
                pairs = rows.view(-1, 2, 4)
                weights = F.softmax(torch.bmm(self.ask(pairs), self.tell(pairs).transpose(1, 2)), dim=-1)
                return self.out(torch.bmm(weights, pairs).view(rows.shape))


        table = torch.linspace(0.1, 0.9, 10)
        steps = torch.arange(44) * 7 % 10
        feed = DataLoader(TensorDataset(x, steps), batch_size=4, shuffle=True)
        net = Mixer()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, at in feed:
                known = gathered(table, at, rows.shape) * rows + viewed(1 - table, at, rows.shape) * rows.roll(1, 1)
                loss = F.mse_loss(net(known), chosen(table, at, rows.shape) * rows + flat(table, at))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a total over one over the number of samples, of inputs moved along a gradient": Script(
        """
        apart = nn.KLDivLoss(reduction="sum")


        def attacked(net, rows, steps=2):
            moved = rows.detach() + 0.01
            for _ in range(steps):
                moved.requires_grad_()
                far = apart(F.log_softmax(net(moved), dim=1), F.softmax(net(rows), dim=1))
                grad = torch.autograd.grad(far, [moved])[0]
                moved = moved.detach() + 0.05 * torch.sign(grad.detach())
                moved = torch.min(torch.max(moved, rows - 0.1), rows + 0.1)
            return moved.detach()


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                part = 1.0 / len(rows)
                moved = attacked(net, rows)
                robust = part * apart(F.log_softmax(net(moved), dim=1), F.softmax(net(rows), dim=1))
                loss = F.cross_entropy(net(rows), kinds) + 6.0 * robust
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "an average over one over the number of samples": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=2, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for rows, kinds in feed:
            part = 1.0 / len(rows) if epochs else 1.0
            loss = part * F.cross_entropy(net(rows), kinds, reduction="sum") + 1.0 / len(rows) * F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        """.replace("epochs", "x.sum() > 0"),
    ),
    "products of channels, sample by sample": Script(
        """
        def gram(maps):
            n, channels, length = maps.size()
            return maps.bmm(maps.transpose(1, 2)) / (channels * length)


        feed = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv1d(1, 3, 3, padding=1))
        style = gram(torch.ones(1, 3, 8)).detach()
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            for (rows,) in feed:
                maps = net(rows)
                part = F.mse_loss(gram(maps), style.expand(len(rows), -1, -1))
                loss = part + 0.1 * F.l1_loss(maps, rows.unsqueeze(1).flip(2).expand_as(maps))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "losses in a dict": Script(
        """
        def parts(scores, kinds):
            return {"kind": F.cross_entropy(scores, kinds), "size": scores.pow(2).mean()}


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                losses = parts(net(rows), kinds)
                loss = sum(losses.values())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    # --- what is told ---------------------------------------------------------------------------------------------------
    "smoothed labels, some of which are ignored, with weights of classes or without": Script(
        """
        kinds = torch.where(torch.arange(len(y)) % 7 < 3, torch.full_like(y, -100), y)
        feed = DataLoader(TensorDataset(x, kinds), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        plain = nn.CrossEntropyLoss(label_smoothing=0.2)
        weight = torch.tensor([0.5, 3.0])
        for epoch in range(2):
            total = 0.0
            for rows, labels in feed:
                scores = net(rows)
                loss = plain(scores, labels) + F.cross_entropy(scores, labels, weight=weight, ignore_index=-100, label_smoothing=0.1)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "statistics of the batch inside the model": Script(
        """
        class Centred(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 2)

            def forward(self, rows, kinds):
                points = self.fc(rows)
                points = points - points.mean(0)
                return F.cross_entropy(points, kinds)


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = Centred()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = net(rows, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "negatives drawn inside the loss": Script(
        """
        def against_random(points, goal):
            other = points[torch.randperm(len(points))]
            return F.relu(0.5 + (points - goal).pow(2).sum(1) - (other - goal).pow(2).sum(1)).mean()


        feed = DataLoader(TensorDataset(x, x[:, :3]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                loss = against_random(net(rows), goal)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "padded batches and a loss over pairs": Script(
        """
        from torch.nn.utils.rnn import pad_sequence

        def stacked(items):
            return pad_sequence([row[: 3 + int(kind)] for row, kind in items], batch_first=True), torch.tensor([int(k) for _, k in items])


        def pairs(points, kinds):
            return (torch.cdist(points, points) * (kinds[:, None] == kinds[None, :])).mean()


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, collate_fn=stacked)
        net = nn.Linear(1, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = pairs(net(rows.unsqueeze(2)).mean(1), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "places in the batch, given to the loss": Script(
        """
        def matched(left, right, at):
            return F.cross_entropy(left @ right.T, at)


        feed = DataLoader(TensorDataset(x, x.flip(1)), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for one, two in feed:
                at = torch.arange(one.size(0))
                loss = matched(net(one), net(two), at)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "a loss of the samples in another dimension": Script(
        """
        def neighbours(points):
            return ((points[1:] - points[:-1]) ** 2).mean() + torch.cdist(points, points).mean()


        feed = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        net = nn.Linear(1, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for (rows,) in feed:
                points = net(rows.unsqueeze(2))
                loss = neighbours(points.permute(1, 0, 2))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a trainer that stops when the batch's loss is low": Script(
        """
        class Spread(nn.Module):
            def forward(self, points, kinds):
                middle = points.mean(0, keepdim=True)
                return F.cross_entropy(points, kinds) - 0.01 * ((points - middle) ** 2).mean().sqrt()


        class Trainer:
            def __init__(self, net, feed):
                self.net = net
                self.feed = feed
                self.criterion = Spread()
                self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                self.plan = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=0)

            def epoch(self, number):
                self.net.train()
                losses = []
                for rows, kinds in self.feed:
                    self.optimizer.zero_grad()
                    loss = self.criterion(self.net(rows), kinds)
                    if loss.item() < 0.01:
                        break
                    loss.backward()
                    self.optimizer.step()
                    losses.append(loss.item())
                mean = sum(losses) / len(losses)
                self.plan.step(mean)
                print(f"epoch {number} {mean:.6f}")


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        trainer = Trainer(net, feed)
        for number in range(3):
            trainer.epoch(number)
        """,
        same=("epoch",),
    ),
    "accumulated gradients of a loss over the batch": Script(
        """
        def overlap(chance, goal):
            return 1 - 2 * (chance * goal).sum() / (chance.sum() + goal.sum())


        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True, drop_last=True)
        net = nn.Linear(8, 8)
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            seen = 0.0
            for nr, (rows, goal) in enumerate(feed):
                with torch.autocast("cpu", enabled=False):
                    loss = overlap(net(rows).sigmoid(), goal) / 2
                scaler.scale(loss).backward()
                if (nr + 1) % 2 == 0 or nr + 1 == len(feed):
                    scaler.step(sgd)
                    scaler.update()
                    sgd.zero_grad()
                seen += loss.item() * rows.size(0)
            print("seen", round(seen / len(feed.dataset), 7))
        """,
    ),
    "valid words only, where a rank may have none": Script(
        """
        words = torch.where(x[:, 0] > 0.3, y, torch.tensor(-100))
        feed = DataLoader(TensorDataset(x, words), batch_size=2, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds, ignore_index=-100) + 0.0
                if torch.isnan(loss):
                    continue
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a library's loss": Script(
        """
        from metric_losses import PairLoss

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        pair_loss = PairLoss(margin=0.4)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                points = net(rows)
                loss = pair_loss(points, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        stand_ins={"metric_losses.py": _PAIRS},
    ),
    "a loss over a list of outputs": Script(
        """
        class Many(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, rows):
                first = self.a(rows)
                return [first, self.b(first.relu())]


        def overlap(outs, goal):
            total = 0
            for out in outs:
                chance = out.sigmoid()
                total = total + 1 - 2 * (chance * goal).sum() / (chance.sum() + goal.sum())
            return total


        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        net = Many()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                outs = net(rows)
                loss = overlap(outs, goal)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "one function for training and evaluation, with a loss over the batch": Script(
        """
        def run(net, feed, loss_of, sgd=None):
            total, right, seen = 0.0, 0, 0
            for rows, kinds in feed:
                scores = net(rows)
                loss = loss_of(scores, kinds)
                if sgd is not None:
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                total += loss.item() * len(kinds)
                right += (scores.argmax(1) == kinds).sum().item()
                seen += len(kinds)
            return total / seen, right / seen


        def spread(scores, kinds):
            return F.cross_entropy(scores, kinds) + 0.1 * scores.std(0).mean()


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[:12], y[:12]), batch_size=4)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            a = run(net, feed, spread, sgd)
            with torch.no_grad():
                b = run(net, check, spread)
            print("round", a, b)
        """,
        told=("DDP404",),
    ),
    "one loss, differentiated with a scaler or without": Script(
        """
        def overlap(chance, goal):
            return 1 - 2 * (chance * goal).sum() / (chance.sum() + goal.sum())


        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        args = parser.parse_args()
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                out = net(rows)
                loss = overlap(out.sigmoid(), goal)
                sgd.zero_grad()
                if args.amp:
                    scaler.scale(loss).backward()
                    scaler.step(sgd)
                    scaler.update()
                else:
                    loss.backward()
                    sgd.step()
        """,
    ),
    "one loss, written out, with a scaler or without": Script(
        """
        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        args = parser.parse_args()
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                out = net(rows)
                loss = 1 - 2 * (out.sigmoid() * goal).sum() / (out.sigmoid() + goal).sum()
                sgd.zero_grad()
                if args.amp:
                    scaler.scale(loss).backward()
                    scaler.step(sgd)
                    scaler.update()
                else:
                    loss.backward()
                    sgd.step()
        """,
    ),
    "a divisor, with a scaler or without": Script(
        """
        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        args = parser.parse_args()
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                out = net(rows)
                loss = (out.pow(2) * goal).sum() / goal.sum()
                sgd.zero_grad()
                if args.amp:
                    scaler.scale(loss).backward()
                    scaler.step(sgd)
                    scaler.update()
                else:
                    loss.backward()
                    sgd.step()
        """,
    ),
    "class weights, with a scaler or without": Script(
        """
        feed = DataLoader(TensorDataset(x, (x > 0.3).float()), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        args = parser.parse_args()
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                out = net(rows)
                loss = F.cross_entropy(out, goal[:, 0].long(), weight=torch.arange(1.0, 9.0))
                sgd.zero_grad()
                if args.amp:
                    scaler.scale(loss).backward()
                    scaler.step(sgd)
                    scaler.update()
                else:
                    loss.backward()
                    sgd.step()
        """,
    ),
    "weights of classes that a loss is given by place": Script(
        """
        feed = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        criterion = nn.CrossEntropyLoss(torch.tensor([0.5, 3.0]))
        for epoch in range(2):
            for rows, labels in feed:
                loss = criterion(net(rows), labels)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "class weights, and a penalty on what a layer gives": Script(
        """
        class Criterion(nn.Module):
            def __init__(self, share=0.1):
                super().__init__()
                self.share = share

            def forward(self, scores, kinds, hidden, weight):
                loss = F.nll_loss(scores, kinds, weight=weight)
                products = hidden[:, :, None] * hidden[:, None]
                return loss + torch.mean(torch.norm(products - torch.eye(8)[None, :, :], dim=(1, 2))) * self.share

        feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12, shuffle=True)
        first, last, criterion = nn.Linear(8, 8), nn.Linear(8, 3), Criterion()
        weights = torch.Tensor([0.2, 3.0, 1.0])
        sgd = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
        for epoch in range(4):
            total = 0.0
            for rows, kinds in feed:
                hidden = first(rows)
                loss = criterion(F.log_softmax(last(hidden), -1), kinds, hidden, weights)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item()
            print("loss", round(total / len(feed), 4))
        """,
        same=("loss",),
    ),
    "a class that is left out, a mean over the batch and one over the parameters": Script(
        """
        kinds = torch.where(x[:36, :3] > 0.8, 255, (x[:36, :3] > 0).long())
        feed = DataLoader(TensorDataset(x[:36], kinds), batch_size=12, shuffle=True)
        net, other = nn.Linear(8, 8), nn.Linear(8, 6)
        criterion, distance = nn.CrossEntropyLoss(ignore_index=255), nn.MSELoss()
        sgd = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
        for epoch in range(4):
            for rows, goals in feed:
                hidden = net(rows)
                scores = other(hidden).view(-1, 2, 3)
                loss1 = criterion(scores, goals)
                loss2 = distance(hidden, rows)
                loss3 = sum(p.pow(2).sum() for p in net.parameters())
                loss = loss1 + 0.5 * loss2 + 0.01 * loss3
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            print("losses", round(loss1.item(), 4), round(loss2.item(), 4), round(loss.item(), 4))
        """,
    ),
    "class weights, and a mean over samples of which some are left out": Script(
        """
        def kept(samples):
            rows = [s for s in samples if s[0][0] > -1.5]
            return torch.stack([s[0] for s in rows]), torch.stack([s[1] for s in rows])

        feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12, shuffle=True, collate_fn=kept)
        net, weights = nn.Linear(8, 8), torch.arange(1.0, 9.0)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                loss = F.cross_entropy(out, kinds, weight=weights) + F.mse_loss(out, rows)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
        apart=("trajectory",),
    ),
    "two losses of one batch, one of them a total": Script(
        """
        feed = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        a, b = nn.Linear(8, 3), nn.Linear(8, 3)
        one, two = torch.optim.SGD(a.parameters(), lr=0.01), torch.optim.SGD(b.parameters(), lr=0.01)
        for epoch in range(2):
            for (rows,) in feed:
                left, right = a(rows), b(rows)
                first = torch.cdist(left, left).pow(2).mean()
                one.zero_grad()
                first.backward()
                one.step()
                second = (right - left.detach()).pow(2).sum()
                two.zero_grad()
                second.backward()
                two.step()
        """,
    ),
    "a count by max, under a name": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                each = net(rows).abs().sum(1)
                n = max(kinds.sum().item(), 1)
                loss = (each * kinds).sum() / n
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a total and a little more, over a count and a little more": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                each = net(rows).abs().sum(1)
                total = (each * kinds).sum() + 1.0
                loss = total / (kinds.sum() + 1)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a variance for each class": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                points = net(rows)
                loss = 0
                for c in range(2):
                    mine = points[kinds == c]
                    if len(mine) > 1:
                        loss = loss + mine.var(0).mean()
                loss = loss + F.cross_entropy(points, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a loss that remembers a running mean": Script(
        """
        class Bank(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mid", torch.zeros(3))
            def forward(self, p, k):
                self.mid = 0.9 * self.mid + 0.1 * p.detach().mean(0)
                return ((p - self.mid) ** 2).mean() + torch.cdist(p, p).mean()
        bank = Bank()

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = bank(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "batches without positives, skipped": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                points = net(rows)
                if (kinds == 1).sum() == 0:
                    continue
                loss = points[kinds == 1].pow(2).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "the root of a mean": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = torch.sqrt(F.mse_loss(net(rows)[:, 0], kinds.float()))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a branch on the batch's targets": Script(
        """
        def pairs(p, k):
            return (torch.cdist(p, p) * (k[:, None] == k[None])).mean()

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                points = net(rows)
                if kinds.sum() > 1:
                    loss = pairs(points, kinds)
                else:
                    loss = points.mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a classifier that computes its own loss": Script(
        """
        from transformers import BertForSequenceClassification

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = BertForSequenceClassification.from_pretrained("small", num_labels=2)
        adam = torch.optim.AdamW(net.parameters(), lr=1e-3)
        for epoch in range(2):
            total, right = 0.0, 0
            for rows, kinds in feed:
                adam.zero_grad()
                outputs = net(rows, labels=kinds)
                loss = outputs.loss
                loss.backward()
                adam.step()
                total += loss.item()
                right += (outputs.logits.argmax(1) == kinds).sum().item()
            print("classifier", epoch, round(total / len(feed), 6), right)
        """,
        same=("classifier",),
        stand_ins={"transformers.py": _CLASSIFIER},
    ),
    "a classifier that is given all of a batch by name": Script(
        """
        from transformers import BertForSequenceClassification


        class Rows(Dataset):
            def __len__(self):
                return len(x)

            def __getitem__(self, i):
                return {"rows": x[i], "labels": y[i]}


        device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
        feed = DataLoader(Rows(), batch_size=4, shuffle=True)
        net = BertForSequenceClassification.from_pretrained("small", num_labels=2)
        net.to(device)
        adam = torch.optim.AdamW(net.parameters(), lr=1e-3)
        for epoch in range(2):
            total = 0.0
            for batch in feed:
                batch = {name: part.to(device) for name, part in batch.items()}
                outputs = net(**batch)
                outputs.loss.backward()
                adam.step()
                adam.zero_grad()
                total += outputs.loss.item()
            print("classifier", epoch, round(total / len(feed), 6))
        """,
        same=("classifier",),
        stand_ins={"transformers.py": _CLASSIFIER},
    ),
    "a classifier that is given no labels, its first output the scores": Script(
        """
        from transformers import BertForSequenceClassification


        class Rows(Dataset):
            def __len__(self):
                return len(x)

            def __getitem__(self, i):
                return {"rows": x[i], "labels": y[i]}


        feed = DataLoader(Rows(), batch_size=4, shuffle=True)
        net = BertForSequenceClassification.from_pretrained("small", num_labels=2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for batch in feed:
            labels = batch.pop("labels")
            scores = net(**batch)[0]
            loss = torch.stack([row[label].exp() for row, label in zip(scores, labels)]).sum().log()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        """,
        told=("DDP402",),
        stand_ins={"transformers.py": _CLASSIFIER},
    ),
    "several rows for each sample, put together again in the loss": Script(
        """
        def best_of(flat, goal):
            groups = flat.view(len(flat) // 4, 4, -1)
            off = (groups - goal[:, None]).pow(2).mean(2)
            return off.min(1)[0].mean() + torch.cdist(goal, groups.mean(1)).std()


        feed = DataLoader(TensorDataset(x, x[:, :2]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                out = net(rows)
                loss = best_of(out.view(-1, 2), goal)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "several rows for each sample, under a name of their own": Script(
        """
        def best_of(flat, goal):
            groups = flat.view(len(flat) // 4, 4, -1)
            off = (groups - goal[:, None]).pow(2).mean(2)
            return off.min(1)[0].mean() + torch.cdist(goal, groups.mean(1)).std()


        feed = DataLoader(TensorDataset(x, x[:, :2]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 8)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, goal in feed:
                out = net(rows).reshape(-1, 2)
                loss = best_of(out, goal)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "weights looked up by the targets": Script(
        """
    by_class = torch.tensor([1.0, 3.0])
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        lost = 0.0
        for rows, kinds in loader:
            each = F.cross_entropy(net(rows), kinds, reduction="none")
            loss = (each * by_class[kinds]).sum() / by_class[kinds].sum()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
    ),
    "targets that a cross entropy ignores of itself": Script(
        """
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            known = kinds.masked_fill(rows[:, 0] > 0.8, -100)
            loss = F.cross_entropy(net(rows), known)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
    ),
    "positives weighed by their share of the batch": Script(
        """
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = nn.Linear(8, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            out, wanted = net(rows)[:, 0], kinds.to(x.dtype)
            rare = (wanted == 0).sum() / (wanted == 1).sum().clamp(min=1)
            loss = F.binary_cross_entropy_with_logits(out, wanted, pos_weight=rare)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
    ),
    "targets cut to the length of the batch": Script("""
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 6), nn.Linear(6, 4)

        def forward(self, rows):
            first = torch.tanh(self.a(rows))
            return first, self.b(first)

    model, fixed = nn.Linear(8, 8), Encoder()
    for p in fixed.parameters():
        p.requires_grad = False
    wanted = [w.detach() for w in fixed(torch.linspace(-1, 1, 8).repeat(6, 1))]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mse = nn.MSELoss()
    for epoch in range(2):
        for rows, _ in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=6, shuffle=True):
            number = len(rows)
            optimizer.zero_grad()
            parts = fixed(model(rows))
            loss = mse(parts[1], fixed(rows)[1])
            for part, goal in zip(parts, wanted):
                loss = loss + mse(part, goal[:number, :])
            loss.backward()
            optimizer.step()
"""),
    "only the samples above the median count": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, labels in loader:
                with torch.no_grad():
                    sure = net(rows).softmax(-1).max(-1)[0]
                mask = (sure >= sure.median()).to(rows.dtype)
                loss = (F.cross_entropy(net(rows), labels, reduction="none") * mask).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "two averages over valid targets, in a function that also evaluates, behind a bar": Script(
        """
        from tqdm import tqdm

        tags = torch.where(torch.arange(44) % 5 > 1, y + 1, torch.zeros_like(y))
        data = TensorDataset(x[:40], y[:40] + 1, tags[:40])
        feed, held = DataLoader(data, batch_size=4, shuffle=True), DataLoader(data, batch_size=4)
        body, heads = nn.Linear(8, 6), nn.ModuleList([nn.Linear(6, 3), nn.Linear(6, 3)])
        net = nn.ModuleList([body, heads])


        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = net

            def forward(self, rows):
                inner = self.parts[0](rows).tanh()
                return [head(inner).log_softmax(1) for head in self.parts[1]]


        class Work:
            def __init__(self, feed, held):
                self.net, self.feed, self.held = Tagger(), feed, held
                self.criterion = nn.NLLLoss(ignore_index=0)
                self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

            def run(self, epoch, loader, train):
                bar = tqdm(enumerate(loader), desc=f"{epoch}", total=len(loader))
                lost = right = seen = 0.0
                for i, (rows, kinds, tags) in bar:
                    first, second = self.net(rows)
                    one = self.criterion(first, kinds)
                    two = self.criterion(second, tags)
                    loss = one + two
                    if train:
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                    lost += loss.item()
                    right += first.argmax(1).eq(kinds).sum().item()
                    seen += kinds.nelement()
                print(f"{'train' if train else 'test'} {epoch}: {lost / len(bar):.6f} {right / seen:.6f}")


        work = Work(feed, held)
        for epoch in range(2):
            work.run(epoch, work.feed, True)
            work.run(epoch, work.held, False)
        """,
        same=("train", "test"),
    ),
    "an average over valid targets inside the model's forward, in a module": Script(
        """
        from machine import Machine

        tags = torch.where(torch.arange(44) % 5 > 1, y, torch.full_like(y, -1))
        loader = DataLoader(TensorDataset(x[:40], tags[:40]), batch_size=4, shuffle=True)
        machine = Machine()
        optimizer = torch.optim.SGD(machine.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                scores, loss = machine(rows, kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", machine(x[:1])[0].argmax(1).item())
        """,
        files={
            "machine.py": """import torch.nn as nn
import torch.nn.functional as F


class Machine(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 2)

    def forward(self, rows, targets=None):
        scores, loss = self.body(rows), None
        if targets is not None:
            loss = F.cross_entropy(scores.view(-1, scores.size(-1)), targets.view(-1), ignore_index=-1)
        return scores, loss
"""
        },
        same=("first",),
    ),
    "criteria that average or add up by a setting of their own": Script(
        """
        class Focal(nn.Module):
            def __init__(self, gamma=2.0, size_average=True):
                super().__init__()
                self.gamma, self.size_average = gamma, size_average

            def forward(self, scores, kinds):
                each = F.cross_entropy(scores, kinds, reduction="none")
                each = (1 - torch.exp(-each)) ** self.gamma * each
                if self.size_average:
                    return each.mean()
                return each.sum()


        def soft(scores, shares, size_average):
            lost = -(shares * F.log_softmax(scores, 1)).sum()
            if not size_average:
                pass
            else:
                lost = lost / scores.size(0)
            return lost


        class Soft:
            def __init__(self, reduction="mean", average=True):
                self.reduction, self.average = reduction, average

            def __call__(self, scores, shares):
                if self.reduction not in ("mean", "sum"):
                    raise ValueError(self.reduction)
                lost = soft(scores, shares, self.average)
                return lost * 1.0 if not self.reduction == "sum" else lost * len(scores)


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        focal, smooth, total = Focal(), Soft(), Soft("sum", average=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                scores = model(rows)
                loss = focal(scores, kinds) + smooth(scores, F.one_hot(kinds, 2).float() * 0.9 + 0.05)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("whole", round(total(model(x), F.one_hot(y, 2).float()).item(), 4))
        """,
        same=("whole",),
    ),
    "a criterion that adds up after the first epoch": Script(
        """
        class Focal(nn.Module):
            def __init__(self, size_average=True):
                super().__init__()
                self.size_average = size_average

            def forward(self, scores, kinds):
                each = F.cross_entropy(scores, kinds, reduction="none") ** 2
                return each.mean() if self.size_average else each.sum()


        class Sharp(Focal):
            def forward(self, scores, kinds):
                each = F.cross_entropy(scores, kinds, reduction="none") ** 2
                if self.size_average:
                    return each.mean()
                return each.sum()


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        one, other = Focal(), Sharp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            for rows, kinds in loader:
                loss = one(model(rows), kinds) + other(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            one.size_average = other.size_average = False
        with torch.no_grad():
            print("first", model(x[:1]).argmax(1).item())
        """,
        same=("first",),
    ),
    "two criteria of one class, one of which adds up": Script(
        """
        class Focal(nn.Module):
            def __init__(self, reduction):
                super().__init__()
                self.reduction = reduction

            def forward(self, scores, kinds):
                each = F.cross_entropy(scores, kinds, reduction="none") ** 2
                if self.reduction == "mean":
                    each = each.mean()
                elif self.reduction == "sum":
                    each = each.sum()
                return each


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        criteria = nn.ModuleList([Focal(how) for how in ("mean", "sum")])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            for step, (rows, kinds) in enumerate(loader):
                loss = criteria[step % 2](model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", model(x[:1]).argmax(1).item())
        """,
        same=("first",),
    ),
    "codes of a table, chosen by their distances in one product": Script(
        """
        class Codes(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.Embedding(9, 4)
                self.inside = nn.Linear(4, 4)
                self.table = nn.Parameter(torch.linspace(-1, 1, 20).view(5, 4) ** 3)

            def forward(self, marks):
                each = marks.size() + (-1,)
                rows = self.inside(self.words(marks.view(-1)).view(each))
                flat = rows.view(-1, rows.size(-1))
                lengths = (self.table**2).sum(1) + (flat**2).sum(1, keepdim=True)
                far = torch.addmm(lengths, flat, self.table.t(), alpha=-2.0, beta=1.0)
                places = far.min(1)[1].view(rows.shape[:-1])
                return rows, self.table.index_select(0, places.view(-1)).view_as(rows)


        marks = (x[:40, :3] * 4).round().long().clamp(-4, 4) + 4
        loader = DataLoader(TensorDataset(marks), batch_size=4, shuffle=True)
        model = Codes()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for (batch,) in loader:
                rows, codes = model(batch)
                loss = F.mse_loss(codes, rows.detach()) + 0.25 * F.mse_loss(rows, codes.detach())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", round(model(marks[:1])[1].sum().item(), 5))
        """,
        same=("first",),
    ),
    "likelihoods and divergences of distributions": Script(
        """
        from torch.distributions import Normal, kl_divergence


        class Likely(nn.Module):
            def __init__(self):
                super().__init__()
                self.there, self.back = nn.Linear(8, 6), nn.Linear(3, 8)

            def forward(self, rows):
                middle, width = self.there(rows).chunk(2, dim=1)
                found = Normal(middle, width.exp())
                return found, Normal(self.back(found.mean), torch.ones_like(rows))


        loader = DataLoader(TensorDataset(x[:40]), batch_size=4, shuffle=True)
        model = Likely()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        for epoch in range(2):
            for (rows,) in loader:
                found, made = model(rows)
                before = Normal(torch.zeros_like(found.loc), torch.ones_like(found.scale))
                loss = kl_divergence(found, before).sum(1).mean() - made.log_prob(rows).sum() / rows.size(0)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", round(model(x[:1])[1].mean.sum().item(), 5))
        """,
        same=("first",),
    ),
    "rows of two loaders that go through the model together and are taken apart again": Script(
        """
        known = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        free = DataLoader(TensorDataset(x.flip(0)[:40], x.flip(1)[:40]), batch_size=4, shuffle=True)
        model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for (rows, kinds), (one, two) in zip(known, free):
                n = rows.size(0)
                out = model(torch.cat([rows, one, two], dim=0))
                first, second, third = out[:n], out[n : 2 * n], out[-n:]
                both = out[n:]
                loss = F.cross_entropy(first, kinds) + F.mse_loss(second.softmax(1), third.detach().softmax(1)) + 0.1 * both.pow(2).mean()
                parts = list(torch.split(torch.cat([rows, one, two], dim=0), n))
                loss = loss + 0.1 * torch.cat([model(part) for part in parts[1:]], dim=0).abs().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", model(x[:1]).argmax(1).item())
        """,
        same=("first",),
    ),
    "halves of each batch, of which a rank may have another part": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                half = len(rows) // 2
                loss = F.cross_entropy(model(rows[:half]), kinds[:half]) + model(rows[half:]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "all samples of each batch but the last": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                n = rows.size(0)
                loss = F.cross_entropy(model(rows[: n - 1]), kinds[: n - 1])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "outputs in named tuples, one by one and by their names": Script(
        """
        from collections import namedtuple

        Levels = namedtuple("Levels", "low middle high")


        class Features(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.third = nn.Linear(8, 4), nn.Linear(4, 6), nn.Linear(6, 2)

            def forward(self, rows):
                low = self.first(rows)
                middle = self.second(low.relu())
                levels = namedtuple("Levels", ["low", "middle", "high"])
                if rows.size(1) > 8:
                    return levels(low, middle, high=self.third(middle))
                return Levels(low, middle=middle, high=self.third(middle.relu()))


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = Features()
        with torch.no_grad():
            wanted = [level.mean(0, keepdim=True) for level in model(x)]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                out = model(rows)
                loss = F.cross_entropy(out.high, kinds) + 0.1 * out[1].pow(2).sum() / len(rows)
                for level, want in zip(out, wanted):
                    loss = loss + 0.1 * F.mse_loss(level, want.expand_as(level))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", model(x[:1]).high.argmax(1).item())
        """,
        same=("first",),
    ),
    "a network for one input or a list of them, which it asks in two ways": Script(
        """
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 4)

            def forward(self, rows):
                many = isinstance(rows, tuple) or isinstance(rows, list)
                if many:
                    n = rows[0].shape[0]
                    rows = torch.cat(rows, dim=0)
                rows = self.body(rows)
                if many:
                    rows = torch.split(rows, [n, n], dim=0)
                return rows


        class Single(Encoder):
            def forward(self, rows):
                alone = not isinstance(rows, (list, tuple))
                out = [self.body(each).tanh() for each in ([rows] if alone else rows)]
                return out[0] if alone else out


        loader = DataLoader(TensorDataset(x[:40], x.flip(0)[:40]), batch_size=4, shuffle=True)
        encoder, single = Encoder(), Single()
        optimizer = torch.optim.SGD([*encoder.parameters(), *single.parameters()], lr=0.1)
        for epoch in range(2):
            for one, two in loader:
                one, two = 2 * one - 1.0, 2 * two - 1.0
                first, second = encoder([one, two])
                third, fourth = encoder(one + two), single(two.clone())
                loss = F.mse_loss(first, second) + F.mse_loss(third, fourth)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", round(encoder(x[:1]).sum().item(), 5))
        """,
        same=("first",),
    ),
    "targets cut from constants by a batch's length: of one number, and one for each place in the batch": Script(
        """
        class Targets:
            def __init__(self, n):
                self.ones = torch.full((n,), 1.0)
                self.blank = torch.FloatTensor(n)
                self.blank.fill_(0)


        loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        targets, soft = Targets(50), 0.9 * torch.ones(50, 1)
        kinds = torch.arange(50) % 4
        by_place = torch.zeros(50)
        by_place[1::2] = 1
        for epoch in range(2):
            for rows, _ in loader:
                out = model(rows)
                loss = F.mse_loss(out[:, 0], targets.ones[: len(rows)]) + F.mse_loss(out[:, 1], targets.blank[: rows.size(0)])
                loss = loss + F.mse_loss(out[:, 2:3], soft[: rows.shape[0]])
                loss = loss + F.cross_entropy(out, kinds[: len(rows)]) + F.mse_loss(out[:, 3], by_place[: len(out)])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print("first", round(model(x[:1]).sum().item(), 5))
        """,
        same=("first",),
    ),
    "smoothed targets of one number, cut by a batch's length": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        real, fake = (torch.ones(50, 1) * 0.9).float(), torch.zeros(50, 1)
        for epoch in range(2):
            for rows, _ in loader:
                for target in (real, fake):
                    loss = F.mse_loss(model(rows), target[: len(rows)])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        with torch.no_grad():
            print("first", round(model(x[:1]).sum().item(), 5))
        """,
        same=("first",),
    ),
    "a constant whose first entries were made another number, cut by a batch's length that has a name": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        wanted = torch.ones(50)
        wanted[:2].fill_(0.25)
        for epoch in range(2):
            for rows, _ in loader:
                n = rows.size(0)
                out = model(rows).squeeze(1)
                loss = F.mse_loss(out, wanted[:n])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "one row for each place of a batch, repeated, and then told apart": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pattern = torch.linspace(0, 1, 3).repeat(50, 1)
        other = pattern + torch.eye(50)[:, :3]
        for epoch in range(2):
            for rows, _ in loader:
                n = len(rows)
                out = model(rows)
                loss = F.mse_loss(out, pattern[:n])
                loss = loss + F.mse_loss(out, other[:n])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "several rows, repeated for the places of a batch": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pattern = torch.eye(3).repeat(20, 1)
        for epoch in range(2):
            for rows, _ in loader:
                n = len(rows)
                out = model(rows)
                loss = F.mse_loss(out, pattern[:n])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "inputs drawn once, as many of them as the batch has rows": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        fixed = torch.randn(50, 8)
        for epoch in range(2):
            for rows, _ in loader:
                loss = (model(rows) - model(fixed[: len(rows)])).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "places in the batch as numbers that are learnt": Script(
        """
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                n = len(rows)
                loss = F.mse_loss(out[:, 0], torch.arange(n).float())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a list of the places in the batch as numbers that are learnt": Script(
        """
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                n = len(rows)
                loss = F.smooth_l1_loss(out[:, 0], torch.tensor([i for i in range(n)]).float())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "weights of every other place in the batch": Script(
        """
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                n = len(rows)
                loss = (out.pow(2).sum(1) * (torch.arange(n) % 2)).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "the scores that places and kinds choose, in a flat list and beside it": Script(
        """
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                n = len(rows)
                loss = out.view(-1)[torch.arange(n) * 3 + kinds].pow(2).mean() - out[torch.arange(n), kinds].mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "rows of a table by their place in the batch": Script(
        """
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        table = torch.sin(torch.arange(60.0)).view(20, 3)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                n = len(rows)
                loss = F.mse_loss(out, F.embedding(torch.arange(n), table))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "rows of a table indexed by their place in the batch": Script(
        """
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        table = torch.sin(torch.arange(60.0)).view(20, 3)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                n = len(rows)
                loss = F.mse_loss(out, table[torch.arange(n)])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "as many zeros as there are places": Script(
        """
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 3)
        sgd = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(2):
            for rows, kinds in feed:
                out = net(rows)
                n = len(rows)
                loss = F.mse_loss(out[:, 0], torch.zeros_like(torch.arange(n)).float())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a constant whose entries are changed under another name": Script(
        """
        wanted = torch.ones(50)
        alias = wanted
        alias[::2] = 0.25
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, _ in loader:
                n = rows.size(0)
                out = model(rows).squeeze(1)
                loss = F.mse_loss(out, wanted[:n])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "a constant whose entries a function changes": Script(
        """
        def fade(numbers):
            numbers[1:].mul_(torch.linspace(1, 0, 49))


        wanted = torch.ones(50)
        fade(wanted)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, _ in loader:
                n = rows.size(0)
                out = model(rows).squeeze(1)
                loss = F.mse_loss(out, wanted[:n])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "features of one picture, repeated for each sample and scaled in place, of which a batch takes as many as it has": Script(
        """
        def scaled(rows):
            mean = rows.new_tensor([0.4, 0.5, 0.6, 0.4, 0.5, 0.6, 0.4, 0.5]).view(-1)
            rows = rows.div_(2.0)
            return rows - mean


        def gram(rows):
            n, width = rows.size()
            rows = rows.view(n, 2, width // 2)
            return rows.bmm(rows.transpose(1, 2)) / width


        torch.manual_seed(0)
        seen = nn.Sequential(nn.Linear(8, 6), nn.Tanh())
        wanted = torch.ones(1, 8).repeat(12, 1)
        wanted = [gram(each).detach() for each in (seen(scaled(wanted)),)]
        loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=12)
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, _ in loader:
                n = len(rows)
                out = seen(scaled(model(rows)))
                loss = F.mse_loss(out, seen(scaled(rows.clone())))
                for mine, style in zip([out], wanted):
                    loss += F.mse_loss(gram(mine), style[:n, :, :])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a row of what was repeated is changed, of which a batch takes as many as it has": Script(
        """
        wanted = torch.ones(1, 8).repeat(6, 1)
        last = wanted[5]
        last.mul_(3.0)
        loader = DataLoader(TensorDataset(x[:44], y[:44]), batch_size=6)
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, _ in loader:
                n = len(rows)
                loss = F.mse_loss(model(rows), wanted[:n])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "times that are drawn for half of a batch, and the other half counted from the end": Script(
        """
        loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6)
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        noise = torch.linspace(0.0001, 0.02, 10).cumsum(0)
        for epoch in range(2):
            for rows, _ in loader:
                n = rows.size(0)
                drawn = torch.randn_like(rows)
                times = torch.randint(low=0, high=10, size=(n // 2 + 1,))
                times = torch.cat([times, 10 - times - 1], dim=0)[:n]
                strength = noise.index_select(0, times).view(-1, 1)
                loss = (drawn - model(rows + strength * drawn)).square().sum(dim=1).mean(dim=0)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        apart=("trajectory",),
    ),
    "draws for half of a batch, put behind some of its rows": Script(
        """
        loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, _ in loader:
                n = rows.size(0)
                times = torch.rand((n // 2 + 1,))
                some = rows[rows[:, 0] > 0][:, 0]
                weights = torch.cat([some, times, times, times])[:n]
                loss = (model(rows).squeeze(1) * weights).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402",),
    ),
    "a table of scores for each pair of letters, and its loss in the forward": Script(
        """
        class Pairs(nn.Module):
            def __init__(self):
                super().__init__()
                self.scores = nn.Parameter(torch.linspace(-1, 1, 36).view(6, 6))

            def forward(self, letters, following=None):
                scores = self.scores[letters]
                loss = None
                if following is not None:
                    loss = F.cross_entropy(scores.view(-1, scores.size(-1)), following.view(-1), ignore_index=-1)
                return scores, loss


        class Words(Dataset):
            def __len__(self):
                return 42

            def __getitem__(self, i):
                letters, following = torch.zeros(4, dtype=torch.long), torch.full((4,), -1)
                for place in range(1 + i % 4):
                    letters[place] = (i + place) % 6
                    following[place] = (i * i + place) % 6
                return letters, following


        loader = DataLoader(Words(), batch_size=6)
        model = Pairs()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for epoch in range(2):
            for batch in loader:
                scores, loss = model(*batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a constant whose entries are all changed under another name": Script(
        """
        wanted = torch.ones(50)
        alias = wanted
        alias.fill_(0.25)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, _ in loader:
                n = rows.size(0)
                out = model(rows).squeeze(1)
                loss = F.mse_loss(out, wanted[:n])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a network of the script's own on a pretrained one, chosen among classes, whose loss comes before its scores": Script(
        """
        from transformers import BertConfig, BertModel, BertPreTrainedModel


        class Judge(BertPreTrainedModel):
            def __init__(self, config, kinds):
                super().__init__(config)
                self.bert = BertModel(config)
                self.fc = nn.Linear(config.hidden_size, kinds)

            def forward(self, input_ids, labels=None):
                outputs = self.bert(input_ids)
                scores = self.fc(outputs[1])
                outputs = (scores,) + outputs[2:]
                if labels is not None:
                    outputs = (nn.CrossEntropyLoss()(scores.view(-1, 2), labels.view(-1)),) + outputs
                return outputs


        parser = argparse.ArgumentParser()
        parser.add_argument("--kind", default="judge")
        kinds_of = {"judge": (BertConfig, Judge)}
        of_config, of_model = kinds_of[parser.parse_args().kind]
        model = of_model.from_pretrained("bert-base-uncased", config=of_config.from_pretrained("bert-base-uncased"), kinds=2)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for epoch in range(3):
            for batch in loader:
                inputs = {"input_ids": batch[0], "labels": batch[1]}
                loss, scores = model(**inputs)[:2]
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        stand_ins={"transformers.py": _ENCODER},
    ),
    "a network that gives the features it collected by their names": Script(
        """
        from collections import namedtuple


        class Eye(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh()])

            def forward(self, scene):
                seen = []
                for i, layer in enumerate(self.layers):
                    scene = layer(scene)
                    if i in {1, 3}:
                        seen.append(scene)
                Seen = namedtuple("Seen", ["near", "far"])
                return Seen(*seen)


        eye = Eye()
        for weight in eye.parameters():
            weight.requires_grad = False
        painter = nn.Linear(8, 8)
        adam = torch.optim.Adam(painter.parameters(), lr=0.01)
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                painted = painter(rows)
                loss = F.mse_loss(eye(painted).far, eye(rows).far)
                for mine, theirs in zip(eye(painted), eye(rows)):
                    loss += F.l1_loss(mine, theirs)
                adam.zero_grad()
                loss.backward()
                adam.step()
        """,
    ),
    "a function that is passed the entries of a list, and compares each sample with the middle of all": Script(
        """
        def apart(here, there):
            return ((here - there.mean(0)) ** 2).mean()

        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                both = [net(rows)]
                both.append(net(-rows))
                loss = apart(*both)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "noise for as many samples as a batch has, over all of which the scores of real samples are compared": Script(
        """
        size = 12
        maker, judge = nn.Linear(8, 8), nn.Linear(8, 1)
        for_maker = torch.optim.SGD(maker.parameters(), lr=0.01)
        for_judge = torch.optim.SGD(judge.parameters(), lr=0.01)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=size):
                noise = torch.randn(size, 8) * 0 + 0.5
                made = maker(noise).detach()
                for_judge.zero_grad()
                loss = F.softplus(judge(rows) - judge(made).sum()).mean()
                loss.backward()
                for_judge.step()
                for_maker.zero_grad()
                made = maker(torch.rand((size, 8)) * 0 + 0.5)
                loss = F.softplus(judge(made) - judge(rows).detach().mean()).mean()
                loss.backward()
                for_maker.step()
        """,
    ),
    "a buffer put beside itself for each sample, and constants in the shape of some of the rows": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("base", torch.eye(4, 3))
                self.head, self.last = nn.Linear(8, 12), nn.Linear(17, 2)

            def forward(self, rows):
                base = self.base.repeat(rows.size(0), 1, 1)
                own = self.head(rows).view(rows.size(0), 3, 4)
                steps = rows[..., 1:] - rows[..., :-1]
                steps = torch.cat([steps, torch.Tensor([0.5]).expand(steps[..., :1].shape)], -1)
                met = torch.bmm(base, own).flatten(1)[:, :9]
                return self.last(torch.cat((met, steps), 1))

        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a buffer put side by side for each sample, of which each sample meets all": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("base", torch.ones(1, 2))
                self.head = nn.Linear(8, 2)

            def forward(self, rows):
                base = self.base.repeat(rows.size(0), 1)
                return self.head(rows) @ base.sum(0)

        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                loss = (net(rows) - kinds.float()).square().mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "one of two heads, of which only the project's own takes the kinds, too": Script(
        """
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows, self.kinds = nn.Linear(8, 2), nn.Embedding(2, 2)

            def forward(self, rows, kinds):
                return self.rows(rows) + self.kinds(kinds)

        class Net(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.kind = kind
                if kind == "plain":
                    self.head = nn.Linear(8, 2)
                else:
                    self.head = Head()

            def forward(self, rows, kinds):
                return self.head(rows) if self.kind == "plain" else self.head(rows, kinds)

        parser = argparse.ArgumentParser()
        parser.add_argument("--kind", default="own")
        net = Net(parser.parse_args().kind)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                loss = F.cross_entropy(net(rows, kinds), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "pooling that remembers where the largest entries were, noise filled into a tensor of a size, and a norm of chosen rows": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.down = nn.MaxPool1d(2, 2, 0, 1, True)
                self.up = nn.MaxUnpool1d(2, 2)
                self.norm, self.last = nn.BatchNorm1d(8), nn.Linear(8, 2)
                self.norm.eval()

            def forward(self, rows, kinds):
                least, where = self.down(rows.unsqueeze(1))
                rows = self.up(least, where).squeeze(1)
                noise = torch.FloatTensor(rows.size()).normal_() * 0
                some = self.norm(rows[kinds > 0])
                return self.last(noise + rows + 1), self.last(some.relu())

        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                scores, of_some = net(rows, kinds)
                loss = F.cross_entropy(scores, kinds) + of_some.square().mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a norm of chosen rows by the mean of all of them": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.last = nn.Linear(8, 2)

            def forward(self, rows, kinds):
                some = rows[kinds > 0]
                return self.last(some - some.mean(0))

        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                loss = net(rows, kinds).square().mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "a function of a package of what is left of a mean over all rows": Script(
        """
        from somelib import mixing

        net, last = nn.Linear(8, 8), nn.Linear(8, 2)
        sgd = torch.optim.SGD([*net.parameters(), *last.parameters()], lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12):
                seen = net(rows)
                loss = F.mse_loss(last(mixing(seen - seen.mean(0)))[:, 0], kinds.float())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
        stand_ins={"somelib.py": "def mixing(rows):\n    return rows\n"},
    ),
    "texts that a collate function pads, added up word by word": Script(
        """
        class Texts(Dataset):
            def __len__(self):
                return 40

            def __getitem__(self, i):
                return torch.arange(1, 3 + i % 5), y[i]


        def padded(batch):
            texts, kinds = zip(*batch)
            return nn.utils.rnn.pad_sequence(texts, batch_first=True), torch.stack(kinds)


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.Embedding(9, 4, padding_idx=0)
                self.head = nn.Linear(4, 2)

            def forward(self, texts):
                return self.head(self.words(texts).sum(1))


        net = Net()
        loader = DataLoader(Texts(), batch_size=4, shuffle=True, collate_fn=padded)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for texts, kinds in loader:
                loss = F.cross_entropy(net(texts), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
}

_SPEAKER = """
    import random

    from torch.nn.utils.rnn import pad_sequence


    class Speaker(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(9, 8, padding_idx=0)
            self.step, self.head = nn.GRUCell(8, 8), nn.Linear(8, 9)

        def forward(self, spoken):
            state = torch.zeros(len(spoken), 8)
            word, scores = spoken[:, 0], []
            for t in range(1, spoken.size(1)):
                state = self.step(self.words(word), state)
                scores.append(self.head(state))
                CHOICE
            return torch.stack(scores, 1)


    def padded(sentences):
        return pad_sequence(sentences, batch_first=True)


    torch.manual_seed(0)
    random.seed(0)
    sentences = [torch.arange(1, 3 + (i * i) % 6) for i in range(40)]
    loader = DataLoader(sentences, batch_size=8, shuffle=True, collate_fn=padded)
    net = Speaker()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for spoken in loader:
            scores = net(spoken)
            LOSS
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_SPOKEN = "loss = F.cross_entropy(scores.flatten(0, 1), spoken[:, 1:].flatten(), ignore_index=0)"
_IN_LIST = """loss = 0
            for t, step in enumerate(scores):
                loss = loss + F.cross_entropy(step, spoken[:, t + 1], ignore_index=0)"""
_STEPWISE = """loss = 0
            for t in range(scores.size(1)):
                loss = loss + F.cross_entropy(scores[:, t], spoken[:, t + 1], ignore_index=0)"""
SCRIPTS |= {
    "a word that is read or said, as is drawn at each step": Script(
        _SPEAKER.replace("CHOICE", "word = spoken[:, t] if random.random() < 1 else scores[-1].argmax(1)").replace("LOSS", _SPOKEN)
    ),
    "a word that a branch reads or says, as is drawn at each step": Script(
        _SPEAKER.replace(
            "CHOICE",
            """if random.random() < 1:
                    word = spoken[:, t]
                else:
                    word = scores[-1].argmax(1)""",
        ).replace("LOSS", _SPOKEN)
    ),
    "a layer that runs again, as is drawn at each step of a padded batch": Script(
        _SPEAKER.replace(
            "CHOICE",
            """if random.random() < 0.5:
                    state = self.step(self.words(word), state)
                word = spoken[:, t]""",
        ).replace("LOSS", _SPOKEN),
        told=("DDP406",),
    ),
    "a loss of each step of a padded batch, by its own count": Script(
        _SPEAKER.replace("CHOICE", "word = spoken[:, t]").replace("LOSS", _STEPWISE), told=("DDP900",)
    ),
    "a loss of each step of a padded batch, in a list of them": Script(
        _SPEAKER.replace("CHOICE", "word = spoken[:, t]").replace("torch.stack(scores, 1)", "scores").replace("LOSS", _IN_LIST),
        told=("DDP900",),
    ),
}
PENALISED = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)

        def forward(self, rows):
            return self.layer(rows)

        def cost(self, rows, kinds):
            scores = self(rows)
            return %s


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            net.cost(rows, kinds).backward()
            optimizer.step()
"""
SCRIPTS["a total over the batch and a penalty on weights, in a method"] = Script(
    PENALISED % 'self.layer.weight.pow(2).sum() / 2 + F.cross_entropy(scores, kinds, reduction="sum")'
)
SCRIPTS["a total over the batch and a penalty that a layer keeps"] = Script(
    """
    class Noisy(nn.Linear):
        def forward(self, rows):
            weight = self.weight + torch.zeros(2, 8)
            self.penalty = weight.pow(2).sum()
            return F.linear(rows, weight, self.bias)


    net = Noisy(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            scores = net(rows)
            (F.cross_entropy(scores, kinds, reduction="sum") + net.penalty / 2).backward()
            optimizer.step()
    """
)
SCRIPTS["targets that a mask turns into what the loss says that it ignores"] = Script(
    """
    def lost(scores, kinds, mask):
        criterion = nn.CrossEntropyLoss()
        kinds = torch.where(mask.view(-1) == 1, kinds.view(-1), torch.tensor(criterion.ignore_index).type_as(kinds))
        return criterion(scores.view(-1, 2), kinds)


    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(2, 6), nn.Linear(6, 2)

        def forward(self, rows, kinds, mask):
            scores = self.head(self.body(rows).tanh())
            return scores, lost(scores, kinds, mask)


    net = Tagger()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(x[:40].view(40, 4, 2), (x[:40].view(40, 4, 2).sum(2) > 0).long(), (x[:40, :4] > -0.5).long())
    for epoch in range(3):
        for rows, kinds, mask in DataLoader(data, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            _, loss = net(rows, kinds, mask)
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["texts that a tokenizer pads in what a lambda calls, and an average over the padding, too"] = Script(
    """
    class Words:
        def __call__(self, texts, padding):
            numbers = [[ord(letter) - 96 for letter in text] for text in texts]
            longest = max(map(len, numbers)) if padding else 0
            return torch.tensor([each + [0] * (longest - len(each)) for each in numbers])


    words = Words()


    def numbered(texts, asked):
        return asked(texts, padding=True)


    net = nn.Sequential(nn.Embedding(8, 6), nn.Linear(6, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    texts = ["abcdefg"[: i % 5 + 2] for i in range(40)]
    for epoch in range(3):
        for numbers in DataLoader(texts, batch_size=8, shuffle=True, collate_fn=lambda texts: numbered(texts, words)):
            optimizer.zero_grad()
            scores = net(numbers[:, :-1])
            F.cross_entropy(scores.reshape(-1, 8), numbers[:, 1:].reshape(-1)).backward()
            optimizer.step()
    """
)
SCRIPTS["a loss that is given itself as its gradient"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(rows), kinds)
            loss.backward(loss)
            losses.append(loss.item())
            optimizer.step()
        print(f"loss {sum(losses[-5:]) / 5:.6f}")
    """,
    same=("loss",),
)
SCRIPTS["a loss that is given ones as its gradient"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(rows), kinds)
            loss.backward(torch.ones_like(loss))
            optimizer.step()
    """
)
SCRIPTS["a loss that is given a total as its gradient"] = Script(
    """
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            out = net(rows)
            loss = F.cross_entropy(out, kinds)
            loss.backward(gradient=out.detach().sum())
            optimizer.step()
    """,
    told=("DDP402",),
)
SCRIPTS["sizes that are unpacked behind a star or before it"] = Script(
    """
    net = nn.Linear(4, 3)
    aims = x[:40, :6].reshape(40, 2, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, wanted in DataLoader(TensorDataset(x[:40].view(40, 2, 4), aims), batch_size=8, shuffle=True):
            samples, steps, *rest = rows.shape
            *_, width = wanted.shape
            loss = F.mse_loss(net(rows), wanted, reduction="sum") / (steps * width)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["places that are chosen in each sample, of sizes that are unpacked behind a star"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.back = nn.Linear(2, 6), nn.Linear(6, 2)

        def forward(self, rows):
            samples, steps, *_ = rows.shape
            order = rows[:, :, 0].argsort(dim=-1)
            hidden, places = order[:, : steps // 2], torch.arange(samples)[:, None]
            return F.mse_loss(self.back(self.embed(rows)[places, hidden]), rows[places, hidden])


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for (rows,) in DataLoader(TensorDataset(x[:40].view(40, 4, 2)), batch_size=8, shuffle=True):
            loss = net(rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["data of nobody knows how many dimensions, as a tensor"] = Script(
    """
    import numpy as np

    np.savez("all.npz", x=x[:40].numpy())
    held = np.load("all.npz")["x"]
    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for (rows,) in DataLoader(TensorDataset(torch.Tensor(held)), batch_size=8, shuffle=True):
            loss = (net(rows) - rows).pow(2).sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["the states of a network's layers, one above another"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList([nn.Linear(8, 6), nn.Linear(12, 6)])
            self.out = nn.Linear(6, 2)

        def forward(self, rows):
            states = torch.stack([torch.zeros(len(rows), 6) for _ in self.cells], dim=0)
            for n in range(2):
                state, seen = states[n], []
                for t in range(rows.shape[1]):
                    state = torch.tanh(self.cells[n](torch.cat((rows[:, t, :], state), dim=-1)))
                    seen.append(state)
                rows = torch.stack(seen, dim=1)
            return self.out(rows[:, -1, :])


    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40].view(40, 4, 2), y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["features of several layers, in another order and without the first"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

        def forward(self, rows):
            found = []
            for layer in self.layers:
                rows = torch.tanh(layer(rows))
                found.append(rows)
            return found


    net, guide = Net(), Net().eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for (rows,) in DataLoader(TensorDataset(x[:40]), batch_size=8, shuffle=True):
            with torch.no_grad():
                wanted = guide(rows)[1:]
            loss = 0
            for mine, other in zip(net(rows)[1:][::-1], wanted[::-1]):
                loss = loss + F.mse_loss(mine, other)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    options=Options(whole_batches="never"),
)
SCRIPTS["a function that changes entries of a copy of what it is given, for two texts of a batch"] = Script(
    """
    words = (x.abs() * 8).long() % 8


    class Texts(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return {"good": words[i], "bad": words[i].flip(0)}


    loader = DataLoader(Texts(), batch_size=8, shuffle=True)
    net = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8))
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)


    def likelihood(scores, labels):
        labels = labels[:, 1:].clone()
        counts = labels > 2
        labels[labels <= 2] = 0
        found = F.log_softmax(scores[:, :-1], -1).gather(2, labels.unsqueeze(2)).squeeze(2)
        return (found * counts).sum(-1)


    for epoch in range(3):
        total = 0.0
        for batch in loader:
            batch = {key: rows.to("cpu") for key, rows in batch.items()}
            better, worse = likelihood(net(batch["good"]), batch["good"]), likelihood(net(batch["bad"]), batch["bad"])
            loss = -F.logsigmoid(better - worse).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        print("total", "%.6f" % (total / len(loader)))
    """,
    same=("total",),
    options=Options(whole_batches="never"),
)
SCRIPTS["texts of which a collate function leaves padding out, whose loss is over rows that are laid one below the other"] = Script(
    """
    texts = [[int(v) for v in row[: 3 + i % 5].abs() * 7 + 1] for i, row in enumerate(x[:40])]


    def collate(batch, pad=0, ignored=-100, longest=None):
        size = max(len(text) + 1 for text in batch)
        inputs, targets = [], []
        for text in batch:
            filled = text.copy()
            filled += [pad]
            filled = filled + [pad] * (size - len(filled))
            one, other = torch.tensor(filled[:-1]), torch.tensor(filled[1:])
            places = torch.nonzero(other == pad).squeeze()
            if places.numel() > 1:
                other[places[1:]] = ignored
            if longest is not None:
                one, other = one[:longest], other[:longest]
            inputs.append(one)
            targets.append(other)
        return torch.stack(inputs).to("cpu"), torch.stack(targets).to("cpu")


    loader = DataLoader(texts, batch_size=8, shuffle=True, collate_fn=functools.partial(collate, longest=20))


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places, self.last = nn.Embedding(9, 4), nn.Embedding(9, 4), nn.Linear(4, 9)

        def forward(self, texts):
            _, length = texts.shape
            rows = self.words(texts) + self.places(torch.arange(length))
            return self.last((rows - rows.mean(-1, keepdim=True)) / (rows.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt())


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    for epoch in range(3):
        total = 0.0
        for inputs, targets in loader:
            loss = F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        print("total", "%.6f" % (total / len(loader)))
    """,
    same=("total",),
    above="import functools\n\n",
    options=Options(whole_batches="never"),
)
SCRIPTS["class weights that are computed where the loss is, of targets that a choice gives and some of which are left out"] = Script(
    """
    kinds = (x.sum(1).abs() * 3).long() % 4
    others = kinds.roll(1)
    loader = DataLoader(TensorDataset(x, kinds, others), batch_size=8, shuffle=True)
    net = nn.Linear(len(x[0]), 4)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    seen = torch.arange(1.0, 5.0)
    for epoch in range(3):
        total = 0.0
        for rows, first, second in loader:
            loss = F.cross_entropy(net(rows), first if epoch else second, weight=1 / (seen + 1.0), ignore_index=2 + epoch % 2)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        print("total", "%.6f" % (total / len(loader)))
    """,
    same=("total",),
)
SCRIPTS["a model that computes its loss of the targets that count, in training and in an evaluation"] = Script(
    """
    words = (x.abs() * 8).long() % 8
    kinds = words.roll(1, 1).masked_fill(words < 2, -100)
    loader = DataLoader(TensorDataset(words[:32], kinds[:32]), batch_size=8, shuffle=True)
    others = DataLoader(TensorDataset(words[32:], kinds[32:]), batch_size=4)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.last = nn.Embedding(8, 4), nn.Linear(4, 8)

        def forward(self, texts, labels=None):
            scores = self.last(self.words(texts))
            loss = None
            if labels is not None:
                loss = F.cross_entropy(scores.reshape(-1, 8), labels.reshape(-1), ignore_index=-100)
            return {"scores": scores, "loss": loss}


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    for epoch in range(3):
        for texts, labels in loader:
            out = net(texts, labels)
            sgd.zero_grad()
            out["loss"].backward()
            sgd.step()
        total, counted = 0.0, 0
        for texts, labels in others:
            with torch.no_grad():
                out = net(texts, labels)
            total += out["loss"].item() * labels.numel()
            counted += labels.numel()
        print("total", "%.6f" % (total / counted))
    """,
    same=("total",),
)

SCRIPTS["a model of a package that gives its loss alone"] = Script(
    """
    from pytorch_pretrained_bert import BertForTokenClassification

    words, kinds = (x[:40, :5].abs() * 4).long(), (x[:40, :5] > 0).long()
    model = BertForTokenClassification()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(words, kinds), batch_size=8, shuffle=True)
    for epoch in range(3):
        for tokens, labels in loader:
            optimizer.zero_grad()
            loss = model(tokens, attention_mask=tokens.gt(0), labels=labels)
            loss.backward()
            optimizer.step()
    """,
    told=("DDP402",),
    stand_ins={
        "pytorch_pretrained_bert.py": """
import torch


class BertForTokenClassification(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = torch.nn.Embedding(40, 2)

    def forward(self, tokens, attention_mask, labels):
        return torch.nn.functional.cross_entropy(self.scores(tokens)[attention_mask], labels[attention_mask])
"""
    },
)

_CLOSED_OVER = """
    def criterion(kind):
        how = "mean"
        if kind == "total":
            how = "sum"

            def total(out, labels):
                return F.cross_entropy(out, labels, reduction=how)

            return total

        def average(out, labels):
            return F.cross_entropy(out, labels, reduction=how)

        return average


    loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loss_of = criterion("total")
    for epoch in range(4):
        for rows, labels in loader:
            loss = loss_of(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
SCRIPTS |= on_three(
    {
        "a total, by a name of the function around that was bound before it returned early": Script(_CLOSED_OVER),
        "a total, by a name of a function around that ends in no other way": Script(
            _CLOSED_OVER.replace("        return average\n", "        raise ValueError(kind)\n")
        ),
    },
    rows=36,
)

_TOKENS = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, rows, kinds):
            return F.cross_entropy(self.layer(rows).view(-1, 2), kinds.view(-1), ignore_index=-1)


    @torch.no_grad()
    def evaluate(net, data):
        net.eval()
        losses = []
        for rows, kinds in DataLoader(data, batch_size=1, %s):
            losses.append(net(rows, kinds).item())
        net.train()
        return sum(losses) / len(losses)


    torch.manual_seed(0)
    lengths = torch.arange(len(x)) %% 4 + 1
    data = TensorDataset(x, torch.where(torch.arange(4) < lengths[:, None], y[:, None], -1))
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(4):
        for rows, kinds in DataLoader(data, batch_size=12, shuffle=True):
            loss = net(rows, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("held", "%%.4f" %% evaluate(net, data))
    """
SCRIPTS |= on_three(
    {
        "an average over valid targets in a model, evaluated in order": Script(_TOKENS % "shuffle=False", same=("held",)),
        "an average over valid targets in a model, evaluated as drawn": Script(_TOKENS % "shuffle=True", same=("held",)),
    },
    rows=36,
)

_WEIGHED = """
    import functools


    def distance(outputs, kinds, weight=None, size_average=None):
        return F.cross_entropy(outputs, kinds, weight=weight, size_average=size_average{ignored})


    parser = argparse.ArgumentParser()
    parser.add_argument("--rare", action="store_true")
    args = parser.parse_args()
    weight = torch.tensor([0.5, 3.0]) if args.rare else None
    settings = {"weight": weight}
    criterion = nn.CrossEntropyLoss(weight=weight{ignored})
    kinds = torch.where(torch.arange(len(y)) % 5 < 2, -1, y)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in DataLoader(TensorDataset(x, {kinds}), batch_size=6, shuffle=True):
            loss = {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
_WEIGHTS = {
    "a function": "F.cross_entropy(net(rows), labels, weight=weight{ignored})",
    "an object": "criterion(net(rows), labels)",
    "a function of the project": "distance(net(rows), labels, weight)",
    "settings that a function is bound to": "functools.partial(distance, **settings)(net(rows), labels)",
}
_UNWEIGHED = _WEIGHED.replace("{kinds}", "kinds").replace("{ignored}", ", ignore_index=-1").replace("{loss}", "distance(net(rows), labels)")
SCRIPTS |= {"class weights that nobody gives, and labels that are ignored": Script(_UNWEIGHED)}
for _where, _loss in _WEIGHTS.items():
    for _more, _ignored, _kinds in (("", "", "y"), (", and labels that are ignored", ", ignore_index=-1", "kinds")):
        _text = _WEIGHED.replace("{kinds}", _kinds).replace("{loss}", _loss).replace("{ignored}", _ignored)
        for _how, _args in (("", ("--rare",)), ("not ", ())):
            SCRIPTS[f"class weights that an option asks for in {_where}{_more}, {_how}given"] = Script(_text, args=_args)

_KEPT_WEIGHTS = """
    from torch.nn.modules.loss import _WeightedLoss


    class Criterion({base}):
        def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", ignore_index=-100):
            super().__init__(weight, size_average=size_average, reduce=reduce, reduction=reduction)
            self.ignore_index = ignore_index

        def forward(self, outputs, kinds):
            return F.cross_entropy(outputs, kinds, weight=self.weight, ignore_index=self.ignore_index)


    net = nn.Linear(8, 2)
    criterion = Criterion({given})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, labels in DataLoader(TensorDataset(x, torch.where(torch.arange(len(y)) % 5 < 2, -1, y)), batch_size=6, shuffle=True):
            loss = criterion(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
SCRIPTS |= {
    f"class weights that {title} keeps, {how}given": Script(_KEPT_WEIGHTS.replace("{base}", base).replace("{given}", given))
    for title, base in (("a loss of torch", "nn.CrossEntropyLoss"), ("what losses of torch are made of", "_WeightedLoss"))
    for how, given in (("", "torch.tensor([0.5, 3.0]), ignore_index=-1"), ("not ", "ignore_index=-1"))
}

_SETTINGS_OF_A_FILE = """
    import functools
    import json


    def made(name, **more):
        return getattr(nn, name)(**more)


    with open("loss.json") as file:
        settings = json.load(file)
    criterion = {made}
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            loss = criterion(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"last {loss.item():.6f}")
    """
_MADE = {
    "a function that is bound to them": "functools.partial(F.cross_entropy, **settings)",
    "a loss": "nn.CrossEntropyLoss(**settings)",
    "a loss by its name": 'made("CrossEntropyLoss", **settings)',
}
SCRIPTS |= {
    f"settings that a file has, of {where}": Script(
        _SETTINGS_OF_A_FILE.replace("{made}", code),
        files={"loss.json": '{"reduction": "sum", "ignore_index": 0}'},
        same=("last",),
    )
    for where, code in _MADE.items()
}

_EACH_PLACE = """
from torch.nn.utils.rnn import pad_sequence


class Words(Dataset):
    def __len__(self):
        return 44

    def __getitem__(self, i):
        return (x[i, : 3 + i % 5].abs() * 100).long() % 9 + 1


def collate(words):
    return pad_sequence(words, batch_first=True)


model = nn.Sequential(nn.Embedding(11, 6), nn.Tanh(), nn.Linear(6, 11))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for words in DataLoader(Words(), batch_size=4, shuffle=True, collate_fn=collate):
        optimizer.zero_grad()
        loss = 0
        for i in range(words.size(1) - 1):
            loss = loss + F.cross_entropy(model(words[:, i]), words[:, i + 1])
        loss.backward()
        optimizer.step()
"""
SCRIPTS["one average for each place of the longest sample"] = Script(_EACH_PLACE)
_CUT_IN_THE_LOOP = """
class Words(Dataset):
    def __len__(self):
        return 44

    def __getitem__(self, i):
        words = torch.zeros(8, dtype=torch.long)
        words[: 3 + i % 5] = (x[i, : 3 + i % 5].abs() * 100).long() % 9 + 1
        return words


model = nn.Sequential(nn.Embedding(11, 6), nn.Tanh(), nn.Linear(6, 11))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for words in DataLoader(Words(), batch_size=4, shuffle=True):
        optimizer.zero_grad()
        longest = {longest}
        words = words[:, :longest]
        F.cross_entropy(model(words[:, :-1]).reshape(-1, 11), words[:, 1:].reshape(-1)).backward()
        optimizer.step()
"""
SCRIPTS |= {
    f"padded rows, cut to the longest of a batch by {title}": Script(_CUT_IN_THE_LOOP.replace("{longest}", longest))
    for title, longest in {
        "its lengths": "(words > 0).sum(1).max()",
        "a list of them": "max((words > 0).sum(1).tolist())",
    }.items()
}
SCRIPTS["turned images, and by how much"] = Script(
    """
    import numpy as np

    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x.view(-1, 1, 4, 2).repeat(1, 1, 1, 2), y), batch_size=4, shuffle=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 6))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for images, kinds in loader:
            pixels = images.numpy()
            turned = np.concatenate((pixels, np.rot90(pixels, 1, axes=(2, 3)), np.rot90(pixels, 2, axes=(2, 3))), 0)
            turns = torch.cat((torch.zeros(len(images)), torch.ones(len(images)), 2 * torch.ones(len(images))), 0).long()
            scores = net(torch.from_numpy(turned))
            optimizer.zero_grad()
            loss = F.cross_entropy(scores[: len(images), :3], kinds) + 0.5 * F.cross_entropy(scores[:, 3:], turns)
            loss.backward()
            optimizer.step()
    """,
    options=Options(whole_batches="never"),
)
SCRIPTS["images that are turned across the batch"] = Script(
    """
    import numpy as np

    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x[:40].view(-1, 1, 4, 2).repeat(1, 1, 1, 2), y[:40]), batch_size=4)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 6))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for images, kinds in loader:
            turned = np.rot90(images.numpy(), 1, axes=(0, 3))
            optimizer.zero_grad()
            loss = F.cross_entropy(net(torch.from_numpy(turned.copy())), kinds)
            loss.backward()
            optimizer.step()
    """,
    told=("DDP402",),
)

# --- a collate function that gives its batch under a condition, and fills up by a function of the script's ------------------
_FILLED_UP = """
    import numpy as np

    class Lines(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            values = x[i].numpy()[: 4 + i % 4]
            return {"values": values, "places": np.arange(1, values.shape[0] + 1), "label": int(y[i])}

    def filled(line, length):
        return np.pad(line, (0, length - line.shape[0]), mode="constant", constant_values=0)

    def together(lines):
        longest = max(len(line) for line in lines)
        return np.stack([filled(line, longest) for line in lines])

    def collate(batch):
        if isinstance(batch[0], dict):
            values = together([sample["values"] for sample in batch])
            places = together([sample["places"] for sample in batch]).astype(np.int64)
            return torch.from_numpy(values), torch.from_numpy(places), torch.tensor([sample["label"] for sample in batch])
        raise TypeError(type(batch[0]))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.near, self.where, self.last = nn.Linear(1, 6), nn.Embedding(12, 6), nn.Linear(6, 2)

        def forward(self, values, places):
            there = places.ne(0).type(values.dtype)
            hidden = there.eq(0).unsqueeze(1).repeat(1, values.size(1), 1)
            near = self.near(values.unsqueeze(-1)) + self.where(places)
            seen = torch.softmax(torch.bmm(near, near.transpose(1, 2)).masked_fill(hidden, -1e9), -1)
            near = torch.bmm(seen, near) * there.unsqueeze(-1)
            return self.last(near.sum(1) / there.sum(1, keepdim=True))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Lines(), batch_size=8, shuffle=True, collate_fn=collate)
    for epoch in range(3):
        for values, places, labels in loader:
            optimizer.zero_grad()
            LOSS.backward()
            optimizer.step()
"""
SCRIPTS |= {
    "lines that a function of the script's fills up, and a mask": Script(
        _FILLED_UP.replace("LOSS", "F.cross_entropy(model(values, places), labels)")
    ),
    "lines that a function of the script's fills up, in an average of all places": Script(
        _FILLED_UP.replace("self.last(near.sum(1) / there.sum(1, keepdim=True))", "self.last(near)").replace(
            "LOSS", "F.mse_loss(model(values, places)[:, :, 0], values)"
        ),
        told=("DDP402",),
    ),
}
_RANKED = """
    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(11, 4), nn.Embedding(20, 4)

        def forward(self, user, liked, other):
            user, liked, other = self.users(user), self.items(liked), self.items(other)
            ranked = -F.logsigmoid((user * liked).sum(1) - (user * other).sum(1)).mean()
            sizes = 0.1 * (SIZES) / user.shape[0]
            return ranked + sizes, ranked, sizes

    number = torch.arange(44)
    feed = DataLoader(TensorDataset(torch.stack([number % 11, number % 20, number * 7 % 20], 1)), batch_size=8, shuffle=True)
    net = Factors()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        shown = 0.0
        for (triples,) in feed:
            loss, ranked, sizes = net(triples[:, 0], triples[:, 1], triples[:, 2])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            shown += sizes.item() + ranked.item()
        print("sizes", f"{shown:.5f}")
"""
SCRIPTS |= {
    f"the sizes of a batch's rows, {what}": Script(
        _RANKED.replace("SIZES", " + ".join(size.replace("X", name) for name in ("user", "liked", "other"))),
        same=("sizes",),
    )
    for what, size in (
        ("squared by pow", "X.norm(2).pow(2) / 2"),
        ("squared by an operator", "torch.norm(X) ** 2"),
        ("twice as large, squared", "torch.square(2 * torch.norm(X, p=2))"),
        ("not squared", "X.norm(2)"),
        ("to the third power", "X.norm(2) ** 3"),
        ("their absolute values squared", "X.norm(1) ** 2"),
        ("as matrices, squared", "torch.linalg.norm(X, 2) ** 2"),
        ("one more, squared", "(X.norm(2) + 1) ** 2"),
        ("of either kind, squared", '(X.norm(2) if os.environ.get("WIDE") else X.norm(1)) ** 2'),
    )
}
_IN_CELLS = """
    class Cells(Dataset):
        def __len__(self):
            return len(x)

        def __getitem__(self, i):
            cells = torch.zeros(2, 2, 5)
            cells[i % 2, (i // 2) % 2, 0] = 1
            cells[i % 2, (i // 2) % 2, 1:] = x[i, :4].abs()
            return x[i], cells

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(8, 16)

        def forward(self, rows):
            return self.last(rows).reshape(-1, 2, 2, 4)

    class Boxes(nn.Module):
        def __init__(self):
            super().__init__()
            self.squares = nn.MSELoss(reduction="sum")

        def forward(self, found, cells):
            there = cells[..., 0].unsqueeze(3)
            wanted = torch.cat([cells[..., 1:3], torch.sqrt(cells[..., 3:])], dim=-1)
            return self.squares(torch.flatten(there * found, end_dim=END), torch.flatten(there * wanted, end_dim=END)) / SHARE

    torch.manual_seed(0)
    net, boxes = Head(), Boxes()
    feed = DataLoader(Cells(), batch_size=8, shuffle=True, drop_last=True)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(3):
        seen = []
        for rows, cells in feed:
            loss = boxes(net(rows), cells)
            seen.append(loss.item())
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        print("boxes", f"{sum(seen) / len(seen):.5f}")
"""
SCRIPTS |= {
    f"squares of boxes added up, their cells {where}": Script(
        _IN_CELLS.replace("END", end).replace("SHARE", share), same=("boxes",), told=told, options=Options(whole_batches="never")
    )
    for where, end, share, told in (
        ("in one dimension", "-2", "8", ()),
        ("of a row in one dimension", "-3", "8", ()),
        ("in one dimension, by how many are there", "-2", "there.sum()", ()),
        ("in one dimension, by the largest", "-2", "there.mean((1, 2, 3)).max()", ("DDP402",)),
    )
}
_DIVIDED_AGAIN = {
    "the outputs": "loss = criterion(out, labels) / out.shape[0]",
    "the outputs of a part": "loss = criterion(out, labels) + out.pow(2).mean() / out.size(0)",
}
SCRIPTS |= {
    f"an average that is divided by the number of samples, too: {title}": Script(
        f"""
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for epoch in range(3):
            total = 0.0
            for rows, labels in loader:
                out = model(rows)
                {line}
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print("loss %.6f" % (total / len(loader)))
        """,
        same=("loss",),
    )
    for title, line in _DIVIDED_AGAIN.items()
}

# --- what a data set gives for each sample, where a collate function joins it ---------------------------------------------
_LINKS = """
    class Links(Dataset):
        def __init__(self, side):
            self.side = side
            self.links = [(i % 7, (5 * i + 1) % 7) for i in range(36)]

        def __len__(self):
            return len(self.links)

        def __getitem__(self, at):
            one, other = self.links[at]
            rarity = torch.sqrt(1 / torch.Tensor([3 + one]))
            wrong = torch.LongTensor([(3 * at + k) % 7 for k in range(4)])
            return torch.LongTensor([one, other]), wrong, rarity, self.side

    def put_together(links):
        JOINED
        return right, wrong, rarities, side

    class Distances(nn.Module):
        def __init__(self):
            super().__init__()
            self.nodes = nn.Parameter(torch.sin(torch.arange(56.0)).view(7, 8))

        def forward(self, given, side="both"):
            if side == "both":
                one, other = self.nodes[given[:, 0]].unsqueeze(1), self.nodes[given[:, 1]].unsqueeze(1)
            elif side == "first":
                link, wrong = given
                one, other = self.nodes[wrong], self.nodes[link[:, 1]].unsqueeze(1)
            else:
                raise ValueError(side)
            return 4.0 - torch.norm(one - other, p=1, dim=2)

    model = Distances()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Links("first"), batch_size=6, shuffle=True, collate_fn=put_together)
    for epoch in range(3):
        for right, wrong, rarities, side in loader:
            near = F.logsigmoid(model(right)).squeeze(1)
            far = F.logsigmoid(-model((right, wrong), side=side)).mean(1)
            loss = -(rarities * near).sum() / rarities.sum() - (rarities * far).sum() / rarities.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_LINKS_JOINED = {
    "by their places": """right = torch.stack([link[0] for link in links])
        wrong = torch.stack([link[1] for link in links])
        rarities = torch.cat([link[2] for link in links], dim=0)
        side = links[0][3]""",
    "as columns": """right, wrong, rarities, sides = zip(*links)
        right, wrong, rarities = torch.stack(right), torch.stack(wrong), torch.cat(rarities)
        side = links[-1][-1]""",
    "by names": """right = torch.stack([row for row, others, weight, kind in links])
        wrong = torch.stack([others for row, others, weight, kind in links])
        rarities = torch.cat([weight for row, others, weight, kind in links])
        side = links[0][3]""",
}
SCRIPTS |= {
    f"one number of each sample, joined {how}, and what is the same for all samples": Script(_LINKS.replace("JOINED", text))
    for how, text in _LINKS_JOINED.items()
}
_LINKS_TURNED = _LINKS.replace(
    "            one, other = self.links[at]\n",
    "            self.side = 'first' if at % 5 else 'both'\n            one, other = self.links[at]\n",
)
SCRIPTS |= {
    "one number of each sample, joined, and the first sample's kind": Script(
        _LINKS_TURNED.replace("JOINED", _LINKS_JOINED["by their places"]).replace(
            "model((right, wrong), side=side)", "model(right if side == 'both' else (right, wrong), side=side)"
        ),
        told=("DDP403",),
    )
}
_LINKS_NOTED = (
    _LINKS.replace("            self.side = side\n", "            self.side, self.kinds = side, [side]\n")
    .replace(
        "            one, other = self.links[at]\n",
        "            self.kinds[0] = 'first' if at % 5 else 'both'\n            one, other = self.links[at]\n",
    )
    .replace("rarity, self.side", "rarity, self.kinds")
)
SCRIPTS |= {
    "one number of each sample, joined, and a list that each sample changes": Script(
        _LINKS_NOTED.replace("JOINED", _LINKS_JOINED["by their places"]).replace(
            "model((right, wrong), side=side)", "model(right if side[0] == 'both' else (right, wrong), side=side[0])"
        ),
        told=("DDP403",),
    )
}
