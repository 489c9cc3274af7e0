"""Scripts whose subject is what is printed, logged, drawn, written, saved and read back."""

import io
import tarfile
import textwrap
import zipfile

import torch
from scripts import Script


def _linear(seed: int = 0) -> dict:
    generator = torch.Generator().manual_seed(seed)
    return {"weight": torch.randn(2, 8, generator=generator), "bias": torch.zeros(2)}


def _sgd(lr: float = 0.1) -> dict:
    generator = torch.Generator().manual_seed(1)
    probe = torch.optim.SGD(torch.nn.Linear(8, 2).parameters(), lr=lr, momentum=0.9)
    momentum = {i: {"momentum_buffer": torch.randn(shape, generator=generator)} for i, shape in enumerate([(2, 8), (2,)])}
    return {**probe.state_dict(), "state": momentum}


def _bytes(obj) -> bytes:
    written = io.BytesIO()
    torch.save(obj, written)
    return written.getvalue()


def _step_lr(epochs: int) -> dict:
    optimizer = torch.optim.SGD(torch.nn.Linear(8, 2).parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(epochs):
        optimizer.step()
        scheduler.step()
    return scheduler.state_dict()


def _npy() -> bytes:
    import numpy as np

    written = io.BytesIO()
    np.save(written, np.sin(np.arange(320.0)).reshape(40, 8))
    return written.getvalue()


def _zip() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr(
            "data/train.csv", "\n".join(",".join(f"{(i * 7 + j * 3) % 11 / 11:.4f}" for j in range(8)) + f",{i % 2}" for i in range(40))
        )
    return written.getvalue()


def _tar() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        text = "\n".join(" ".join(f"{(i * 5 + j * 3) % 13 / 13:.4f}" for j in range(8)) for i in range(40)).encode()
        info = tarfile.TarInfo("corpus/features.txt")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return written.getvalue()


TRACKERS = """\
import contextlib


class Experiment:
    def __init__(self, project_name=None, disabled=False):
        self.on = not disabled
        self.told("opened")

    def told(self, text):
        if self.on:
            with open("told.log", "a") as file:
                file.write(text + chr(10))

    @contextlib.contextmanager
    def train(self):
        self.told("train")
        yield self

    def log_metric(self, name, value, step=None):
        self.told(name)


class Part:
    def __init__(self, run, name):
        self.run, self.name = run, name

    def append(self, value):
        self.run.told(self.name)

    upload = append


class Run(Experiment):
    def __getitem__(self, name):
        return Part(self, name)

    def __setitem__(self, name, value):
        self.told(name)

    def stop(self):
        self.told("stopped")


def init_run(project=None, mode="async"):
    return Run(project)
"""
# A conversion of text without a path has no local modules, so these are taken for the real ones.
WANDB = """\
class Error(Exception):
    pass


class Config(dict):
    __getattr__ = dict.__getitem__


class _Before:
    def __getattr__(self, name):
        raise Error("You must call wandb.init() before wandb.config." + name)


class Run:
    dir = "wandb"

    def __init__(self, config, on):
        self.config, self.on, self.summary = Config(config or {}), on, {}
        self._write("init")

    def _write(self, text):
        if self.on:
            with open("wandb.log", "a") as f:
                f.write(text + chr(10))

    def log(self, data, step=None, commit=True):
        self._write(repr(sorted(data)))

    def finish(self):
        self._write("finish")


run = None
config = _Before()


class Histogram:
    def __init__(self, data):
        self.data = data


def _run():
    if run is None:
        raise Error("You must call wandb.init() before this")
    return run


def init(project=None, name=None, config=None, mode="online", **more):
    global run
    run = Run(config, mode != "disabled")
    globals()["config"] = run.config
    if run.on:
        import os

        os.makedirs("wandb", exist_ok=True)
    return run


def log(data, **more):
    _run().log(data, **more)


def watch(model, **more):
    _run()


def save(path):
    _run()


def finish():
    if run is not None:
        run.finish()
"""
LOGURU = """\
import sys


class Logger:
    def __init__(self):
        self.sinks = [sys.stderr]

    def remove(self, handler_id=None):
        self.sinks = []

    def add(self, sink, **options):
        self.sinks.append(open(sink.replace("{time}", "2026"), "a") if isinstance(sink, str) else sink)
        return len(self.sinks)

    def _log(self, text, *values):
        for sink in self.sinks:
            sink.write(text.format(*values) + chr(10))
            sink.flush()

    debug = info = success = warning = error = _log


logger = Logger()
"""
VISDOM = """\
class Visdom:
    def __init__(self, env="main", **more):
        self._write("connect")

    def _write(self, text):
        with open("visdom.log", "a") as f:
            f.write(text + chr(10))

    def line(self, X=None, Y=None, win=None, update=None, opts=None):
        self._write("line")
        return win or "window"

    def images(self, tensor, win=None, **more):
        self._write("images")

    def text(self, text, **more):
        self._write(text)
"""
TENSORBOARDX = """\
class SummaryWriter:
    def __init__(self, log_dir="runs", **more):
        import os

        os.makedirs(log_dir, exist_ok=True)
        self.file = open(log_dir + "/events", "w")
        self.logdir, self.file_writer = log_dir, self

    def get_logdir(self):
        return self.logdir

    def add_scalar(self, tag, value, step=None):
        self.file.write(f"{tag} {value} {step}" + chr(10))

    def export_scalars_to_json(self, path):
        open(path, "w").close()

    def close(self):
        self.file.close()
"""
TORCHVISION = """\
import torch


def make_grid(tensor, nrow=8, **more):
    return torch.cat(list(tensor), 1)


def save_image(tensor, path, nrow=8, normalize=False, **more):
    with open(path, "wb") as f:
        f.write(tensor.numpy().tobytes())
"""


FILMS = """
class _Film:
    def __init__(self, path):
        self.path, self.frames = path, []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def append_data(self, frame):
        self.frames.append(frame)

    def close(self):
        with open(self.path, "a") as file:
            file.write(f"{len(self.frames)} frames\\n")


def get_writer(path, mode="I"):
    return _Film(path)
"""

SCRIPTS: dict[str, Script] = {
    "a picture that is filled with rows of the last batch": Script(
        """
        from torchvision.utils import make_grid, save_image

        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            with torch.no_grad():
                shown = torch.zeros(4, 8)
                for kind in range(2):
                    for place in range(2):
                        try:
                            found = torch.squeeze((kinds == kind).nonzero())[place]
                        except IndexError:
                            found = 0
                        shown[kind + place * 2] = rows[found]
                whole = torch.cat([x[:4], shown])
                save_image(make_grid(whole.view(-1, 1, 2, 4)), "rows_" + str(epoch) + ".png")
        """,
        stand_ins={"torchvision/__init__.py": "", "torchvision/utils.py": TORCHVISION},
    ),
    "a tensor that is filled with rows of the last batch, and decides": Script(
        """
        from torchvision.utils import make_grid, save_image

        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            with torch.no_grad():
                shown = torch.zeros(4, 8)
                for kind in range(2):
                    for place in range(2):
                        try:
                            found = torch.squeeze((kinds == kind).nonzero())[place]
                        except IndexError:
                            found = 0
                        shown[kind + place * 2] = rows[found]
                whole = torch.cat([x[:4], shown])
                save_image(make_grid(whole.view(-1, 1, 2, 4)), "rows_" + str(epoch) + ".png")
                if shown.mean() > 0:
                    sgd.param_groups[0]["lr"] *= 0.5
        """,
        told=("DDP403",),
        stand_ins={"torchvision/__init__.py": "", "torchvision/utils.py": TORCHVISION},
    ),
    "films that a package's writer makes, of a with-statement and of a name": Script(
        """
        import imageio


        def film(net, name):
            frames = []
            with torch.no_grad():
                for start in range(6):
                    frame = net(x[start : start + 8]).softmax(1)
                    frames.append(frame.numpy())
            with imageio.get_writer(name, mode="I") as writer:
                for place, frame in enumerate(frames):
                    writer.append_data(frame)
                    if place == len(frames) - 1:
                        for _ in range(3):
                            writer.append_data(frame)
            again = imageio.get_writer("again.gif")
            for frame in frames:
                again.append_data(frame)
            again.close()


        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            film(net, "epoch.gif")
        """,
        stand_ins={"imageio.py": FILMS},
    ),
    "two folders that a function of a package makes, one after the other": Script(
        """
        import folders

        results, models = os.path.join("out", "results"), os.path.join("out", "models")
        folders.mkdir(results)
        folders.mkdir(models)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        torch.save(net.state_dict(), os.path.join(models, "last.pt"))
        """,
        files={
            "folders/__init__.py": "from .made import *\n",
            "folders/made.py": """\
import os
import time


def mkdir(path):
    if not os.path.exists(path):
        time.sleep(0.3)  # while another process makes it
        os.makedirs(path)
""",
        },
    ),
    "a file whose handle is read after it was closed": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        with torch.no_grad():
            with open("log.txt", "w") as f:
                f.write("done")
            kept = f.closed
        for part in range(2):
            with open("parts.txt", "a") as out:
                out.write("done")
            with open("log.txt") as log:
                again = out.closed
        with open("end.txt", "w") as end:
            end.write("done")
        end.close()
        print("kept", kept, again)
        """,
        same=("kept",),
    ),
    # --- printing -------------------------------------------------------------------------------------------------------
    "prints in functions and of final results": Script(
        r"""
        def learn(nr, net, feed, sgd, device):
            net.train()
            print(f"\nround {nr}")
            for i, (rows, kinds) in enumerate(feed):
                loss = F.cross_entropy(net(rows.to(device)), kinds.to(device))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                if i % 4 == 0:
                    print("\tbatch {} of {}, {} rows of {} seen, loss {:.4f}".format(
                        i, len(feed), i * len(rows), len(feed.dataset), loss.item()))


        def check(net, feed, device):
            net.eval()
            lost, right = 0, 0
            with torch.no_grad():
                for rows, kinds in feed:
                    scores = net(rows.to(device))
                    guess = scores.argmax(dim=1, keepdim=True)
                    right += guess.eq(kinds.to(device).view_as(guess)).sum().item()
                    lost += F.cross_entropy(scores, kinds.to(device), reduction="sum").item()
            lost /= len(feed.dataset)
            print("\nchecked: {} of {} right ({:.1f} percent), {:.4f} lost\n".format(
                right, len(feed.dataset), 100 * right / len(feed.dataset), lost))
            return right / len(feed.dataset)


        def main():
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            print("runs on", device)
            learn_feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            check_feed = DataLoader(TensorDataset(x[:13], y[:13]), batch_size=5)
            net = nn.Linear(8, 2).to(device)
            print(net)
            print("weights", sum(w.numel() for w in net.parameters() if w.requires_grad))
            sgd = torch.optim.SGD(net.parameters(), lr=0.1)
            shares = []
            for nr in range(2):
                learn(nr, net, learn_feed, sgd, device)
                shares.append(check(net, check_feed, device))
            print("=" * 12)
            print("top share %.4f in round %d" % (max(shares), shares.index(max(shares))))


        if __name__ == "__main__":
            main()
        """,
        same=("checked", "top", "weights"),
    ),
    "a progress bar written with carriage returns": Script(
        r"""
        import sys
        import time

        drawn = time.time()


        def draw(nr, of, text=None):
            global drawn
            full = 16 * (nr + 1) // of
            sys.stdout.write("|")
            for _ in range(full):
                sys.stdout.write("#")
            for _ in range(full, 16):
                sys.stdout.write(" ")
            sys.stdout.write("| %.1f s" % (time.time() - drawn))
            drawn = time.time()
            if text:
                sys.stdout.write(", " + text)
            if nr + 1 == of:
                sys.stdout.write("\n")
            else:
                sys.stdout.write("\r")
            sys.stdout.flush()


        device = "cuda" if torch.cuda.is_available() else "cpu"
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).to(device)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(2):
            right, seen, lost = 0, 0, 0
            for nr, (rows, kinds) in enumerate(feed):
                rows, kinds = rows.to(device), kinds.to(device)
                scores = net(rows)
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                _, guess = scores.max(1)
                right += guess.eq(kinds).sum().item()
                seen += kinds.size(0)
                lost += loss.item()
                draw(nr, len(feed), "%d of %d right, mean loss %.3f" % (right, seen, lost / (nr + 1)))
        """
    ),
    "one line on stderr that is overwritten": Script(
        """
        import sys

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        adam = torch.optim.Adam(net.parameters(), lr=1e-2)
        for epoch in range(2):
            for nr, (rows, kinds) in enumerate(feed):
                loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
                adam.zero_grad()
                loss.backward()
                adam.step()
                sys.stderr.write("\\r%d: batch %d of %d lost %.4f" % (epoch, nr, len(feed), loss.item()))
                sys.stderr.flush()
            print("", file=sys.stderr)
        print("learned", flush=True)
        """
    ),
    "print into an open file": Script(
        """
        def run(log_file):
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            print("epoch,loss", file=log_file)
            for epoch in range(3):
                total = 0.0
                for data, target in loader:
                    data, target = data.cuda(), target.cuda()
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(data), target)
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                print("%d,%.6f" % (epoch, total / len(loader)), file=log_file, flush=True)
                print("epoch %d loss %.6f" % (epoch, total / len(loader)))


        f = open("train_log.csv", "w")
        run(f)
        f.close()
        """,
        same=("epoch",),
    ),
    # --- logging --------------------------------------------------------------------------------------------------------
    "logging to a file by basicConfig": Script(
        """
        import logging

        logging.basicConfig(filename="train.log", filemode="w", level=logging.INFO, format="%(asctime)s %(message)s")

        train_dl = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).cuda()
        opt = torch.optim.SGD(model.parameters(), lr=0.05)
        logging.info("Start training")
        for epoch in range(2):
            running_loss = 0.0
            for xb, yb in train_dl:
                loss = F.cross_entropy(model(xb.cuda()), yb.cuda())
                opt.zero_grad()
                loss.backward()
                opt.step()
                running_loss += loss.item()
            logging.info("epoch %d: loss %.6f", epoch, running_loss / len(train_dl))
        logging.warning("done")
        with open("train.log") as f:
            for line in f:
                print("log", line.split(" ", 2)[2].strip())
        """,
        same=("log epoch",),
    ),
    "a logger with a stream and a file handler": Script(
        """
        import logging
        import sys

        logger = logging.getLogger(__name__)
        logger.setLevel(logging.INFO)
        formatter = logging.Formatter("%(levelname)s: %(message)s")
        sh = logging.StreamHandler(sys.stdout)
        sh.setFormatter(formatter)
        logger.addHandler(sh)
        os.makedirs("logs", exist_ok=True)
        fh = logging.FileHandler(os.path.join("logs", "train.log"))
        fh.setFormatter(formatter)
        logger.addHandler(fh)

        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        logger.info(f"model has {sum(p.numel() for p in model.parameters())} parameters")
        for epoch in range(2):
            correct, total = 0, 0
            for data, target in loader:
                data, target = data.to(device), target.to(device)
                optimizer.zero_grad()
                output = model(data)
                F.cross_entropy(output, target).backward()
                optimizer.step()
                correct += (output.argmax(1) == target).sum().item()
                total += target.size(0)
            logger.info(f"epoch {epoch} accuracy {correct / total:.6f}")
        """,
        same=("INFO: epoch", "INFO: model"),
    ),
    "a logger made by a function and passed on": Script(
        """
        import logging
        from datetime import datetime


        def setup_logger(log_dir, name="train"):
            os.makedirs(log_dir, exist_ok=True)
            logger = logging.getLogger(name)
            logger.setLevel(logging.DEBUG)
            handler = logging.FileHandler(os.path.join(log_dir, datetime.now().strftime("%Y%m%d-%H%M%S") + ".log"))
            handler.setFormatter(logging.Formatter("[%(asctime)s] %(message)s"))
            console = logging.StreamHandler()
            logger.addHandler(handler)
            logger.addHandler(console)
            return logger


        def train_one_epoch(model, loader, optimizer, epoch, logger):
            model.train()
            total = 0.0
            for i, (data, target) in enumerate(loader):
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
                if (i + 1) % 5 == 0:
                    logger.debug("epoch %d iter %d/%d loss %.4f" % (epoch, i + 1, len(loader), loss.item()))
            return total / len(loader)


        def main():
            logger = setup_logger("./logs")
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(2):
                loss = train_one_epoch(model, loader, optimizer, epoch, logger)
                logger.info("epoch {} mean loss {:.6f}".format(epoch, loss))
                print("mean loss {:.6f}".format(loss))


        if __name__ == "__main__":
            main()
        """,
        same=("mean",),
    ),
    "a class that writes a log of its own": Script(
        r"""
        class Columns(object):
            def __init__(self, path, more=False):
                self.out = open(path, "a" if more else "w")
                self.heads = []

            def head(self, heads):
                self.heads = heads
                self.out.write(" | ".join(heads))
                self.out.write("\n")

            def row(self, values):
                for value in values:
                    self.out.write("{:.6f} ".format(value))
                self.out.write("\n")
                self.out.flush()

            def end(self):
                if self.out is not None:
                    self.out.close()


        columns = Columns("columns.txt")
        columns.head(["rate", "lost"])
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = torch.nn.DataParallel(nn.Linear(8, 2)).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            lost, seen = 0.0, 0
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                seen += rows.size(0)
                lost += loss.item() * rows.size(0)
            print("lost %.6f" % (lost / seen))
            columns.row([sgd.param_groups[0]["lr"], lost / seen])
        columns.end()
        """,
        same=("lost",),
    ),
    "stdout replaced by a tee": Script(
        """
        import sys


        class Both(object):
            def __init__(self, path):
                self.copy = open(path, "w")
                self.screen = sys.stdout

            def write(self, text):
                self.copy.write(text)
                self.screen.write(text)

            def flush(self):
                self.copy.flush()
                self.screen.flush()


        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--rate", type=float, default=0.1)
            given = parser.parse_args()
            sys.stdout = Both("printed.txt")
            print("given:\\n{}\\n".format(given))
            feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            net = nn.Linear(8, 2).cuda()
            sgd = torch.optim.SGD(net.parameters(), lr=given.rate)
            for nr in range(2):
                for rows, kinds in feed:
                    sgd.zero_grad()
                    F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                    sgd.step()
                print("round {} is over".format(nr))


        if __name__ == "__main__":
            main()
        """
    ),
    # --- progress bars --------------------------------------------------------------------------------------------------
    "tqdm around the loader with a postfix": Script(
        """
        from tqdm import tqdm


        def train(model, loader, optimizer, epoch):
            model.train()
            pbar = tqdm(loader, desc=f"Epoch {epoch}")
            total_loss = 0
            for step, (data, target) in enumerate(pbar):
                data, target = data.cuda(), target.cuda()
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
                total_loss += loss.item()
                pbar.set_postfix(loss=loss.item(), avg=total_loss / (step + 1))
                pbar.set_description(f"Epoch {epoch} loss {loss.item():.3f}")
            pbar.close()
            return total_loss / len(loader)


        model = nn.Linear(8, 2).cuda()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            loss = train(model, loader, optimizer, epoch)
            tqdm.write(f"loss {loss:.6f}")
        """,
        same=("loss",),
    ),
    "trange over the epochs": Script(
        """
        import tqdm

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        history = []
        with tqdm.trange(3) as t:
            for epoch in t:
                epoch_loss = 0
                for data, target in loader:
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(data.cuda()), target.cuda())
                    loss.backward()
                    optimizer.step()
                    epoch_loss += loss.detach()
                history.append((epoch_loss / len(loader)).item())
                t.set_postfix(loss=f"{history[-1]:.4f}")
        print("history", " ".join(f"{h:.6f}" for h in history))
        """,
        same=("history",),
    ),
    "a bar that is updated by hand": Script(
        """
        from tqdm.auto import tqdm

        rounds = 2
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        adam = torch.optim.AdamW(net.parameters(), lr=0.01)
        bar = tqdm(range(len(feed) * rounds))
        net.train()
        for nr in range(rounds):
            for pair in feed:
                pair = [part.cuda() for part in pair]
                loss = F.cross_entropy(net(pair[0]), pair[1])
                adam.zero_grad()
                loss.backward()
                adam.step()
                bar.update(1)
            with tqdm(total=len(feed.dataset), desc=f"check {nr}", unit="row") as check_bar:
                right = 0
                with torch.no_grad():
                    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
                        right += (net(rows.cuda()).argmax(1) == kinds.cuda()).sum().item()
                        check_bar.update(rows.shape[0])
                        check_bar.set_postfix(**{"right": right})
            print("right", right)
        """,
        same=("right",),
    ),
    "a with statement around tqdm": Script(
        """
        from tqdm import tqdm

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(2):
            with tqdm(feed, unit="step") as bar:
                for rows, kinds in bar:
                    bar.set_description(f"round {nr}")
                    rows, kinds = rows.cuda(), kinds.cuda()
                    scores = net(rows)
                    loss = F.cross_entropy(scores, kinds)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                    guess = scores.argmax(dim=1, keepdim=True).squeeze()
                    bar.set_postfix(lost=loss.item(), right=(guess == kinds).sum().item() / rows.size(0))
        """
    ),
    # --- TensorBoard ----------------------------------------------------------------------------------------------------
    "one loop that trains and evaluates, over a bar that is made beside its totals": Script(
        """
        from tqdm import tqdm


        def run(net, batches, sgd):
            train = sgd is not None
            net.train() if train else net.eval()
            total, right, count, bar = 0.0, 0.0, 0, tqdm(batches)
            with (torch.enable_grad() if train else torch.no_grad()):
                for rows, kinds in bar:
                    scores = net(rows)
                    loss = F.cross_entropy(scores, kinds)
                    if train:
                        sgd.zero_grad()
                        loss.backward()
                        sgd.step()
                    count += rows.size(0)
                    total += loss.item() * rows.size(0)
                    right += (scores.argmax(dim=1) == kinds).float().sum().item()
                    bar.set_description("{} {:.4f} {:.2f}".format("train" if train else "test", total / count, right / count))
            return total / count, right / count


        model = nn.Linear(8, 2)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        train_batches = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=4, shuffle=True)
        test_batches = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=4)
        for epoch in range(2):
            loss, right = run(model, train_batches, sgd)
            print(f"train {loss:.6f} {right:.4f}")
            loss, right = run(model, test_batches, None)
            print(f"test {loss:.6f} {right:.4f}")
        """,
        same=("train", "test"),
    ),
    "results that a loop over the training loader writes for each batch": Script(
        """
        def fit(net, batches):
            sgd = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(2):
                for rows, kinds in batches:
                    loss = F.cross_entropy(net(rows), kinds)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()


        def write(net, batches):
            net.eval()
            with torch.no_grad():
                for i, (rows, kinds) in enumerate(batches):
                    torch.save(net(rows), f"scores-{i}.pt")


        batches = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        fit(model, batches)
        write(model, batches)
        """,
        told=("DDP404",),
    ),
    "a summary writer that is made when it is first asked for": Script(
        """
        from tensorboardX import SummaryWriter


        class Log:
            def __init__(self):
                self.steps, self.total, self.writer = 0, 0.0, None

            def show(self):
                if self.writer is None:
                    self.writer = SummaryWriter("log")
                self.writer.add_scalar("loss", self.total / 4, self.steps)

            def push(self, loss):
                self.steps += 1
                self.total += loss
                if self.steps % 4 == 3:
                    self.show()
                    self.total = 0.0

            def write(self, results):
                if self.writer is None:
                    self.writer = SummaryWriter("log")
                for key in results:
                    self.writer.add_scalar(key, results[key], self.steps)


        log = Log()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                log.push(loss.item())
            log.write({"epoch": epoch})
        """,
        stand_ins={"tensorboardX.py": TENSORBOARDX},
    ),
    "a board of the project's own kind": Script(
        """
        from boards import Board
        from tensorboardX import SummaryWriter


        class Plots(SummaryWriter):
            def __init__(self, folder):
                super().__init__(folder)
                self.first = True

            def show(self, loss, step):
                self.add_scalar("loss", loss, step)
                if self.first:
                    self.add_scalar("first", loss, step)
                    self.first = False


        def check(net, board, step):
            with torch.no_grad():
                board.log(F.cross_entropy(net(x), y).item(), step)


        net = nn.Linear(8, 2)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        os.makedirs("runs", exist_ok=True)
        board = Board({"rate": 8}, "runs/board")
        plots = Plots("runs/plots")
        step = 0
        for epoch in range(2):
            check(net, board, step)
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                step += 1
                if step % 4 == 0:
                    plots.show(loss.item(), step)
        print(f"whole {F.cross_entropy(net(x), y).item():.6f}")
        """,
        same=("whole",),
        files={
            "boards.py": "from tensorboardX import SummaryWriter\n\n\n"
            "class Board(SummaryWriter):\n"
            "    def __init__(self, settings, folder):\n"
            "        super(Board, self).__init__(folder)\n"
            '        self.rate = settings["rate"]\n\n'
            "    def log(self, loss, step):\n"
            '        self.add_scalar("loss", loss * self.rate, step)\n'
        },
        stand_ins={"tensorboardX.py": TENSORBOARDX},
    ),
    "a summary writer at the top level": Script(
        """
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter("runs/exp")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:14], y[:14]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        global_step = 0
        for epoch in range(2):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                writer.add_scalar("train/loss", loss.item(), global_step)
                writer.add_scalar("train/lr", optimizer.param_groups[0]["lr"], global_step)
                global_step += 1
            model.eval()
            hits = 0
            with torch.no_grad():
                for data, target in val_loader:
                    hits += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
            writer.add_scalar("val/acc", hits / len(val_loader.dataset), epoch)
            print(f"val {hits / len(val_loader.dataset):.6f}")
        print("steps", global_step)
        writer.flush()
        writer.close()
        """,
        same=("val", "steps"),
    ),
    "the graph, histograms and images of a model": Script(
        """
        from torch.utils.tensorboard import SummaryWriter

        board = SummaryWriter("board")
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        net = nn.Linear(8, 2).cuda()
        first, _ = next(iter(feed))
        board.add_graph(net, first.cuda())
        board.add_images("seen first", first.view(-1, 1, 4, 2), 0)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            recent = 0.0
            for nr, (rows, kinds) in enumerate(feed):
                loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                recent += loss.item()
                if nr % 3 == 2:
                    board.add_scalar("recent", recent / 3, nr + epoch * len(feed))
                    recent = 0.0
            for key, weight in net.named_parameters():
                board.add_histogram(key + " is", weight.data.cpu().numpy(), epoch)
                board.add_histogram(key + " moves", weight.grad.data.cpu().numpy(), epoch)
        board.close()
        print("drawn")
        """
    ),
    "a summary writer on self, in a dated folder": Script(
        """
        import datetime

        from torch.utils.tensorboard import SummaryWriter


        class Trainer:
            def __init__(self, epochs):
                self.epochs = epochs
                stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
                self.writer = SummaryWriter(log_dir=os.path.join("runs", stamp))
                self.model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
                self.loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
                self.step = 0

            def train(self):
                for epoch in range(self.epochs):
                    loss = self.train_epoch()
                    self.writer.add_scalar("loss/epoch", loss, epoch)
                    self.writer.add_scalars("both", {"loss": loss, "lr": self.optimizer.param_groups[0]["lr"]}, epoch)
                    print("epoch {} loss {:.6f}".format(epoch, loss))
                self.writer.close()

            def train_epoch(self):
                total, count = 0.0, 0
                for data, target in self.loader:
                    data, target = data.cuda(), target.cuda()
                    self.optimizer.zero_grad()
                    loss = F.cross_entropy(self.model(data), target)
                    loss.backward()
                    self.optimizer.step()
                    self.writer.add_scalar("loss/step", loss.item(), self.step)
                    self.step += 1
                    total += loss.item() * len(data)
                    count += len(data)
                return total / count


        Trainer(2).train()
        """,
        same=("epoch",),
    ),
    "a summary writer as an argument, fed by a call": Script(
        """
        from torch.utils.tensorboard import SummaryWriter


        def validate(model, loader, device):
            model.eval()
            loss = 0.0
            with torch.no_grad():
                for data, target in loader:
                    loss += F.cross_entropy(model(data.to(device)), target.to(device), reduction="sum").item()
            return loss / len(loader.dataset)


        def train(model, loader, val_loader, optimizer, writer, device):
            for epoch in range(2):
                model.train()
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data.to(device)), target.to(device)).backward()
                    optimizer.step()
                writer.add_scalar("val_loss", validate(model, val_loader, device), epoch)
                print("val", "%.6f" % validate(model, val_loader, device))
                writer.add_scalar("weight_norm", model.weight.norm(), epoch)


        def main():
            device = "cuda" if torch.cuda.is_available() else "cpu"
            model = nn.Linear(8, 2).to(device)
            writer = SummaryWriter(comment="demo")
            train(
                model,
                DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
                DataLoader(TensorDataset(x[:15], y[:15]), batch_size=4, shuffle=False),
                torch.optim.SGD(model.parameters(), lr=0.1),
                writer,
                device,
            )
            writer.close()


        if __name__ == "__main__":
            main()
        """,
        same=("val",),
    ),
    "a summary writer used by a with statement and switched by a flag": Script(
        """
        from torch.utils import tensorboard

        parser = argparse.ArgumentParser()
        parser.add_argument("--tensorboard", action="store_true")
        args = parser.parse_args()

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if args.tensorboard:
            tb = tensorboard.SummaryWriter("tb")
        else:
            tb = None
        for epoch in range(2):
            total = 0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            if tb is not None:
                tb.add_scalar("loss", total / len(loader), epoch)
            print(f"loss: {total / len(loader):.6f}")
        if tb is not None:
            tb.close()
        with tensorboard.SummaryWriter("hparams") as w:
            w.add_hparams({"lr": 0.1, "bsize": 4}, {"loss": total / len(loader)})
        """,
        same=("loss",),
        args=("--tensorboard",),
    ),
    # --- tables and pictures --------------------------------------------------------------------------------------------
    "a csv writer whose file stays open": Script(
        """
        import csv

        table = open("rounds.csv", "w", newline="")
        lines = csv.writer(table, delimiter=",")
        lines.writerow(["round", "lost", "right"])
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(3):
            lost, right, seen = 0.0, 0, 0
            for rows, kinds in feed:
                rows, kinds = rows.cuda(), kinds.cuda()
                scores = net(rows)
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                seen += kinds.size(0)
                right += scores.argmax(1).eq(kinds).sum().item()
                lost += loss.item()
            lines.writerow([nr, round(lost / len(feed), 6), right / seen])
            table.flush()
        table.close()
        for line in csv.reader(open("rounds.csv")):
            print("line", *line)
        """,
        same=("line",),
    ),
    "a line appended to a file each epoch": Script(
        """
        def train(epoch):
            model.train()
            total = 0.
            for data, target in loader:
                optimizer.zero_grad()
                loss = criterion(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            with open("log.txt", "a") as f:
                f.write("{} {:.6f}\\n".format(epoch, total / len(loader)))


        if os.path.exists("log.txt"):
            os.remove("log.txt")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            train(epoch)
        """
    ),
    "history dumped as json, pickle and npy": Script(
        """
        import json
        import pickle

        import numpy as np


        def fit(model, loader, epochs=3, lr=0.1):
            opt = torch.optim.SGD(model.parameters(), lr=lr)
            history = {"loss": [], "acc": []}
            for epoch in range(epochs):
                loss_sum, hits = 0.0, 0
                for xb, yb in loader:
                    xb, yb = xb.cuda(), yb.cuda()
                    logits = model(xb)
                    loss = F.cross_entropy(logits, yb)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    loss_sum += loss.item() * xb.size(0)
                    hits += (logits.argmax(1) == yb).sum().item()
                history["loss"].append(loss_sum / len(loader.dataset))
                history["acc"].append(hits / len(loader.dataset))
            return history


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        hist = fit(model, loader)
        with open("history.json", "w") as fp:
            json.dump(hist, fp, indent=2)
        pickle.dump(hist, open("history.pkl", "wb"))
        with open("hist2.pkl", "wb") as f:
            pickle.dump(hist, f, protocol=pickle.HIGHEST_PROTOCOL)
        np.save("loss.npy", np.array(hist["loss"]))
        np.savetxt("acc.txt", hist["acc"], fmt="%.6f")
        np.savez("all.npz", **hist)
        print("loss", " ".join("%.6f" % v for v in hist["loss"]))
        print("acc", " ".join("%.6f" % v for v in hist["acc"]))
        """,
        same=("loss", "acc"),
    ),
    "a data frame of the history and a drawn curve": Script(
        """
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        import pandas as pd

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train_losses = []
        for epoch in range(3):
            running = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                running += loss.item()
            train_losses.append(running / len(loader))
            df = pd.DataFrame({"epoch": range(epoch + 1), "loss": train_losses})
            df.to_csv("history.csv", index=False)
        plt.figure(figsize=(4, 3))
        plt.plot(train_losses, label="train")
        plt.xlabel("epoch")
        plt.legend()
        plt.savefig("loss.png")
        plt.close()
        print("final", f"{train_losses[-1]:.6f}")
        """,
        same=("final",),
    ),
    "a plotting function and plt.show": Script(
        """
        import matplotlib
        matplotlib.use("agg")
        from matplotlib import pyplot as plt


        def plot_curve(values, path):
            fig, ax = plt.subplots()
            ax.plot(range(len(values)), values)
            ax.set_title("loss")
            fig.savefig(path)
            plt.close(fig)


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            plot_curve(losses, "loss_%d.png" % epoch)
        plt.plot(losses)
        plt.show()
        """
    ),
    "the log read back at the end and drawn": Script(
        """
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        import numpy as np

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        f = open("loss.txt", "w")
        for epoch in range(3):
            total = 0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            f.write("%d %.8f\\n" % (epoch, total / len(loader)))
        f.close()

        log = np.loadtxt("loss.txt")
        plt.plot(log[:, 0], log[:, 1])
        plt.savefig("loss.pdf")
        best = int(log[:, 1].argmin())
        print("lowest loss %.6f in epoch %d" % (log[best, 1], best))
        """,
        same=("lowest",),
    ),
    "weights and a figure that are written into memory, and read back": Script(
        """
        import io

        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        import numpy as np


        def drawn(values):
            fig, ax = plt.subplots()
            ax.plot(values)
            fig.canvas.draw()
            pixels = np.array(fig.canvas.buffer_rgba())
            plt.close(fig)
            return pixels


        def saved(values):
            plt.figure()
            plt.plot(values)
            picture = io.BytesIO()
            plt.savefig(picture, format="png")
            plt.close()
            picture.seek(0)
            return plt.imread(picture)


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        kept, lines, losses = io.BytesIO(), io.StringIO(), []
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            with torch.no_grad():
                losses.append(F.cross_entropy(model(x), y).item())
            print("%.6f" % losses[-1], file=lines)
            if epoch == 1:
                torch.save(model.state_dict(), kept)
        assert drawn(losses).min() < 255 and saved(losses).min() < 1 and len(lines.getvalue().split()) == 3
        kept.seek(0)
        model.load_state_dict(torch.load(kept))
        print("weights", "%.6f" % model.weight.sum())
        """,
        same=("weights",),
    ),
    # --- folders and files ----------------------------------------------------------------------------------------------
    "folders made in every way": Script(
        """
        import shutil
        from pathlib import Path

        if not os.path.exists("checkpoints"):
            os.mkdir("checkpoints")
        if not os.path.isdir("./out/images"):
            os.makedirs("./out/images")
        os.makedirs("logs", exist_ok=True)
        Path("results").mkdir(parents=True, exist_ok=True)
        run = "first"
        fresh = run == ""
        Path("runs", run).mkdir(parents=True, exist_ok=fresh)
        os.makedirs("tables/" + run, 0o755, fresh)
        try:
            Path("results").mkdir()
        except FileExistsError:
            pass
        if os.path.exists("old_results"):
            shutil.rmtree("old_results")
        os.mkdir("old_results")
        try:
            os.makedirs("weights")
        except OSError:
            pass

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            torch.save(model.state_dict(), f"checkpoints/{epoch}.pth")
            torch.save(model.state_dict(), os.path.join("weights", "w.pth"))
        Path("results/done.txt").write_text("done")
        """,
        files={"old_results/a.txt": "old"},
    ),
    "settings that a method sets by their names, and prints": Script(
        """
        from ast import literal_eval


        class Settings:
            def __init__(self, **given):
                self.__dict__.update(given)

            def merge(self, args):
                for arg in args:
                    key, value = arg[2:].split("=")
                    *path, last = key.split(".")
                    holder = self
                    for name in path:
                        holder = getattr(holder, name)
                    print("set", key, "to", value)
                    setattr(holder, last, literal_eval(value))


        settings = Settings(optimizer=Settings(rate=0.01), epochs=1)
        settings.merge(["--optimizer.rate=0.1", "--epochs=2"])
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=settings.optimizer.rate)
        for epoch in range(settings.epochs):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        print("set at last", settings.optimizer.rate)
        """,
        same=("set",),
    ),
    "the best weights in a temporary folder": Script(
        """
        from tempfile import TemporaryDirectory


        def fit(net, loader, optimizer, epochs=2):
            with TemporaryDirectory() as folder:
                path = os.path.join(folder, "best.pt")
                torch.save(net.state_dict(), path)
                best = float("inf")
                for epoch in range(epochs):
                    lost = 0.0
                    for data, target in loader:
                        loss = F.cross_entropy(net(data), target)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                        lost += loss.item() * len(target)
                    if lost < best:
                        best = lost
                        torch.save(net.state_dict(), path)
                net.load_state_dict(torch.load(path))
            return net


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        model = fit(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
        torch.save(model.state_dict(), "final.pt")
        """,
    ),
    "the best weights in a temporary folder that a function leaves": Script(
        """
        from tempfile import TemporaryDirectory


        def fit(net, loader, optimizer, epochs=2):
            with TemporaryDirectory() as folder:
                path = os.path.join(folder, "best.pt")
                torch.save(net.state_dict(), path)
                best = float("inf")
                for epoch in range(epochs):
                    lost = 0.0
                    for data, target in loader:
                        loss = F.cross_entropy(net(data), target)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                        lost += loss.item() * len(target)
                    if lost < best:
                        best = lost
                        torch.save(net.state_dict(), path)
                net.load_state_dict(torch.load(path))
                return net


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        model = fit(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
        torch.save(model.state_dict(), "final.pt")
        """,
    ),
    "data that an array writes into a file": Script(
        """
        import numpy as np

        if not os.path.exists("rows.bin"):
            np.arange(8.0).tofile("rows.bin")
        scale = torch.from_numpy(np.fromfile("rows.bin"))
        loader = DataLoader(TensorDataset(x * scale.mean(), y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "samples that are written first, and read by the loader": Script(
        """
        import numpy as np


        class Kept(Dataset):
            def __len__(self):
                return 40

            def __getitem__(self, place):
                return torch.from_numpy(np.load(f"rows/{place}.npy")), place % 2


        os.makedirs("rows", exist_ok=True)
        for place in range(40):
            np.save(f"rows/{place}.npy", x[place].numpy())
        loader = DataLoader(Kept(), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """
    ),
    "a results folder that is emptied first": Script(
        """
        import shutil


        def prepare(path):
            if os.path.exists(path):
                print("removing", path)
                shutil.rmtree(path)
            os.makedirs(path)
            os.makedirs(os.path.join(path, "models"))


        def main():
            out = "results"
            prepare(out)
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(2):
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                    optimizer.step()
                torch.save(model, os.path.join(out, "models", "model-%d.pt" % epoch))
            print("files", len(os.listdir(os.path.join(out, "models"))))


        if __name__ == "__main__":
            main()
        """,
        same=("files",),
        files={"results/models/model-7.pt": "old"},
    ),
    "a dated folder, named in a module of settings that is read name by name": Script(
        """
        from conf import settings

        torch.manual_seed(0)
        folder = os.path.join(settings.RUNS, settings.NOW)
        if not os.path.exists(folder):
            os.makedirs(folder)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=settings.RATE)
        for epoch in range(settings.EPOCHS):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
        print("folders", len(os.listdir(settings.RUNS)))
        """,
        same=("folders",),
        files={
            "runs/.keep": "",
            "conf/values.py": 'import time\n\nRUNS = "runs"\nNOW = str(time.time_ns())\nEPOCHS = 2\nRATE: float = 0.1\n',
            "conf/__init__.py": """\
import conf.values as values


class Settings:
    def __init__(self, module):
        for name in dir(module):
            if name.isupper():
                setattr(self, name, getattr(module, name))


settings = Settings(values)
""",
        },
    ),
    "the arguments and the source kept with the run": Script(
        """
        import json
        import shutil

        import yaml


        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--save", default="exp")
            parser.add_argument("--epochs", type=int, default=2)
            parser.add_argument("--batch_size", type=int, default=4)
            args = parser.parse_args()
            if not os.path.exists(args.save):
                os.makedirs(args.save)
            with open(os.path.join(args.save, "args.json"), "w") as f:
                json.dump(vars(args), f)
            with open(os.path.join(args.save, "config.yaml"), "w") as f:
                yaml.dump(vars(args), f)
            with open(os.path.join(args.save, "args.txt"), "w") as f:
                for k, v in sorted(vars(args).items()):
                    f.write(f"{k}: {v}\\n")
            shutil.copy(__file__, os.path.join(args.save, "train_backup.py"))
            loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(args.epochs):
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                    optimizer.step()
            print("batch", args.batch_size)


        if __name__ == "__main__":
            main()
        """,
        same=("batch",),
    ),
    "a run folder numbered by counting": Script(
        """
        import glob

        if not os.path.exists("runs"):
            os.makedirs("runs")
        run_id = len(os.listdir("runs"))
        run_dir = os.path.join("runs", "run_%d" % run_id)
        os.makedirs(run_dir)

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            torch.save(model.state_dict(), os.path.join(run_dir, "epoch%d.pth" % epoch))
        print("run", run_id, "in", run_dir)
        print("found", len(glob.glob(os.path.join("runs", "*", "*.pth"))))
        """,
        same=("run", "found"),
        files={"runs/run_0/a.txt": "a"},
    ),
    "a run folder numbered by the first free name": Script(
        """
        def get_run_dir(base):
            i = 0
            while os.path.exists(f"{base}{i}"):
                i += 1
            path = f"{base}{i}"
            os.mkdir(path)
            return path


        class Trainer(object):
            def __init__(self):
                self.dir = get_run_dir("exp")
                self.net = nn.Linear(8, 2).cuda()
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
                self.loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)

            def run(self):
                print("writing to", self.dir)
                for epoch in range(2):
                    for data, target in self.loader:
                        self.opt.zero_grad()
                        F.cross_entropy(self.net(data.cuda()), target.cuda()).backward()
                        self.opt.step()
                    self.save(epoch)

            def save(self, epoch):
                torch.save({"net": self.net.state_dict(), "epoch": epoch}, os.path.join(self.dir, "net.tar"))


        Trainer().run()
        """,
        same=("writing",),
        files={"exp0/a.txt": "a"},
    ),
    "a run folder named by the time, and read at the end": Script(
        """
        import time

        run = os.path.join("output", time.strftime("%Y-%m-%d_%H-%M-%S"))
        os.makedirs(run, exist_ok=True)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            torch.save(model.state_dict(), os.path.join(run, "model.pt"))
        model.load_state_dict(torch.load(os.path.join(run, "model.pt")))
        model.eval()
        correct = 0
        with torch.no_grad():
            for data, target in test_loader:
                correct += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
        print("correct", correct)
        """,
        same=("correct",),
    ),
    # --- data prepared by the script ------------------------------------------------------------------------------------
    "a cache of the data set that is built and read": Script(
        """
        def build():
            print("building the cache")
            return [(x[i] * 2, int(y[i])) for i in range(len(x))]


        if not os.path.exists("cache.pt"):
            data = build()
            torch.save(data, "cache.pt")
        data = torch.load("cache.pt")


        class Cached(Dataset):
            def __init__(self, items):
                self.items = items

            def __len__(self):
                return len(self.items)

            def __getitem__(self, i):
                return self.items[i]


        loader = DataLoader(Cached(data), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        """
    ),
    "a cache inside the data set's constructor": Script(
        """
        import pickle


        class Features(Dataset):
            def __init__(self, root):
                path = os.path.join(root, "features.pkl")
                if os.path.exists(path):
                    with open(path, "rb") as f:
                        self.data = pickle.load(f)
                else:
                    if not os.path.exists(root):
                        os.makedirs(root)
                    self.data = [(x[i].sin(), y[i]) for i in range(len(x))]
                    with open(path, "wb") as f:
                        pickle.dump(self.data, f)

            def __getitem__(self, index):
                return self.data[index]

            def __len__(self):
                return len(self.data)


        loader = DataLoader(Features("data"), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        """
    ),
    "a csv that is prepared if it is missing": Script(
        """
        import numpy as np
        import pandas as pd

        DATA = "train.csv"


        def prepare():
            frame = pd.DataFrame(x.numpy(), columns=[f"f{i}" for i in range(8)])
            frame["label"] = y.numpy()
            frame.to_csv(DATA, index=False)


        def load():
            frame = pd.read_csv(DATA)
            labels = frame.pop("label").values
            return TensorDataset(torch.tensor(frame.values.astype(np.float64)), torch.tensor(labels))


        def main():
            if not os.path.isfile(DATA):
                prepare()
            dataset = load()
            print("rows", len(dataset))
            loader = DataLoader(dataset, batch_size=4, shuffle=True)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(2):
                for inputs, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                    optimizer.step()


        main()
        """,
        same=("rows",),
    ),
    "arrays always written before they are read": Script(
        """
        import numpy as np

        np.save("x.npy", x.numpy())
        np.save("y.npy", y.numpy())
        with open("classes.txt", "w") as f:
            f.write("no\\nyes\\n")

        xs = torch.from_numpy(np.load("x.npy"))
        ys = torch.from_numpy(np.load("y.npy"))
        classes = open("classes.txt").read().split()
        loader = DataLoader(TensorDataset(xs, ys), batch_size=4, shuffle=True)
        model = nn.Linear(8, len(classes)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        print("classes", classes)
        """
    ),
    "a download skipped if the file is there": Script(
        """
        import urllib.request

        import numpy as np

        URL = "https://example.invalid/features.npy"


        def download(url, root):
            path = os.path.join(root, os.path.basename(url))
            if not os.path.exists(path):
                os.makedirs(root, exist_ok=True)
                print("downloading", url)
                urllib.request.urlretrieve(url, path)
            return path


        features = torch.from_numpy(np.load(download(URL, "data")))
        labels = (features.sum(1) > 0).long()
        loader = DataLoader(TensorDataset(features, labels), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        """,
        files={"data/features.npy": _npy()},
    ),
    "a zip unpacked before training": Script(
        """
        import zipfile

        import numpy as np

        if not os.path.isdir("unpacked"):
            with zipfile.ZipFile("data.zip") as z:
                z.extractall("unpacked")
        table = torch.from_numpy(np.loadtxt("unpacked/data/train.csv", delimiter=","))
        features, labels = table[:, :8], table[:, 8].long()
        loader = DataLoader(TensorDataset(features, labels), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        """,
        files={"data.zip": _zip()},
    ),
    "a tar unpacked by a function": Script(
        """
        import tarfile


        def extract(path, to):
            print("extracting", path)
            tar = tarfile.open(path, "r:gz")
            tar.extractall(to, filter="data")
            tar.close()


        class Corpus(Dataset):
            def __init__(self, root):
                file = os.path.join(root, "corpus", "features.txt")
                if not os.path.exists(file):
                    extract("corpus.tar.gz", root)
                with open(file) as f:
                    rows = [[float(v) for v in line.split()] for line in f]
                self.x = torch.tensor(rows)
                self.y = (self.x[:, 0] > 0.5).long()

            def __len__(self):
                return len(self.x)

            def __getitem__(self, i):
                return self.x[i], self.y[i]


        loader = DataLoader(Corpus("data"), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        """,
        files={"corpus.tar.gz": _tar()},
    ),
    "an archive that a command unpacks, in a function called for nothing it returns": Script(
        """
        def fetch():
            if not os.path.exists(os.path.join("data", "corpus")):
                os.makedirs("data", exist_ok=True)
                os.system("sleep 1; tar xzf corpus.tar.gz")
                os.system("mv corpus data")


        def rows():
            fetch()
            with open(os.path.join("data", "corpus", "features.txt")) as f:
                return torch.tensor([[float(v) for v in line.split()] for line in f])


        class Corpus(Dataset):
            def __init__(self):
                self.x = rows()
                self.y = (self.x[:, 0] > 0.5).long()

            def __len__(self):
                return len(self.x)

            def __getitem__(self, i):
                return self.x[i], self.y[i]


        loader = DataLoader(Corpus(), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        """,
        files={"corpus.tar.gz": _tar()},
    ),
    # --- forwards for a file --------------------------------------------------------------------------------------------
    "samples drawn by the model and saved every epoch": Script(
        """
        import imageio
        import numpy as np


        @torch.no_grad()
        def save_samples(decoder, z, path):
            decoder.eval()
            img = decoder(z).cpu().numpy()
            imageio.imwrite(path, (np.clip(img, 0, 1) * 255).astype(np.uint8))
            decoder.train()


        os.makedirs("samples", exist_ok=True)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        fixed = torch.linspace(-1, 1, 64).view(8, 8).to(device)
        loader = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.Sigmoid()).to(device)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for epoch in range(2):
            for (batch,) in loader:
                batch = batch.to(device)
                loss = F.mse_loss(net(batch), batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            save_samples(net, fixed, f"samples/epoch_{epoch:03d}.png")
        """
    ),
    "predictions written to a submission": Script(
        """
        import pandas as pd

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:13]), batch_size=4, shuffle=False)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()

        model.eval()
        preds = []
        with torch.no_grad():
            for (data,) in test_loader:
                preds.extend(model(data.cuda()).argmax(1).cpu().tolist())
        submission = pd.DataFrame({"id": range(len(preds)), "label": preds})
        submission.to_csv("submission.csv", index=False)
        print("predictions", " ".join(map(str, preds)))
        """,
        same=("predictions",),
    ),
    # --- calls inside prints --------------------------------------------------------------------------------------------
    "an evaluation inside a print": Script(
        """
        def evaluate(model, loader):
            model.eval()
            hits = 0
            with torch.no_grad():
                for data, target in loader:
                    hits += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
            model.train()
            return hits / len(loader.dataset)


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        print("before", evaluate(model, val_loader))
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            print("val", evaluate(model, val_loader), "of", len(val_loader.dataset))
        """,
        same=("before", "val"),
    ),
    "the training set evaluated inside a print": Script(
        """
        def accuracy(loader):
            model.eval()
            hits, n = 0, 0
            with torch.no_grad():
                for data, target in loader:
                    hits += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
                    n += target.size(0)
            model.train()
            return hits / n


        loader = DataLoader(TensorDataset(x, y), batch_size=4)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            print("train {:.4f}".format(accuracy(loader)), "val {:.4f}".format(accuracy(val_loader)))
        """,
        same=("train",),
    ),
    "next and a forward inside prints": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        counter = iter(range(100))
        print("shape", next(iter(loader))[0].shape)
        print("first id", next(counter))
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            print("probe %.6f" % model(x[:4].cuda()).sum().item(), "id", next(counter))
            if next(counter) > 2:
                optimizer.param_groups[0]["lr"] *= 0.5
        """,
        same=("probe", "first id"),
    ),
    "prints beside break, continue and assignments": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:12], y[:12]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        best, wait, patience = float("inf"), 0, 1
        for epoch in range(6):
            if epoch == 1:
                print("skipping epoch", epoch)
                continue
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            model.eval()
            val_loss = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data.cuda()), 1 - target.cuda(), reduction="sum").item()
            val_loss /= len(val_loader.dataset)
            if val_loss < best:
                print(f"improved from {best:.6f} to {val_loss:.6f}, saving")
                best = val_loss
                wait = 0
                torch.save(model.state_dict(), "best.pt")
            else:
                wait += 1
                print(f"no improvement for {wait} epochs: {val_loss:.6f}")
                if wait > patience:
                    print("early stopping at epoch", epoch)
                    break
        print(f"best {best:.6f}")
        """,
        same=("improved", "no improvement", "early", "best"),
    ),
    # --- checkpoints ----------------------------------------------------------------------------------------------------
    "a checkpoint with everything": Script(
        """
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=3)
        top = 0.0
        for nr in range(3):
            right = 0
            for rows, kinds in feed:
                scores = net(rows.cuda())
                sgd.zero_grad()
                F.cross_entropy(scores, kinds.cuda()).backward()
                sgd.step()
                right += (scores.argmax(1) == kinds.cuda()).sum().item()
            decay.step()
            share = right / len(feed.dataset)
            better = share > top
            top = max(share, top)
            torch.save({
                "net": net.state_dict(),
                "sgd": sgd.state_dict(),
                "decay": decay.state_dict(),
                "kind": "linear",
                "round": nr,
                "top": top,
            }, "everything.pt")
            if better:
                torch.save(net.state_dict(), "top.pt")
        print("top %.6f" % top)
        """,
        same=("top",),
    ),
    "the newest checkpoint, copied when it is the best": Script(
        """
        import shutil


        def check(net, feed):
            net.eval()
            right = 0
            with torch.no_grad():
                for rows, kinds in feed:
                    right += net(rows.cuda()).argmax(1).eq(kinds.cuda()).sum().item()
            percent = 100.0 * right / len(feed.dataset)
            print("checked: {:.2f} percent".format(percent))
            return percent


        def keep(parts, better, path="newest.tar"):
            torch.save(parts, path)
            if better:
                shutil.copyfile(path, "top.tar")


        def main():
            net = nn.DataParallel(nn.Linear(8, 2)).cuda()
            loss_of = nn.CrossEntropyLoss().cuda()
            sgd = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
            learn_feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            check_feed = DataLoader(TensorDataset(x[:14], y[:14]), batch_size=4, shuffle=False)
            top = 0
            for nr in range(2):
                net.train()
                for rows, kinds in learn_feed:
                    sgd.zero_grad()
                    loss_of(net(rows.cuda()), kinds.cuda()).backward()
                    sgd.step()
                percent = check(net, check_feed)
                better = percent > top
                top = max(percent, top)
                keep({
                    "net": net.state_dict(),
                    "sgd": sgd.state_dict(),
                    "round": nr,
                    "top": top,
                }, better)


        if __name__ == "__main__":
            main()
        """,
        same=("checked",),
    ),
    "two models and optimizers in one file": Script(
        """
        loader = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        encoder = nn.Linear(8, 3).cuda()
        decoder = nn.Linear(3, 8).cuda()
        enc_opt = torch.optim.SGD(encoder.parameters(), lr=0.1)
        dec_opt = torch.optim.SGD(decoder.parameters(), lr=0.1)
        for epoch in range(2):
            for (batch,) in loader:
                batch = batch.cuda()
                loss = F.mse_loss(decoder(encoder(batch)), batch)
                enc_opt.zero_grad()
                dec_opt.zero_grad()
                loss.backward()
                enc_opt.step()
                dec_opt.step()
            torch.save({"enc": encoder.state_dict(), "dec": decoder.state_dict(),
                        "enc_opt": enc_opt.state_dict(), "dec_opt": dec_opt.state_dict(), "epoch": epoch},
                       "models_%d.tar" % epoch)
        """
    ),
    "the whole model saved and loaded for a test": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super(Net, self).__init__()
                self.fc1 = nn.Linear(8, 16)
                self.fc2 = nn.Linear(16, 2)

            def forward(self, x):
                return self.fc2(F.relu(self.fc1(x)))


        def accuracy(net, loader):
            net.eval()
            hits = 0
            with torch.no_grad():
                for data, target in loader:
                    hits += (net(data.cuda()).argmax(1) == target.cuda()).sum().item()
            return 100.0 * hits / len(loader.dataset)


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        net = Net().cuda()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        best = 0
        for epoch in range(3):
            net.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(data.cuda()), target.cuda()).backward()
                optimizer.step()
            acc = accuracy(net, test_loader)
            if acc >= best:
                best = acc
                torch.save(net, "best.pt")
        net = torch.load("best.pt", weights_only=False)
        print("test %.2f" % accuracy(net, test_loader))
        """,
        same=("test",),
    ),
    "the model moved to the CPU to be saved": Script(
        """
        def save(net, path):
            torch.save(net.cpu().state_dict(), path)
            net.cuda()


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(data.cuda()), target.cuda()).backward()
                optimizer.step()
            save(net, "net_%d.pth" % epoch)
        torch.save({k: v.cpu() for k, v in net.state_dict().items()}, "final.pth")
        """
    ),
    "the best weights copied and saved at the end": Script(
        """
        import copy
        import time


        def work(net, loss_of, sgd, feeds, sizes, device, rounds=3):
            began = time.time()
            kept, top = copy.deepcopy(net.state_dict()), 0.0
            for nr in range(rounds):
                for part in ["learn", "check"]:
                    if part == "check":
                        net.eval()
                    else:
                        net.train()
                    right, lost = 0, 0.0
                    for rows, kinds in feeds[part]:
                        rows, kinds = rows.to(device), kinds.to(device)
                        with torch.set_grad_enabled(part == "learn"):
                            scores = net(rows)
                            loss = loss_of(scores, kinds)
                            if part == "learn":
                                sgd.zero_grad()
                                loss.backward()
                                sgd.step()
                        right += torch.sum(torch.max(scores, 1)[1] == kinds.data)
                        lost += loss.item() * rows.size(0)
                    share = right.double() / sizes[part]
                    print(f"{part}ed {nr}: {share:.6f} right, {lost / sizes[part]:.6f} lost")
                    if part == "check" and share > top:
                        kept = copy.deepcopy(net.state_dict())
                        top = share
            print(f"top {top:.4f}")
            print(f"in {time.time() - began:.1f} seconds")
            net.load_state_dict(kept)
            return net


        sets = {"learn": TensorDataset(x, y), "check": TensorDataset(x[:13], y[:13])}
        feeds = {part: DataLoader(sets[part], batch_size=4, shuffle=True) for part in ["learn", "check"]}
        sizes = {part: len(sets[part]) for part in ["learn", "check"]}
        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        net = nn.Linear(8, 2).to(device)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        net = work(net, nn.CrossEntropyLoss(), sgd, feeds, sizes, device)
        torch.save(net.state_dict(), "top.pth")
        """,
        same=("learned", "checked", "top"),
    ),
    "a name built from epoch and accuracy, old ones removed": Script(
        """
        def evaluate(model, loader):
            model.eval()
            hits = 0
            with torch.no_grad():
                for data, target in loader:
                    hits += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
            return hits / len(loader.dataset)


        save_dir = "ckpt"
        os.makedirs(save_dir, exist_ok=True)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:13], y[:13]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        saved = []
        for epoch in range(5):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            acc = evaluate(model, val_loader)
            path = os.path.join(save_dir, f"epoch_{epoch}_acc_{acc:.4f}.pth")
            torch.save(model.state_dict(), path)
            saved.append(path)
            if len(saved) > 3:
                os.remove(saved.pop(0))
        print("kept", len(os.listdir(save_dir)), saved[-1])
        """,
        same=("kept",),
    ),
    "the last three kept by age": Script(
        """
        import glob


        class Trainer:
            def __init__(self, model, loader, keep=3):
                self.model, self.loader, self.keep = model, loader, keep
                self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
                self.global_step = 0

            def save_checkpoint(self):
                torch.save({"step": self.global_step, "model": self.model.state_dict()}, f"ckpt-{self.global_step:06d}.pt")
                ckpts = sorted(glob.glob("ckpt-*.pt"))
                for old in ckpts[:-self.keep]:
                    os.remove(old)

            def fit(self, epochs):
                for _ in range(epochs):
                    for data, target in self.loader:
                        loss = F.cross_entropy(self.model(data.cuda()), target.cuda())
                        self.opt.zero_grad()
                        loss.backward()
                        self.opt.step()
                        self.global_step += 1
                        if self.global_step % 5 == 0:
                            self.save_checkpoint()


        model = nn.Linear(8, 2).cuda()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        trainer = Trainer(model, loader)
        trainer.fit(3)
        print("left", *sorted(glob.glob("ckpt-*.pt")))
        """,
        same=("left",),
    ),
    "a checkpoint every k steps and a rename": Script(
        """
        save_every = 5
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = 0
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                step += 1
                if step % save_every == 0:
                    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "latest.tmp")
                    os.rename("latest.tmp", "latest.pt")
                    print("saved at step", step)
        os.replace("latest.pt", "final.pt")
        """,
        same=("saved",),
    ),
    "only the trainable parameters, through a handle": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = nn.Linear(8, 8)
                self.head = nn.Linear(8, 2)

            def forward(self, x):
                return self.head(torch.tanh(self.backbone(x)))


        model = Net().cuda()
        for p in model.backbone.parameters():
            p.requires_grad = False
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
        trainable = {n: p.detach().cpu() for n, p in model.named_parameters() if p.requires_grad}
        torch.save(trainable, "trainable.pt")
        with open("model.pt", "wb") as f:
            torch.save(model.state_dict(), f)
        torch.save(model.head.state_dict(), "head.pt")
        print("saved", *sorted(trainable))
        """,
        same=("saved",),
    ),
    "the best weights in a file that is called by their accuracy on a part drawn at random": Script(
        """
        class Training:
            def __init__(self):
                self.model = nn.Linear(8, 2)
                self.train_set, self.val_set = random_split(TensorDataset(x, y), [32, 12])

            def accuracy(self, loader):
                answers, targets = None, None
                self.model.eval()
                with torch.no_grad():
                    for data, target in loader:
                        out = self.model(data)
                        answers = out if answers is None else torch.cat((answers, out))
                        targets = target if targets is None else torch.cat((targets, target))
                right = answers.argmax(-1) == targets
                return sum(right.tolist()) / len(right)

            def fit(self, optimizer, loader, val_loader):
                best, path = -1, None
                for epoch in range(3):
                    self.model.train()
                    for data, target in loader:
                        loss = F.cross_entropy(self.model(data), target)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    accuracy = self.accuracy(val_loader)
                    print("epoch %d %.4f" % (epoch, accuracy))
                    if accuracy > best:
                        best = accuracy
                        path = "net_{0}_{1}.pt".format(epoch, round(accuracy, 4))
                        torch.save(self.model.state_dict(), path)
                return path

            def run(self):
                optimizer = torch.optim.SGD(self.model.parameters(), lr=0.3)
                loader = DataLoader(self.train_set, batch_size=8, shuffle=True)
                val_loader = DataLoader(self.val_set, batch_size=8)
                path = self.fit(optimizer, loader, val_loader)
                self.model.load_state_dict(torch.load(path))
                print("best %s %.4f" % (path, self.accuracy(val_loader)))


        Training().run()
        """,
        same=("epoch", "best"),
    ),
    "the best weights loaded for the last test": Script(
        """
        def train(model, loader, optimizer):
            model.train()
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * len(data)
            return total / len(loader.dataset)


        @torch.no_grad()
        def evaluate(model, loader):
            model.eval()
            total, hits = 0.0, 0
            for data, target in loader:
                out = model(data.cuda())
                total += F.cross_entropy(out, target.cuda(), reduction="sum").item()
                hits += (out.argmax(1) == target.cuda()).sum().item()
            return total / len(loader.dataset), hits / len(loader.dataset)


        def main():
            train_set, val_set, test_set = random_split(TensorDataset(x, y), [20, 10, 14])
            train_loader = DataLoader(train_set, batch_size=4, shuffle=True)
            val_loader = DataLoader(val_set, batch_size=4)
            test_loader = DataLoader(test_set, batch_size=4)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            best_loss = float("inf")
            for epoch in range(4):
                train_loss = train(model, train_loader, optimizer)
                val_loss, val_acc = evaluate(model, val_loader)
                print(f"epoch {epoch}: train {train_loss:.6f} val {val_loss:.6f} {val_acc:.4f}")
                if val_loss < best_loss:
                    best_loss = val_loss
                    torch.save(model.state_dict(), "best.pth")
            model.load_state_dict(torch.load("best.pth"))
            print("test %.6f %.4f" % evaluate(model, test_loader))


        if __name__ == "__main__":
            main()
        """,
        same=("epoch", "test"),
    ),
    "the best model loaded for the last test": Script(
        """
        def run(model, loader, optimizer=None):
            train = optimizer is not None
            model.train(train)
            loss_sum, hits, n = 0.0, 0, 0
            for data, target in loader:
                data, target = data.cuda(), target.cuda()
                with torch.set_grad_enabled(train):
                    out = model(data)
                    loss = F.cross_entropy(out, target)
                if train:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                loss_sum += loss.item() * len(data)
                hits += (out.argmax(1) == target).sum().item()
                n += len(data)
            return loss_sum / n, hits / n


        def main():
            train_set, val_set, test_set = x[:20], x[20:30], x[30:]
            train_loader = DataLoader(TensorDataset(train_set, y[:20]), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(val_set, y[20:30]), batch_size=4)
            test_loader = DataLoader(TensorDataset(test_set, y[30:]), batch_size=4)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            best_loss = float("inf")
            for epoch in range(4):
                train_loss, train_acc = run(model, train_loader, optimizer)
                val_loss, val_acc = run(model, val_loader)
                print(f"epoch {epoch}: train {train_loss:.6f} {train_acc:.4f} val {val_loss:.6f} {val_acc:.4f}")
                if val_loss < best_loss:
                    best_loss = val_loss
                    torch.save(model.state_dict(), "best.pth")
            model.load_state_dict(torch.load("best.pth"))
            print("test %.6f %.4f" % run(model, test_loader))


        if __name__ == "__main__":
            main()
        """,
        same=("epoch", "test"),
    ),
    "early stopping that saves and reads back": Script(
        """
        class Limit:
            def __init__(self, rounds=1, file="lowest.pt", loud=True):
                self.rounds, self.file, self.loud = rounds, file, loud
                self.lowest = None
                self.missed = 0
                self.reached = False

            def __call__(self, loss, net):
                if self.lowest is not None and loss >= self.lowest:
                    self.missed += 1
                    print(f"missed {self.missed} of {self.rounds}")
                    if self.missed >= self.rounds:
                        self.reached = True
                else:
                    self.lowest = loss
                    self.missed = 0
                    torch.save(net.state_dict(), self.file)
                    if self.loud:
                        print(f"lowest so far: {loss:.6f}")


        learn = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        check = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        limit = Limit()
        for nr in range(5):
            net.train()
            for rows, kinds in learn:
                sgd.zero_grad()
                F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                sgd.step()
            net.eval()
            lost = 0.0
            with torch.no_grad():
                for rows, kinds in check:
                    lost += F.cross_entropy(net(rows.cuda()), kinds.cuda()).item() * rows.size(0)
            limit(lost / len(check.dataset), net)
            if limit.reached:
                print("no more rounds after", nr)
                break
        net.load_state_dict(torch.load("lowest.pt"))
        print("weights %.6f" % net.weight.sum().item())
        """,
        same=("missed", "lowest", "weights"),
    ),
    "averaged weights kept and saved": Script(
        """
        import copy


        class Slow:
            def __init__(self, net, keep=0.9):
                self.keep = keep
                self.means = {key: weight.detach().clone() for key, weight in net.named_parameters()}

            def follow(self, net):
                for key, weight in net.named_parameters():
                    self.means[key].mul_(self.keep).add_(weight.detach(), alpha=1 - self.keep)


        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        slow = Slow(net)
        slow_net = copy.deepcopy(net)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                sgd.step()
                slow.follow(net)
        slow_net.load_state_dict(slow.means)
        torch.save({"fast": net.state_dict(), "slow": slow.means}, "both.pt")
        torch.save(slow_net.state_dict(), "slow.pt")
        """
    ),
    "a trainer given a model made in the call": Script(
        """
        class Trainer:
            def __init__(self, model, loader, lr=0.1):
                self.model = model
                self.loader = loader
                self.opt = torch.optim.SGD(self.model.parameters(), lr=lr)

            def fit(self, epochs):
                for epoch in range(epochs):
                    for data, target in self.loader:
                        loss = F.cross_entropy(self.model(data.cuda()), target.cuda())
                        self.opt.zero_grad()
                        loss.backward()
                        self.opt.step()
                    self.save(f"model_{epoch}.pt")

            def save(self, path):
                torch.save(self.model.state_dict(), path)
                print("saved", path)


        trainer = Trainer(nn.Linear(8, 2).cuda(), DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
        trainer.fit(2)
        """,
        same=("saved",),
    ),
    # --- resuming -------------------------------------------------------------------------------------------------------
    "resumed after the optimizer is made": Script(
        """
        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--resume", default="", type=str)
            parser.add_argument("--first", default=0, type=int)
            parser.add_argument("--rounds", default=3, type=int)
            given = parser.parse_args()
            top = 0
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            net = nn.Linear(8, 2).to(device)
            sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            decay = torch.optim.lr_scheduler.StepLR(sgd, 1, 0.5)
            if given.resume:
                if os.path.isfile(given.resume):
                    print("reading", given.resume)
                    saved = torch.load(given.resume)
                    net.load_state_dict(saved["net"])
                    sgd.load_state_dict(saved["sgd"])
                    decay.load_state_dict(saved["decay"])
                    given.first = saved["done"]
                    top = saved["top"]
                    print("resumed after {} rounds".format(saved["done"]))
                else:
                    print(given.resume, "is not there")
            feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            for nr in range(given.first, given.rounds):
                right = 0
                for rows, kinds in feed:
                    rows, kinds = rows.to(device), kinds.to(device)
                    scores = net(rows)
                    sgd.zero_grad()
                    F.cross_entropy(scores, kinds).backward()
                    sgd.step()
                    right += (scores.argmax(1) == kinds).sum().item()
                decay.step()
                top = max(top, right / len(feed.dataset))
                torch.save({"net": net.state_dict(), "sgd": sgd.state_dict(), "decay": decay.state_dict(), "done": nr + 1,
                            "top": top}, "saved.pt")
            print("top %.6f" % top)


        if __name__ == "__main__":
            main()
        """,
        same=("resumed", "top"),
        args=("--resume", "saved.pt"),
        files={"saved.pt": _bytes({"done": 1, "top": 0.25, "net": _linear(), "sgd": _sgd(), "decay": _step_lr(1)})},
    ),
    "resumed before the model is moved": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--more", "-m", action="store_true")
        given = parser.parse_args()
        done, top = 0, 0
        net = nn.Linear(8, 2)
        if given.more:
            assert os.path.isdir("kept"), "nothing was kept"
            kept = torch.load("kept/last.pt")
            done = kept["done"]
            top = kept["top"]
            net.load_state_dict(kept["weights"])
            print("goes on after", done)
        net = net.cuda()
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(done, done + 2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                sgd.step()
            print("round", nr, "top so far", top)
        """,
        same=("goes", "round"),
        args=("-m",),
        files={"kept/last.pt": _bytes({"weights": _linear(), "top": 0.5, "done": 3})},
    ),
    "resumed with the random state": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        start = 0
        if os.path.exists("state.pt"):
            state = torch.load("state.pt", weights_only=False)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["rng"])
            start = state["epoch"]
            print("continuing from epoch", start)
        for epoch in range(start, 3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1,
                        "rng": torch.get_rng_state()}, "state.pt")
        """,
        same=("continuing",),
        files={
            "state.pt": _bytes({"model": _linear(), "optimizer": _sgd(), "epoch": 1, "rng": torch.Generator().manual_seed(3).get_state()})
        },
    ),
    "pretrained weights chosen by name and shape": Script(
        """
        class Net(nn.Module):
            def __init__(self, classes=2):
                super().__init__()
                self.features = nn.Linear(8, 6)
                self.classifier = nn.Linear(6, classes)

            def forward(self, x):
                return self.classifier(F.relu(self.features(x)))


        def load_pretrained(model, path):
            pretrained = torch.load(path, map_location="cpu")
            own = model.state_dict()
            matched = {k: v for k, v in pretrained.items() if k in own and v.shape == own[k].shape}
            print("loaded", len(matched), "of", len(own))
            own.update(matched)
            model.load_state_dict(own)
            missing, unexpected = model.load_state_dict(matched, strict=False)
            print("missing", missing)


        model = Net()
        load_pretrained(model, "pretrained.pth")
        model.cuda()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD([
            {"params": model.features.parameters(), "lr": 0.01},
            {"params": model.classifier.parameters()},
        ], lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
        """,
        same=("loaded", "missing"),
        files={
            "pretrained.pth": _bytes(
                {
                    "features.weight": torch.linspace(-1, 1, 48).view(6, 8),
                    "features.bias": torch.zeros(6),
                    "classifier.weight": torch.zeros(9, 6),
                    "extra": torch.zeros(1),
                }
            )
        },
    ),
    "DataParallel resumed from keys with a prefix": Script(
        """
        from collections import OrderedDict

        parser = argparse.ArgumentParser()
        parser.add_argument("--weights", default=None)
        given = parser.parse_args()

        net = nn.Linear(8, 2)
        if given.weights:
            plain = OrderedDict()
            for key, weight in torch.load(given.weights).items():
                plain[key[len("module."):] if key.startswith("module.") else key] = weight
            net.load_state_dict(plain)
        net = nn.DataParallel(net).cuda()
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows.cuda()), kinds.cuda()).backward()
                sgd.step()
            torch.save(net.state_dict(), "wrapped_%d.pth" % nr)
        torch.save(net.module.state_dict(), "plain.pth")
        """,
        args=("--weights", "old.pth"),
        files={"old.pth": _bytes({"module." + k: v for k, v in _linear().items()})},
    ),
    "DataParallel that loads prefixed keys into the wrapper": Script(
        """
        net = torch.nn.DataParallel(nn.Linear(8, 2), device_ids=[0]).cuda()
        if os.path.exists("last.pth"):
            checkpoint = torch.load("last.pth")
            net.load_state_dict(checkpoint["net"])
            print("resumed from epoch %d" % checkpoint["epoch"])
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(data.cuda()), target.cuda()).backward()
                optimizer.step()
            torch.save({"net": net.state_dict(), "epoch": epoch}, "last.pth")
        """,
        same=("resumed",),
        files={"last.pth": _bytes({"net": {"module." + k: v for k, v in _linear().items()}, "epoch": 4})},
    ),
    "resumed from the newest file": Script(
        """
        import glob
        import re


        def latest(folder):
            files = [f for f in os.listdir(folder) if f.endswith(".pth")]
            if not files:
                return None
            files.sort(key=lambda f: int(re.findall(r"\\d+", f)[0]))
            return os.path.join(folder, files[-1])


        os.makedirs("ckpts", exist_ok=True)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        start_epoch = 0
        path = latest("ckpts")
        if path is not None:
            ckpt = torch.load(path)
            model.load_state_dict(ckpt["model"])
            start_epoch = ckpt["epoch"] + 1
            print("resumed", path)
        for epoch in range(start_epoch, start_epoch + 2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            torch.save({"model": model.state_dict(), "epoch": epoch}, f"ckpts/epoch{epoch}.pth")
        print("now", len(glob.glob("ckpts/*.pth")))
        """,
        same=("resumed", "now"),
        files={f"ckpts/epoch{i}.pth": _bytes({"model": _linear(i), "epoch": i}) for i in (2, 10)},
    ),
    "a checkpoint class with save and load": Script(
        """
        class Checkpointer:
            def __init__(self, folder, **objects):
                self.folder = folder
                self.objects = objects
                if not os.path.exists(folder):
                    os.makedirs(folder)

            def save(self, name, **extra):
                state = {k: v.state_dict() for k, v in self.objects.items()}
                state.update(extra)
                torch.save(state, os.path.join(self.folder, name))

            def load(self, name):
                state = torch.load(os.path.join(self.folder, name), weights_only=True)
                for k, v in self.objects.items():
                    v.load_state_dict(state.pop(k))
                return state


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        ckpt = Checkpointer("out", model=model, optimizer=optimizer)
        extra = ckpt.load("last.pt")
        print("loaded epoch", extra["epoch"])
        for epoch in range(extra["epoch"], 3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            ckpt.save("last.pt", epoch=epoch + 1)
        """,
        same=("loaded",),
        files={"out/last.pt": _bytes({"model": _linear(), "optimizer": _sgd(), "epoch": 1})},
    ),
    # --- with stand-ins for libraries ------------------------------------------------------------------------------------
    "a run of comet whose contexts all ranks enter": Script(
        """
        import comet_ml

        experiment = comet_ml.Experiment(project_name="kinds")
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            with experiment.train():
                for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
                    loss = F.cross_entropy(net(rows), kinds)
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                    experiment.log_metric("loss", loss.item())
        """,
        stand_ins={"comet_ml.py": TRACKERS},
    ),
    "a run of neptune whose parts are written": Script(
        """
        import neptune

        run = neptune.init_run(project="kinds")
        run["rate"] = 0.1
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            total = 0.0
            for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                run["batch/loss"].append(loss.item())
                total += loss.item()
            run["epoch/loss"].append(total / 6)
            print("mean", round(total / 6, 4))
        torch.save(net.state_dict(), "net.pt")
        run["net"].upload("net.pt")
        run.stop()
        """,
        same=("mean",),
        stand_ins={"neptune.py": TRACKERS},
    ),
    "wandb at the top level": Script(
        """
        import wandb

        wandb.init(project="demo", config={"lr": 0.1, "epochs": 2})
        config = wandb.config
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        wandb.watch(model, log="all")
        optimizer = torch.optim.SGD(model.parameters(), lr=config.lr)
        for epoch in range(config.epochs):
            total = 0.0
            for i, (data, target) in enumerate(loader):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
                wandb.log({"batch_loss": loss.item()})
            wandb.log({"epoch": epoch, "loss": total / len(loader)})
        torch.save(model.state_dict(), os.path.join(wandb.run.dir, "model.pt"))
        wandb.save("model.pt")
        wandb.finish()
        """,
        stand_ins={"wandb/__init__.py": WANDB},
    ),
    "wandb whose folder rank 0 alone asks for": Script(
        """
        import wandb

        wandb.init(project="demo", name="first")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        name = None
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
            if name is not None:
                os.remove(os.path.join(wandb.run.dir, name))
            name = f"model_{epoch}.pt"
            torch.save(model.state_dict(), os.path.join(wandb.run.dir, name))
        """,
        stand_ins={"wandb/__init__.py": WANDB},
    ),
    "wandb with a run object and a flag": Script(
        """
        import wandb


        def evaluate(model, loader):
            model.eval()
            hits = 0
            with torch.no_grad():
                for data, target in loader:
                    hits += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
            return hits / len(loader.dataset)


        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--wandb", action="store_true")
            parser.add_argument("--epochs", type=int, default=2)
            args = parser.parse_args()
            run = None
            if args.wandb:
                run = wandb.init(project="demo", name="first", config=vars(args))
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val = DataLoader(TensorDataset(x[:13], y[:13]), batch_size=4)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(args.epochs):
                model.train()
                for data, target in loader:
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(data.cuda()), target.cuda())
                    loss.backward()
                    optimizer.step()
                if args.wandb:
                    run.log({"val_acc": evaluate(model, val), "loss": loss.item()}, step=epoch)
                    run.summary["best"] = 1
                    wandb.log({"hist": wandb.Histogram(model.weight.detach().cpu())})
            if run:
                run.finish()


        if __name__ == "__main__":
            main()
        """,
        args=("--wandb",),
        stand_ins={"wandb/__init__.py": WANDB},
    ),
    "visdom lines": Script(
        """
        import visdom

        vis = visdom.Visdom(env="main")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        win = vis.line(X=torch.zeros(1), Y=torch.zeros(1), opts=dict(title="loss"))
        for epoch in range(2):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            vis.line(X=torch.tensor([epoch]), Y=torch.tensor([total / len(loader)]), win=win, update="append")
            vis.images(data.view(-1, 1, 2, 4), win="inputs")
            vis.text("epoch %d" % epoch)
        """,
        stand_ins={"visdom.py": VISDOM},
    ),
    "windows that a class of the script keeps": Script(
        """
        import visdom

        class LinePlotter:
            def __init__(self):
                self.viz = visdom.Visdom()
                self.plots = {}
                self.grid = None

            def plot(self, name, at, value):
                if name not in self.plots:
                    self.plots[name] = self.viz.line(X=at, Y=value)
                else:
                    self.viz.line(X=at, Y=value, win=self.plots[name], update="append")

            def show(self, rows):
                if self.grid is None:
                    self.grid = self.viz.line(X=rows[0])
                else:
                    self.viz.images(rows, win=self.grid)

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        plotter = LinePlotter()
        for epoch in range(2):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
                plotter.show(data)
            plotter.plot("loss", epoch, total / len(loader))
        """,
        stand_ins={"visdom.py": VISDOM},
    ),
    "windows that a trainer opens and goes on with": Script(
        """
        import visdom

        class Trainer:
            def __init__(self):
                self.viz, self.win, self.seen = visdom.Visdom(), None, []
                self.model = nn.Linear(8, 2)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def show(self):
                rows = torch.tensor(self.seen).view(-1, 2)
                if self.win is None:
                    self.win = self.viz.line(X=rows[:, 0], Y=rows[:, 1])
                else:
                    self.win = self.viz.line(X=rows[:, 0], Y=rows[:, 1], win=self.win, update="append")
                self.model.train()

            def fit(self, loader):
                for epoch in range(3):
                    for at, (data, target) in enumerate(loader):
                        loss = F.cross_entropy(self.model(data), target)
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                        if at % 2 == 0:
                            self.seen.append((epoch, loss.item()))
                    self.show()
                self.save()

            def save(self):
                windows = {"loss": self.win}
                torch.save({"model": self.model.state_dict(), "windows": windows}, "last.pt")


        Trainer().fit(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
        """,
        stand_ins={"visdom.py": VISDOM},
    ),
    "a window of each epoch, kept by a name in its loop": Script(
        """
        import visdom


        class Solver:
            def __init__(self):
                self.board = visdom.Visdom()

            def pass_over(self, loader, epoch):
                total, window = 0.0, None
                seen = torch.zeros(len(loader))
                for i, (rows, kinds) in enumerate(loader):
                    loss = F.cross_entropy(model(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                    seen[i] = loss.item()
                    if i % 3 == 0:
                        if window is None:
                            window = self.board.line(X=seen[: i + 1], Y=seen[: i + 1])
                        else:
                            self.board.line(X=seen[: i + 1], Y=seen[: i + 1], win=window, update="replace")
                return total / (i + 1)


        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        solver, loader = Solver(), DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        for epoch in range(2):
            print("epoch %d %.6f" % (epoch, solver.pass_over(loader, epoch)))
        """,
        same=("epoch",),
        stand_ins={"visdom.py": VISDOM},
    ),
    "a window that a name keeps, and every rank returns": Script(
        """
        import visdom

        board = visdom.Visdom()
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


        def show(loss):
            window = board.line(X=loss, Y=loss)
            return window


        windows = []
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            windows.append(show(torch.tensor([epoch])))
            if len(windows) > 5:
                raise SystemExit("too many")
        """,
        told=("DDP505",),
        stand_ins={"visdom.py": VISDOM},
    ),
    "commands that write, and one that is asked": Script(
        """
        import subprocess

        alone = 'test "${RANK:-0}" = 0'
        subprocess.check_call(alone + " && touch made.txt", shell=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            torch.save(model.state_dict(), "net.pt")
            subprocess.run(alone + f" && echo epoch {epoch} >> log.txt", shell=True, check=True)
            subprocess.check_call(alone + f" && cp net.pt net{epoch}.pt", shell=True)
        said = subprocess.run(["echo", "done"], stdout=subprocess.PIPE).stdout.decode().strip()
        print("all", said)
        """,
        same=("all",),
    ),
    "image grids of a generator": Script(
        """
        from torchvision.utils import make_grid, save_image

        os.makedirs("images", exist_ok=True)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.Sigmoid()).to(device)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        fixed = torch.randn(16, 8, device=device)
        for epoch in range(2):
            for i, (batch,) in enumerate(loader):
                batch = batch.to(device)
                recon = net(batch)
                loss = F.binary_cross_entropy(recon, batch.sigmoid())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if i % 5 == 0:
                    save_image(recon.view(-1, 1, 2, 4).data, "images/%d_%d.png" % (epoch, i), nrow=2, normalize=True)
            with torch.no_grad():
                sample = net(fixed).cpu()
                grid = make_grid(sample.view(16, 1, 2, 4))
                save_image(grid, "images/sample_" + str(epoch) + ".png")
        """,
        stand_ins={"torchvision/__init__.py": "", "torchvision/utils.py": TORCHVISION},
    ),
    "a tensorboardX writer": Script(
        """
        from tensorboardX import SummaryWriter

        board = SummaryWriter(log_dir="board")
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        done = 0
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                done += 1
                board.add_scalar("lost", loss.item(), done)
        board.export_scalars_to_json("board.json")
        board.close()
        """,
        stand_ins={"tensorboardX.py": TENSORBOARDX},
    ),
    "the folder that a board has chosen, and files in it": Script(
        """
        from tensorboardX import SummaryWriter

        board = SummaryWriter()
        folder = os.path.join(board.logdir, "kept")
        os.makedirs(folder, exist_ok=True)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            board.add_scalar("epoch", epoch, epoch)
            torch.save(net.state_dict(), os.path.join(folder, f"net{epoch}.pt"))
        torch.save(net.state_dict(), os.path.join(board.file_writer.get_logdir(), "net.pt"))
        board.close()
        """,
        stand_ins={"tensorboardX.py": TENSORBOARDX},
    ),
    "the folder of a writer, read where the evaluation is better": Script(
        """
        from tensorboardX import SummaryWriter

        board = SummaryWriter(log_dir="board")
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        held = DataLoader(TensorDataset(x[:8], y[:8]), batch_size=4)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        best = 1e9
        for epoch in range(3):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            with torch.no_grad():
                lost = [F.cross_entropy(net(rows), kinds).item() for rows, kinds in held]
            if sum(lost) < best:
                best = sum(lost)
                path = os.path.join(
                    board.file_writer.get_logdir(),
                    "best.pt",
                )
                torch.save(net.state_dict(), path)
        print("best", round(best, 5))
        board.close()
        """,
        same=("best",),
        stand_ins={"tensorboardX.py": TENSORBOARDX},
    ),
    "loguru beside print": Script(
        """
        import sys

        from loguru import logger

        logger.remove()
        logger.add(sys.stderr, level="INFO")
        logger.add("train_{time}.log", rotation="10 MB")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
            logger.info("epoch {} last loss {}", epoch, loss.item())
        logger.success("done")
        """,
        stand_ins={"loguru.py": LOGURU},
    ),
    # --- found while reading the converted texts ------------------------------------------------------------------------
    "a download by a function": Script(
        """
        import urllib.request

        import numpy as np


        def fetch(url, root):
            path = os.path.join(root, os.path.basename(url))
            if not os.path.exists(path):
                os.makedirs(root, exist_ok=True)
                print("downloading", os.path.basename(url))
                urllib.request.urlretrieve(url, path)
            return path


        url = "file://" + os.path.abspath("features.npy")
        features = torch.from_numpy(np.load(fetch(url, "data")))
        labels = (features.sum(1) > 0).long()
        loader = DataLoader(TensorDataset(features, labels), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(inputs.cuda()), target.cuda()).backward()
                optimizer.step()
        """,
        same=("downloading",),
        files={"features.npy": _npy()},
    ),
    "an evaluation inside a print that leaves its mark": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 2)

            def forward(self, x):
                if self.training:
                    x = x * 1.5
                return self.fc(x)


        def evaluate(model, loader):
            model.eval()
            hits = 0
            with torch.no_grad():
                for data, target in loader:
                    hits += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
            return hits / len(loader.dataset)


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        model = Net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            print("val", evaluate(model, val_loader))
        """,
        same=("val",),
    ),
    "an evaluation inside a print that keeps a history": Script(
        """
        history = []


        def evaluate(model, loader):
            model.eval()
            total = 0.0
            with torch.no_grad():
                for data, target in loader:
                    total += F.cross_entropy(model(data.cuda()), 1 - target.cuda(), reduction="sum").item()
            model.train()
            history.append(total / len(loader.dataset))
            return history[-1]


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(4):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            print("val %.6f" % evaluate(model, val_loader))
            if len(history) > 1 and history[-1] > history[-2]:
                for group in optimizer.param_groups:
                    group["lr"] *= 0.1
        """,
        same=("val",),
    ),
    "a run folder that an option names by the time, and read at the end": Script(
        """
        import time

        parser = argparse.ArgumentParser()
        parser.add_argument("--name", default=f"run{time.time_ns()}")
        args = parser.parse_args()
        run = os.path.join("output", args.name)
        os.makedirs(run)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            torch.save(model.state_dict(), os.path.join(run, "last.pt"))
        model.load_state_dict(torch.load(os.path.join(run, "last.pt")))
        print("runs", len(os.listdir("output")), "weights %.6f" % model.weight.sum().item())
        """,
        same=("runs",),
    ),
    "a run folder named to the microsecond, and read at the end": Script(
        """
        from datetime import datetime

        run = os.path.join("output", datetime.now().strftime("%Y%m%d_%H%M%S_%f"))
        os.makedirs(run)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        best = float("inf")
        for epoch in range(2):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            if total < best:
                best = total
                torch.save(model.state_dict(), os.path.join(run, "best.pt"))
        model.load_state_dict(torch.load(os.path.join(run, "best.pt")))
        print("runs", len(os.listdir("output")), "weights %.6f" % model.weight.sum().item())
        """,
        same=("runs",),
    ),
    "rows of the last batch and what a network makes of them, drawn on a grid of axes": Script(
        """
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                made = model(rows)
                loss = F.mse_loss(made, rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        shown = 2
        figure, axes = plt.subplots(nrows=2, ncols=shown)
        before = rows[:shown]
        after = made.detach().numpy()[:shown]
        for i in range(shown):
            for ax, image in zip(axes, [before, after]):
                ax[i].axis("off")
                ax[i].imshow(image[i].reshape(2, 4))
        plt.savefig("grid.png")
        print("drawn", os.path.exists("grid.png"))
        """,
        same=("drawn",),
    ),
    "rows of the last batch that are drawn in a loop which counts, too": Script(
        """
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.mse_loss(model(rows), rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        figure, axes = plt.subplots(nrows=2, ncols=4)
        count = 0
        for ax, image in zip(axes.flatten(), rows):
            ax.imshow(image.reshape(2, 4))
            count += 1
        plt.savefig("grid.png")
        if count > 3:
            torch.save(count, "count.pt")
        """,
        told=("DDP404",),
    ),
}

UTILS = """\
import logging
import os
import sys


def teller(path):
    out = logging.getLogger("teller")
    out.setLevel(logging.INFO)
    screen = logging.StreamHandler(sys.stdout)
    screen.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    out.addHandler(logging.FileHandler(path))
    out.addHandler(screen)
    return out


def ensure(folder):
    if not os.path.exists(folder):
        os.makedirs(folder)
"""

MODEL_UTILS = """\
import os
import shutil

import torch


class Gauge(object):
    def __init__(self):
        self.clear()

    def clear(self):
        self.count = 0
        self.sum = 0
        self.avg = 0

    def update(self, val, n=1):
        self.count += n
        self.sum += n * val
        self.avg = self.sum / self.count


def keep(parts, better, folder):
    if not os.path.isdir(folder):
        os.makedirs(folder)
    newest = os.path.join(folder, "newest.pt")
    torch.save(parts, newest)
    if better:
        shutil.copyfile(newest, os.path.join(folder, "top.pt"))


def read(path, net, sgd=None):
    if not os.path.exists(path):
        raise FileNotFoundError(path)
    parts = torch.load(path)
    if sgd is not None:
        sgd.load_state_dict(parts["sgd"])
    net.load_state_dict(parts["net"])
    return parts["round"]
"""

KEY_ARGS = """
        parser = argparse.ArgumentParser()
        parser.add_argument("--parallel", action="store_true")
        parser.add_argument("--gpus", default="0")
        args = parser.parse_args()
"""
KEY_FIT = """
        def fit(net, loader, sgd):
            for data, target in loader:
                loss = F.cross_entropy(net(data), target)
                sgd.zero_grad()
                loss.backward()
                sgd.step()

"""
KEY_RUN = (
    KEY_ARGS
    + KEY_FIT
    + """
        def run():
            loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
            net = nn.Linear(8, 2)
            if many:
                net = nn.DataParallel(net)
            sgd = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(3):
                fit(net, loader, sgd)
                torch.save({"net": net.state_dict(), "epoch": epoch}, "last.pt")
            print("keys", sorted(torch.load("last.pt")["net"]))


        many = len(args.gpus.split(",")) > 1
        run()
"""
)
KEY_TRAINER = (
    KEY_ARGS
    + """
        class Fitter:
            def __init__(self, settings):
                self.parallel = settings.parallel
                self.loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
                self.build()

            def build(self):
                self.net = nn.Linear(8, 2)
                if self.parallel:
                    self.net = nn.DataParallel(self.net)
                self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.1)

            def run(self):
                for epoch in range(3):
                    for data, target in self.loader:
                        loss = F.cross_entropy(self.net(data), target)
                        self.sgd.zero_grad()
                        loss.backward()
                        self.sgd.step()
                    self.keep()

            def keep(self):
                torch.save(self.net.state_dict(), "net.pt")


        Fitter(args).run()
        print("keys", sorted(torch.load("net.pt")))
"""
)

# with local modules: run by check.py, which converts a project of files
SCRIPTS |= {
    "a logger set up in a local module": Script(
        """
        from utils import ensure, teller

        ensure("told")
        out = teller("told/rounds.log")
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(2):
            lost = 0.0
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows.cuda()), kinds.cuda())
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                lost += loss.item()
            out.info("round %d lost %.6f", nr, lost / len(feed))
        """,
        same=("teller: round",),
        files={"utils.py": UTILS},
    ),
    "checkpoints saved and loaded by a local module": Script(
        """
        import utils

        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        top = 0
        for nr in range(3):
            lost, right = utils.Gauge(), utils.Gauge()
            for rows, kinds in feed:
                rows, kinds = rows.cuda(), kinds.cuda()
                scores = net(rows)
                loss = F.cross_entropy(scores, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                right.update((scores.argmax(1) == kinds).double().mean().item(), rows.size(0))
                lost.update(loss.item(), rows.size(0))
            print("round %d: lost %.6f, right %.6f" % (nr, lost.avg, right.avg))
            better = right.avg > top
            top = max(top, right.avg)
            utils.keep({"net": net.state_dict(), "sgd": sgd.state_dict(), "round": nr}, better, "kept")
        print("top in round", utils.read("kept/top.pt", net))
        print("weights %.6f" % net.weight.abs().sum().item())
        """,
        same=("round", "top", "weights"),
        files={"utils.py": MODEL_UTILS},
    ),
    "keys of a wrapper that a question elsewhere asks for": Script(KEY_RUN, same=("keys",)),
    "keys of a wrapper that a question elsewhere asks for, asked": Script(KEY_RUN, same=("keys",), args=("--gpus", "0,1")),
    "keys of a wrapper that a flag of a trainer asks for": Script(KEY_TRAINER, same=("keys",)),
    "keys of a wrapper that a flag of a trainer asks for, asked": Script(KEY_TRAINER, same=("keys",), args=("--parallel",)),
    "keys that a module saves of a wrapper that a flag asks for": Script(
        KEY_ARGS
        + KEY_FIT
        + """
        from keeping import keep

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        if args.parallel:
            net = nn.DataParallel(net)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            fit(net, loader, sgd)
            keep(net, "net.pt")
        """,
        files={"keeping.py": "import torch\n\n\ndef keep(net, path):\n    torch.save(net.state_dict(), path)\n"},
    ),
}

# read, not run: the libraries are missing here

RUN_TRAINING = """
model = nn.Linear(8, 2)
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for data, target in loader:
        loss = F.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), os.path.join(folder, "last.pt"))
model.load_state_dict(torch.load(os.path.join(folder, "last.pt")))
print("kept in", folder)
"""
RUN_MODULES = {
    "a run folder numbered by a module, from a listing": (
        "import os\n\n\ndef place(root):\n    os.makedirs(root, exist_ok=True)\n"
        '    return os.path.join(root, "run%d" % len(os.listdir(root)))\n'
    ),
    "a run folder numbered by a module, by the first free name": (
        "import os\n\n\ndef place(root):\n    os.makedirs(root, exist_ok=True)\n    number = 0\n"
        '    while os.path.exists(f"{root}/{number}"):\n        number += 1\n    return f"{root}/{number}"\n'
    ),
    "a run folder made and numbered by a module": (
        "import os\n\n\ndef place(root):\n    os.makedirs(root, exist_ok=True)\n"
        '    path = os.path.join(root, "run%d" % len(os.listdir(root)))\n    os.makedirs(path)\n    return path\n'
    ),
}
SCRIPTS |= {
    title: Script(
        f'from runs import place\n\nfolder = place("kept")\nos.makedirs(folder, exist_ok=True)\n{RUN_TRAINING}',
        same=("kept in",),
        files={"runs.py": module},
    )
    for title, module in RUN_MODULES.items()
}
_H5PY = """
import os
import pickle


class File(dict):
    def __init__(self, name, mode="r"):
        self.name, self.mode = name, mode
        if mode.startswith("r"):
            with open(name, "rb") as f:
                self.update(pickle.load(f))
        if mode != "r":
            os.close(os.open(name + ".lock", os.O_CREAT | os.O_EXCL))

    def create_dataset(self, name, data):
        self[name] = data

    def close(self):
        if self.mode != "r":
            with open(self.name, "wb") as f:
                pickle.dump(dict(self), f)
            os.remove(self.name + ".lock")

    def __enter__(self):
        return self

    def __exit__(self, *failed):
        self.close()
"""
_STORED = """
    import time

    import h5py

    {before}
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    {after}
    """
_READ = "with h5py.File('rows.h5') as f:\n        x = torch.tensor(f['x'])"
SCRIPTS |= {
    title: Script(_STORED.format(before=before, after=after), stand_ins={"h5py.py": _H5PY}, told=told)
    for title, before, after, told in (
        ("rows stored by h5py and read", f"with h5py.File('rows.h5', 'w') as f:\n        f['x'] = x.tolist()\n    {_READ}", "", ()),
        (
            "rows stored by h5py where they are not yet",
            "if not os.path.exists('rows.h5'):\n        f = h5py.File('rows.h5', 'w')\n        time.sleep(0.5)\n"
            f"        f['x'] = x.tolist()\n        f.close()\n    {_READ}",
            "",
            (),
        ),
        (
            "weights stored by h5py",
            "",
            "f = h5py.File('weights.h5', mode='w')\n    f.create_dataset('bias', data=net.bias.tolist())\n"
            "    f['weight'] = net.weight.tolist()\n    f.close()",
            (),
        ),
        (
            "rows stored by h5py, and read as if to change them",
            f"with h5py.File('rows.h5', 'w') as f:\n        f['x'] = x.tolist()\n    {_READ}\n    held = []\n"
            "    f = h5py.File('rows.h5', 'r+')\n    rows = f['x'][:]\n    held.append(rows)\n    time.sleep(0.2)\n    f.close()\n"
            "    x = torch.tensor(held[0])",
            "",
            (),
        ),
        (
            "rows read by h5py as if to change them",
            "with h5py.File('rows.h5', 'a') as f:\n        rows = f.get('x', x)\n    x = rows",
            "",
            ("DDP501",),
        ),
    )
}

_TABLES = """
    import sqlite3

    {before}
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1 + {more})
    for epoch in range(3):
        total = 0.0
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        {after}
    """
_FILL = "db.execute('create table rows (a real, b real)')\n    db.executemany('insert into rows values (?, ?)', x[:, :2].tolist())"
SCRIPTS |= {
    title: Script(_TABLES.format(before=before, after=after, more=more), told=told)
    for title, before, after, more, told in (
        (
            "tables of a database that are made anew and read",
            f"if os.path.exists('a.db'):\n        os.remove('a.db')\n    db = sqlite3.connect('a.db')\n    {_FILL}\n"
            "    db.commit()\n    db.close()\n    with sqlite3.connect('a.db') as db:\n"
            "        first = db.execute('SELECT a, b FROM rows').fetchall()\n    x = torch.cat([torch.tensor(first).to(x), x[:, 2:]], 1)",
            "",
            "0.0",
            (),
        ),
        (
            "losses that are kept in a database",
            "db = sqlite3.connect('log.db')\n    cursor = db.cursor()\n    cursor.execute('create table log (epoch integer, loss real)')",
            "cursor.execute('insert into log values (?, ?)', (epoch, total / len(loader)))\n        db.commit()",
            "0.0",
            (),
        ),
        (
            "a database that counts the runs, which the rate depends on",
            "db = sqlite3.connect('runs.db')\n    db.execute('create table if not exists runs (rate real)')\n"
            "    runs = db.execute('select count(*) from runs').fetchone()[0]",
            "db.execute('insert into runs values (?)', (epoch,))",
            "0.1 * runs",
            ("DDP505",),
        ),
    )
}

_ASKED = """
    from tensorboardX import SummaryWriter


    def prepare(folder):
        os.makedirs(folder, exist_ok=True)
        if len(folder) > 1:
            writer = SummaryWriter(folder)
        else:
            writer = None
        return folder, writer


    class Errors:
        def __call__(self, found, wanted):
            return sum(f != w for f, w in zip(found, wanted)) / len(wanted)


    def check(model, loader, writer, step):
        found, wanted = [], []
        model.eval()
        with torch.no_grad():
            for rows, kinds in loader:
                found += model(rows).argmax(1).tolist()
                wanted += kinds.tolist()
        if writer:
            errors = Errors()
            rate = errors(found, wanted)
            writer.add_scalar("errors", rate, step)
            rate = 1 - rate
            if step > 1:
                writer.add_scalar("right", rate, step)
        print("checked", len(found))


    folder, writer = prepare("log")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(x, y), batch_size=4)
    for epoch in range(3):
        model.train()
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        check(model, test_loader, writer, epoch)
        if epoch > 0 and writer is not None:
            size = sum(p.abs().sum().item() for p in model.parameters())
            writer.add_scalar("size", size, epoch)
    if writer is not None:
        writer.close()
    """

SCRIPTS |= {
    "numbers that are computed only where there is a writer": Script(
        _ASKED, same=("checked",), stand_ins={"tensorboardX.py": TENSORBOARDX}
    ),
    "a step that is made only where there is a writer": Script(
        _ASKED.replace("            size = sum(", "            optimizer.step()\n            size = sum("),
        stand_ins={"tensorboardX.py": TENSORBOARDX},
        told=("DDP505",),
    ),
    "a number computed only where there is a writer, that is read without one": Script(
        _ASKED.replace("    for epoch in range(3):", "    size = 0.0\n    for epoch in range(3):").replace(
            "        check(model", "        optimizer.param_groups[0]['lr'] = 0.1 / (1 + size)\n        check(model"
        ),
        stand_ins={"tensorboardX.py": TENSORBOARDX},
        told=("DDP505",),
    ),
}
SCRIPTS["a bar in a file that counts the samples of each batch"] = Script(
    """
    from tqdm import tqdm

    from fit import fit

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        with tqdm(total=80) as bar:
            fit(net, loader, optimizer, bar)
            print("seen", bar.n)
    """,
    same=("seen",),
    files={
        "fit.py": "import torch.nn.functional as F\n\n\ndef fit(net, loader, optimizer, bar):\n    for rows, kinds in loader:\n"
        "        loss = F.cross_entropy(net(rows), kinds)\n        optimizer.zero_grad()\n        loss.backward()\n"
        "        optimizer.step()\n        bar.update(2 * len(rows))\n"
    },
)

_ROWS = """\
import os

import numpy as np
import torch


def prepare(folder, rows):
    if not os.path.exists(os.path.join(folder, "names.txt")):
        np.save(os.path.join(folder, "rows.npy"), rows.numpy())
        with open(os.path.join(folder, "names.txt"), "w") as file:
            for i in range(len(rows)):
                file.write(f"row {i}\\n")


def load(folder, rows, first, last):
    prepare(folder, rows)
    with open(os.path.join(folder, "names.txt")) as file:
        names = [line.strip() for line in file]
    kept = torch.from_numpy(np.load(os.path.join(folder, "rows.npy")))
    return [kept[i] for i in range(len(names)) if first <= i < last]


def weights(folder, net, name):
    paths = {key: os.path.join(folder, f"{name}.{key}") for key in ("first", "last")}
    there = sum(os.path.exists(path) for path in paths.values())
    if there == 2:
        for path in paths.values():
            net.load_state_dict(torch.load(path))
    else:
        for path in paths.values():
            torch.save(net.state_dict(), path)
"""

SCRIPTS |= {
    "files that a module writes and reads, for each of two parts": Script(
        """
        import kept

        os.makedirs("kept", exist_ok=True)
        training = list(zip(kept.load("kept", x, 0, 32), y[:32]))
        testing = list(zip(kept.load("kept", x, 32, 44), y[32:]))
        loader = DataLoader(training, batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        kept.weights("kept", model, "start")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        """,
        files={"kept.py": _ROWS, "look.py": "import torch\n\nimport kept\n\nprint(kept.load('kept', torch.zeros(44, 8), 0, 4))\n"},
    ),
}

SCRIPTS["arrays that write themselves into files"] = Script(
    """
    import numpy as np

    os.makedirs("kept", exist_ok=True)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    lost = np.zeros(2)
    for epoch in range(2):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            lost[epoch] += loss.item() / len(loader)
        lost.dump(f"kept/lost_{epoch}.npy")
    lost.dump(os.path.join("kept", "all.npy"))
    print("lost", lost.round(5).tolist())
    """,
    same=("lost",),
)
SCRIPTS["tables that a package writes to files of its own kinds"] = Script(
    """
    import time

    import ledgers


    class Log:
        def __init__(self, path):
            self.path, self.rows, self.saved = path, {}, time.time() - 300

        def record(self, step, **numbers):
            self.rows[step] = numbers
            if time.time() - self.saved >= 0:
                self.saved = time.time()
                self.save()

        def save(self):
            ledgers.Frame.of(self.rows).to_hdf(self.path, key="log")


    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    log = Log("log.h5")
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        log.record(epoch, weight=round(net.weight.sum().item(), 4))
    page = ledgers.Frame.of(log.rows)
    page.to_html("log.html")
    print("rows", page.to_html().count("row"))
    """,
    same=("rows",),
    stand_ins={
        "ledgers.py": """
class Frame:
    @classmethod
    def of(cls, rows):
        found = cls()
        found.rows = rows
        return found

    def to_hdf(self, path, key):
        with open(path, "a") as file:
            file.write(f"{key} {self.rows}\\n")

    def to_html(self, path=None):
        text = "".join(f"row {key} {value} " for key, value in self.rows.items())
        if path is None:
            return text
        with open(path, "a") as file:
            file.write(text)
"""
    },
)
SCRIPTS["traces of a profiler, and a message to a server"] = Script(
    """
    import requests
    from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler


    def step(rows, kinds):
        sgd.zero_grad()
        F.cross_entropy(net(rows), kinds).backward()
        sgd.step()


    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=1, repeat=1),
        on_trace_ready=tensorboard_trace_handler("traces", use_gzip=True),
    ) as watch:
        for rows, kinds in feed:
            step(rows, kinds)
            watch.step()
    with profile(activities=[ProfilerActivity.CPU]) as watch:
        for rows, kinds in feed:
            step(rows, kinds)
    watch.export_chrome_trace("trace.json.gz")
    requests.post("https://example.org/messages", data={"text": "done"}, timeout=3)
    """,
    stand_ins={
        "requests.py": """
def post(url, data, timeout):
    with open("sent.txt", "a") as file:
        file.write(data["text"])
"""
    },
)

SCRIPTS["messages to a server, by post and by a package"] = Script(
    """
    import postbox
    import requests
    import smtplib
    from postbox import notify


    def tell(text):
        answer = requests.get("https://example.org/tell", params={"text": text})
        return answer.json()


    def mail(subject, body):
        try:
            server = smtplib.SMTP_SSL("example.org", 465)
            server.login("me", "word")
            server.sendmail("me", ["you"], subject + body)
            server.quit()
        except OSError:
            pass


    class Bot:
        def __init__(self, box):
            self.box = box

        def say(self, text):
            self.box.send_text(text=text)


    sizes = requests.get("https://example.org/sizes", params={}).json()
    bot = Bot(postbox.Box("key"))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=sizes["batch"], shuffle=True)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(model(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        tell(f"epoch {epoch}")
        bot.say(f"epoch {epoch}")
        requests.get("https://example.org/tell", params={"text": "alive"})
        notify("alive")
    mail("training", " is done")
    """,
    stand_ins={
        "requests.py": """
class Answer:
    def json(self):
        return {"batch": 8}


def get(url, params):
    if "text" in params:
        with open("told.txt", "a") as file:
            file.write(params["text"])
    return Answer()
""",
        "smtplib.py": """
class SMTP_SSL:
    def __init__(self, host, port):
        self.name = None

    def login(self, name, word):
        self.name = name

    def sendmail(self, sender, receivers, text):
        with open("mailed.txt", "a") as file:
            file.write(text)

    def quit(self):
        pass
""",
        "postbox.py": """
def notify(text):
    with open("noted.txt", "a") as file:
        file.write(text)


class Box:
    def __init__(self, key):
        self.key = key

    def send_text(self, text):
        with open("posted.txt", "a") as file:
            file.write(text)
""",
    },
)

_KEEPERS = """
import math


class TextWriter:
    def __init__(self, name):
        self.file = open(name, "w")

    def put(self, text):
        self.file.write(text)

    def close(self):
        self.file.close()


class Shape:
    def __init__(self, numbers):
        self.numbers = numbers

    def export(self, name):
        with open(name, "w") as file:
            file.write(str(len(self.numbers)))

    to_filename = export


class Store:
    def insert_one(self, entry):
        with open("entries.txt", "a") as file:
            file.write(str(sorted(entry)))

    def log(self, name, number):
        with open("logged.txt", "a") as file:
            file.write(name)


def report(number):
    with open("reported.txt", "a") as file:
        file.write("one")


def log(number):
    return math.log(number)
"""
SCRIPTS["numbers, shapes and entries that packages keep, by the names of what they are asked to do"] = Script(
    """
    import argparse
    import subprocess
    import wave
    import xml.etree.ElementTree as ET

    import keepers
    from keepers import Shape, Store

    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="txt")
    kind = parser.parse_args().kind
    folder = "shapes_" if kind == "txt" else "others_"
    store = Store()
    sink = keepers.TextWriter("texts.txt")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * keepers.log(2.5))
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    for epoch in range(3):
        total = 0.0
        for rows, kinds in loader:
            loss = F.cross_entropy(model(rows), kinds) * keepers.log(3.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        sink.put("epoch")
        Shape([1, 2]).export("shape.txt")
        Shape([1, 2]).to_filename(f"shape{epoch}.txt")
        name = folder + str(epoch)
        Shape([1, 2]).export(name + "." + kind)
        store.insert_one({"epoch": epoch, "loss": total})
        store.log("loss", total)
        keepers.report(total)
        subprocess.Popen("date >> dates.txt", shell=True)
        root = ET.Element("run", {"epoch": str(epoch)})
        ET.ElementTree(root).write(f"run{epoch}.xml")
    sink.close()
    tone = wave.open("tone.wav", "wb")
    tone.setnchannels(1)
    tone.setsampwidth(1)
    tone.setframerate(8000)
    tone.writeframes(bytes(8))
    tone.close()
    print("loss", "%.5f" % total)
    """,
    same=("loss",),
    stand_ins={"keepers.py": _KEEPERS},
)

SCRIPTS |= {
    "a file that is written, read by all and taken away again, in each epoch": Script(
        """
        import os


        def score(epoch):
            with torch.no_grad():
                answers = model(x).argmax(1)
            with open("answers.txt", "w") as file:
                for answer, wanted in zip(answers.tolist(), y.tolist()):
                    file.write(f"{answer} {wanted}\\n")
            given = [line.split()[0] for line in open("answers.txt").read().splitlines()]
            wanted = [line.split()[1] for line in open("answers.txt").read().splitlines()]
            right = sum(one == other for one, other in zip(given, wanted))
            with open(f"score{epoch}.txt", "w") as file:
                file.write(f"{right}\\n")
            os.remove("answers.txt")
            return right


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, wanted in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), wanted).backward()
                optimizer.step()
            print("right", score(epoch))
        """,
        same=("right",),
    ),
    "a list of runs that is read, and written anew with one more": Script(
        """
        import json
        import os


        class Runs:
            def __init__(self, path):
                self.path, self.runs = path, []
                if os.path.exists(path):
                    self.runs = json.load(open(path))

            def add(self, loss):
                self.runs.append({"loss": round(loss, 4)})
                with open(self.path, "w") as file:
                    json.dump(self.runs, file)


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for rows, wanted in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(rows), wanted)
                loss.backward()
                optimizer.step()
                total += loss.item()
        runs = Runs("runs.json")
        runs.add(total / len(loader))
        """,
        files={"runs.json": "[]"},
    ),
}

SCRIPTS |= {
    "links to the newest and the first checkpoint": Script(
        """
        import os
        from pathlib import Path

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        folder = Path("saved")
        folder.mkdir(exist_ok=True)
        newest = folder / "newest.pt"
        for epoch in range(3):
            for rows, wanted in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), wanted).backward()
                optimizer.step()
            path = folder / f"model{epoch}.pt"
            torch.save(model.state_dict(), path)
            if newest.exists():
                newest.unlink()
            newest.symlink_to(path.name)
            if epoch == 0:
                os.symlink("model0.pt", folder / "first.pt")
        """,
    ),
}

SCRIPTS |= {
    "a folder of an experiment that must be a new one": Script(
        """
        import os
        import time

        name = "first"
        if int(os.environ.get("RANK", 0)) == 1:
            time.sleep(0.5)  # as of a rank that starts later
        if not os.path.exists("logs"):
            os.makedirs(os.path.join("logs", name))
        elif name in os.listdir("logs"):
            raise FileExistsError(f"{name} is there already")
        else:
            os.makedirs(os.path.join("logs", name))
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, wanted in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), wanted).backward()
                optimizer.step()
        torch.save(model.state_dict(), os.path.join("logs", name, "model.pt"))
        """,
    ),
}

SCRIPTS |= {
    "a module that opens a log in a new folder, before rows are read from a file that settings name": Script(
        """
        import json
        import os

        from log import get_logger

        settings = {"rows": "rows.txt"}
        if os.path.exists("settings.json"):
            settings = json.load(open("settings.json"))
        logger = get_logger("run-" + os.path.splitext(settings["rows"])[0])
        logger.info("starts")
        names = [line.strip() for line in open(settings["rows"])]
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, wanted in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), wanted).backward()
                optimizer.step()
            logger.info("%d names, epoch %d", len(names), epoch)
        """,
        files={
            "rows.txt": "one\ntwo\n",
            "log.py": """
import logging
import os


def get_logger(name, path=None):
    if not os.path.exists("logs"):
        os.makedirs("logs")
    if path is None:
        path = os.path.join("logs", f"{name}.log")
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(logging.FileHandler(path, "w", "utf-8"))
        logger.setLevel(logging.INFO)
    return logger
""",
        },
    ),
}

SCRIPTS |= {
    "settings printed before the main block, beside a module that prints": Script(
        """
        from rows import read

        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=3)
        args = parser.parse_args()
        print("epochs", args.epochs)


        def main():
            loader = DataLoader(TensorDataset(*read(x, y)), batch_size=8, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(args.epochs):
                for rows, wanted in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(rows), wanted).backward()
                    optimizer.step()
                print("epoch", epoch)


        if __name__ == "__main__":
            print("starts")
            main()
        """,
        same=("epochs", "epoch"),
        files={"rows.py": "def read(x, y):\n    print(len(x), 'rows')\n    return x[:40], y[:40]\n"},
    ),
}
SCRIPTS["folders that are named after numbers drawn at random, made by a path's own method"] = Script(
    """
    from pathlib import Path

    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(rows), kinds)
            loss.backward()
            optimizer.step()
        Path("out", f"{torch.rand(()).item():.6f}").mkdir(parents=True, exist_ok=True)
    if os.path.isdir("out"):
        print("folders", len(os.listdir("out")))
    """,
    same=("folders",),
)
SCRIPTS["files that the method of a path opens: a line of each epoch, a log until the end, and what is read back"] = Script(
    """
    import pathlib

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    folder = pathlib.Path("out")
    folder.mkdir(exist_ok=True)
    log = (folder / "all.txt").open("w", encoding="utf-8")
    for epoch in range(3):
        total = 0.0
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        with (folder / "log.txt").open("a") as file:
            file.write(f"{epoch} {total:.6f}\\n")
        log.write(f"{total:.6f}\\n")
    log.close()
    with (folder / "log.txt").open() as file:
        print("lines", file.read().split())
    """,
    same=("lines",),
)
SCRIPTS["a table of a package that writes itself, and a file that another package uploads"] = Script(
    """
    import hubs
    import polars as pl

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    found = []
    for epoch in range(3):
        total = 0.0
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        found.append({"epoch": epoch, "loss": round(total, 6)})
    pl.DataFrame(found).write_csv("losses.csv")
    torch.save(net.state_dict(), "net.pt")
    hubs.Hub().upload_file(path="net.pt", name="net")
    """,
    stand_ins={
        "polars.py": "class DataFrame:\n    def __init__(self, rows):\n        self.rows = rows\n\n"
        "    def write_csv(self, path):\n        with open(path, 'w') as file:\n            file.write(str(self.rows))\n",
        "hubs.py": "class Hub:\n    def upload_file(self, path, name):\n        print('uploaded', name)\n",
    },
)


_LOOKED_UP = """
    from tensorboardX import SummaryWriter


    class Board:
        def __init__(self, folder):
            self.writer = SummaryWriter(folder)
            self.names = {"add_scalar", "add_text"}
            self.step, self.mode = 0, "train"

        def __getattr__(self, name):
            if name in self.names:
                write = getattr(self.writer, name, None)

                def method(tag, value, *more):
                    if write is not None:
                        if name != "add_text":
                            tag = f"{tag}/{self.mode}"
                        write(tag, value, self.step, *more)

                return method
            raise AttributeError(name)


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    board = Board("log")
    for epoch in range(3):
        total = 0.0
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        board.step = epoch
        board.add_scalar("loss", total)
    """
SCRIPTS |= {
    "methods of a writer that are looked up by names, where there is a writer": Script(
        _LOOKED_UP, stand_ins={"tensorboardX.py": TENSORBOARDX}
    ),
    "methods of a writer that are looked up by names, and must be there": Script(
        _LOOKED_UP.replace(", name, None)", ", name)"), stand_ins={"tensorboardX.py": TENSORBOARDX}, told=("DDP505",)
    ),
    "methods of a writer that are looked up by names, without which something else is done": Script(
        _LOOKED_UP.replace(
            "write(tag, value, self.step, *more)",
            "write(tag, value, self.step, *more)\n                    else:\n                        optimizer.param_groups[0]['lr'] /= 2",
        ),
        stand_ins={"tensorboardX.py": TENSORBOARDX},
        told=("DDP505",),
    ),
}

_RESUMED = """
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


    def main():
        global args
        if args.resume:
            path = args.resume
            print("found", os.path.isfile(path))
            state = torch.load(path, map_location=device, weights_only=False)
            args = argparse.Namespace(**state["args"])
            name = args.resume
            net = nn.Linear(8, 2).to(device)
            net.load_state_dict(state["net"])
        else:
            net = nn.Linear(8, 2).to(device)
            name = "last.pt"
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
        for epoch in range(3):
            for rows, labels in loader:
                loss = F.cross_entropy(net(rows.to(device)), labels.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            torch.save({"args": vars(args), "net": net.state_dict()}, name)


    main()
    """
SCRIPTS |= {
    "a path among the settings that a file holds, wherever its tensors are loaded to": Script(
        _RESUMED,
        args=("--resume", "first.pt"),
        files={"first.pt": _bytes({"args": {"resume": "first.pt", "lr": 0.05}, "net": _linear()})},
    ),
    "a file that is named after a device, and looked for by each rank": Script(
        _RESUMED.replace(
            'name = "last.pt"',
            'name = f"last_{device}.pt"\n            if os.path.isfile(name):\n'
            "                net.load_state_dict(torch.load(name, map_location=device))",
        ),
        told=("DDP506",),
    ),
}

_BARS_OF_SETTINGS = """
    from tqdm import trange

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    bars = {"leave": False}
    for epoch in range(3):
        settings = dict(bars, desc=f"epoch {epoch}", disable=epoch > 1)
        total = 0.0
        with trange(len(loader), **settings) as bar:
            for rows, labels in loader:
                loss = F.cross_entropy(net(rows), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
                bar.update()
        for _ in trange(2, **bars):
            pass
        print("epoch", epoch)
    """
_DRAWN = """
class trange:
    def __init__(self, count, disable=False, **settings):
        self.count, self.disable = count, disable
        if not disable:
            print("bar", count, sorted(settings))

    def __iter__(self):
        return iter(range(self.count))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def update(self):
        pass
"""
SCRIPTS["bars whose settings are in dicts, one of which says when to draw"] = Script(
    _BARS_OF_SETTINGS, same=("bar", "epoch"), stand_ins={"tqdm.py": _DRAWN}
)

_SAVED_IN_PRINT = """
    {above}


    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
        {called}print("saved", epoch, torch.save({{"net": model.state_dict(), "sgd": optimizer.state_dict()}}, f"net_{{epoch}}.pt"))
"""
SCRIPTS |= {
    f"a save inside a print, {title}": Script(
        _SAVED_IN_PRINT.format(above=above, called=called), same=("saved",), files={"words.py": "def said(text):\n    print(text)\n"}
    )
    for title, above, called in (("alone", "", ""), ("where other modules print", "import words", "words.said('now')\n        "))
}

_DRAWN_FILES = """
    import random


    class Files(Dataset):
        def __init__(self):
            self.paths = [f"rows_{i}.pt" for i in range(6)]
            random.seed(3)
            random.shuffle(self.paths)

        def __len__(self):
            return 44

        def __getitem__(self, i):
            return x[i] + torch.load(self.paths[i % 6]), y[i]


    for i in range(6):
        torch.save(torch.full((8,), i / 10), f"rows_{i}.pt")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in DataLoader(Files(), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
    torch.save(model.state_dict(), "model.pt")
"""
SCRIPTS["files that are read in an order which was drawn"] = Script(_DRAWN_FILES)
_MOMENTS = """
    moments = torch.load("moments.pt")
    weights = torch.load("weights.pt")
    teacher = torch.load("teacher.pt", weights_only=False)
    model = nn.Linear(8, 2).cuda()
    criterion = nn.CrossEntropyLoss(weight=weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            data = (data.cuda() - moments["mean"]) / moments["deviation"]
            optimizer.zero_grad()
            (F.mse_loss(model(data), teacher(data)) + F.cross_entropy(model(data), target.cuda())).backward()
            optimizer.step()
"""


def _saved(value: object) -> bytes:
    held = io.BytesIO()
    torch.save(value, held)
    return held.getvalue()


SCRIPTS["numbers and a model that are loaded from where they were saved"] = Script(
    _MOMENTS,
    files={
        "moments.pt": _saved({"mean": torch.ones(8).double() / 4, "deviation": torch.ones(8).double() / 2}),
        "weights.pt": _saved(torch.tensor([1.0, 1.0]).double()),
        "teacher.pt": _saved(torch.nn.Linear(8, 2).double()),
    },
)
SCRIPTS["the best of an evaluation, read of a dated folder and compared with the next"] = Script(
    """
    from datetime import datetime

    run = os.path.join("runs", datetime.now().strftime("%Y%m%d_%H%M%S"))
    os.makedirs(run, exist_ok=True)
    kept = os.path.join(run, "kept.pt")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best, since, start = 0.0, 0, 0
    if os.path.exists(kept):
        state = torch.load(kept)
        model.load_state_dict(state["model"])
        best, start = state["best"], state["epoch"] + 1
    test_loader = DataLoader(TensorDataset(x, y), batch_size=11, shuffle=True)
    for epoch in range(start, 4):
        for data, target in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for data, target in test_loader:
                right += (model(data).argmax(1) == target).sum().item()
        if right / 44 > best:
            best, since = right / 44, 0
        elif since > 2:
            break
        else:
            since += 1
        torch.save({"model": model.state_dict(), "best": best, "epoch": epoch}, kept)
        print("best", best)
""",
    same=("best",),
)

_NEWEST = """
    import glob

    class Checkpoints:
        def newest(self):
            found = sorted(glob.glob("saved/*.pt"))
            return found[-1] if found else None

        def save(self, epoch):
            torch.save({"net": net.state_dict(), "epoch": epoch}, f"saved/{epoch}.pt")

        def load(self):
            if self.newest() is None:
                return -1
            state = torch.load(self.newest())
            net.load_state_dict(state["net"])
            return state["epoch"]

    os.makedirs("saved", exist_ok=True)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    checkpoints = Checkpoints()
    for epoch in range(checkpoints.load() + 1, 3):
        for rows, kinds in loader:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        checkpoints.save(epoch)
    print("newest", checkpoints.newest(), checkpoints.load())
"""
_RENAMED = """
    from pathlib import Path

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    for epoch in range(3):
        for rows, kinds in loader:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        torch.save(net.state_dict(), Path("last.tmp"))
        Path("last.tmp").{move}(Path("last.pt"))
    net.load_state_dict(torch.load(Path("last.pt")))
    with torch.no_grad():
        print("loss", f"{F.cross_entropy(net(x), y):.6f}")
"""
SCRIPTS |= {
    "the newest file, which a line of output asks for beside what all ranks do": Script(_NEWEST, same=("newest",)),
    **{
        f"a path that is changed by {move} and read": Script(_RENAMED.replace("{move}", move), same=("loss",))
        for move in ("rename", "replace")
    },
}
_COUNTED = """
    from tqdm import tqdm

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    bar = tqdm(total=14{settings})
    while bar.n < 14:
        for rows, kinds in loader:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
            bar.update()
            if bar.n % 4 == 0:
                for group in sgd.param_groups:
                    group["lr"] *= 0.9
            if bar.n >= 14:
                break
    print("steps", bar.n, round(sgd.param_groups[0]["lr"], 6))
"""
SCRIPTS |= {
    "a bar whose count ends the training": Script(_COUNTED.format(settings=""), same=("steps",)),
    "a bar whose count ends the training, drawn where the script says": Script(
        "\n    import sys\n" + _COUNTED.format(settings=", file=sys.stderr, disable=False"), same=("steps",)
    ),
}
SCRIPTS["a bar that is drawn where somebody looks at it"] = Script(
    """
    import sys


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    looked_at = sys.stdout.isatty()
    for epoch in range(2):
        for i, (rows, kinds) in enumerate(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
            if looked_at or i % 5 == 0:
                print("batch", i, end="\\r" if looked_at else "\\n")
"""
)
_KEPT_LOG = """
    import os
    from dataclasses import dataclass


    @dataclass
    class Log:
        folder: str

        def __post_init__(self):
            os.makedirs(self.folder, exist_ok=True)
            self.file = open(os.path.join(self.folder, "log.txt"), "a")

        def add(self, line):
            self.file.write(line + "\\n")
"""
_KEEPS_LOG = """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    log = Log("logs")
    for epoch in range(2):
        total = 0.0
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        log.add(f"{epoch} {total}")
    log.file.close()
"""
SCRIPTS |= {
    "a log that a data class opens once its fields are set": Script(_KEPT_LOG + "\n" + _KEEPS_LOG),
    "a log that a data class of a module opens once its fields are set": Script(
        "    from log import Log\n\n" + _KEEPS_LOG, files={"log.py": textwrap.dedent(_KEPT_LOG).lstrip()}
    ),
}
SCRIPTS["a summary of the network that a package prints"] = Script(
    """
    from torchsummaryX import summary


    net = nn.Linear(8, 2)
    summary(net, torch.zeros(1, 8))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
    """,
    stand_ins={"torchsummaryX.py": "def summary(net, rows):\n    print('parameters', sum(p.numel() for p in net.parameters()))\n"},
)

_FOLDERS_TRIED = """
import time


def folders(name):
    made = [f"{name}/weights", f"{name}/logs"]
    try:
        for folder in made:
            LOOK
        return made
    except CAUGHT as error:
        ENDS


weights, logs = folders("run")
net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for data, target in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        loss = F.cross_entropy(net(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
torch.save(net.state_dict(), f"{weights}/net.pt")
print("folders", sorted(os.listdir("run")))
"""
_LOOKED = """if not os.path.exists(folder):
                time.sleep(0.2)
                os.makedirs(folder)"""


def _tried(look: str, caught: str, ends: str, **wanted: tuple[str, ...]) -> Script:
    """Folders that are made where the script thinks of an error."""
    text = _FOLDERS_TRIED.replace("LOOK", look).replace("CAUGHT", caught).replace("ENDS", ends)
    return Script(text, **wanted)


SCRIPTS |= {
    "folders that are looked for and made, where an error ends the script": _tried(
        _LOOKED, "Exception", 'print("no folder", error)\n        exit(-1)', same=("folders",)
    ),
    "folders that are looked for and made, where an error is raised anew": _tried(
        _LOOKED, "OSError", 'raise RuntimeError("no folder") from error', same=("folders",)
    ),
    "folders that must not be there": _tried(
        "os.makedirs(folder)", "FileExistsError", 'raise SystemExit("there are results already")', told=("DDP503",)
    ),
    "folders that may be there, as an error tells": _tried(
        "os.makedirs(folder, exist_ok=False)", "FileExistsError", "return made", same=()
    ),
}
_LOG_OF_A_MODULE = """
import os


class Log:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, f"log {len(os.listdir(folder))}.txt")
        with open(self.path, "w") as file:
            file.write("started")

    def write(self, line):
        with open(self.path, "a") as file:
            file.write(line)
"""
_TRAINS_IN_PHASES = """
    from log import Log


    {load}
    torch.manual_seed(0)
    loaders = {"train": DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), "val": DataLoader(TensorDataset(x, y), batch_size=8)}
    net = nn.Linear(8, 3)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    log = Log("logs")
    {use}
    for epoch in range(2):
        for phase in ["train", "val"]:
            total, guesses = 0.0, []
            for rows, kinds in loaders[phase]:
                with torch.set_grad_enabled(phase == "train"):
                    scores = net(rows)
                    loss = F.cross_entropy(scores, kinds)
                if phase == "train":
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                else:
                    guesses += scores.argmax(1).tolist()
                total += loss.item()
            {rare}
            log.write(f"{epoch} {phase} {total}")
"""
_RARE = 'rare = [f"{phase} {k}" for k in range(3) if guesses.count(k) < 3]\n' + " " * 12 + "if rare:\n" + " " * 16 + 'log.write(f"{rare}")'
_LOADS = """def load(net, path, log):
        try:
            net.load_state_dict(torch.load(path))
            log.write("loaded")
        except FileNotFoundError as error:
            log.write(f"not there: {error}")
        except Exception as error:
            log.write(f"not loaded: {error}")
"""


def _in_phases(**parts: str) -> Script:
    """Training in phases, with a log that another module writes."""
    text = _TRAINS_IN_PHASES
    for name in ("load", "use", "rare"):
        text = text.replace("{" + name + "}", parts.get(name, "pass"))
    return Script(text, files={"log.py": _LOG_OF_A_MODULE})


SCRIPTS |= {
    "a log of a list that a phase has a part in": _in_phases(rare=_RARE),
    "a log of a checkpoint that may not be there": _in_phases(load=_LOADS, use='load(net, os.environ.get("START", "start.pt"), log)'),
}

SCRIPTS["a file of a name that is asked for among others before"] = Script(
    """
    import numpy as np

    name = str(np.array(["all"])[0])


    def keep(name, net):
        shift = 0
        if name in ("first", "last"):
            shift = 1
        if name in ("all",):
            print("keep", shift)
            torch.save(net.state_dict(), "all.pt")


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        keep(name, net)
    """
)
SCRIPTS |= {
    f"numbers that {what} shows": Script(
        f"""
        {imported}

        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            total = 0.0
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
                optimizer.zero_grad()
                loss = F.cross_entropy(net(rows), kinds)
                loss.backward()
                optimizer.step()
                total += loss.item()
            {shown}
        """,
        stand_ins=stand_ins,
    )
    for what, imported, shown, stand_ins in (
        ("click", "import click", 'click.secho(message=f"loss {epoch} {total / 11:.4f}", fg="yellow")', {}),
        ("click's function", "from click import echo", 'echo(f"loss {epoch} {total / 11:.4f}")', {}),
        ("absl", "from absl import logging", 'logging.warning("loss %d %.4f", epoch, total / 11)', {"absl.py": "import logging\n"}),
    )
}
_TRACKER = """\
class Run:
    name = "first"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        open("ended.txt", "a").write("ended\\n")


def start_run(run_name=None):
    open("started.txt", "a").write(f"{run_name}\\n")
    return Run()


def log_metric(name, value, step=None):
    open("metrics.txt", "a").write(f"{name} {step}\\n")
"""
_ENTERED = """
    import contextlib

    import mlflow

    parser = argparse.ArgumentParser()
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    {made}
    with {entered}:
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            if not args.quiet:
                mlflow.log_metric("loss", loss.item(), step=epoch)
"""
_EITHER = 'mlflow.start_run(run_name="a") if not args.quiet else contextlib.nullcontext()'
SCRIPTS |= {
    f"a run of a tracker that a with-statement enters, or nothing: {made or entered}": Script(
        _ENTERED.format(made=made, entered=entered), stand_ins={"mlflow.py": _TRACKER}
    )
    for made, entered in (
        ("", f"({_EITHER}) as active"),
        ("", 'contextlib.nullcontext() if args.quiet else mlflow.start_run(run_name="a")'),
        (f"run = {_EITHER}", "run as active"),
        ('run = mlflow.start_run(run_name="a")', "run"),
    )
}
SCRIPTS["a run of a tracker that a with-statement enters, of which the script asks whether it is there"] = Script(
    _ENTERED.format(made=f"run = {_EITHER}\n    if run is not None:\n        print('a run')", entered="run"),
    stand_ins={"mlflow.py": _TRACKER},
    told=("DDP505",),
)
