"""Scripts that end their training by exceptions, exits and flags: all ranks end it in the same step, and no error is made of it."""

from scripts import Script

MADE = """
    import sys

    torch.manual_seed(2)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(x * 0.9, y), batch_size=8)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def step(rows, kinds):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(rows), kinds)
        loss.backward()
        optimizer.step()
        return loss

    def evaluate():
        model.eval()
        with torch.no_grad():
            total = sum(F.cross_entropy(model(rows), kinds).item() * len(rows) for rows, kinds in test_loader)
        model.train()
        return total / len(test_loader.dataset)
"""
BY_STEP = """
    try:
        for epoch in range(6):
            for i, (rows, kinds) in enumerate(loader):
                loss = step(rows, kinds)
                {look}
    except {caught}:
        print("reached", epoch, i)
    torch.save(model.state_dict(), "model.pt")
"""
BY_EPOCH = """
    {start}
    for epoch in range(12):
        for rows, kinds in loader:
            step(rows, kinds)
        {look}
    print("end", epoch)
"""
LEAVES = """
    class Reached(Exception):
        pass

    def look(value):
        if value < {limit}:
            print("enough")
            raise Reached
"""


def by_step(look: str, caught: str, above: str = "") -> Script:
    return Script(MADE + above + BY_STEP.format(look=look, caught=caught), same=("reached",))


SCRIPTS: dict[str, Script] = {
    "an iteration that is stopped by the loss of a batch": by_step(
        "if loss.item() < 0.12:\n                    raise StopIteration", "StopIteration"
    ),
    "an exception of the script's own that the loss of a batch raises": by_step("look(loss.item())", "Reached", LEAVES.format(limit=0.12)),
    "a process that ends by the loss of a batch": Script(
        MADE
        + """
    for epoch in range(6):
        for rows, kinds in loader:
            if step(rows, kinds).item() < 0.12:
                raise SystemExit
    """
    ),
    "an exception that a callback raises by the evaluation, and its class's base catches": Script(
        MADE
        + """
    class Stop(Exception):
        pass

    class Patient(Stop):
        pass

    class Patience:
        def __init__(self):
            self.best, self.bad = float("inf"), 0

        def after(self, epoch, value):
            self.bad = 0 if value < self.best - 0.03 else self.bad + 1
            self.best = min(value, self.best)
            if self.bad > 1:
                raise Patient(f"stopped after {epoch}")

    callbacks = [Patience()]
    try:
        for epoch in range(15):
            for rows, kinds in loader:
                step(rows, kinds)
            value = evaluate()
            for callback in callbacks:
                callback.after(epoch, value)
    except (Stop, KeyboardInterrupt) as stop:
        print("result", stop)
    """,
        same=("result",),
    ),
    "a function that prints, and raises what ends the training": Script(
        MADE
        + LEAVES.format(limit=0.15)
        + """
    try:
        for epoch in range(12):
            for rows, kinds in loader:
                step(rows, kinds)
            look(evaluate())
    except Reached:
        print("reached", epoch)
    """,
        same=("enough", "reached"),
    ),
    "a function that prints, and ends the process": Script(
        MADE
        + """
    def look(value):
        print(f"value {value:.6f}")
        if value < 0.15:
            sys.exit()
    """
        + BY_EPOCH.format(start="", look="look(evaluate())"),
        same=("value",),
    ),
    "an exception that ends an attempt, after which the next one begins with a lower rate": Script(
        MADE
        + """
    class Diverged(Exception):
        pass

    for attempt in range(3):
        try:
            for epoch in range(2):
                for rows, kinds in loader:
                    loss = step(rows, kinds) * (float("nan") if attempt == epoch else 1)
                    if not torch.isfinite(loss):
                        raise Diverged
            break
        except Diverged:
            print("again", attempt)
            optimizer.param_groups[0]["lr"] /= 10
    """,
        same=("again",),
    ),
    "a flag by which the loop around ends": Script(
        MADE
        + """
    stop = False
    for epoch in range(6):
        for i, (rows, kinds) in enumerate(loader):
            if step(rows, kinds).item() < 0.12:
                stop = True
                break
        if stop:
            print("reached", epoch, i)
            break
    """,
        same=("reached",),
    ),
    "a flag that a loop around waits for": Script(
        MADE
        + """
    done, steps = False, 0
    while not done:
        for rows, kinds in loader:
            loss = step(rows, kinds)
            steps += 1
            if loss.item() < 0.12 or steps > 60:
                done = True
                break
    print("steps", steps)
    """,
        same=("steps",),
    ),
}
