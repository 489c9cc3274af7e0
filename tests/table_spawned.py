"""Scripts whose conversion starts its processes itself, with mp.spawn: each of them imports the script anew, and is told its rank."""

from scripts import Script

from ddpify import Options

SPAWN = Options(launcher="spawn")

_TRAINED = """
        torch.manual_seed(0)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            if %s:
                print(f"loss {total / len(loader):.6f}")
                torch.save(model.state_dict(), f"model_{epoch}.pt")
"""
_EPOCH = "            if local_rank != -1:\n                sampler.set_epoch(epoch)\n"
_LOADER = "        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)"

SCRIPTS: dict[str, Script] = {
    "a script of functions": Script(
        """
        def train(model, loader, optimizer):
            total = 0.0
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            return total / len(loader)


        def main():
            torch.manual_seed(0)
            loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                print(f"loss {train(model, loader, optimizer):.6f}")
            torch.save(model.state_dict(), "model.pt")


        if __name__ == "__main__":
            main()
        """,
        same=("loss",),
        options=SPAWN,
    ),
    "the rank of the environment": Script(
        f"""
        rank = int(os.environ.get("RANK", 0))
{_LOADER}{_TRAINED % "rank == 0"}""",
        same=("loss",),
        options=SPAWN,
    ),
    "a sampler for where the environment has a rank": Script(
        f"""
        from torch.utils.data import DistributedSampler, RandomSampler

        local_rank = int(os.environ.get("LOCAL_RANK", -1))
        samples = TensorDataset(x[:40], y[:40])
        sampler = RandomSampler(samples) if local_rank == -1 else DistributedSampler(samples)
        loader = DataLoader(samples, batch_size=8, sampler=sampler)
{_TRAINED.replace("            total", _EPOCH + "            total", 1) % "local_rank in (-1, 0)"}""",
        same=("loss",),
        options=SPAWN,
    ),
    "the rank of the environment, asked in a module": Script(
        f"""
        from helpers import is_first

{_LOADER}{_TRAINED % "is_first()"}""",
        files={"helpers.py": 'import os\n\n\ndef is_first():\n    return int(os.environ.get("LOCAL_RANK", 0)) == 0\n'},
        same=("loss",),
        options=SPAWN,
    ),
    "the rank of the environment, read as a module is imported": Script(
        f"""
        from helpers import RANK

{_LOADER}{_TRAINED % "RANK == 0"}""",
        files={"helpers.py": 'import os\n\nRANK = int(os.environ.get("RANK", 0))\n'},
        told=("DDP106",),
        options=SPAWN,
    ),
    "models by the names that a decorator gives them": Script(
        """
        weights = torch.linspace(0.5, 1.5, 2)
        KINDS = {}


        def known_as(name):
            def keep(cls):
                KINDS[name] = cls
                return cls

            return keep


        @known_as("linear")
        class Linear(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 2)

            def forward(self, rows):
                return self.layer(rows)


        torch.manual_seed(0)
        model = KINDS["linear"]()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows) * weights, kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        options=SPAWN,
    ),
}
