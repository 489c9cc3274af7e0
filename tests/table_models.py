"""Scripts with several models, copies of models, and models that are passed on and read far from where they are made."""

from dataclasses import replace

from scripts import Script, on_three

from ddpify import Options

_NETS = """\
import torch
import torch.nn as nn


def weights(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


class Maker(nn.Module):
    def __init__(self, nz, nf):
        super().__init__()
        self.nz = nz
        self.main = nn.Sequential(nn.Linear(nz, nf), nn.ReLU(True), nn.Linear(nf, 8), nn.Tanh())

    def forward(self, z):
        return self.main(z)


class Judge(nn.Module):
    def __init__(self, nf):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(8, nf), nn.LeakyReLU(0.2, inplace=True), nn.Linear(nf, 1), nn.Sigmoid())

    def forward(self, x):
        return self.main(x).view(-1)


def build(opt):
    g, d = Maker(opt.nz, opt.nf), Judge(opt.nf)
    g.apply(weights)
    d.apply(weights)
    return g, d
"""

LIBRARY_OF_WAVES = {
    "torchvision/__init__.py": "",
    "torchvision/models.py": """
import torch
import torch.nn as nn


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(8, 6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.body(x))


def waves(pretrained=False):
    return Waves()
""",
}

_WORDS = """
        words, net = nn.Embedding(30, 8, max_norm={limit}), nn.Linear(8, 2)
        rows = torch.arange(40) * 7 % 30
        loader = DataLoader(TensorDataset(rows, y[:40]), batch_size=8, shuffle=True)
        optimizer = torch.optim.SGD([*words.parameters(), *net.parameters()], lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(net(words(data)), target)
                loss.backward()
                optimizer.step()
"""
SCRIPTS: dict[str, Script] = {
    "places of a sequence in a buffer whose dimensions are turned": Script("""
    class Places(nn.Module):
        def __init__(self, length, width):
            super().__init__()
            places = torch.zeros(length, width)
            places[:, ::2] = torch.arange(length).unsqueeze(1)
            places = places.unsqueeze(0).transpose(0, 1)
            self.register_buffer("places", places)
            self.out = nn.Linear(width, 2)

        def forward(self, rows):
            return self.out((rows.t().unsqueeze(2) + self.places[:8]).mean(0))


    model = Places(12, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        for data, target in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "a mask of equal rows in a module of its own": Script(
        """
    from masks import Masked

    model = Masked(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for data, target in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
        files={
            "masks.py": """
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mask", torch.arange(width).float().remainder(3).expand(2, -1))
        self.register_buffer("places", torch.arange(width).expand((1, -1)))
        self.out = nn.Linear(width, 2)

    def forward(self, rows):
        return self.out(rows * self.mask[0] + self.places)
"""
        },
    ),
    "one GPU by its number, with nothing for where there is none": Script("""
    device = torch.device("cuda:1")
    net = nn.Linear(8, 2).to(device)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
            loss = F.cross_entropy(net(rows.to(device)), kinds.to(device))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """),
    # --- adversaries --------------------------------------------------------------------------------------------------
    "a dcgan at top level, two backwards for the critic": Script(
        """
        gpu = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        seeds = 4


        def spread(layer):
            kind = type(layer).__name__
            if "Linear" in kind:
                nn.init.uniform_(layer.weight.data, -0.5, 0.5)


        class Forger(nn.Module):
            def __init__(self):
                super(Forger, self).__init__()
                self.press = nn.Sequential(nn.Linear(seeds, 16), nn.ReLU(True), nn.Linear(16, 8), nn.Tanh())

            def forward(self, seed):
                return self.press(seed)


        class Expert(nn.Module):
            def __init__(self):
                super(Expert, self).__init__()
                self.look = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 1), nn.Sigmoid())

            def forward(self, coin):
                return self.look(coin).flatten()


        forger = Forger().to(gpu)
        expert = Expert().to(gpu)
        forger.apply(spread)
        expert.apply(spread)
        doubt = nn.BCELoss()
        sketches = torch.linspace(-1, 1, 5 * seeds, device=gpu).view(5, seeds)
        GENUINE, FORGED = 1, 0
        forger_adam = torch.optim.Adam(forger.parameters(), lr=0.003, betas=(0.6, 0.99))
        expert_adam = torch.optim.Adam(expert.parameters(), lr=0.003, betas=(0.6, 0.99))
        coins = DataLoader(TensorDataset(x.tanh(), torch.cos(x[:, :seeds] * 3)), batch_size=8, shuffle=True, num_workers=0)

        for year in range(3):
            for week, pair in enumerate(coins, 0):
                expert.zero_grad()
                true_coins = pair[0].to(gpu)
                wanted = torch.full((len(true_coins),), GENUINE, dtype=true_coins.dtype, device=gpu)
                trust = expert(true_coins)
                missed = doubt(trust, wanted)
                missed.backward()
                trust_in_true = trust.mean().item()

                false_coins = forger(pair[1].to(gpu))
                wanted.fill_(FORGED)
                trust = expert(false_coins.detach())
                fooled = doubt(trust, wanted)
                fooled.backward()
                trust_before = trust.mean().item()
                expert_adam.step()
                mistakes = missed + fooled

                forger.zero_grad()
                wanted.fill_(GENUINE)
                trust = expert(false_coins)
                caught = doubt(trust, wanted)
                caught.backward()
                trust_after = trust.mean().item()
                forger_adam.step()
                if week % 2 == 0:
                    print("year %d week %d: %.4f %.4f, %.4f" % (year, week, mistakes.item(), caught.item(), trust_in_true), end=" ")
                    print("from %.4f to %.4f" % (trust_before, trust_after))
            false_coins = forger(sketches)
            torch.save(expert.state_dict(), "expert_of_%d.pth" % year)
            torch.save(forger.state_dict(), "forger_of_%d.pth" % year)
            torch.save(false_coins.detach(), "coins_of_%03d.pt" % year)
        """,
    ),
    "one loss for real and fake, the maker first": Script(
        """
        cli = argparse.ArgumentParser()
        cli.add_argument("--rounds", type=int, default=3)
        cli.add_argument("--rows", type=int, default=8)
        cli.add_argument("--code", type=int, default=4)
        given = cli.parse_args()
        on_gpu = torch.cuda.is_available()
        Kind = torch.cuda.FloatTensor if on_gpu else torch.DoubleTensor


        class Weaver(nn.Module):
            def __init__(self):
                super().__init__()

                def thread(a, b):
                    return nn.Linear(a, b), nn.PReLU()

                self.loom = nn.Sequential(*thread(given.code, 16), *thread(16, 16), nn.Linear(16, 8), nn.Tanh())

            def forward(self, code):
                return self.loom(code).view(len(code), 2, 4)


        class Buyer(nn.Module):
            def __init__(self):
                super().__init__()
                self.eye = nn.Sequential(nn.Flatten(), nn.Linear(8, 16), nn.PReLU(), nn.Linear(16, 1), nn.Sigmoid())

            def forward(self, cloth):
                return self.eye(cloth)


        weaver, buyer = Weaver(), Buyer()
        dislike = torch.nn.BCELoss()
        if on_gpu:
            dislike.cuda()
            buyer.cuda()
            weaver.cuda()
        market = torch.utils.data.DataLoader(TensorDataset(x.view(44, 2, 4).tanh(), x[:, 4:]), batch_size=given.rows, shuffle=True)
        buyer_opt = torch.optim.Adam(buyer.parameters(), lr=0.003, betas=(0.6, 0.95))
        weaver_opt = torch.optim.Adam(weaver.parameters(), lr=0.003, betas=(0.6, 0.95))
        for turn in range(given.rounds):
            for stall, (cloth, code) in enumerate(market):
                yes = torch.ones(cloth.size(0), 1).type(Kind)
                no = torch.zeros(cloth.size(0), 1).type(Kind)
                cloth, code = cloth.type(Kind), code.type(Kind)
                weaver_opt.zero_grad()
                woven = weaver(code)
                unsold = dislike(buyer(woven), yes)
                unsold.backward()
                weaver_opt.step()

                buyer_opt.zero_grad()
                left = dislike(buyer(cloth), yes)
                cheated = dislike(buyer(woven.detach()), no)
                regret = 0.5 * (left + cheated)
                regret.backward()
                buyer_opt.step()
                visited = turn * len(market) + stall
                if not visited % 4:
                    print("unsold %f, regret %f" % (unsold.item(), regret.item()))
        torch.save({"weaver": weaver.state_dict(), "buyer": buyer.state_dict()}, "market.pth")
        """,
    ),
    "a wasserstein pair with clipped weights and several critic steps": Script(
        """
        def compete(rounds, painter, critic, tools, limit, every, where):
            paint_tool, critic_tool = tools
            paintings = 0
            for season in range(rounds):
                for day, (old, idea) in enumerate(gallery):
                    old, idea = old.to(where), idea.to(where)
                    critic_tool.zero_grad()
                    new = painter(idea).detach()
                    gap = critic(new).mean() - critic(old).mean()
                    gap.backward()
                    critic_tool.step()
                    for weight in critic.parameters():
                        weight.data.clamp_(min=-limit, max=limit)
                    if day % every == 0:
                        paint_tool.zero_grad()
                        scorn = -critic(painter(idea)).mean()
                        scorn.backward()
                        paint_tool.step()
                        paintings += 1
                print("season", season, "paintings", paintings)


        def main():
            cli = argparse.ArgumentParser()
            cli.add_argument("--seasons", type=int, default=4)
            cli.add_argument("--limit", type=float, default=0.06)
            cli.add_argument("--every", type=int, default=3)
            asked = cli.parse_args()
            where = "cuda" if torch.cuda.is_available() else "cpu"
            critic = nn.Sequential(nn.Linear(8, 14), nn.ELU(), nn.Linear(14, 1)).to(where)
            painter = nn.Sequential(nn.Linear(4, 14), nn.ReLU(), nn.Linear(14, 8)).to(where)
            tools = torch.optim.RMSprop(painter.parameters(), lr=4e-4), torch.optim.RMSprop(critic.parameters(), lr=4e-4)
            compete(asked.seasons, painter, critic, tools, asked.limit, asked.every, where)
            torch.save(painter.state_dict(), "painter.pt")


        gallery = DataLoader(TensorDataset(x, x[:, 2:6].cos()), batch_size=8, shuffle=True, drop_last=True)
        if __name__ == "__main__":
            main()
        """,
        same=("season",),
    ),
    "a gradient penalty in a helper": Script(
        """
        def steepness(judge, left, right, share):
            path = torch.lerp(right, left, share).requires_grad_(True)
            height = judge(path)
            (slope,) = torch.autograd.grad(height, path, torch.ones_like(height), retain_graph=True, create_graph=True)
            return (slope.flatten(1).square().sum(1).sqrt() - 1).square().mean()


        class Climber(nn.Module):
            def __init__(self):
                super().__init__()
                self.legs = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))

            def forward(self, place):
                return self.legs(place)


        WEIGHT, TRIES = 8, 2
        terrain, climber = nn.Linear(4, 8).cuda(), Climber().cuda()
        climb_opt = torch.optim.Adam(climber.parameters(), lr=2e-3, betas=(0.1, 0.9))
        terrain_opt = torch.optim.Adam(terrain.parameters(), lr=2e-3, betas=(0.1, 0.9))
        maps = DataLoader(TensorDataset(x, x[:, :4], torch.sigmoid(x[:, :1])), batch_size=4, shuffle=True)
        for day in range(2):
            for place, seed, share in maps:
                place, seed, share = (t.cuda() for t in (place, seed, share))
                for attempt in range(TRIES):
                    built = terrain(seed)
                    height = climber(built).mean() - climber(place).mean()
                    height = height + WEIGHT * steepness(climber, place, built.detach(), share)
                    climber.zero_grad()
                    height.backward(retain_graph=False)
                    climb_opt.step()
                depth = -climber(terrain(seed)).mean()
                terrain.zero_grad()
                depth.backward()
                terrain_opt.step()
            torch.save(climber.state_dict(), f"climber{day}.pt")
        """,
    ),
    "the critic frozen while the maker learns": Script(
        """
        def learning(parts, on):
            parts = parts if isinstance(parts, list) else [parts]
            for part in parts:
                if part is None:
                    continue
                for weight in part.parameters():
                    weight.requires_grad = on


        class Studio:
            def __init__(self, where):
                self.where = where
                self.my_brush = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8)).to(where)
                self.my_lens = nn.Sequential(nn.Linear(16, 12), nn.SiLU(), nn.Linear(12, 1)).to(where)
                self.verdict, self.distance = nn.BCEWithLogitsLoss(), nn.L1Loss()
                self.lens_adam = torch.optim.Adam(self.my_lens.parameters(), lr=0.003, betas=(0.6, 0.99))
                self.brush_adam = torch.optim.Adam(self.my_brush.parameters(), lr=0.003, betas=(0.6, 0.99))
                self.adams = [self.brush_adam, self.lens_adam]
                self.slowing = [torch.optim.lr_scheduler.StepLR(adam, step_size=1, gamma=0.7) for adam in self.adams]

            def receive(self, pair):
                self.outline, self.photo = (half.to(self.where) for half in pair)

            def paint(self):
                self.painted = self.my_brush(self.outline)

            def examine(self):
                seen = self.my_lens(torch.cat([self.outline, self.painted], dim=-1).detach())
                self.deceived = self.verdict(seen, torch.full_like(seen, 0.0))
                seen = self.my_lens(torch.cat([self.outline, self.photo], dim=-1))
                self.unfair = self.verdict(seen, torch.full_like(seen, 1.0))
                self.blindness = 0.5 * self.deceived + 0.5 * self.unfair
                self.blindness.backward()

            def improve(self):
                seen = self.my_lens(torch.cat([self.outline, self.painted], dim=-1))
                self.exposed = self.verdict(seen, torch.full_like(seen, 1.0))
                self.inexact = 8 * self.distance(self.painted, self.photo)
                self.clumsiness = self.inexact + self.exposed
                self.clumsiness.backward()

            def lesson(self, pair):
                self.receive(pair)
                self.paint()
                learning(self.my_lens, True)
                self.lens_adam.zero_grad()
                self.examine()
                self.lens_adam.step()
                learning(self.my_lens, False)
                self.brush_adam.zero_grad()
                self.improve()
                self.brush_adam.step()

            def slow_down(self):
                for slower in self.slowing:
                    slower.step()
                print("pace now", self.adams[0].param_groups[0]["lr"])

            def keep(self, day):
                for tool in ["brush", "lens"]:
                    kept = getattr(self, "my_" + tool)
                    torch.save(kept.state_dict(), "day%d_%s.pth" % (day, tool))


        if __name__ == "__main__":
            studio = Studio(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
            pairs = DataLoader(TensorDataset(x, x.flip(1)), batch_size=4, shuffle=True)
            for day in range(2):
                for pair in pairs:
                    studio.lesson(pair)
                studio.slow_down()
                studio.keep(day)
        """,
        same=("pace now",),
    ),
    "a cycle of two makers and two critics": Script(
        """
        import itertools


        class Fading:
            def __init__(self, last, begin):
                self.last, self.begin = last, begin

            def factor(self, day):
                return min(1.0, (self.last - day) / (self.last - self.begin))


        class Translator(nn.Module):
            def __init__(self, words):
                super().__init__()
                self.change = nn.Sequential(nn.Linear(8, words), nn.ReLU(), nn.Linear(words, 8))

            def forward(self, text):
                return self.change(text) + text


        class Native(nn.Module):
            def __init__(self):
                super().__init__()
                self.ears = (2,)
                self.hear = nn.Sequential(nn.Linear(8, 12), nn.ELU(), nn.Linear(12, *self.ears))

            def forward(self, text):
                return self.hear(text)


        class Plan:
            days, fade_from, back, same = 3, 1, 8.0, 4.0


        plan = Plan()
        oddness, back_again, unchanged = torch.nn.MSELoss(), torch.nn.L1Loss(), torch.nn.L1Loss()
        to_danish, to_finnish = Translator(12), Translator(12)
        dane, finn = Native(), Native()
        gpu = torch.cuda.is_available()
        if gpu:
            to_danish, to_finnish = to_danish.cuda(), to_finnish.cuda()
            dane = dane.cuda()
            finn = finn.cuda()
            oddness.cuda()
        translating = torch.optim.Adam(itertools.chain(to_danish.parameters(), to_finnish.parameters()), lr=0.003, betas=(0.6, 0.95))
        danes = torch.optim.Adam(dane.parameters(), lr=0.003, betas=(0.6, 0.95))
        finns = torch.optim.Adam(finn.parameters(), lr=0.003, betas=(0.6, 0.95))
        fade_t = torch.optim.lr_scheduler.LambdaLR(translating, lr_lambda=Fading(plan.days, plan.fade_from).factor)
        fade_d = torch.optim.lr_scheduler.LambdaLR(danes, lr_lambda=Fading(plan.days, plan.fade_from).factor)
        fade_f = torch.optim.lr_scheduler.LambdaLR(finns, lr_lambda=Fading(plan.days, plan.fade_from).factor)
        books = DataLoader(TensorDataset(x, x.flip(0)), batch_size=8, shuffle=True)
        for day in range(plan.days):
            for page, texts in enumerate(books):
                danish, finnish = texts[0], texts[1]
                if gpu:
                    danish, finnish = danish.cuda(), finnish.cuda()
                natural = torch.ones((len(danish), *dane.ears), device=danish.device)
                strange = torch.zeros((len(danish), *dane.ears), device=danish.device)
                to_danish.train()
                to_finnish.train()
                translating.zero_grad()
                needless = 0.5 * unchanged(to_danish(danish), danish) + 0.5 * unchanged(to_finnish(finnish), finnish)
                new_finnish, new_danish = to_finnish(danish), to_danish(finnish)
                accent = 0.5 * oddness(finn(new_finnish), natural) + 0.5 * oddness(dane(new_danish), natural)
                lost = 0.5 * back_again(to_danish(new_finnish), danish) + 0.5 * back_again(to_finnish(new_danish), finnish)
                trouble = plan.back * lost + plan.same * needless + accent
                trouble.backward()
                translating.step()

                danes.zero_grad()
                deaf = 0.5 * oddness(dane(danish), natural) + 0.5 * oddness(dane(new_danish.detach()), strange)
                deaf.backward()
                danes.step()
                finns.zero_grad()
                deaf = 0.5 * oddness(finn(finnish), natural) + 0.5 * oddness(finn(new_finnish.detach()), strange)
                deaf.backward()
                finns.step()
            for fade in (fade_t, fade_d, fade_f):
                fade.step()
            print("day", day, "pace", translating.param_groups[0]["lr"])
            torch.save(to_finnish.state_dict(), "to_finnish_%d.pth" % day)
            torch.save(dane.state_dict(), "dane_%d.pth" % day)
        """,
        same=("day",),
    ),
    "a conditional pair built in another module": Script(
        """
        from nets import build


        def main(wish):
            place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            maker, judge = build(wish)
            maker, judge = maker.to(place), judge.to(place)
            judging = torch.optim.Adam(judge.parameters(), lr=wish.pace)
            making = torch.optim.Adam(maker.parameters(), lr=wish.pace)
            wrong = nn.BCELoss()
            things = DataLoader(TensorDataset(x.tanh(), x[:, :4].sin()), batch_size=wish.batch, shuffle=True)
            shown = torch.linspace(-2, 2, 3 * maker.nz, device=place).view(3, maker.nz)
            for day in range(wish.days):
                maker.train(), judge.train()
                for thing, seed in things:
                    thing, seed = thing.to(place), seed.to(place)
                    many = thing.size(0)
                    good, bad = torch.ones(many, device=place), torch.zeros(many, device=place)
                    made = maker(seed)
                    judging.zero_grad()
                    (wrong(judge(made.detach()), bad) + wrong(judge(thing), good)).backward()
                    judging.step()
                    making.zero_grad()
                    wrong(judge(made), good).backward()
                    making.step()
                maker.eval()
                with torch.no_grad():
                    torch.save(maker(shown), f"shown{day}.pt")
            torch.save({"maker": maker.state_dict(), "judge": judge.state_dict(), "making": making.state_dict()}, "both.pt")


        if __name__ == "__main__":
            cli = argparse.ArgumentParser()
            cli.add_argument("--nz", type=int, default=4)
            cli.add_argument("--nf", type=int, default=10)
            cli.add_argument("--pace", type=float, default=0.003)
            cli.add_argument("--batch", type=int, default=8)
            cli.add_argument("--days", type=int, default=3)
            main(cli.parse_args())
        """,
        files={"nets.py": _NETS},
    ),
    "a trainer class with dicts of networks": Script(
        """
        class Workshop(object):
            def __init__(self, plan):
                self.plan = plan
                self.bench = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.furnish()

            def furnish(self):
                self.people = {
                    "smith": nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 8)),
                    "guild": nn.Sequential(nn.Linear(8, 10), nn.ELU(), nn.Linear(10, 1)),
                }
                self.habits = {}
                for who in self.people:
                    self.people[who].to(self.bench)
                    self.habits[who] = torch.optim.Adam(self.people[who].parameters(), self.plan["pace"])

            def forget(self):
                for habit in self.habits.values():
                    habit.zero_grad()

            def open(self, orders):
                for day in range(self.plan["days"]):
                    for known, wish in orders:
                        known, wish = known.to(self.bench), wish.to(self.bench)
                        forged = self.people["smith"](wish).detach()
                        error = F.softplus(self.people["guild"](forged)).mean() + F.softplus(-self.people["guild"](known)).mean()
                        self.forget()
                        error.backward()
                        self.habits["guild"].step()
                        shame = F.softplus(-self.people["guild"](self.people["smith"](wish))).mean()
                        self.forget()
                        shame.backward()
                        self.habits["smith"].step()
                    self.close(day)

            def close(self, day):
                for who, person in self.people.items():
                    torch.save(person.state_dict(), "{1}-day{0}.pt".format(day, who))


        if __name__ == "__main__":
            orders = DataLoader(TensorDataset(x, x[:, 1:5]), batch_size=8, shuffle=True)
            Workshop({"pace": 0.003, "days": 3}).open(orders)
        """,
    ),
    "a variational pair with a critic": Script(
        """
        class Reader(nn.Module):
            def __init__(self, inner=12, notes=3):
                super().__init__()
                self.read = nn.Linear(8, inner)
                self.centre, self.width = nn.Linear(inner, notes), nn.Linear(inner, notes)

            def forward(self, page):
                thought = self.read(page).tanh()
                return self.centre(thought), self.width(thought)


        class Writer(nn.Module):
            def __init__(self, notes=3):
                super().__init__()
                self.write = nn.Sequential(nn.Linear(notes, 12), nn.ReLU(), nn.Linear(12, 8))

            def forward(self, note):
                return self.write(note)


        class Editor(nn.Module):
            def __init__(self):
                super().__init__()
                self.skim = nn.Sequential(nn.Linear(8, 12), nn.ELU())
                self.decide = nn.Linear(12, 1)

            def forward(self, page):
                gist = self.skim(page)
                return self.decide(gist), gist


        reader, writer, editor = Reader().cuda(), Writer().cuda(), Editor().cuda()
        reading = torch.optim.RMSprop(reader.parameters(), lr=4e-4)
        writing = torch.optim.RMSprop(writer.parameters(), lr=4e-4)
        editing = torch.optim.RMSprop(editor.parameters(), lr=4e-4)
        library = DataLoader(TensorDataset(x, x[:, :3].cos()), batch_size=8, shuffle=True)
        for year in range(3):
            for page, chance in library:
                page, chance = page.cuda(), chance.cuda()
                centre, width = reader(page)
                copy = writer(torch.addcmul(centre, F.softplus(width), chance))
                surprise = (centre.square() + F.softplus(width).square() - 2 * F.softplus(width).log() - 1).sum(1).mean() / 2
                _, gist = editor(page)
                liking, copied_gist = editor(copy)
                unlike = (copied_gist - gist.detach()).square().mean()
                refused = 0.2 * unlike + F.softplus(-liking).mean()
                reading.zero_grad(), writing.zero_grad()
                (surprise + unlike + refused).backward()
                writing.step()
                reading.step()
                editing.zero_grad()
                liking, _ = editor(page)
                copy_liking, _ = editor(copy.detach())
                misjudged = (F.softplus(-liking) + F.softplus(copy_liking)).mean()
                misjudged.backward()
                editing.step()
        """,
    ),
    "fakes from a pool of earlier ones": Script(
        """
        class Attic:
            def __init__(self, room=50):
                self.room = room
                self.boxes = []

            def swap(self, rows):
                given = []
                for row in rows.data:
                    row = row[None]
                    if len(self.boxes) == self.room:
                        given.append(self.boxes.pop(0))
                    else:
                        given.append(row)
                    self.boxes.append(row)
                return torch.cat(given)


        attic = Attic(room=1000)
        potter, guest = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        guest_opt = torch.optim.Adam(guest.parameters(), lr=2e-3)
        potter_opt = torch.optim.Adam(potter.parameters(), lr=2e-3)
        apart = nn.MSELoss()
        for year in range(2):
            for pot, clay in DataLoader(TensorDataset(x, x[:, 4:]), batch_size=4, shuffle=True):
                shaped = potter(clay)
                liked = guest(shaped)
                potter_opt.zero_grad()
                apart(liked, torch.full_like(liked, 1.0)).backward()
                potter_opt.step()
                earlier = attic.swap(shaped)
                liked, disliked = guest(pot), guest(earlier.detach())
                guest_opt.zero_grad()
                ((apart(liked, torch.full_like(liked, 1.0)) + apart(disliked, torch.full_like(disliked, 0.0))) / 2).backward()
                guest_opt.step()
        """,
        options=Options(whole_batches="never"),
    ),
    # --- lists, dicts and parts ---------------------------------------------------------------------------------------
    "an ensemble in a list, trained one after another": Script(
        """
        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.fc1, self.fc2 = nn.Linear(8, width), nn.Linear(width, 2)

            def forward(self, rows):
                return self.fc2(torch.relu(self.fc1(rows)))


        device = "cuda" if torch.cuda.is_available() else "cpu"
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        nets = [Net(10).to(device) for _ in range(3)]
        optimizers = [torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9) for net in nets]
        criterion = nn.CrossEntropyLoss()
        for epoch in range(2):
            for net in nets:
                net.train()
            for inputs, targets in loader:
                inputs, targets = inputs.to(device), targets.to(device)
                for net, optimizer in zip(nets, optimizers):
                    optimizer.zero_grad()
                    loss = criterion(net(inputs), targets)
                    loss.backward()
                    optimizer.step()
        for i, net in enumerate(nets):
            torch.save(net.state_dict(), f"member{i}.pt")
        """,
    ),
    "an ensemble appended in a loop, by index": Script(
        """
        def make(i):
            torch.manual_seed(i)
            return nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))


        models, optims = [], []
        for i in range(2):
            m = make(i)
            m = m.cuda()
            models.append(m)
            optims.append(torch.optim.Adam(m.parameters(), lr=0.01))
        train_loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        for epoch in range(3):
            for data, target in train_loader:
                data, target = data.cuda(), target.cuda()
                for k in range(len(models)):
                    optims[k].zero_grad()
                    loss = F.cross_entropy(models[k](data), target)
                    loss.backward()
                    optims[k].step()
            with torch.no_grad():
                votes = sum(F.softmax(m(x.cuda()), dim=1) for m in models)
            print("ensemble accuracy", (votes.argmax(1).cpu() == y).sum().item() / len(y))
        """,
        same=("ensemble accuracy",),
    ),
    "networks by name with setattr": Script(
        """
        class Pack:
            def __init__(self):
                self.members = ["fold", "open"]
                self.to_fold = nn.Sequential(nn.Linear(8, 5), nn.ReLU())
                self.to_open = nn.Linear(5, 8)
                self.adam = torch.optim.Adam(list(self.to_fold.parameters()) + list(self.to_open.parameters()), lr=0.02)

            def carry(self, where):
                for member in self.members:
                    part = getattr(self, "to_" + member)
                    part.to(where)
                    setattr(self, "to_" + member, part)

            def wake(self):
                for member in self.members:
                    getattr(self, "to_" + member).train()

            def practise(self, sheet):
                self.adam.zero_grad()
                creases = F.smooth_l1_loss(self.to_open(self.to_fold(sheet)), sheet)
                creases.backward()
                self.adam.step()
                return creases.item()

            def store(self, shelf):
                for member in self.members:
                    torch.save(getattr(self, "to_" + member).state_dict(), f"{member}.{shelf}.pt")


        def run():
            pack = Pack()
            pack.carry(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
            sheets = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
            for shelf in range(2):
                pack.wake()
                for (sheet,) in sheets:
                    pack.practise(sheet)
                pack.store(shelf)


        run()
        """,
    ),
    "encoder and decoder with one optimizer": Script(
        """
        class Listener(nn.Module):
            def __init__(self, signs, memory):
                super().__init__()
                self.memory = memory
                self.signs = nn.Embedding(signs, memory)
                self.recall = nn.GRU(memory, memory, batch_first=True)

            def forward(self, line):
                return self.recall(self.signs(line))


        class Speaker(nn.Module):
            def __init__(self, memory, signs):
                super().__init__()
                self.signs = nn.Embedding(signs, memory)
                self.recall = nn.GRU(memory, memory, batch_first=True)
                self.voice = nn.Linear(memory, signs)

            def forward(self, line, mind):
                said, mind = self.recall(self.signs(line).tanh(), mind)
                return self.voice(said), mind


        place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        heard = (x.abs() * 10).long().clamp(max=9)
        answers = heard.flip(1)
        listener = Listener(10, 6).to(place)
        speaker = Speaker(listener.memory, 10).to(place)
        everything = list(listener.parameters()) + list(speaker.parameters())
        adam = torch.optim.Adam(everything, lr=0.02)
        talk = DataLoader(TensorDataset(heard, answers), batch_size=4, shuffle=True)
        misheard = nn.CrossEntropyLoss()
        for day in range(2):
            total = 0
            for line, answer in talk:
                line, answer = line.to(place), answer.to(place)
                _, mind = listener(line)
                said, _ = speaker(answer[:, :-1], mind)
                loss = misheard(said.transpose(1, 2), answer[:, 1:])
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(everything, 0.8)
                adam.step()
                total += loss.item()
            print("day %d %.6f" % (day, total / len(talk)))
            torch.save({"adam": adam.state_dict(), "listener": listener.state_dict(), "speaker": speaker.state_dict()}, "talk.tar")
        """,
        same=("day",),
    ),
    "encoder and decoder, an optimizer each, word by word": Script(
        """
        class Enc(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(8, 6)

            def forward(self, rows):
                return torch.tanh(self.net(rows))


        class Dec(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(1, 6)
                self.head = nn.Linear(6, 1)

            def forward(self, step, state):
                state = self.cell(step, state)
                return self.head(state), state


        def train_batch(rows, encoder, decoder, enc_opt, dec_opt, criterion):
            enc_opt.zero_grad()
            dec_opt.zero_grad()
            state = encoder(rows)
            step = torch.zeros(rows.size(0), 1, device=rows.device)
            loss = 0
            for t in range(rows.size(1)):
                out, state = decoder(step, state)
                loss += criterion(out, rows[:, t : t + 1])
                step = rows[:, t : t + 1]
            loss.backward()
            enc_opt.step()
            dec_opt.step()
            return loss.item() / rows.size(1)


        encoder, decoder = Enc(), Dec()
        enc_opt = torch.optim.SGD(encoder.parameters(), lr=0.05)
        dec_opt = torch.optim.SGD(decoder.parameters(), lr=0.05)
        loader = DataLoader(TensorDataset(x), batch_size=8, shuffle=True)
        for epoch in range(2):
            running = 0.0
            for (rows,) in loader:
                running += train_batch(rows, encoder, decoder, enc_opt, dec_opt, nn.MSELoss())
            print(f"mean of epoch {epoch}: {running / len(loader):.7f}")
        """,
        same=("mean of epoch",),
    ),
    "a siamese network": Script(
        """
        class Twins(nn.Module):
            def __init__(self):
                super().__init__()
                self.sense = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

            def place(self, half):
                return self.sense(half)

            def forward(self, left, right):
                return self.place(left), self.place(right)


        class Apart(nn.Module):
            def __init__(self, room=1.5):
                super().__init__()
                self.room = room

            def forward(self, left, right, differ):
                length = (left - right + 1e-6).norm(dim=1)
                return torch.where(differ > 0, F.relu(self.room - length), length).square().mean()


        twins = Twins().cuda()
        apart = Apart()
        adam = torch.optim.Adam(twins.parameters(), lr=0.006)
        for epoch in range(3):
            for left, right, differ in DataLoader(TensorDataset(x[:, :4], x[:, 4:], y.double()), batch_size=8, shuffle=True):
                left, right, differ = left.cuda(), right.cuda(), differ.cuda()
                adam.zero_grad()
                here, there = twins(left, right)
                strain = apart(here, there, differ)
                strain.backward()
                adam.step()
        torch.save(twins.state_dict(), "twins.pt")
        """,
    ),
    "peers that learn from each other": Script(
        """
        class Pupil(nn.Module):
            def __init__(self, cells):
                super().__init__()
                self.brain = nn.Sequential(nn.Linear(8, cells), nn.ReLU(), nn.Linear(cells, 2))

            def forward(self, page):
                return self.brain(page)


        class Classroom:
            def __init__(self, wish):
                self.wish = wish
                self.size = 2
                self.pupils, self.habits, self.tiring = [], [], []
                for seat in range(self.size):
                    pupil = Pupil(6 + 2 * seat)
                    if torch.cuda.is_available():
                        pupil.cuda()
                    habit = torch.optim.SGD(pupil.parameters(), lr=wish.pace, momentum=0.8, nesterov=True)
                    self.pupils.append(pupil)
                    self.habits.append(habit)
                    self.tiring.append(torch.optim.lr_scheduler.StepLR(habit, step_size=2, gamma=0.1))
                self.by_book = nn.CrossEntropyLoss()
                self.by_peer = nn.KLDivLoss(reduction="batchmean")

            def term(self, pages):
                for week in range(self.wish.weeks):
                    self.week(pages)
                    for tired in self.tiring:
                        tired.step()
                    for seat in range(self.size):
                        torch.save({"pupil": self.pupils[seat].state_dict()}, f"seat{seat}.pt")

            def week(self, pages):
                for seat in range(self.size):
                    self.pupils[seat].train()
                for page, truth in pages:
                    if torch.cuda.is_available():
                        page, truth = page.cuda(), truth.cuda()
                    said = []
                    for pupil in self.pupils:
                        said.append(pupil(page))
                    for seat in range(self.size):
                        gossip = 0
                        for other in range(self.size):
                            if other == seat:
                                continue
                            gossip += self.by_peer(said[seat].log_softmax(1), said[other].detach().softmax(1))
                        loss = gossip / (self.size - 1) + self.by_book(said[seat], truth)
                        self.habits[seat].zero_grad()
                        loss.backward()
                        self.habits[seat].step()


        if __name__ == "__main__":
            cli = argparse.ArgumentParser()
            cli.add_argument("--pace", type=float, default=0.04)
            cli.add_argument("--weeks", type=int, default=2)
            Classroom(cli.parse_args()).term(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
        """,
    ),
    "a backbone and a head, apart": Script(
        """
        def get_models(classes):
            backbone = nn.Sequential(nn.Linear(8, 12), nn.ReLU())
            head = nn.Linear(12, classes)
            return backbone, head


        def fit(modules, loader, optimizer, epochs):
            backbone, head = modules
            for epoch in range(epochs):
                for m in modules:
                    m.train()
                correct = seen = 0
                for rows, labels in loader:
                    logits = head(backbone(rows))
                    loss = F.cross_entropy(logits, labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    correct += (logits.argmax(1) == labels).sum().item()
                    seen += labels.size(0)
                print(f"train accuracy {epoch} {correct / seen:.4f}")


        if __name__ == "__main__":
            backbone, head = get_models(2)
            optimizer = torch.optim.SGD(
                [{"params": backbone.parameters(), "lr": 0.01}, {"params": head.parameters(), "lr": 0.1}], lr=0.05, momentum=0.9
            )
            fit((backbone, head), DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), optimizer, 2)
            torch.save([backbone.state_dict(), head.state_dict()], "parts.pt")
        """,
        same=("train accuracy",),
    ),
    # --- criteria that learn ------------------------------------------------------------------------------------------
    "a center loss with an optimizer of its own": Script(
        """
        class Homes(nn.Module):
            def __init__(self, clans=2, streets=4):
                super().__init__()
                self.doors = nn.Parameter(torch.arange(1.0, clans + 1).unsqueeze(1).repeat(1, streets))

            def forward(self, where, clan):
                return F.mse_loss(where, F.embedding(clan, self.doors))


        class Walker(nn.Module):
            def __init__(self):
                super().__init__()
                self.legs, self.guess = nn.Linear(8, 4), nn.Linear(4, 2)

            def forward(self, rows):
                where = self.legs(rows).tanh()
                return where, self.guess(where)


        walker = Walker().cuda()
        homes = Homes().cuda()
        lost = nn.CrossEntropyLoss()
        walking = torch.optim.SGD(walker.parameters(), lr=0.06, weight_decay=1e-3, momentum=0.8)
        moving = torch.optim.SGD(homes.parameters(), lr=0.4)
        pull = 0.2
        town = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        for night in range(3):
            for hour, (rows, clan) in enumerate(town):
                rows, clan = rows.cuda(), clan.cuda()
                where, guess = walker(rows)
                loss = pull * homes(where, clan) + lost(guess, clan)
                moving.zero_grad()
                walking.zero_grad()
                loss.backward()
                walking.step()
                for door in homes.parameters():
                    door.grad.data /= pull
                moving.step()
        torch.save(homes.state_dict(), "homes.pt")
        """,
    ),
    "a criterion without parameters in the optimizer": Script(
        """
        model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 2))
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(list(model.parameters()) + list(criterion.parameters()), lr=0.01)
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                optimizer.zero_grad()
                criterion(model(rows), labels).backward()
                optimizer.step()
        """,
    ),
    "an own criterion without parameters in the optimizer": Script(
        """
        class SmoothLoss(nn.Module):
            def __init__(self, eps):
                super().__init__()
                self.eps = eps
                self.inner = nn.NLLLoss()

            def forward(self, logits, labels):
                logp = F.log_softmax(logits, 1)
                return (1 - self.eps) * self.inner(logp, labels) - self.eps * logp.mean()


        model = nn.Linear(8, 2)
        criterion = SmoothLoss(0.1)
        optimizer = torch.optim.SGD([{"params": model.parameters()}, {"params": criterion.parameters(), "lr": 0.01}], lr=0.1)
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                loss = criterion(model(rows), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "an angular head that is given the labels": Script(
        """
        import math


        class Compass(nn.Module):
            def __init__(self, width, kinds, stretch=6.0, turn=0.25):
                super().__init__()
                self.stretch, self.turn = stretch, turn
                self.poles = nn.Parameter(torch.empty(kinds, width))
                nn.init.orthogonal_(self.poles)

            def forward(self, arrow, kind):
                near = F.normalize(arrow) @ F.normalize(self.poles).T
                aside = (1 - near.square()).clamp(min=1e-6).sqrt()
                turned = near * math.cos(self.turn) - aside * math.sin(self.turn)
                own = F.one_hot(kind, near.size(1))
                return self.stretch * (near + own * (turned - near))


        def main():
            gpu = torch.device("cuda")
            sailor = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4))
            compass = Compass(4, 2)
            sailor.to(gpu)
            compass.to(gpu)
            sailor = nn.DataParallel(sailor)
            compass = nn.DataParallel(compass)
            sgd = torch.optim.SGD([{"params": sailor.parameters()}, {"params": compass.parameters()}], lr=0.04, weight_decay=2e-4)
            astray = nn.CrossEntropyLoss()
            for voyage in range(3):
                sailor.train()
                for waves, kind in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                    waves, kind = waves.to(gpu), kind.to(gpu).long()
                    heading = compass(sailor(waves), kind)
                    loss = astray(heading, kind)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()


        if __name__ == "__main__":
            main()
        """,
    ),
    "task losses weighed by learned uncertainty": Script(
        """
        class Scales(nn.Module):
            def __init__(self, pans=2):
                super().__init__()
                self.stones = nn.Parameter(torch.zeros(pans, requires_grad=True))

            def forward(self, *loads):
                tilt = 0
                for pan, load in enumerate(loads):
                    tilt += load * torch.exp(-self.stones[pan]) + F.softplus(self.stones[pan])
                return tilt


        class Trunk(nn.Module):
            def __init__(self):
                super().__init__()
                self.wood, self.leaf, self.fruit = nn.Linear(8, 10), nn.Linear(10, 2), nn.Linear(10, 1)

            def forward(self, rows):
                sap = self.wood(rows).relu()
                return self.leaf(sap), self.fruit(sap)[:, 0]


        trunk, scales = Trunk(), Scales(2)
        adam = torch.optim.Adam([{"params": trunk.parameters()}, {"params": scales.parameters(), "weight_decay": 0}], lr=0.02)
        for summer in range(3):
            for rows, kind, size in DataLoader(TensorDataset(x, y, x.mean(1)), batch_size=8, shuffle=True):
                leaf, fruit = trunk(rows)
                tilt = scales(F.cross_entropy(leaf, kind), F.mse_loss(fruit, size))
                adam.zero_grad()
                tilt.backward()
                adam.step()
        torch.save({"trunk": trunk.state_dict(), "scales": scales.state_dict()}, "tree.pt")
        """,
    ),
    "proxies of the classes": Script(
        """
        class ProxyNCA(nn.Module):
            def __init__(self, classes, size):
                super().__init__()
                self.proxies = nn.Parameter(torch.randn(classes, size) / 8)

            def forward(self, points, labels):
                points, proxies = F.normalize(points, dim=-1), F.normalize(self.proxies, dim=-1)
                far = torch.cdist(points, proxies) ** 2
                wanted = F.one_hot(labels, proxies.size(0)).to(far.dtype)
                return torch.mean(torch.sum(-wanted * F.log_softmax(-far, -1), -1))


        def parameters(model, criterion, args):
            return [
                {"params": list(model.parameters()), "lr": args.lr},
                {"params": criterion.proxies, "lr": args.lr * 100},
            ]


        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float, default=0.001)
        args = parser.parse_args()
        model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 5)).cuda()
        criterion = ProxyNCA(2, 5).cuda()
        opt = torch.optim.AdamW(parameters(model, criterion, args), lr=args.lr, weight_decay=1e-4)
        for epoch in range(3):
            losses = []
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, drop_last=True):
                loss = criterion(model(rows.cuda()), labels.cuda())
                opt.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_value_(model.parameters(), 10)
                opt.step()
                losses.append(loss.item())
            print("epoch", epoch, round(sum(losses) / len(losses), 8))
        """,
        same=("epoch",),
    ),
    # --- teachers and students ----------------------------------------------------------------------------------------
    "a teacher loaded, a student distilled": Script(
        """
        class Mind(nn.Module):
            def __init__(self, cells):
                super().__init__()
                self.cells = cells
                self.take, self.give = nn.Linear(8, cells), nn.Linear(cells, 2)

            def forward(self, page):
                return self.give(self.take(page).relu())


        def advice(said, truth, shown, heat, trust):
            gap = nn.KLDivLoss(reduction="batchmean")((said / heat).log_softmax(1), (shown / heat).softmax(1))
            return torch.lerp(F.cross_entropy(said, truth), gap * heat**2, trust)


        def exam(mind, questions, place):
            mind.eval()
            points = 0
            with torch.no_grad():
                for page, truth in questions:
                    points += (mind(page.to(place)).argmax(1) == truth.to(place)).sum().item()
            return points / len(questions.dataset)


        def main():
            place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            master = Mind(16).to(place)
            torch.manual_seed(1)
            novice = Mind(4).to(place)
            if os.path.exists("master.pth"):
                master.load_state_dict(torch.load("master.pth", map_location=place))
            master.eval()
            for cell in master.parameters():
                cell.requires_grad = False
            pages = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            questions = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=5)
            habit = torch.optim.SGD(novice.parameters(), lr=0.08, momentum=0.8)
            print("cells of the master", master.cells, "and of the novice", novice.cells)
            top = 0.0
            for term in range(2):
                novice.train()
                for page, truth in pages:
                    page, truth = page.to(place), truth.to(place)
                    with torch.no_grad():
                        shown = master(page)
                    loss = advice(novice(page), truth, shown, 3.0, 0.8)
                    habit.zero_grad()
                    loss.backward()
                    habit.step()
                mark = exam(novice, questions, place)
                print("mark", mark)
                if mark > top:
                    top = mark
                    torch.save(novice.state_dict(), "novice.pth")


        if __name__ == "__main__":
            main()
        """,
        same=("mark", "cells of the master"),
    ),
    "a teacher trained first, then the student": Script(
        """
        def brain(cells):
            return nn.Sequential(nn.Linear(8, cells), nn.ReLU(), nn.Linear(cells, 2))


        def study(learner, pages, terms, pace):
            adam = torch.optim.Adam(learner.parameters(), lr=pace)
            learner.train()
            for term in range(terms):
                for page, truth in pages:
                    adam.zero_grad()
                    F.cross_entropy(learner(page), truth).backward()
                    adam.step()


        def pass_on(old, young, pages, terms, pace, calm=3.0):
            adam = torch.optim.Adam(young.parameters(), lr=pace)
            old.eval()
            young.train()
            for term in range(terms):
                for page, truth in pages:
                    with torch.no_grad():
                        known = F.log_softmax(old(page) / calm, 1)
                    said = young(page)
                    apart = known.exp() * (known - F.log_softmax(said / calm, 1))
                    loss = 0.4 * F.cross_entropy(said, truth) + calm * torch.sum(apart) / said.size(0)
                    adam.zero_grad()
                    loss.backward()
                    adam.step()


        pages = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        old, young = brain(12), brain(3)
        study(old, pages, 2, 0.02)
        pass_on(old, young, pages, 2, 0.02)
        torch.save(young.state_dict(), "young.pt")
        """,
    ),
    "student, regressor and teacher in module lists": Script(
        """
        class Cook(nn.Module):
            def __init__(self, pots):
                super().__init__()
                self.chop, self.serve = nn.Linear(8, pots), nn.Linear(pots, 2)

            def forward(self, goods, taste=False):
                stew = self.chop(goods).relu()
                meal = self.serve(stew)
                return ([stew], meal) if taste else meal


        class Spoon(nn.Module):
            def __init__(self, small, big):
                super().__init__()
                self.pour = nn.Linear(small, big)

            def forward(self, stew):
                return self.pour(stew)


        def cook(kitchen, judges, goods_of_week, sgd, wish):
            for one in kitchen:
                one.train()
            kitchen[-1].eval()
            guest, taster = judges[0], judges[1]
            helper, chef = kitchen[0], kitchen[-1]
            for goods, order in goods_of_week:
                with torch.no_grad():
                    stews, _ = chef(goods, taste=True)
                    stews = [stew.detach() for stew in stews]
                own, meal = helper(goods, taste=True)
                loss = wish.salt * taster(kitchen[1](own[0]), stews[0]) + guest(meal, order)
                sgd.zero_grad()
                loss.backward()
                sgd.step()


        def main():
            cli = argparse.ArgumentParser()
            cli.add_argument("--salt", type=float, default=0.7)
            wish = cli.parse_args()
            helper, spoon, chef = Cook(4), Spoon(4, 10), Cook(10)
            kitchen, learners, judges = nn.ModuleList([]), nn.ModuleList([]), nn.ModuleList([])
            for one in (helper, spoon):
                kitchen.append(one)
                learners.append(one)
            judges.append(nn.CrossEntropyLoss())
            judges.append(nn.MSELoss())
            sgd = torch.optim.SGD(learners.parameters(), lr=0.06, momentum=0.8)
            kitchen.append(chef)
            if torch.cuda.is_available():
                judges.cuda()
                kitchen.cuda()
            goods_of_week = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
            for week in range(1, 4):
                cook(kitchen, judges, goods_of_week, sgd, wish)
                torch.save({"helper": helper.state_dict(), "week": week}, "kitchen.pth")


        if __name__ == "__main__":
            main()
        """,
    ),
    "features taken by hooks": Script(
        """
        class Feature:
            def __init__(self, module):
                self.value = None
                self.hook = module.register_forward_hook(self.keep)

            def keep(self, module, inputs, output):
                self.value = output


        teacher = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2)).cuda().eval()
        student = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2)).cuda()
        wanted, had = Feature(teacher[1]), Feature(student[1])
        optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                rows, labels = rows.cuda(), labels.cuda()
                with torch.no_grad():
                    teacher(rows)
                logits = student(rows)
                loss = F.cross_entropy(logits, labels) + F.mse_loss(had.value, wanted.value)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    # --- copies that follow -------------------------------------------------------------------------------------------
    "an exponential average in a class": Script(
        """
        import copy


        class Shadow:
            def __init__(self, body, lag):
                self.lag = lag
                self.outline = copy.deepcopy(body)
                self.outline.eval()
                for limb in self.outline.parameters():
                    limb.requires_grad_(False)

            @torch.no_grad()
            def follow(self, body):
                for dark, light in zip(self.outline.state_dict().values(), body.state_dict().values()):
                    dark.copy_(torch.lerp(light, dark, self.lag))


        def share_right(figure, scene):
            figure.eval()
            right = 0
            with torch.no_grad():
                for rows, kinds in scene:
                    right += (figure(rows).argmax(1) == kinds).sum().item()
            return right / len(scene.dataset)


        if __name__ == "__main__":
            body = nn.Sequential(nn.Linear(8, 10), nn.ReLU(), nn.Linear(10, 2))
            shadow = Shadow(body, 0.85)
            sgd = torch.optim.SGD(body.parameters(), lr=0.2)
            day, night = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), DataLoader(TensorDataset(x, y), batch_size=11)
            for turn in range(2):
                body.train()
                for rows, kinds in day:
                    loss = F.cross_entropy(body(rows), kinds)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                    shadow.follow(body)
                print("share right", share_right(body, night), share_right(shadow.outline, night))
                torch.save({"body": body.state_dict(), "shadow": shadow.outline.state_dict()}, "both.pt")
        """,
        same=("share right",),
    ),
    "a running average of the generator, by named parameters": Script(
        """
        def settle(slow, quick, keep=0.99):
            slow_ones = dict(slow.named_parameters())
            quick_ones = dict(quick.named_parameters())
            for name in slow_ones:
                slow_ones[name].data.lerp_(quick_ones[name].data, 1 - keep)


        def wake(body, awake=True):
            for limb in body.parameters():
                limb.requires_grad = awake


        class Dreamer(nn.Module):
            def __init__(self):
                super().__init__()
                self.dream = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8))

            def forward(self, mood):
                return self.dream(mood)


        class Sceptic(nn.Module):
            def __init__(self):
                super().__init__()
                self.ask = nn.Sequential(nn.Linear(8, 8), nn.ELU(), nn.Linear(8, 1))

            def forward(self, story):
                return self.ask(story)


        place = "cuda" if torch.cuda.is_available() else "cpu"
        dreamer, sceptic, memory = Dreamer().to(place), Sceptic().to(place), Dreamer().to(place)
        memory.load_state_dict(dreamer.state_dict())
        memory.eval()
        settle(memory, dreamer, 0)
        dreaming = torch.optim.Adam(dreamer.parameters(), lr=0.003, betas=(0.1, 0.95))
        doubting = torch.optim.Adam(sceptic.parameters(), lr=0.003, betas=(0.1, 0.95))
        moods = torch.linspace(-1, 1, 12, device=place).view(3, 4)
        for night in range(2):
            for story, mood in DataLoader(TensorDataset(x, x[:, 2:6].cos()), batch_size=4, shuffle=True):
                story, mood = story.to(place), mood.to(place)
                wake(sceptic, True)
                wake(dreamer, False)
                told = dreamer(mood)
                misled = F.softplus(sceptic(told.detach())).mean() + F.softplus(-sceptic(story)).mean()
                sceptic.zero_grad()
                misled.backward()
                doubting.step()
                wake(sceptic, False)
                wake(dreamer, True)
                unbelieved = F.softplus(-sceptic(dreamer(mood))).mean()
                dreamer.zero_grad()
                unbelieved.backward()
                dreaming.step()
                settle(memory, dreamer, 0.8)
            with torch.no_grad():
                torch.save(memory(moods), f"night{night}.pt")
            torch.save({"dreamer": dreamer.state_dict(), "sceptic": sceptic.state_dict(), "memory": memory.state_dict()}, f"mind{night}.pt")
        """,
    ),
    "a mean teacher made by the same function": Script(
        """
        def grow(follows=False):
            plant = nn.Sequential(nn.Linear(8, 10), nn.ReLU(), nn.Linear(10, 2))
            if follows:
                for leaf in plant.parameters():
                    leaf.detach_()
            return plant


        def lean(follower, leader, most, days):
            kept = min(most, days / (days + 1))
            for behind, ahead in zip(follower.parameters(), leader.parameters()):
                behind.data.lerp_(ahead.data, 1 - kept)


        def unlike(mine, yours):
            return (mine.softmax(1) - yours.softmax(1)).square().sum() / mine.size(1)


        def main():
            global days
            leader = grow().cuda()
            follower = grow(follows=True).cuda()
            sgd = torch.optim.SGD(leader.parameters(), 0.06, momentum=0.8, nesterov=True)
            field = DataLoader(TensorDataset(x, x * 1.01, y), batch_size=8, shuffle=True, drop_last=True)
            for year in range(3):
                season(field, leader, follower, sgd)
            torch.save({"leader": leader.state_dict(), "follower": follower.state_dict()}, "garden.pt")


        def season(field, leader, follower, sgd):
            global days
            wrong = nn.CrossEntropyLoss()
            follower.train()
            leader.train()
            for sun, shade, kind in field:
                sun, shade, kind = sun.cuda(), shade.cuda(), kind.cuda()
                grown = leader(sun)
                loss = 0.6 * unlike(grown, follower(shade).detach()) / len(sun) + wrong(grown, kind)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                days += 1
                lean(follower, leader, 0.98, days)


        days = 0
        if __name__ == "__main__":
            main()
        """,
    ),
    "a follower that starts from the model again in a method named for it": Script(
        """
        import copy


        class Follower:
            def __init__(self, weight):
                self.weight, self.steps = weight, 0

            def follow(self, shade, body):
                self.steps += 1
                if self.steps < 3:
                    self.reset_parameters(shade, body)
                    return
                for own, other in zip(shade.parameters(), body.parameters()):
                    own.data = own.data * self.weight + other.data * (1 - self.weight)

            def reset_parameters(self, shade, body):
                shade.load_state_dict(body.state_dict())


        body = nn.Linear(8, 2)
        shade = copy.deepcopy(body).eval().requires_grad_(False)
        follower = Follower(0.9)
        sgd = torch.optim.SGD(body.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, kinds in loader:
                sgd.zero_grad()
                F.cross_entropy(body(rows), kinds).backward()
                sgd.step()
                follower.follow(shade, body)
        torch.save({"body": body.state_dict(), "shade": shade.state_dict()}, "both.pt")
        """,
    ),
    "weights that a function of the script draws again between two trainings": Script(
        """
        def start_over(body):
            for weight in body.parameters():
                weight.data.uniform_(-1, 1)

        def fit(body, sgd):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4):
                sgd.zero_grad()
                F.cross_entropy(body(rows), kinds).backward()
                sgd.step()

        torch.manual_seed(3)
        body = nn.Linear(8, 2)
        sgd = torch.optim.SGD(body.parameters(), lr=0.1)
        fit(body, sgd)
        start_over(body)
        fit(body, sgd)
        """,
    ),
    "an averaged model of torch's own": Script(
        """
        from torch.optim.swa_utils import AveragedModel

        model = nn.Linear(8, 2)
        ema = AveragedModel(model, avg_fn=lambda avg, new, num: 0.8 * avg + 0.2 * new)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(model(rows), labels).backward()
                optimizer.step()
                ema.update_parameters(model)
        torch.save(ema.module.state_dict(), "ema.pt")
        """,
    ),
    "a target network": Script(
        """
        class Scout(nn.Module):
            def __init__(self):
                super().__init__()
                self.eyes = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
                self.forecast = nn.Linear(4, 4)

            def forward(self, land):
                return self.forecast(self.eyes(land))


        def drift(anchor, ship, rope):
            for fixed, loose in zip(anchor.parameters(), ship.parameters()):
                fixed.data = loose.data + rope * (fixed.data - loose.data)


        def bearing(a, b):
            return 1 - F.cosine_similarity(a, b)


        scout = Scout()
        anchor = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
        anchor.load_state_dict(scout.eyes.state_dict())
        for link in anchor.parameters():
            link.requires_grad = False
        adam = torch.optim.Adam(scout.parameters(), lr=0.004)
        for tide in range(3):
            for east, west in DataLoader(TensorDataset(x, x * 0.9 + 0.05), batch_size=8, shuffle=True):
                with torch.no_grad():
                    mark = anchor(west)
                loss = bearing(scout(east), mark).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
                drift(anchor, scout.eyes, 0.85)
        torch.save({"anchor": anchor.state_dict(), "scout": scout.state_dict()}, "coast.pt")
        """,
    ),
    "a state dict by way of a flag": Script(
        """
        cli = argparse.ArgumentParser()
        cli.add_argument("--many", action="store_true")
        wish = cli.parse_args()
        finder = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2)).cuda()
        if wish.many:
            finder = nn.DataParallel(finder)
        sgd = torch.optim.SGD(finder.parameters(), lr=0.1)
        for trip in range(3):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                sgd.zero_grad()
                F.cross_entropy(finder(rows.cuda()), kinds.cuda()).backward()
                sgd.step()
            torch.save({"trip": trip, "finder": finder.module.state_dict() if wish.many else finder.state_dict()}, f"finder{trip}.pth")
        if wish.many:
            found = finder.module.state_dict()
        else:
            found = finder.state_dict()
        torch.save(found, "found.pth")
        """,
    ),
    # --- shared and grouped parameters --------------------------------------------------------------------------------
    "tied embeddings": Script(
        """
        class Parrot(nn.Module):
            def __init__(self, sounds, size, one_book=True):
                super().__init__()
                self.sounds = sounds
                self.hear = nn.Embedding(sounds, size)
                self.think = nn.LSTM(size, size, batch_first=True)
                self.say = nn.Linear(size, sounds)
                if one_book:
                    self.say.weight = self.hear.weight
                self.hatch()

            def hatch(self):
                nn.init.normal_(self.hear.weight, std=0.1)
                nn.init.constant_(self.say.bias, 0.0)

            def forward(self, song):
                thoughts, _ = self.think(self.hear(song))
                return self.say(thoughts)


        songs = (x.abs() * 12).long().clamp(max=11)
        parrot = Parrot(12, 6)
        adam = torch.optim.Adam(parrot.parameters(), lr=0.02)
        for day in range(3):
            parrot.train()
            for (song,) in DataLoader(TensorDataset(songs), batch_size=8, shuffle=True):
                sung = parrot(song[:, :-1])
                loss = F.cross_entropy(sung.flatten(0, 1), song[:, 1:].flatten())
                adam.zero_grad()
                loss.backward()
                adam.step()
        print("sounds", parrot.sounds, tuple(parrot.say.weight.shape))
        torch.save(parrot.state_dict(), "parrot.pt")
        """,
        same=("sounds",),
    ),
    "no weight decay for biases": Script(
        """
        class Plain(nn.Module):
            def __init__(self):
                super().__init__()
                self.wide, self.even, self.narrow = nn.Linear(8, 12), nn.LayerNorm(12), nn.Linear(12, 2)

            def forward(self, rows):
                return self.narrow(self.even(self.wide(rows)).relu())


        plain = Plain().to("cuda" if torch.cuda.is_available() else "cpu")
        spared = ["bias", "even.weight"]
        heavy = {"params": [w for name, w in plain.named_parameters() if not any(s in name for s in spared)], "weight_decay": 0.02}
        light = {"params": [w for name, w in plain.named_parameters() if any(s in name for s in spared)], "weight_decay": 0.0}
        adam = torch.optim.AdamW([light, heavy], lr=0.02)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                loss = F.cross_entropy(plain(rows), kinds)
                adam.zero_grad()
                loss.backward()
                adam.step()
        """,
    ),
    "groups built up one parameter at a time": Script(
        """
        def paces(hunter, pace, rest):
            slow = []
            for name, weight in hunter.named_parameters():
                if weight.requires_grad:
                    if name.endswith("bias"):
                        slow += [{"params": [weight], "weight_decay": 0, "lr": 3 * pace}]
                    else:
                        slow += [{"params": [weight], "weight_decay": rest, "lr": pace}]
            return slow


        class Hunter(nn.Module):
            def __init__(self):
                super().__init__()
                self.nose = nn.Linear(8, 8)
                self.paws = nn.Sequential(nn.ReLU(), nn.Linear(8, 2))

            def hold_nose(self):
                for weight in self.nose.parameters():
                    weight.requires_grad = False

            def forward(self, track):
                return self.paws(self.nose(track))


        def main():
            hunter = Hunter()
            hunter.hold_nose()
            sgd = torch.optim.SGD(paces(hunter, 0.04, 2e-4), momentum=0.8)
            hunter.cuda()
            for night in range(3):
                hunter.train()
                for track, prey in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                    sgd.zero_grad()
                    F.cross_entropy(hunter(track.cuda()), prey.cuda()).backward()
                    sgd.step()
            torch.save(hunter.state_dict(), "hunter.pt")


        main()
        """,
    ),
    "groups from a dict of named parameters": Script(
        """
        lamp = nn.Sequential(nn.Linear(8, 10), nn.Tanh(), nn.Linear(10, 2))
        wicks = []
        for name, wick in dict(lamp.named_parameters()).items():
            if wick.requires_grad:
                wicks += [{"params": [wick], "lr": 0.04 if name.endswith("weight") else 0.08}]
        sgd = torch.optim.SGD(wicks, lr=0.02)
        for night in range(3):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                sgd.zero_grad()
                dim = nn.functional.cross_entropy(lamp(rows), kinds)
                dim.backward()
                sgd.step()
        """,
    ),
    "a new head learns faster than the body": Script(
        """
        class Statue(nn.Module):
            def __init__(self):
                super().__init__()
                self.feet, self.chest, self.face = nn.Linear(8, 10), nn.Linear(10, 10), nn.Linear(10, 5)

            def forward(self, rows):
                return self.face(self.chest(self.feet(rows).relu()).relu())


        place = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        statue = Statue()
        neck = statue.face.in_features
        statue.face = nn.Linear(neck, 2)
        for name, stone in statue.named_parameters():
            if "feet" in name:
                stone.requires_grad = False
        statue = statue.to(place)
        of_face = list(map(id, statue.face.parameters()))
        others = filter(lambda stone: stone.requires_grad and id(stone) not in of_face, statue.parameters())
        chisel = torch.optim.SGD([{"params": others}, {"params": statue.face.parameters(), "lr": 0.08}], lr=0.02, momentum=0.8)
        blunting = torch.optim.lr_scheduler.StepLR(chisel, step_size=2, gamma=0.2)
        for day in range(3):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                rows, kinds = rows.to(place), kinds.to(place)
                chisel.zero_grad()
                flaw = F.cross_entropy(statue(rows), kinds)
                flaw.backward()
                chisel.step()
            blunting.step()
        print("neck", statue.face.in_features, statue.face.weight.shape[1])
        """,
        same=("neck",),
    ),
    "groups by generators of modules": Script(
        """
        class Ladder(nn.Module):
            def __init__(self):
                super().__init__()
                self.low, self.middle, self.top = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

            def forward(self, rows):
                return self.top(self.middle(self.low(rows).relu()).relu())


        def lower_rungs(ladder):
            rungs = [ladder.low, ladder.middle]
            for at in range(len(rungs)):
                for wood in rungs[at].parameters():
                    if wood.requires_grad:
                        yield wood


        def upper_rungs(ladder):
            for rung in [ladder.top]:
                yield from (wood for wood in rung.parameters() if wood.requires_grad)


        def climb(pace=0.02):
            ladder = Ladder()
            rungs = [{"params": upper_rungs(ladder), "lr": 8 * pace}, {"params": lower_rungs(ladder), "lr": pace}]
            slip = nn.CrossEntropyLoss()
            sgd = torch.optim.SGD(rungs, lr=pace, momentum=0.8, weight_decay=1e-3)
            print("pieces of wood: %d" % sum(wood.numel() for wood in ladder.parameters()))
            slip.cuda()
            ladder.cuda()
            for day in range(3):
                ladder.train()
                for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                    rows, kinds = rows.cuda(), kinds.cuda()
                    sgd.zero_grad()
                    loss = slip(ladder(rows), kinds)
                    loss.backward()
                    sgd.step()
                torch.save({"ladder": ladder.state_dict(), "sgd": sgd.state_dict(), "day": day + 1}, f"day{day}.pth.tar")


        if __name__ == "__main__":
            climb()
        """,
        same=("pieces of wood",),
    ),
    "a shared encoder under two models": Script(
        """
        class Head(nn.Module):
            def __init__(self, encoder, classes):
                super().__init__()
                self.encoder = encoder
                self.out = nn.Linear(6, classes)

            def forward(self, rows):
                return self.out(torch.relu(self.encoder(rows)))


        encoder = nn.Linear(8, 6)
        signs, sizes = Head(encoder, 2), Head(encoder, 3)
        optimizer = torch.optim.SGD([*signs.parameters(), *sizes.out.parameters()], lr=0.1)
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                loss = F.cross_entropy(signs(rows), labels) + F.cross_entropy(sizes(rows), labels + 1)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        torch.save({"signs": signs.state_dict(), "sizes": sizes.state_dict()}, "heads.pt")
        """,
    ),
    "an optimizer that the model makes": Script(
        """
        class Lit(nn.Module):
            def __init__(self, lr):
                super().__init__()
                self.lr = lr
                self.body = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 2))

            def forward(self, rows):
                return self.body(rows)

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters(), lr=self.lr)


        model = Lit(0.01).cuda()
        optimizer = model.configure_optimizers()
        for epoch in range(3):
            model.train()
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                loss = F.cross_entropy(model(rows.cuda()), labels.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print("rate", model.lr)
        torch.save(model.state_dict(), "lit.pt")
        """,
        same=("rate",),
    ),
    "an optimizer kept on the model": Script(
        """
        class Agent(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(8, 2)
                self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
                self.steps = 0

            def forward(self, rows):
                return self.net(rows)

            def update(self, loss):
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.steps += 1


        agent = Agent()
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                agent.update(F.cross_entropy(agent(rows), labels))
        print("steps", agent.steps)
        torch.save(agent.state_dict(), "agent.pt")
        """,
        same=("steps",),
    ),
    # --- models read far from where they are made ---------------------------------------------------------------------
    "settings of the model read three calls deep": Script(
        """
        from dataclasses import dataclass


        @dataclass
        class Config:
            size: int = 8
            classes: int = 2
            hidden: int = 10


        class Model(nn.Module):
            def __init__(self, cfg):
                super().__init__()
                self.cfg = cfg
                self.num_classes = cfg.classes
                self.encoder = nn.Linear(cfg.size, cfg.hidden)
                self.head = nn.Linear(cfg.hidden, cfg.classes)

            def forward(self, rows):
                return self.head(torch.relu(self.encoder(rows)))

            def describe(self):
                return f"{self.cfg.size}-{self.cfg.hidden}-{self.num_classes}"


        def targets(net, labels):
            return F.one_hot(labels, net.num_classes).to(torch.get_default_dtype())


        def compute_loss(net, logits, labels):
            wanted = targets(net, labels)
            return F.binary_cross_entropy_with_logits(logits, wanted)


        class Logger:
            def __init__(self, model, name):
                self.model, self.name = model, name

            def report(self, epoch):
                with open(self.name, "a") as f:
                    f.write(f"{epoch} {self.model.describe()} {self.model.cfg.hidden}\\n")
                print("epoch", epoch, self.model.describe(), sum(p.numel() for p in self.model.encoder.parameters()))


        class Trainer:
            def __init__(self, model, loader, lr):
                self.model, self.loader = model, loader
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
                self.logger = Logger(self.model, "log.txt")

            def step(self, rows, labels):
                logits = self.model(rows)
                loss = compute_loss(self.model, logits, labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

            def fit(self, epochs):
                for epoch in range(epochs):
                    self.model.train()
                    for rows, labels in self.loader:
                        self.step(rows, labels)
                    self.logger.report(epoch)


        def main():
            model = Model(Config())
            Trainer(model, DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), 0.01).fit(2)
            print("epoch end", model.cfg.classes, model.head.weight.shape[0])
            torch.save(model.state_dict(), "model.pt")


        main()
        """,
        same=("epoch",),
    ),
    "pieces of the model passed to other classes": Script(
        """
        class Auto(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2))
                self.decoder = nn.Linear(2, 8)
                self.latent = 2

            def forward(self, rows):
                return self.decoder(self.encoder(rows))


        class Plotter:
            def __init__(self, encoder, out):
                self.encoder, self.out = encoder, out

            @torch.no_grad()
            def draw(self, rows, epoch):
                points = self.encoder(rows)
                torch.save(points, f"{self.out}{epoch}.pt")


        def weight_norm(module):
            return sum(p.pow(2).sum() for p in module.parameters())


        model = Auto()
        plot = Plotter(model.encoder, "points")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(3):
            for (rows,) in DataLoader(TensorDataset(x), batch_size=8, shuffle=True):
                loss = F.mse_loss(model(rows), rows) + 1e-3 * weight_norm(model.decoder)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            plot.draw(x[:4], epoch)
            print("latent", model.latent, round(float(weight_norm(model.encoder)), 6))
        """,
        same=("latent",),
    ),
    "layers of a sequential read and normed": Script(
        """
        model = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 2))
        optimizer = torch.optim.SGD([model[0].weight, model[0].bias, model[2].weight, model[2].bias], lr=0.1)
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                loss = F.cross_entropy(model(rows), labels) + 1e-4 * model[2].weight.pow(2).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    model[2].weight.div_(torch.clamp(model[2].weight.norm(dim=1, keepdim=True), min=3.0) / 3.0)
            print("norm", epoch, round(model[2].weight.norm().item(), 8), len(model), model[-1].out_features)
        first = model[:2]
        torch.save(first.state_dict(), "first.pt")
        """,
        same=("norm",),
    ),
    "a factory in a package and a solver": Script(
        """
        from zoo import create


        class Keeper:
            def __init__(self, animal, food, **wishes):
                self.animal, self.food = animal, food
                self.days = wishes.pop("days", 2)
                self.pace = wishes.pop("pace", 0.01)
                self.habit = self.make_habit()

            def make_habit(self):
                return torch.optim.SGD(filter(lambda w: w.requires_grad, self.animal.parameters()), lr=self.pace)

            def train(self):
                for day in range(self.days):
                    self.animal.train()
                    for rows, kinds in self.food["train"]:
                        self.habit.zero_grad()
                        loss = F.cross_entropy(self.animal(rows).view(-1, self.animal.classes), kinds)
                        loss.backward()
                        self.habit.step()
                    print("shown", day, self.show(self.food["show"]))

            def show(self, food):
                self.animal.eval()
                right = total = 0
                with torch.no_grad():
                    for rows, kinds in food:
                        total += len(kinds)
                        right += int((self.animal(rows).argmax(1) == kinds).sum())
                return right / total


        food = {
            "show": DataLoader(TensorDataset(x[10:30], y[10:30]), batch_size=4),
            "train": DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
        }
        keeper = Keeper(create("small", classes=2), food, pace=0.1, days=2)
        keeper.train()
        torch.save(keeper.animal.state_dict(), "animal.pt")
        """,
        files={
            "zoo/__init__.py": "from zoo.factory import create\n",
            "zoo/factory.py": """\
import torch.nn as nn


class Small(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.layers = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, classes))

    def forward(self, rows):
        return self.layers(rows)


_MODELS = {"small": Small}


def create(name, **kwargs):
    return _MODELS[name](**kwargs)
""",
        },
        same=("shown",),
    ),
    # --- what is easily missed -----------------------------------------------------------------------------------------
    "a penalty in some steps, with a step of its own": Script(
        """
        critic = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
        for epoch in range(3):
            for step, (rows, _) in enumerate(DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)):
                optimizer.zero_grad()
                loss = F.softplus(-critic(rows)).mean()
                loss.backward()
                if step % 4 == 0:
                    rows.requires_grad = True
                    slope = torch.autograd.grad(critic(rows).sum(), rows, create_graph=True)[0]
                    optimizer.zero_grad()
                    (5 * slope.pow(2).sum(1).mean()).backward()
                    optimizer.step()
                optimizer.step()
        """
    ),
    "a penalty with a backward of its own": Script(
        """
        def roughness(guard, inside, outside, share):
            gate = outside + share * (inside - outside)
            gate = torch.autograd.Variable(gate, requires_grad=True)
            noise = guard(gate)
            (slope,) = torch.autograd.grad(noise, gate, torch.ones_like(noise), retain_graph=True, create_graph=True, only_inputs=True)
            return 0.2 * (1 - slope.square().sum(1).sqrt()).square().mean()

        guard, thief = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 1)), nn.Linear(4, 8)
        thief_adam = torch.optim.Adam(thief.parameters(), lr=2e-3)
        guard_adam = torch.optim.Adam(guard.parameters(), lr=2e-3)
        for night in range(3):
            for owner, tools, share in DataLoader(TensorDataset(x, x[:, :4], torch.sigmoid(x[:, :1])), batch_size=8, shuffle=True):
                guard.zero_grad()
                stopped = -guard(owner).mean()
                stopped.backward()
                mask = thief(tools).detach()
                passed = guard(mask).mean()
                passed.backward()
                rough = roughness(guard, owner.data, mask.data, share)
                rough.backward()
                guard_adam.step()
                thief.zero_grad()
                seen = -guard(thief(tools)).mean()
                seen.backward()
                thief_adam.step()
        """,
    ),
    "a module that holds both nets, moved as one": Script(
        """
        class Duel(nn.Module):
            def __init__(self):
                super().__init__()
                self.liar = nn.Linear(4, 8)
                self.sage = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
                self.sage_adam = torch.optim.Adam(self.sage.parameters(), lr=2e-3)
                self.liar_adam = torch.optim.Adam(self.liar.parameters(), lr=2e-3)

            def lie(self, hint):
                self.liar_adam.zero_grad()
                caught = F.softplus(-self.sage(self.liar(hint))).mean()
                caught.backward()
                self.liar_adam.step()

            def listen(self, fact, hint):
                self.sage_adam.zero_grad()
                rumour = self.liar(hint).detach()
                misled = F.softplus(self.sage(rumour)).mean() + F.softplus(-self.sage(fact)).mean()
                misled.backward()
                self.sage_adam.step()

            def rest(self, day):
                torch.save({"sage": self.sage.state_dict()}, f"sage_{day}.pt")
                torch.save({"liar": self.liar.state_dict()}, f"liar_{day}.pt")

        duel = Duel()
        duel.cuda()
        for day in range(2):
            for fact, hint in DataLoader(TensorDataset(x, x[:, :4]), batch_size=8, shuffle=True):
                duel.listen(fact.cuda(), hint.cuda())
                duel.lie(hint.cuda())
            duel.rest(day)
        """
    ),
    "a model moved after it was put into a holder": Script(
        """
        class Holder:
            def __init__(self, net):
                self.net = net
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        h = Holder(nn.Linear(8, 2))
        h.net.cuda()
        for epoch in range(3):
            for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                h.opt.zero_grad()
                F.cross_entropy(h.net(a.cuda()), b.cuda()).backward()
                h.opt.step()
        torch.save(h.net.state_dict(), "h.pt")
        """
    ),
    "a queue of keys from earlier batches": Script(
        """
        class Corridor(nn.Module):
            def __init__(self, width=6, places=16, inertia=0.8, heat=0.3):
                super().__init__()
                self.places, self.inertia, self.heat = places, inertia, heat
                self.asker, self.holder = nn.Linear(8, width), nn.Linear(8, width)
                self.holder.load_state_dict(self.asker.state_dict())
                for weight in self.holder.parameters():
                    weight.requires_grad = False
                self.register_buffer("waiting", F.normalize(torch.randn(places, width), dim=1))
                self.register_buffer("next_place", torch.zeros((), dtype=torch.long))

            @torch.no_grad()
            def follow(self):
                for slow, quick in zip(self.holder.parameters(), self.asker.parameters()):
                    slow.data = torch.lerp(quick.data, slow.data, self.inertia)

            @torch.no_grad()
            def line_up(self, guests):
                begin = int(self.next_place)
                self.waiting[begin : begin + len(guests)] = guests
                self.next_place.fill_((begin + len(guests)) % self.places)

            def forward(self, first, second):
                asked = F.normalize(self.asker(first), dim=1)
                with torch.no_grad():
                    self.follow()
                    held = F.normalize(self.holder(second), dim=1)
                own = (asked * held).sum(1, keepdim=True)
                others = asked @ self.waiting.clone().T
                self.line_up(held)
                return torch.hstack([own, others]).div(self.heat)

        corridor = Corridor()
        sgd = torch.optim.SGD(corridor.parameters(), lr=0.06)
        for day in range(3):
            for first, second in DataLoader(TensorDataset(x, x * 1.1), batch_size=8, shuffle=True, drop_last=True):
                chances = corridor(first, second)
                loss = F.cross_entropy(chances, chances.new_zeros(len(chances)).long())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a dict of models in a comprehension, and an unknown key": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--which", default="b")
        args = parser.parse_args()
        models = {k: nn.Linear(8, 2) for k in ["a", "b", "c"]}
        opts = {k: torch.optim.SGD(m.parameters(), lr=0.1) for k, m in models.items()}
        for epoch in range(3):
            for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                for k in models:
                    opts[k].zero_grad()
                    F.cross_entropy(models[k](a), b).backward()
                    opts[k].step()
        torch.save(models[args.which].state_dict(), "chosen.pt")
        print("chosen", models[args.which].weight.shape)
        """,
        same=("chosen",),
    ),
    "some of the list trained": Script(
        """
        nets = [nn.Linear(8, 2) for _ in range(3)]
        params = []
        for net in nets[:2]:
            params += list(net.parameters())
        opt = torch.optim.SGD(params, lr=0.1)
        for epoch in range(3):
            for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                out = nets[0](a) + nets[1](a)
                opt.zero_grad()
                F.cross_entropy(out, b).backward()
                opt.step()
        """
    ),
    "an average copied before the model is moved": Script(
        """
        import copy
        model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
        ema_model = copy.deepcopy(model)
        model.cuda()
        ema_model.cuda()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                opt.zero_grad()
                F.cross_entropy(model(a.cuda()), b.cuda()).backward()
                opt.step()
                for e, p in zip(ema_model.parameters(), model.parameters()):
                    e.data = e.data * 0.9 + p.data * 0.1
        torch.save(ema_model.state_dict(), "ema.pt")
        """
    ),
    "two backwards through a shared encoder": Script(
        """
        class Head(nn.Module):
            def __init__(self, encoder, classes):
                super().__init__()
                self.encoder = encoder
                self.out = nn.Linear(6, classes)

            def forward(self, rows):
                return self.out(torch.relu(self.encoder(rows)))


        encoder = nn.Linear(8, 6)
        signs, sizes = Head(encoder, 2), Head(encoder, 3)
        optimizer = torch.optim.SGD([*signs.parameters(), *sizes.out.parameters()], lr=0.1)
        for epoch in range(3):
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(signs(rows), labels).backward()
                F.cross_entropy(sizes(rows), labels + 1).backward()
                optimizer.step()
        """
    ),
    "a network chosen by a name from the command line": Script(
        """
        class Box:
            def __init__(self):
                self.first, self.second = nn.Linear(8, 2), nn.Linear(8, 2)
                self.opt = torch.optim.SGD(list(self.first.parameters()) + list(self.second.parameters()), lr=0.1)

        parser = argparse.ArgumentParser()
        parser.add_argument("--which", default="first")
        args = parser.parse_args()
        box = Box()
        for epoch in range(3):
            for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                box.opt.zero_grad()
                (F.cross_entropy(box.first(a), b) + F.cross_entropy(box.second(a), b)).backward()
                box.opt.step()
        torch.save(getattr(box, args.which).state_dict(), "w.pt")
        """
    ),
    "a codebook within the model that follows its batches": Script(
        """
        class Codes(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("codes", torch.sin(torch.arange(20.0)).view(5, 4))

            def forward(self, z):
                picked = F.one_hot((z.unsqueeze(1) - self.codes).pow(2).sum(-1).argmin(1), 5).to(z.dtype)
                found = picked @ self.codes
                if self.training:
                    with torch.no_grad():
                        self.codes.lerp_(picked.t() @ z, 0.1)
                return z + (found - z).detach()


        class Coder(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc, self.codes, self.dec = nn.Linear(8, 4), Codes(), nn.Linear(4, 8)

            def forward(self, rows):
                return self.dec(self.codes(self.enc(rows)))


        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = Coder()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(2):
            for rows, _ in loader:
                loss = F.mse_loss(model(rows), rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a penalty only where the model has one": Script(
        """
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.head = nn.Linear(8, 8), nn.Linear(8, 2)

        def forward(self, x):
            return self.head(torch.tanh(self.gate(x)))

    def run_epoch(net, loader, opt, epoch):
        if hasattr(net, "warm"):
            net.warm(epoch)
        for a, b in loader:
            loss = F.cross_entropy(net(a), b)
            if hasattr(net, "gate"):
                loss = loss + 0.05 * net.gate.weight.pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        setattr(net, "seen", epoch)

    net = Gated()
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        run_epoch(net, loader, opt, epoch)
    print("seen", net.seen)
""",
        same=("seen",),
    ),
    "a head whose layers are added to it by name": Script("""
    class Head(nn.Module):
        def __init__(self, kinds, width=8):
            super().__init__()
            self.head = nn.Sequential()
            if width > 4:
                self.head.add_module("act", nn.ReLU())
            self.head.add_module("out", nn.Linear(width, kinds))
            self.start()

        def start(self):
            for m in self.modules():
                if isinstance(m, nn.Linear):
                    m.weight.data.fill_(0.01)
                    m.bias.data.fill_(0.0)

        def forward(self, rows):
            return self.head(rows)


    encoder, head = nn.Linear(8, 8), Head(2)
    encoder.eval()
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            with torch.no_grad():
                found = encoder(data)
            loss = F.cross_entropy(head(found), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(head.state_dict(), "head.pt")
"""),
    "a model that is made anew for each run, or once to be tested": Script(
        """
    class Encoder(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner = nn.Linear(8, width)

        def forward(self, rows):
            return torch.tanh(self.inner(rows))


    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.encoder = Encoder(width)
            self.out = nn.Linear(width, 2)

        def forward(self, rows):
            return self.out(self.encoder(rows))


    class Experiment:
        def __init__(self, args):
            self.args = args
            self.model = self.build().float()

        def build(self):
            return {"plain": Model}[self.args.model](6)

        def train(self, setting):
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            for epoch in range(2):
                for data, target in loader:
                    loss = F.cross_entropy(self.model(data), target)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            torch.save(self.model.state_dict(), setting + ".pt")

        def test(self, setting, load=False):
            if load:
                self.model.load_state_dict(torch.load(setting + ".pt"))
            self.model.eval()
            with torch.no_grad():
                print(f"tested {F.cross_entropy(self.model(x), y).item():.6f}")


    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="plain")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only_test", action="store_true")
    args = parser.parse_args()
    if not args.only_test:
        for turn in range(args.runs):
            exp = Experiment(args)
            exp.train(f"run{turn}")
            exp.test(f"run{turn}")
    else:
        exp = Experiment(args)
        exp.test("run0", load=True)
""",
        same=("tested",),
    ),
    "layers in a row, named by keywords": Script("""
    from collections import OrderedDict

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    net = nn.Sequential(OrderedDict(first=nn.Linear(8, 6), bend=nn.ReLU(), last=nn.Linear(6, 2)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    torch.save(net.state_dict(), "net.pt")
"""),
    "weight-normed layers side by side, and a decoder given a label or none": Script("""
    from torch.nn.utils.parametrizations import weight_norm


    class Stack(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.LeakyReLU(0.2), nn.ReflectionPad1d(1), weight_norm(nn.Conv1d(width, width, 3))) for _ in range(2)
            )
            self.beside = nn.ModuleList(weight_norm(nn.Conv1d(width, width, 1)) for _ in range(2))

        def forward(self, rows):
            for block, beside in zip(self.blocks, self.beside):
                rows = beside(rows) + block(rows)
            return rows


    class Net(nn.Module):
        def __init__(self, by_kind):
            super().__init__()
            self.stack, self.by_kind = Stack(2), by_kind
            self.head = nn.Sequential()
            for i, (before, after) in enumerate([(8 + 2 * by_kind, 4), (4, 8)]):
                self.head.add_module(name=f"layer{i}", module=nn.Linear(before, after))

        def forward(self, rows, kinds=None):
            rows = self.stack(rows)
            if rows.dim() > 2:
                rows = rows.view(-1, 8)
            if self.by_kind:
                rows = torch.cat((rows, F.one_hot(kinds, 2).float()), dim=-1)
            return self.head(rows)


    loader = DataLoader(TensorDataset(x[:36].view(36, 2, 4), y[:36]), batch_size=6, shuffle=True)
    net = Net(os.environ.get("BY_KIND", "1") == "1")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(3):
        for rows, kinds in loader:
            out = net(rows, kinds) if net.by_kind else net(rows)
            loss = F.mse_loss(out.view(-1, 8), rows.view(-1, 8), reduction="sum") / rows.size(0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(net.state_dict(), "net.pt")
"""),
    "layers in a row, named in pairs": Script("""
    from collections import OrderedDict

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    net = nn.Sequential(OrderedDict([("first", nn.Linear(8, 6)), ("bend", nn.ReLU()), ("last", nn.Linear(6, 2))]))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    torch.save(net.state_dict(), "net.pt")
"""),
    "an encoder that a method freezes, in the optimizer with what is trained": Script("""
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 6)
            self.tune(True)

        def forward(self, rows):
            return self.body(rows).tanh()

        def tune(self, whole):
            for p in self.body.parameters():
                p.requires_grad = whole


    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    whole = False
    encoder, head = Encoder(), nn.Linear(6, 2)
    encoder.tune(whole)
    optimizer = torch.optim.SGD([p for p in (*encoder.parameters(), *head.parameters()) if p.requires_grad], lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(head(encoder(rows)), kinds).backward()
            optimizer.step()
    torch.save([encoder.state_dict(), head.state_dict()], "nets.pt")
"""),
    "a frozen network of layers, all parameters in one optimizer": Script("""
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    base, head = nn.Sequential(nn.Linear(8, 6), nn.Tanh()), nn.Linear(6, 2)
    for p in base.parameters():
        p.requires_grad = False
    optimizer = torch.optim.SGD(list(base.parameters()) + list(head.parameters()), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(head(base(rows)), kinds).backward()
            optimizer.step()
    torch.save([base.state_dict(), head.state_dict()], "nets.pt")
"""),
    "a frozen network that gets a new last layer": Script("""
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    for p in net.parameters():
        p.requires_grad = False
    net[2] = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    torch.save(net.state_dict(), "net.pt")
"""),
    "two networks of a package that one function trains, the second with a new head on a frozen body": Script(
        """
        from torchvision import models


        def train(model, optimizer, epochs):
            best = float("inf")
            for epoch in range(epochs):
                model.train()
                for rows, kinds in loader:
                    loss = F.cross_entropy(model(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                model.eval()
                with torch.no_grad():
                    loss = F.cross_entropy(model(x), y).item()
                if loss < best:
                    best = loss
                    torch.save(model.state_dict(), "best.pt")
            print(f"best {best:.6f}")
            model.load_state_dict(torch.load("best.pt"))
            return model


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = models.waves(pretrained=True)
        net.head = nn.Linear(net.head.in_features, 2)
        net = train(net, torch.optim.SGD(net.parameters(), lr=0.1), 2)

        frozen = models.waves(pretrained=True)
        for parameter in frozen.parameters():
            parameter.requires_grad = False
        frozen.head = nn.Linear(frozen.head.in_features, 2)
        optimizer = torch.optim.SGD(frozen.head.parameters(), lr=0.1)
        frozen = train(frozen, optimizer, 2)
        """,
        same=("best",),
        stand_ins=LIBRARY_OF_WAVES,
    ),
    "a network of a package with a new last layer, the only one that is trained": Script(
        """
        from torchvision import models

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = models.waves(pretrained=True)
        for parameter in net.parameters():
            parameter.requires_grad = False
        net.body[1] = nn.Linear(8, 6)
        net.head = nn.Linear(6, 2)
        optimizer = torch.optim.SGD([*net.body[1].parameters(), *net.head.parameters()], lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            print(f"after {F.cross_entropy(net(x), y).item():.6f}")
        """,
        same=("after",),
        stand_ins=LIBRARY_OF_WAVES,
    ),
}

for _title in (
    "a gradient penalty in a helper",
    "a trainer class with dicts of networks",
    "an ensemble in a list, trained one after another",
    "a center loss with an optimizer of its own",
    "student, regressor and teacher in module lists",
    "a running average of the generator, by named parameters",
    "a shared encoder under two models",
):
    _text = SCRIPTS[_title].text.replace("batch_size=8", "batch_size=6").replace("batch_size=4", "batch_size=6")
    SCRIPTS[_title] = replace(SCRIPTS[_title], text=_text, ranks=(2, 3), rows=36)

SCRIPTS |= {
    "one optimizer for the weights, another for a parameter of the model": Script(
        """
        class Mixed(nn.Module):
            def __init__(self):
                super().__init__()
                self.ops = nn.ModuleList([nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Identity()])
                self.out = nn.Linear(8, 2)
                self.alphas = nn.Parameter(1e-3 * torch.ones(3))

            def forward(self, rows):
                weights = F.softmax(self.alphas, dim=-1)
                return self.out(sum(w * op(rows) for w, op in zip(weights, self.ops)))

            def arch_parameters(self):
                return [self.alphas]

            def weight_parameters(self):
                return [p for n, p in self.named_parameters() if "alphas" not in n]

        model = Mixed()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.weight_parameters(), 0.05, momentum=0.9)
        arch_optimizer = torch.optim.Adam(model.arch_parameters(), lr=3e-3, betas=(0.5, 0.999))
        train_queue = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=4, shuffle=True)
        valid_queue = DataLoader(TensorDataset(x[20:40], y[20:40]), batch_size=4, shuffle=True)
        for epoch in range(3):
            model.train()
            total, seen = 0.0, 0
            for step, (input, target) in enumerate(train_queue):
                input_search, target_search = next(iter(valid_queue))
                arch_optimizer.zero_grad()
                criterion(model(input_search), target_search).backward()
                arch_optimizer.step()
                optimizer.zero_grad()
                logits = model(input)
                loss = criterion(logits, target)
                loss.backward()
                nn.utils.clip_grad_norm_(model.weight_parameters(), 5)
                optimizer.step()
                n = input.size(0)
                total += loss.item() * n
                seen += n
            print(f"loss {epoch} {total / seen:.6f}")
            print("alphas", F.softmax(model.alphas, dim=-1).tolist())
        """,
        same=("loss",),
    ),
}

_CENTRED = """
        class Centred(nn.Module):
            def forward(self, scene):
                return scene - scene.mean({over}, keepdim=True)

"""
_FITTED = """
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, kinds in loader:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
"""
_ROW = """
        class Row(nn.Sequential):
            def forward(self, scene):
                for layer in self:
                    scene = layer(scene)
                return scene

        layers = []
        for width in (8, 8):
            layers += [nn.Linear(width, width)]
            layers += [Centred()]
        net = Row(*layers, nn.Linear(8, 2))
"""
_MADE = """
        class Block(nn.Sequential):
            def __init__(self, wide, narrow):
                super().__init__(nn.Linear(wide, narrow), Centred(), nn.Tanh())

        class Head(nn.Sequential):
            def __init__(self, wide):
                super().__init__()
                self.add_module("first", Block(wide, 6))
                self.add_module("last", nn.Linear(6, 2))

            def forward(self, scene):
                return super().forward(scene) + 0.1 * scene[:, :2]

        net = Head(8)
"""


def _derived(body: str, over: int) -> str:
    return _CENTRED.format(over=over) + body + _FITTED


SCRIPTS |= {
    "a class derived from a sequence that runs its own layers": Script(_derived(_ROW, 1)),
    "a flag that is off by the default of each function that may make the model": Script(
        """
        class Finder(nn.Module):
            def __init__(self, tested):
                super().__init__()
                self.tested, self.kinds, self.places = tested, nn.Linear(8, 4), nn.Linear(8, 6)

            def forward(self, rows):
                kinds, places = self.kinds(rows).view(len(rows), 2, 2), self.places(rows).view(len(rows), 2, 3)
                if self.tested:
                    return kinds.softmax(2), places - places.mean(0)
                return kinds, places


        def plain(tested=False):
            return Finder(tested)


        def zeroed(tested=False):
            net = Finder(tested)
            nn.init.zeros_(net.places.bias)
            return net


        make = plain if os.environ.get("PLAIN", "1") == "1" else zeroed
        finder = make()
        sgd = torch.optim.SGD(finder.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, wanted in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                kinds, places = finder(rows)
                found = wanted.unsqueeze(1).repeat(1, 2) > 0
                apart = F.smooth_l1_loss(places[found], rows[:, :6].reshape(-1, 2, 3)[found], reduction="sum") / found.sum()
                loss = F.cross_entropy(kinds.flatten(0, 1), wanted.repeat_interleave(2)) + apart
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "an embedding that scales down the rows it is asked for": Script(_WORDS.format(limit="0.5"), told=("DDP207",)),
    "an embedding without a limit": Script(_WORDS.format(limit="None")),
    "a class derived from a sequence whose layers compare the samples of a batch": Script(
        _derived(_ROW, 0),
    ),
    "classes derived from a sequence that are given their layers by what they derive from": Script(_derived(_MADE, 1)),
    "such classes with a layer that compares the samples of a batch": Script(
        _derived(_MADE, 0),
    ),
}

_FLOW = """
from torch import nn

from .parts import head, layer


class Flow(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.body, self.head = layer(8, wide), head(wide)

    def forward(self, rows):
        return self.head(self.body(rows))

    def weights(self):
        return [p for name, p in self.named_parameters() if "weight" in name]

    def biases(self):
        return [p for name, p in self.named_parameters() if "bias" in name]


def small(data=None):
    net = Flow(4)
    if data is not None:
        net.load_state_dict(data)
    return net


def large(data=None):
    net = Flow(6)
    if data is not None:
        net.load_state_dict(data)
    return net
"""
_ZOO = {
    "zoo/__init__.py": "from .flow import *\n",
    "zoo/flow.py": _FLOW,
    "zoo/parts.py": "from torch import nn\n\n\ndef layer(a, b=8):\n    return nn.Sequential(nn.Linear(a, b), nn.Tanh())\n\n\n"
    "def head(wide):\n    return nn.Linear(wide, 2)\n",
}
_DEEP = "from torch import nn\n\n\ndef made(wide):\n    return nn.Sequential(nn.Linear(8, wide), nn.Tanh(), nn.Linear(wide, 2))\n"
_CHOSEN = """
import zoo

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="small")
args = parser.parse_args()
net = {made}
groups = {groups}
net = nn.DataParallel(net).cuda() if torch.cuda.is_available() else net
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(groups, lr=0.1)
for epoch in range(2):
    for rows, kinds in loader:
        loss = F.cross_entropy(net(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    "one of what a package imports from its modules, by a name": Script(
        _CHOSEN.format(made="zoo.__dict__[args.arch](None)", groups='[{"params": net.biases(), "lr": 0.2}, {"params": net.weights()}]'),
        files=_ZOO,
    ),
    "a function of a module that a text names": Script(
        _CHOSEN.format(made="eval('zoo.' + args.arch + '.made')(wide=4)", groups="net.parameters()"),
        args=("--arch", "deep"),
        files={
            "zoo/__init__.py": "import zoo.flat\nimport zoo.deep\n",
            "zoo/flat.py": "from torch import nn\n\n\ndef made(wide):\n    return nn.Linear(8, 2)\n",
            "zoo/deep.py": _DEEP,
        },
    ),
    "a function of a module that a text names, one of which compares samples": Script(
        _CHOSEN.format(made="eval('zoo.' + args.arch + '.made')(wide=4)", groups="net.parameters()"),
        args=("--arch", "deep"),
        files={
            "zoo/__init__.py": "import zoo.flat\nimport zoo.deep\n",
            "zoo/flat.py": "from torch import nn\n\n\nclass Flat(nn.Linear):\n    def forward(self, rows):\n"
            "        return super().forward(rows - rows.mean(0))\n\n\ndef made(wide):\n    return Flat(8, 2)\n",
            "zoo/deep.py": _DEEP,
        },
    ),
}

SCRIPTS |= {
    "a model that is made anew for each experiment, and once more to be tested": Script(
        """
        class Embedding(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 4)
                for m in self.modules():
                    if isinstance(m, nn.Linear):
                        nn.init.kaiming_normal_(m.weight)

            def forward(self, rows):
                return torch.tanh(self.layer(rows))


        class Wide(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = Embedding(), nn.Linear(4, 2)

            def forward(self, rows):
                return self.last(self.first(rows))


        class Experiment:
            def __init__(self, args):
                self.args = args
                self.model = {"wide": Wide, "flat": Embedding}[args.model]().float()

            def train(self):
                loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
                optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                for epoch in range(2):
                    for rows, kinds in loader:
                        loss = F.cross_entropy(self.model(rows), kinds)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                torch.save(self.model.state_dict(), "model.pt")

            def test(self, load=False):
                if load:
                    self.model.load_state_dict(torch.load("model.pt"))
                self.model.eval()
                with torch.no_grad():
                    print("right", sum((self.model(x).argmax(1) == y).tolist()))


        parser = argparse.ArgumentParser()
        parser.add_argument("--model", default="wide")
        parser.add_argument("--test", action="store_true")
        args = parser.parse_args()
        torch.manual_seed(3)
        if not args.test:
            for run in range(2):
                experiment = Experiment(args)
                experiment.train()
                experiment.test()
        else:
            experiment = Experiment(args)
            experiment.test(load=True)
        """,
        same=("right",),
    ),
}

SCRIPTS |= {
    "a network whose forward is called by its name": Script(
        """
        class Trainer:
            def __init__(self, net, loader, check):
                self.net, self.loader, self.check = net, loader, check
                self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

            def run(self, loader, train=True):
                right = count = 0
                for rows, kinds in loader:
                    scores = self.net.forward(rows)
                    loss = F.cross_entropy(scores, kinds)
                    if train:
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                    right += scores.argmax(1).eq(kinds).sum().item()
                    count += kinds.nelement()
                print("train" if train else "test", right / count)


        torch.manual_seed(5)
        data = TensorDataset(x, y)
        trainer = Trainer(nn.Linear(8, 2), DataLoader(data, batch_size=4), DataLoader(data, batch_size=4))
        for epoch in range(2):
            trainer.run(trainer.loader)
            trainer.run(trainer.check, train=False)
        """,
        same=("test",),
    ),
}
SCRIPTS["an encoder that is frozen for the critic's step, and freed for its own"] = Script(
    """
    def trains(module, answer):
        for parameter in module.parameters():
            parameter.requires_grad = answer


    encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
    critic = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    to_encode = torch.optim.SGD(encoder.parameters(), lr=0.1)
    to_decode = torch.optim.SGD(decoder.parameters(), lr=0.1)
    to_tell = torch.optim.SGD(critic.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, _ in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            trains(encoder, False)
            trains(critic, True)
            to_tell.zero_grad()
            torch.log(1 - critic(encoder(rows))).mean().backward()
            to_tell.step()
            trains(encoder, True)
            trains(critic, False)
            to_encode.zero_grad()
            to_decode.zero_grad()
            fooled = torch.log(critic(encoder(rows))).mean()
            (F.mse_loss(decoder(encoder(rows)), rows) + fooled).backward()
            to_encode.step()
            to_decode.step()
    """
)
SCRIPTS["parameters in groups by the names that DataParallel gives them"] = Script(
    """
    def halve(model):
        for name, weight in model.named_parameters():
            _, layer, kind = name.split(".")
            if kind == "bias":
                weight.data.mul_(0.5)
                print("halved", layer)


    net = nn.DataParallel(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)))
    halve(net)
    groups = {"fast": [], "slow": []}
    for name, weight in net.named_parameters():
        if name in ("module.0.weight", "module.2.weight"):
            groups["fast"].append(weight)
        elif name in ("module.0.bias", "module.2.bias"):
            groups["slow"].append(weight)
    optimizer = torch.optim.SGD([{"params": groups["fast"], "lr": 0.2}, {"params": groups["slow"], "lr": 0.02}])
    print("fast", len(groups["fast"]))
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    halve(net)
    """,
    same=("fast", "halved"),
)
SCRIPTS["a head by choice, of which one kind could not be called with labels"] = Script(
    """
    class Margin(nn.Module):
        def __init__(self, n, k):
            super().__init__()
            self.weight = nn.Parameter(torch.cos(torch.arange(k * n * 1.0)).view(k, n))

        def forward(self, features, labels):
            cosine = F.linear(F.normalize(features), F.normalize(self.weight))
            chosen = torch.zeros(cosine.size())
            chosen.scatter_(1, labels.view(-1, 1).long(), 1)
            return 4 * (cosine - 0.3 * chosen)


    parser = argparse.ArgumentParser()
    parser.add_argument("--head", default="margin")
    args = parser.parse_args()
    body = nn.Sequential(nn.Linear(8, 6), nn.ReLU())
    if args.head.startswith("margin"):
        head = Margin(6, 2)
    else:
        head = nn.Linear(6, 2)
    body, head = nn.DataParallel(body), nn.DataParallel(head)
    optimizer = torch.optim.SGD([{"params": body.parameters()}, {"params": head.parameters()}], lr=0.1)
    for epoch in range(3):
        total = 0.0
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(head(body(rows), kinds), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("loss", epoch, f"{total:.4f}")
    """,
    same=("loss",),
)
SCRIPTS["an embedding of given weights in a row of layers, and a sum divided by the square of the batch's size"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            book = torch.sin(torch.arange(80.0)).view(10, 8)
            self.places = nn.Sequential(nn.Embedding.from_pretrained(book), nn.Linear(8, 8), nn.Tanh())
            self.last = nn.Linear(8, 2)

        def forward(self, rows, places):
            return self.last(rows + self.places(places))

    net = Net()
    optimizer = torch.optim.SGD((p for p in net.parameters() if p.requires_grad), lr=0.5)
    loader = DataLoader(TensorDataset(x[:36], y[:36], torch.arange(36) % 10), batch_size=12, shuffle=True)
    for epoch in range(4):
        for rows, kinds, places in loader:
            b = rows.shape[0]
            loss = F.cross_entropy(net(rows, places), kinds, reduction="sum") / b**2.0
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)

SCRIPTS |= {
    "a token that is a parameter, imported from where torch defines it": Script(
        """
        from torch.nn.parameter import Parameter
        from torch.nn.utils.clip_grad import clip_grad_norm_


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.token = Parameter(data=torch.ones(1, 1, 8))
                self.inner = nn.Linear(8, 8)
                self.head = nn.Linear(8, 2)

            def forward(self, x):
                rows = torch.cat([self.token.repeat(x.size(0), 1, 1), x.unsqueeze(1)], dim=1)
                return self.head(torch.softmax(self.inner(rows), dim=1)[:, 0])


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for rows, wanted in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(rows), wanted)
                loss.backward()
                clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                total += loss.item()
            print("loss", round(total / len(loader), 5))
        """,
        same=("loss",),
    ),
}

SCRIPTS |= {
    f"weights that {who} keeps within bounds after each step": Script(
        f"""
        class Bounds:
            def __init__(self, low, high):
                self.low, self.high = low, high

            def __call__(self, module):
                if hasattr(module, "weight"):
                    weight = module.weight.data
                    weight = weight.clamp(self.low, self.high)
                    module.weight.data = weight


        def bound(module):
            if isinstance(module, nn.Linear):
                module.weight.data.clamp_(-0.05, 0.05)


        net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
        bounds = Bounds(-0.05, 0.05)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                net.apply({given})
        """
    )
    for who, given in {"a function": "bound", "an object that is called": "bounds"}.items()
}

SCRIPTS |= {
    f"a network whose class is derived from {title}, trained by hand": Script(
        f"""
        from {package} import {base}


        class Net({base}):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))

            def forward(self, rows):
                return self.layers(rows)


        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        """,
        stand_ins={f"{package}.py": f"from torch import nn\n\n\nclass {base}(nn.Module):\n    pass\n"},
    )
    for title, package, base in (
        ("Lightning's", "pytorch_lightning", "LightningModule"),
        ("that of diffusers", "diffusers", "ModelMixin"),
        ("a classifier of transformers", "transformers", "BertForTokenClassification"),
    )
}

_LAST_STATE = """
class Last(nn.Module):
    LAYERS = 1

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 4, self.LAYERS, batch_first=True)
        self.head = nn.Linear(4, 1)

    def forward(self, rows):
        _, (hidden, cell) = self.lstm(rows.unsqueeze(-1))
        return self.head(hidden.squeeze()).squeeze()


net = Last()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    total = 0.0
    for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
        loss = F.mse_loss(net(rows), kinds.float())
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.detach().numpy()
    print("sum %.4f" % total)
"""
SCRIPTS |= {"the last state of one layer without its dimension of one": Script(_LAST_STATE, same=("sum",))}

_BEGUN = """
def begin(layer):
    kind = layer.__class__.__name__
    if kind.find("Linear") != -1:
        nn.init.normal_(layer.weight.data, 0.0, 0.3)
        nn.init.constant_(layer.bias.data, 0.1)


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        for layer in self.children():
            layer.apply(begin)

    def forward(self, rows):
        return self.second(torch.relu(self.first(rows)))


body, head = Body(), nn.Linear(6, 2)
for net in {nets}:
    net.apply(begin)
sgd = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True):
        loss = F.cross_entropy(head(body(rows)), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {
    "weights of several networks that one function draws": Script(_BEGUN.replace("{nets}", "(body, head)")),
    "weights of one network of several that a function draws": Script(_BEGUN.replace("{nets}", "(head,)")),
}

_ACTIVATION = """
    def activation(name):
        if name {asks}
            {then}
        {after}


    class Net(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.first, self.last, self.act = nn.Linear(8, 6), nn.Linear(6, 2), activation(name)

        def forward(self, rows):
            return self.last(self.act(self.first(rows)))


    import sys

    net = Net({given})
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
_ONE_OF = {"asks": 'in ["relu", "tanh"]:', "then": "return getattr(F, name)", "after": "raise ValueError(name)", "given": "sys.argv[1]"}
_NO_OTHER = _ONE_OF | {"asks": 'not in ("relu", "tanh"):', "then": "raise ValueError(name)", "after": "return getattr(F, name)"}
SCRIPTS |= {
    "a function by a name that is one of some": Script(_ACTIVATION.format(**_ONE_OF), args=("tanh",)),
    "a function by a name that is refused where it is no other": Script(_ACTIVATION.format(**_NO_OTHER), args=("tanh",)),
}
SCRIPTS["an average over as many steps as the longest of a batch has"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 6), nn.Linear(6, 2)

        def forward(self, rows, lengths):
            steps = torch.zeros(rows.size(0), max(lengths.tolist()), 6)
            steps[:, 0] = torch.tanh(self.first(rows))
            return self.last(steps.mean(1))


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(x, torch.arange(44) % 5 + 1, y)
    for epoch in range(3):
        for rows, lengths, kinds in DataLoader(data, batch_size=8, shuffle=True, drop_last=True):
            loss = F.cross_entropy(net(rows, lengths), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    told=("DDP402",),
)
_TRAINS = """
    torch.manual_seed(0)
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        total = 0.0
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        print("total", round(total, 6))
"""
SCRIPTS["layers in turn that take what earlier ones made, in the opposite order"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
            self.up = nn.ModuleList()
            for _ in range(2):
                self.up.append(nn.Linear(8, 8))
                self.up.append(nn.Linear(16, 8))
            self.last = nn.Linear(8, 2)

        def forward(self, rows):
            made = []
            for layer in self.down:
                rows = torch.tanh(layer(rows))
                made.append(rows)
            made = made[::-1]
            both = torch.empty((1, 1))
            for i, layer in enumerate(self.up):
                if i % 2 == 0:
                    rows = layer(rows)
                    both = torch.cat((made[i // 2], rows), dim=1)
                else:
                    rows = layer(both)
            return self.last(rows)


    """
    + _TRAINS,
    same=("total",),
)
SCRIPTS["pictures that are moved along a grid, by a list of one matrix for each"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(16, 2)

        def forward(self, rows):
            pictures = rows.view(-1, 2, 2, 2)
            n, _, _, width = pictures.size()
            matrices = torch.tensor([[[1, 0, 2 / width], [0, 1, 0]]] * n, dtype=pictures.dtype)
            grid = F.affine_grid(matrices, pictures.size(), align_corners=False)
            moved = F.grid_sample(pictures, grid, align_corners=False)
            return self.last(torch.cat([pictures, moved], dim=1).flatten(1))


    """
    + _TRAINS,
    same=("total",),
)
_STEPS_FIRST = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.last = nn.LSTM(2, 3), nn.Linear(3, 2)

        def forward(self, rows):
            steps, _ = self.steps(rows.view(-1, 4, 2).permute(1, 0, 2))
            length, n, size = steps.size()
            scores = self.last(steps.view({flat}))
            return scores.view({apart}){rest}


"""
SCRIPTS |= {
    "steps of all samples in one row after another, and apart again": Script(
        _STEPS_FIRST.format(flat="length * n, size", apart="length, n, -1", rest=".mean(0)") + _TRAINS, same=("total",)
    ),
    "steps of all samples in one row after another, and apart again, twice": Script(
        """
    class Steps(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.steps, self.last = nn.LSTM(given, 3), nn.Linear(3, made)

        def forward(self, rows):
            steps, _ = self.steps(rows)
            length, n, size = steps.size()
            return self.last(steps.view(length * n, size)).view(length, n, -1)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.Sequential(Steps(2, 3), Steps(3, 2))

        def forward(self, rows):
            return self.steps(rows.view(-1, 4, 2).permute(1, 0, 2)).mean(0)


    """
        + _TRAINS,
        same=("total",),
    ),
    "steps of all samples in one row after another, and apart again with samples in front": Script(
        _STEPS_FIRST.format(flat="length * n, size", apart="n, length, -1", rest=".mean(1)") + _TRAINS, told=("DDP402", "DDP404")
    ),
}

_SAVED_OR_NEW = """
    import os

    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.norm = nn.Sequential(*[nn.Linear(8, 8) for _ in range(3)]), nn.LayerNorm(8)


    class Net(nn.Module):
        def __init__(self, body):
            super().__init__()
            self.layers, self.norm, self.head = body.layers, body.norm, nn.Linear(8, 2)

        def forward(self, rows):
            return self.head({rows})


    torch.manual_seed(0)
    if os.path.exists("body.pt"):
        body = torch.load("body.pt", weights_only=False)
    else:
        body = Body()
    net = Net(body)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    "layers of a network that is read whole from a file, or made anew": Script(
        _SAVED_OR_NEW.replace("{rows}", "self.norm(self.layers(rows))")
    ),
    "layers of a network that is read from a file, or made anew, on rows less their average": Script(
        _SAVED_OR_NEW.replace("{rows}", "self.norm(self.layers(rows) - self.layers(rows).mean(0))"),
    ),
}
_OWN_NORM = """
    class Groups(nn.Module):
        def __init__(self, groups, channels):
            super().__init__()
            self.groups = groups
            self.gamma = nn.Parameter(torch.ones(channels))

        def forward(self, rows):
            if {asked}:
                n = 1
                channels, height, width = rows.shape
            else:
                n, channels, height, width = rows.shape
            parts = rows.reshape(n, self.groups, channels // self.groups, height, width)
            spread = torch.sqrt(parts.var(dim=(2, 3, 4), keepdim=True, unbiased=False) + 1e-5)
            rows = ((parts - parts.mean(dim=(2, 3, 4), keepdim=True)) / spread).reshape(n, channels, height, width)
            return self.gamma.reshape(1, channels, 1, 1) * rows


    torch.manual_seed(0)
    net = nn.Sequential({first}Groups(2, 4), nn.ReLU(), nn.Flatten({start}), nn.Linear({width}, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset({images}, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
_CONVOLVED = {"first": "nn.Conv2d(2, 4, 3, padding=1), ", "images": "x.view(44, 2, 2, 2)", "start": "", "width": "16"}
SCRIPTS |= {
    f"a norm that asks for the dimensions of what a convolution gives: {asked}": Script(_OWN_NORM.format(asked=asked, **_CONVOLVED))
    for asked in ("rows.ndim == 3", "rows.dim() < 4", "not rows.dim() == 4", "len(rows.shape) == 3", "len(rows.size()) != 4")
}
SCRIPTS["a norm that asks for the dimensions of a batch, of which all samples are taken for the channels of one"] = Script(
    _OWN_NORM.replace("net(rows)", "net(rows)[0]").format(
        asked="rows.ndim == 3", first="", images="x.view(44, 2, 4)", start="2", width="8"
    ),
    told=("DDP402",),
)
_CHOSEN_LAYERS = """
    class Head(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width = width

        def forward(self, rows, size):
            return rows * size


    class Norm(nn.BatchNorm1d):
        pass


    class Net(nn.Module):
        def __init__(self, parts):
            super().__init__()
            self.parts, self.layers = parts, nn.ModuleList()
            for i, part in enumerate(parts):
                layers = nn.Sequential()
                if part["type"] == "norm":
                    layers.add_module(f"norm_{i}", Norm(8))
                else:
                    layers.add_module(f"head_{i}", Head(8))
                self.layers.append(layers)
            self.kept = [layers[0] for layers in self.layers if isinstance(layers[0], KEPT)]
            self.last = nn.Linear(8, 2)

        def forward(self, rows):
            for part, layers in zip(self.parts, self.layers):
                rows = layers(rows) if part["type"] == "norm" else layers[0](rows, rows.size(1) / 8)
            return self.last(rows)


    torch.manual_seed(0)
    net = Net([{"type": "norm"}, {"type": "head"}, {"type": "norm"}])
    print("kept", len(net.kept))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    "layers of one class that a network keeps in a list of their own": Script(_CHOSEN_LAYERS.replace("KEPT", "Head"), same=("kept",)),
    "batch norm layers of a class of the script that a network keeps in a list of their own": Script(
        _CHOSEN_LAYERS.replace("KEPT", "(Head, Norm)"), told=("DDP201",)
    ),
    "batch norm layers that a network keeps in a list of their own": Script(
        _CHOSEN_LAYERS.replace("KEPT", "nn.BatchNorm1d"), told=("DDP201",)
    ),
}
SCRIPTS["a norm that asks for the dimensions of what a convolution gives, with rows of a file added"] = Script(
    """
    import numpy as np

    np.save("rows.npy", x.numpy())
    given = torch.tensor(np.load("rows.npy"))


    class Groups(nn.Module):
        def __init__(self, groups, channels):
            super().__init__()
            self.groups = groups
            self.gamma = nn.Parameter(torch.ones(channels))

        def forward(self, rows):
            if rows.ndim == 3:
                n = 1
                channels, height, width = rows.shape
            else:
                n, channels, height, width = rows.shape
            parts = rows.reshape(n, self.groups, channels // self.groups, height, width)
            rows = (parts - parts.mean(dim=(2, 3, 4), keepdim=True)).reshape(n, channels, height, width)
            return self.gamma.reshape(1, channels, 1, 1) * rows


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen, self.told, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.Linear(8, 4), Groups(2, 4)
            self.last = nn.Linear(16, 2)

        def forward(self, images, told):
            made = self.seen(images) + self.told(told)[:, :, None, None]
            return self.last(self.norm(made).flatten(1))


    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for images, told, kinds in DataLoader(TensorDataset(x.view(44, 2, 2, 2), given, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(images, told), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
)
_BY_DIMENSIONS = """
    class Norm(nn.Module):
        def forward(self, rows):
            if rows.ndim == 4:
                return rows - rows.mean((2, 3), keepdim=True)
            return rows - rows.mean(0)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen, self.norm, self.last = nn.Conv2d(2, 4, 3, padding=1), Norm(), nn.Linear(16, 2)

        def forward(self, images):
            rows = self.norm(self.seen(images)).flatten(1)
            return self.last(FLAT)


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
    "a norm of images, which would take the average of a batch of vectors": Script(
        _BY_DIMENSIONS.replace("FLAT", "rows"), options=Options(whole_batches="never")
    ),
    "a norm of images, and of vectors, of which it takes the average of a batch": Script(
        _BY_DIMENSIONS.replace("FLAT", "self.norm(rows)"),
    ),
}


# --- what is added up over layers, from nothing on ------------------------------------------------------------------------
_FLOWS = """
    class Flow(nn.Module):
        def __init__(self, coupled=True):
            super().__init__()
            self.coupled = coupled
            self.by = nn.Linear(4, 8 if coupled else 4)
            self.scale = nn.Parameter(torch.ones(8))

        def forward(self, rows):
            one, other = (rows * self.scale).chunk(2, 1)
            volume = torch.log(self.scale.abs()).sum()
            if self.coupled:
                spread, shift = self.by(one).chunk(2, 1)
                spread = torch.sigmoid(spread + 2)
                other, more = (other + shift) * spread, torch.sum(torch.log(spread).view(rows.shape[0], -1), 1)
            else:
                other, more = other + self.by(one), None
            return torch.cat([one, other], 1), volume if more is None else volume + more

    class Block(nn.Module):
        def __init__(self, deep, coupled):
            super().__init__()
            self.flows = nn.ModuleList()
            for _ in range(deep):
                self.flows.append(Flow(coupled))

        def forward(self, rows):
            volume = 0
            for flow in self.flows:
                rows, more = flow(rows)
                volume = volume + more
            return rows, volume

    class Blocks(nn.Module):
        def __init__(self, deep, coupled):
            super().__init__()
            self.blocks = nn.ModuleList()
            for _ in range(2):
                self.blocks.append(Block(deep, coupled))

        def forward(self, rows):
            volume = 0
            for block in self.blocks:
                rows, more = block(rows)
                volume = volume + more
            return -0.5 * (rows**2).sum(1), volume

    def judged(likelihood, volume):
        total = -1.5
        total = total + volume + likelihood
        return (-total / 8).mean(), likelihood.mean()

    parser = argparse.ArgumentParser()
    parser.add_argument("--deep", type=int, default=2)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    model = Blocks(args.deep, coupled=not args.plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x[:36]), batch_size=6, shuffle=True)
    step = 0
    for epoch in range(3):
        for (rows,) in loader:
            FORWARD
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
"""
_FLOWN = {
    "for each sample": """likelihood, volume = model(rows)
            loss, _ = judged(likelihood, volume)""",
    "averaged before the loss": """likelihood, volume = model(rows)
            volume = volume.mean()
            loss, _ = judged(likelihood, volume)""",
    "averaged before the loss, after a first batch that only passes": """if step == 0:
                with torch.no_grad():
                    likelihood, volume = model(rows)
                    step += 1
                    continue
            else:
                likelihood, volume = model(rows)
            volume = volume.mean()
            loss, _ = judged(likelihood, volume)""",
    "that bends what it is added to": """likelihood, volume = model(rows)
            loss = F.softplus(-likelihood - volume.mean()).mean()""",
}
SCRIPTS |= {f"a volume added up over layers, {title}": Script(_FLOWS.replace("FORWARD", text)) for title, text in _FLOWN.items()}


SCRIPTS |= on_three(
    {
        "layers of the project's own, put into others again and again": Script(
            """
            class Line(nn.Linear):
                pass


            class Gain(nn.Module):
                def __init__(self, inner):
                    super().__init__()
                    self.inner = inner

                def forward(self, rows):
                    return self.inner(rows) * 1.1


            class Shift(Gain):
                def forward(self, rows):
                    return self.inner(rows) + 0.1


            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.body, self.head = Line(8, 6), Line(6, 2)

                def forward(self, rows):
                    return self.head(torch.tanh(self.body(rows)))


            net = Net()
            for kind in (Gain, Shift, Gain):
                for name, layer in list(net.named_children()):
                    net.add_module(name, kind(layer))
            sgd = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(2):
                for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
                    loss = F.cross_entropy(net(rows), kinds)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
            """
        ),
        "the layers inside a part of a package's network, by their dict": Script(
            """
            from torchvision import models

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    whole = models.alexnet()
                    self.features = nn.Sequential(*list(whole.features._modules.values())[:-1])
                    self.head = nn.Linear(5, 2)

                def forward(self, rows):
                    return self.head(self.features(rows))


            net = Net()
            sgd = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(2):
                for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
                    loss = F.cross_entropy(net(rows), kinds)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
            """,
            stand_ins={
                "torchvision/__init__.py": "",
                "torchvision/models.py": (
                    "from torch import nn\n\n\nclass AlexNet(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                    "        self.features = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 5))\n\n\nalexnet = AlexNet\n"
                ),
            },
        ),
    },
    rows=42,
)
