"""Scripts that move samples against a model, step by step: what ends the steps, and what is done with the model that is attacked."""

from scripts import Script, on_three

_HEAD = """
parser = argparse.ArgumentParser()
parser.add_argument("--epsilon", default=8, type=int)
parser.add_argument("--stop", action="store_true")
args = parser.parse_args()
std = torch.tensor((0.5, 0.25)).view(2, 1, 1)
low, high = (x.min() - 1) / std, (x.max() + 1) / std
epsilon = (args.epsilon / 255.0) / std
step = (4 / 255.0) / std


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 12)
        self.norm = NORM(12)
        self.last = nn.Linear(12, 2)

    def forward(self, images):
        return self.last(torch.tanh(self.norm(self.first(images.flatten(1)))))


def bounded(images, least, most):
    return torch.max(torch.min(images, most), least)


def attack(model, images, kinds, rounds=3, restarts=2):
    worst_loss = torch.zeros(kinds.shape[0])
    worst = torch.zeros_like(images)
    for _ in range(restarts):
        delta = torch.zeros_like(images)
        delta.requires_grad = True
        for _ in range(rounds):
            scores = model(images + delta)
            index = torch.where(scores.max(1)[1] == kinds)
            if ENOUGH:
                break
            loss = F.cross_entropy(scores, kinds)
            loss.backward()
            slope = delta.grad.detach()
            moved = bounded(delta[index[0], :, :, :] + step * torch.sign(slope[index[0], :, :, :]), -epsilon, epsilon)
            moved = bounded(moved, low - images[index[0], :, :, :], high - images[index[0], :, :, :])
            delta.data[index[0], :, :, :] = moved
            delta.grad.zero_()
        each = F.cross_entropy(model(images + delta), kinds, reduction="none").detach()
        worst[each >= worst_loss] = delta.detach()[each >= worst_loss]
        worst_loss = torch.max(worst_loss, each)
    return worst


def evaluate(loader, model):
    total, right, seen = 0, 0, 0
    model.eval()
    for images, kinds in loader:
        delta = attack(model, images, kinds)
        with torch.no_grad():
            scores = model(images + delta)
            total += F.cross_entropy(scores, kinds).item() * kinds.size(0)
            right += (scores.max(1)[1] == kinds).sum().item()
            seen += kinds.size(0)
    return total / seen, right / seen


net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
loader = DataLoader(TensorDataset(x.view(-1, 2, 2, 2), y), batch_size=6, shuffle=True)
test_loader = DataLoader(TensorDataset(x.view(-1, 2, 2, 2), y), batch_size=6)
"""
_TRAINED = (
    _HEAD
    + """
before = 0.0
for epoch in range(3):
    for i, (images, kinds) in enumerate(loader):
        if i == 0:
            first_batch = (images, kinds)
        loss = F.cross_entropy(net(images), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    images, kinds = first_batch
    delta = attack(net, images, kinds)
    with torch.no_grad():
        scores = net(images + delta)
    robust = (scores.max(1)[1] == kinds).sum().item() / kinds.size(0)
    if robust - before < -0.2:
        print("not robust in epoch", epoch)
        break
    before = robust
tested = Net()
tested.load_state_dict(net.state_dict())
print("tested", "%.6f %.6f" % evaluate(test_loader, tested))
"""
)
_ATTACKED = (
    _HEAD
    + """
for epoch in range(3):
    for images, kinds in loader:
        images = images + attack(net, images, kinds)
        loss = F.cross_entropy(net(images), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
)


def _script(text: str, enough: str, norm: str = "nn.LayerNorm", **more: object) -> Script:
    return Script(text.replace("ENOUGH", enough).replace("NORM", norm), **more)  # type: ignore[arg-type]


SCRIPTS: dict[str, Script] = {
    "attacks on the first batch for an early stop, and on a copy in a test": _script(
        _TRAINED, "len(index[0]) == 0", same=("not robust", "tested")
    ),
    "attacks in the training, until the loss is large": _script(_ATTACKED, "F.cross_entropy(scores, kinds).item() > 0.8"),
    "attacks in the training, until few samples are left": _script(_ATTACKED, "(scores.max(1)[1] == kinds).sum() < 4"),
    "attacks in the training and in a test, until the loss is large": _script(
        _TRAINED, "F.cross_entropy(scores, kinds).item() > 0.8", same=("not robust", "tested")
    ),
}
SCRIPTS = on_three(SCRIPTS, rows=42)
SCRIPTS["attacks in the training and in a test, until few samples are left"] = _script(
    _TRAINED, "(scores.max(1)[1] == kinds).sum() < 4", told=("DDP403",)
)
