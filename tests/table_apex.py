"""Scripts that are given apex's mixed precision or its wrapper, run with a double of apex that holds them to its contract."""

from dataclasses import replace

import table_amp
import table_gradients
from scripts import APEX, Script

from ddpify import Options

# several models and losses: one scaler each, all models in one amp.initialize
GAN = Script("""
    class Painter(nn.Module):
        def __init__(self, seeds):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(seeds, 16), nn.ReLU(), nn.Linear(16, 8))

        def forward(self, noise):
            return self.body(noise)

    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

        def forward(self, picture):
            return self.body(picture).squeeze(1)

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--rounds", type=int, default=2)
        args = parser.parse_args()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(5)
        painter, critic = Painter(4).to(device), Critic().to(device)
        doubt = nn.BCEWithLogitsLoss()
        brush = torch.optim.Adam(painter.parameters(), lr=0.004, betas=(0.5, 0.9))
        eye = torch.optim.Adam(critic.parameters(), lr=0.004, betas=(0.5, 0.9))
        gallery = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        for number in range(args.rounds):
            for (real,) in gallery:
                real = real.to(device)
                ones, zeros = torch.ones(len(real), device=device), torch.zeros(len(real), device=device)
                fake = painter(real[:, :4])

                eye.zero_grad()
                found = doubt(critic(real), ones)
                found.backward()
                missed = doubt(critic(fake.detach()), zeros)
                missed.backward()
                eye.step()

                brush.zero_grad()
                fooled = doubt(critic(fake), ones)
                fooled.backward()
                brush.step()
            print("round", number, "of", args.rounds)

    if __name__ == "__main__":
        main()
    """)
# gradients of the critic are set to zero after its step only: what the painter's backward leaves is stepped along, too
LEFT_OVER = Script("""
    painter = nn.Linear(4, 8)
    critic = nn.Linear(8, 1)
    brush = torch.optim.SGD(painter.parameters(), lr=0.05)
    eye = torch.optim.SGD(critic.parameters(), lr=0.05)
    for number in range(2):
        for (real,) in DataLoader(TensorDataset(x), batch_size=4):
            fake = painter(real[:, :4])
            judged = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean()
            judged.backward()
            eye.step()
            eye.zero_grad()
            fooled = F.softplus(-critic(fake)).mean()
            fooled.backward()
            brush.step()
            brush.zero_grad()
    """)
TWO_IN_ONE = Script("""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    looking = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).to(device)
    reading = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).to(device)
    optimizer = torch.optim.AdamW([
        {"params": looking.parameters(), "lr": 0.01},
        {"params": reading.parameters(), "lr": 0.02},
    ], weight_decay=0.1)
    pairs = DataLoader(TensorDataset(x[:, :4], x[:, 4:], y), batch_size=4, shuffle=True)
    for epoch in range(2):
        for seen, read, same in pairs:
            seen, read, same = seen.to(device), read.to(device), same.to(device)
            likeness = F.cosine_similarity(looking(seen), reading(read))
            loss = F.binary_cross_entropy_with_logits(likeness, same.to(likeness.dtype))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*looking.parameters(), *reading.parameters()], 0.3)
            optimizer.step()
    """)
MOVED_LATE = Script("""
    def build():
        net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        return net

    net = build()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    rate = torch.optim.lr_scheduler.StepLR(sgd, 1, gamma=0.5)
    net = nn.DataParallel(net).cuda()
    for epoch in range(2):
        net.train()
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(xb.cuda()), yb.cuda()).backward()
            sgd.step()
        rate.step()
        net.eval()
        with torch.no_grad():
            right = sum((net(xb.cuda()).argmax(1) == yb.cuda()).sum().item() for xb, yb in DataLoader(TensorDataset(x, y), batch_size=8))
        print("right", right)
    """)
RESUMED = Script(
    """
    class Runner:
        def __init__(self, net, rate):
            self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            self.net = net.to(self.device)
            self.sgd = torch.optim.SGD(self.net.parameters(), lr=rate, momentum=0.9)
            self.rate = torch.optim.lr_scheduler.ExponentialLR(self.sgd, 0.9)
            self.begun = 0

        def resume(self, path):
            state = torch.load(path, map_location=self.device)
            self.net.load_state_dict(state["net"])
            self.sgd.load_state_dict(state["sgd"])
            self.rate.load_state_dict(state["rate"])
            self.begun = state["begun"]

        def save(self, path):
            state = dict(net=self.net.state_dict(), sgd=self.sgd.state_dict(), rate=self.rate.state_dict(), begun=self.begun)
            torch.save(state, path)

        def run(self, rows, until):
            for epoch in range(self.begun, until):
                for xb, yb in rows:
                    loss = F.cross_entropy(self.net(xb.to(self.device)), yb.to(self.device))
                    self.sgd.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_value_(self.net.parameters(), 0.05)
                    self.sgd.step()
                self.rate.step()
                self.begun = epoch + 1
                self.save("run.pt")

    torch.manual_seed(2)
    rows = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    runner = Runner(nn.Linear(8, 2), 0.2)
    if os.path.exists("run.pt"):
        runner.resume("run.pt")
    runner.run(rows, 2)
    """,
    apart=("keys",),
)
ACCUMULATED = Script("""
    import math

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2)).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    rows = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    steps = 2
    for epoch in range(3):
        for at, (xb, yb) in enumerate(rows, 1):
            loss = F.cross_entropy(net(xb.to(device)), yb.to(device), reduction="sum") / 4
            (loss / steps).backward()
            if at % steps == 0 or at == len(rows):
                size = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                if math.isfinite(size):
                    opt.step()
                opt.zero_grad()
    """)
IN_FUNCTIONS = Script("""
    def learn(net, xb, yb, weigh):
        loss = weigh(net(xb), yb)
        loss.backward()
        return loss.item()

    def epoch_of(net, rows, opt, weigh):
        total = 0.0
        for xb, yb in rows:
            opt.zero_grad()
            total += learn(net, xb, yb, weigh)
            opt.step()
        return total / len(rows)

    def main():
        net = nn.Linear(8, 2)
        rows = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        opt = torch.optim.RMSprop(net.parameters(), lr=0.01)
        for epoch in range(2):
            print("mean", epoch_of(net, rows, opt, nn.CrossEntropyLoss()))

    if __name__ == "__main__":
        main()
    """)
PARTS_REST = Script("""
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(8, 2)
            self.rests = nn.Linear(8, 2)

        def forward(self, rows):
            return self.used(rows)

    net = Two()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            opt.step()
    """)
DRAWN = Script("""
    class Waves(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("tones", torch.randn(8, 6))
            self.out = nn.Linear(12, 2)

        def forward(self, rows):
            heard = rows @ self.tones
            return self.out(torch.cat([heard.sin(), heard.cos()], 1))

    net = Waves()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            opt.step()
    """)
LISTED = Script("""
    nets = [nn.Linear(8, 2) for _ in range(2)]
    opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            for net, opt in zip(nets, opts):
                loss = F.cross_entropy(net(xb), yb)
                opt.zero_grad()
                loss.backward()
                opt.step()
    """)
PROBABLE = Script("""
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1), nn.Sigmoid())
    sure = nn.BCELoss()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y.double()), batch_size=4, shuffle=True):
            said = net(xb).squeeze(1)
            loss = sure(said, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)
PLAIN: dict[str, Script] = {
    "a gan with three losses": GAN,
    "gradients that another loss leaves behind": LEFT_OVER,
    "two models of one optimizer": TWO_IN_ONE,
    "a DataParallel model that is moved after its optimizer was made": MOVED_LATE,
    "a trainer that resumes": RESUMED,
    "steps that gather gradients": ACCUMULATED,
    "a backward call that does not know the optimizer": IN_FUNCTIONS,
    "a part that rests": PARTS_REST,
    "a buffer that is drawn": DRAWN,
    "lists of models and optimizers": LISTED,
    "a loss of probabilities": PROBABLE,
}


def with_apex(script: Script, **asked: object) -> Script:
    """The script, converted to something that needs apex."""
    return replace(script, options=Options(**asked), stand_ins={**script.stand_ins, **APEX})  # type: ignore[arg-type]


IN_TORCHS = ("a gan with three losses", "gradients that another loss leaves behind", "a part that rests")
WITHOUT_AMP = (
    "a gan with three losses",
    "a trainer that resumes",
    "a part that rests",
    "a buffer that is drawn",
    "lists of models and optimizers",
)
# an optimizer that has no name: an object of the script's holds it, and steps it
_WARMED = Script("""
    class Warmed:
        def __init__(self, optimizer, warmup):
            self.optimizer, self.warmup, self.steps = optimizer, warmup, 0

        def step(self):
            self.steps += 1
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 * min(self.steps**-0.5, self.steps * self.warmup**-1.5)
            self.optimizer.step()

        def zero_grad(self):
            self.optimizer.zero_grad()

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).cuda()
    MADE
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
            warmed.zero_grad()
            loss.backward()
            warmed.step()
""")
_WARMED_IN = {
    "made for it": "warmed = Warmed(torch.optim.SGD(net.parameters(), lr=0.0), 4)",
    "that a function makes": """def made_for(net):
        return Warmed(torch.optim.SGD(net.parameters(), lr=0.0), 4)

    warmed = made_for(net)""",
}
SCRIPTS: dict[str, Script] = {
    **{f"{title}, apex O1": with_apex(script, amp="apex-O1") for title, script in PLAIN.items()},
    **{f"{title}, apex O2": with_apex(script, amp="apex-O2") for title, script in PLAIN.items()},
    **{f"{title}, apex O2 in torch's wrapper": with_apex(PLAIN[title], amp="apex-O2", ddp="torch") for title in IN_TORCHS},
    **{f"{title}, in apex's wrapper": with_apex(PLAIN[title], ddp="apex") for title in WITHOUT_AMP},
}

# ------------------------------------------------------------------------------------------------------- apex in the input

CLIPPED = Script(
    """
    from apex import amp

    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 2)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale="dynamic")
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(2):
        for xb, yb in loader:
            loss = F.cross_entropy(model(xb.cuda()), yb.cuda())
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.4)
            optimizer.step()
        schedule.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "amp": amp.state_dict()}, "last.pt")
    """,
    apart=("keys",),
)
FLAGGED = Script(
    """
    try:
        from apex import amp
    except ImportError:
        amp = None

    def practise(args, net, rows, adam, rate):
        total = 0.0
        for at, (xb, yb) in enumerate(rows):
            loss = F.cross_entropy(net(xb), yb) / args.gather
            if args.fp16:
                with amp.scale_loss(loss, adam) as scaled:
                    scaled.backward()
            else:
                loss.backward()
            total += loss.item()
            if (at + 1) % args.gather == 0:
                if args.fp16:
                    nn.utils.clip_grad_norm_(amp.master_params(adam), args.most)
                else:
                    nn.utils.clip_grad_norm_(net.parameters(), args.most)
                adam.step()
                rate.step()
                net.zero_grad()
        return total / len(rows)

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--fp16", action="store_true")
        parser.add_argument("--fp16_opt_level", default="O1")
        parser.add_argument("--gather", type=int, default=1)
        parser.add_argument("--most", type=float, default=1.0)
        args = parser.parse_args()
        torch.manual_seed(6)
        net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
        adam = torch.optim.AdamW(net.parameters(), lr=0.02)
        if args.fp16:
            net, adam = amp.initialize(net, adam, opt_level=args.fp16_opt_level)
        rate = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 / (1 + step))
        rows = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            print("mean", round(practise(args, net, rows, adam, rate), 9))

    if __name__ == "__main__":
        main()
    """,
    args=("--fp16",),
    same=("mean",),
)
SEVERAL = Script("""
    import apex

    class Pair:
        def __init__(self):
            self.ours, self.theirs = nn.Linear(4, 8), nn.Linear(8, 1)
            self.first = torch.optim.SGD(self.ours.parameters(), lr=0.05)
            self.second = torch.optim.SGD(self.theirs.parameters(), lr=0.05)
            models, optimizers = apex.amp.initialize(
                [self.ours, self.theirs], [self.first, self.second], opt_level="O1", num_losses=2, loss_scale=128.0
            )
            self.ours, self.theirs = models
            self.first, self.second = optimizers

        def step(self, rows):
            made = self.ours(rows[:, :4])
            judged = F.softplus(self.theirs(made.detach())).mean() + F.softplus(-self.theirs(rows)).mean()
            self.second.zero_grad()
            with apex.amp.scale_loss(judged, self.second, loss_id=0) as loss:
                loss.backward()
            self.second.step()
            fooled = F.softplus(-self.theirs(made)).mean()
            self.first.zero_grad()
            with apex.amp.scale_loss(fooled, self.first, loss_id=1) as loss:
                loss.backward()
            self.first.step()

    pair = Pair()
    for epoch in range(2):
        for (rows,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
            pair.step(rows)
    """)
PARTS = Script("""
    from apex.normalization import FusedLayerNorm
    from apex.optimizers import FusedAdam, FusedSGD

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = FusedLayerNorm(8)
            self.out = nn.Linear(8, 2)

        def forward(self, rows):
            return self.out(self.norm(rows))

    net = Net()
    one = FusedAdam(net.norm.parameters(), lr=0.01)
    two = FusedSGD(net.out.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(xb), yb)
            one.zero_grad()
            two.zero_grad()
            loss.backward()
            one.step()
            two.step()
    """)
PRESENT = {"gradients clipped on amp's": CLIPPED, "amp by a flag": FLAGGED, "two models of apex": SEVERAL, "fused parts": PARTS}
ADAMS = Script("""
    torch.manual_seed(9)
    net, head = nn.Linear(8, 4), nn.Linear(4, 2)
    slow = torch.optim.AdamW(net.parameters(), 0.01, (0.8, 0.99))
    fast = torch.optim.Adam(head.parameters(), lr=0.02, weight_decay=0.1, foreach=True)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(head(net(xb).relu()), yb)
            slow.zero_grad(set_to_none=True)
            fast.zero_grad()
            loss.backward()
            slow.step()
            fast.step()
    """)
NOT_APEX = (
    "a context that is null on the cpu",
    "bfloat16 without a scaler",
    "two branches, with and without",
    "a forward that casts itself",
)
TORCH = {title: replace(s, told=("DDP416",) if title in NOT_APEX else ()) for title, s in table_amp.PRESENT.items()}
CHOOSES = Script("""
    class Fork(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(8, 2), nn.Linear(8, 2)

        def forward(self, rows):
            if rows.sum() > 0:
                return self.left(rows)
            return self.right(rows)

    net = Fork()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            opt.step()
    """)
ALONG = Script("""
    net = nn.Linear(8, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            xb.requires_grad_(True)
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            F.cross_entropy(net((xb + 0.5 * xb.grad).detach()), yb).backward()
            opt.step()
    """)
KEPT = Script("""
    from apex import amp

    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    net, opt = amp.initialize(net, opt, opt_level="O1")
    for epoch in range(2):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            said = net(xb.cuda())
            wrong, large = F.cross_entropy(said, yb.cuda()), said.pow(2).mean()
            opt.zero_grad()
            with amp.scale_loss(wrong, opt) as scaled:
                scaled.backward(retain_graph=True)
            with amp.scale_loss(large, opt) as scaled:
                scaled.backward()
            nn.utils.clip_grad_norm_(amp.master_params(opt), 0.5)
            opt.step()
    """)
BEFORE_THE_OTHER = Script("""
    painter, critic = nn.Linear(4, 8), nn.Linear(8, 1)
    brush = torch.optim.SGD(painter.parameters(), lr=0.05)
    for number in range(2):
        for (real,) in DataLoader(TensorDataset(x), batch_size=4):
            fake = painter(real[:, :4])
            judged, fooled = F.softplus(critic(fake)).mean(), F.softplus(-critic(fake)).mean()
            brush.zero_grad()
            judged.backward(retain_graph=True)
            brush.zero_grad()
            fooled.backward()
            brush.step()
    """)
STEEP = Script("""
    painter = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    critic = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    brush = torch.optim.Adam(painter.parameters(), lr=0.01)
    eye = torch.optim.Adam(critic.parameters(), lr=0.01)

    def steepness(judge, seen):
        slopes = torch.autograd.grad(judge(seen).sum(), seen, create_graph=True)[0]
        return (slopes.norm(2, dim=1) - 1).square().mean()

    for number in range(2):
        for (real,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
            eye.zero_grad()
            fake = painter(real[:, :4])
            between = (0.3 * real + 0.7 * fake.detach()).requires_grad_(True)
            worth = critic(fake.detach()).mean() - critic(real).mean() + 2 * steepness(critic, between)
            worth.backward()
            eye.step()
            brush.zero_grad()
            loss = -critic(painter(real[:, :4])).mean()
            loss.backward()
            brush.step()
    """)
AVERAGED = {
    "losses of several forwards": table_gradients.SEPARATE,
    "a backward whose gradients are thrown away": table_gradients.THROWN_AWAY,
    "two backward calls through one graph": table_gradients.SCRIPTS["two backwards through one forward"],
}
# a model that is saved as a whole, with what the training has come to
SAVED_WHOLE = Script("""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(2):
        for xb, yb in loader:
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        state = {"epoch": epoch, "model": model}
        torch.save(state, "last.pt")
    """)
BESIDE = Script("""
    import sys

    torch.manual_seed(4)
    body, head, beside = nn.Linear(8, 4), nn.Linear(4, 2), None
    if "--beside" in sys.argv:
        beside = nn.Linear(4, 2)
    trained = [*body.parameters(), *head.parameters()]
    if beside is not None:
        trained += list(beside.parameters())
    optimizer = torch.optim.SGD(trained, lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(2):
        for xb, yb in loader:
            hidden = body(xb).relu()
            loss = F.cross_entropy(head(hidden), yb)
            if beside is not None:
                loss = loss + 0.1 * F.cross_entropy(beside(hidden), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """)
# two models with one encoder, of which apex's wrapper would wait for the gradients of its own forward
ONE_ENCODER = Script("""
    class Head(nn.Module):
        def __init__(self, encoder, classes):
            super().__init__()
            self.encoder = encoder
            self.out = nn.Linear(6, classes)

        def forward(self, rows):
            return self.out(torch.relu(self.encoder(rows)))

    torch.manual_seed(4)
    encoder = nn.Linear(8, 6)
    signs, sizes = Head(encoder, 2), Head(encoder, 3)
    optimizer = torch.optim.SGD([*signs.parameters(), *sizes.out.parameters()], lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(2):
        for xb, yb in loader:
            optimizer.zero_grad()
            F.cross_entropy(signs(xb), yb).backward()
            F.cross_entropy(sizes(xb), yb + 1).backward()
            optimizer.step()
    """)
_SHRUNK = Script(
    SAVED_WHOLE.text.replace(
        "optimizer.step()", "optimizer.step()\n            for p in model.parameters():\n                p.data.mul_(0.999)"
    )
)
# weights that are written between two evaluations: apex keeps the casts of the first
_EVALUATED = """
    class Average:
        def __init__(self, model):
            self.model, self.shadow, self.backup = model, {{}}, {{}}
            for name, p in model.named_parameters():
                self.shadow[name] = p.data.clone()

        def update(self):
            for name, p in self.model.named_parameters():
                if p.requires_grad:
                    self.shadow[name] = 0.5 * p.data + 0.5 * self.shadow[name]

        def apply(self):
            for name, p in self.model.named_parameters():
                if p.requires_grad:
                    self.backup[name] = p.data
                    p.data = self.shadow[name]

        def restore(self):
            for name, p in self.model.named_parameters():
                p.data = self.backup[name]


    def evaluate(net):
        net.eval()
        with torch.no_grad():
            return F.cross_entropy(net(x), y).item()


    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
    average = Average(net)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        net.train()
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            average.update()
        for group in sgd.param_groups:
            group["lr"] = 0.1 / (epoch + 2)
        torch.save(net.state_dict(), f"{{epoch}}.pt")
        {after}
    {end}
    """
EVALUATED = {
    title: Script(_EVALUATED.format(after=after, end=end), same=("of",))
    for title, after, end in (
        (
            "weights that are averaged, evaluated beside those that train",
            "print('of one', '%.5f' % evaluate(net))\n        average.apply()\n        print('of all', '%.5f' % evaluate(net))\n"
            "        average.restore()",
            "",
        ),
        (
            "the best weights, loaded for a last evaluation",
            "print('of one', '%.5f' % evaluate(net))",
            "net.load_state_dict(torch.load('0.pt'))\n    print('of best', '%.5f' % evaluate(net))",
        ),
        (
            "the best weights, loaded by a function that gives back what did not fit",
            "print('of one', '%.5f' % evaluate(net))",
            "def load(name):\n        return net.load_state_dict(torch.load(name))\n\n    load('0.pt')\n"
            "    print('of best', '%.5f' % evaluate(net))",
        ),
        (
            "the best weights, loaded where a test asks whether all fit",
            "print('of one', '%.5f' % evaluate(net))",
            "if not net.load_state_dict(torch.load('0.pt')).missing_keys:\n        print('of best', '%.5f' % evaluate(net))",
        ),
        (
            "the weights of all epochs, evaluated one after another",
            "pass",
            "for number in range(3):\n        net.load_state_dict(torch.load(f'{number}.pt'))\n"
            "        print('of', number, '%.5f' % evaluate(net))",
        ),
    )
}
SCRIPTS |= {
    **{
        f"{title}, at O1": replace(with_apex(script, amp="apex-O1"), told=("DDP414",) if "a test asks" in title else ())
        for title, script in EVALUATED.items()
    },
    "the best weights, loaded for a last evaluation, at O3": with_apex(
        EVALUATED["the best weights, loaded for a last evaluation"], amp="apex-O3"
    ),
    "a head that is not made, at O1": with_apex(BESIDE, amp="apex-O1"),
    "a head that is made, at O1": with_apex(replace(BESIDE, args=("--beside",)), amp="apex-O1"),
    "two models with one encoder, at O1": with_apex(ONE_ENCODER, amp="apex-O1"),
    "weights that are made smaller after each step, at O1": with_apex(_SHRUNK, amp="apex-O1"),
    "weights that are made smaller after each step, at O2": replace(with_apex(_SHRUNK, amp="apex-O2"), told=("DDP414",)),
    "a model that is saved as a whole, at O1": with_apex(SAVED_WHOLE, amp="apex-O1"),
    "a model that is saved as a whole, at O2": replace(with_apex(SAVED_WHOLE, amp="apex-O2"), told=("DDP414",)),
    "a model whose state is saved, at O2": with_apex(
        replace(SAVED_WHOLE, text=SAVED_WHOLE.text.replace('"model": model}', '"model": model.state_dict()}')), amp="apex-O2"
    ),
    **{f"{title}, apex O1": with_apex(script, amp="apex-O1") for title, script in AVERAGED.items()},
    **{f"{title}, apex O3": with_apex(script, amp="apex-O3") for title, script in AVERAGED.items()},
    **{f"{title}, apex O2": replace(with_apex(script, amp="apex-O2"), told=("DDP414",)) for title, script in AVERAGED.items()},
    "a penalty on slopes, apex O1": with_apex(STEEP, amp="apex-O1"),
    "a penalty on slopes, apex O2": replace(with_apex(STEEP, amp="apex-O2"), told=("DDP414",)),
    "gradients averaged by a call, apex kept": with_apex(KEPT),
    "gradients thrown away between two backward calls": with_apex(BEFORE_THE_OTHER, amp="apex-O1"),
    "a model that chooses, in apex's wrapper": replace(with_apex(CHOOSES, ddp="apex"), told=("DDP201",)),
    "a model that chooses, at O1": with_apex(CHOOSES, amp="apex-O1"),
    **{f"{title}, kept": with_apex(script) for title, script in PRESENT.items()},
    **{f"{title}, to {amp}": with_apex(script, amp=amp) for title, script in PRESENT.items() for amp in ("none", "torch", "torch-bf16")},
    **{f"{title}, to apex O2": with_apex(script, amp="apex-O2") for title, script in PRESENT.items()},
    **{f"{title}, to apex": with_apex(script, amp="apex-O1") for title, script in TORCH.items()},
    "samples moved along gradients of the training, at O1": replace(with_apex(ALONG, amp="apex-O1"), told=("DDP208",)),
    "adams, fused": with_apex(ADAMS, fused_adam=True),
    "adams, fused, at O2": with_apex(ADAMS, fused_adam=True, amp="apex-O2"),
    "adams, at O1 with a scale": with_apex(ADAMS, amp="apex-O1", loss_scale="128"),
    **{
        f"a schedule's own optimizer, {how}, at {amp[5:]}": with_apex(replace(_WARMED, text=_WARMED.text.replace("MADE", made)), amp=amp)
        for how, made in _WARMED_IN.items()
        for amp in ("apex-O1", "apex-O2")
    },
}
