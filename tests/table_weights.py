"""Scripts that write into weights and their gradients themselves, by what differs between ranks: draws, and numbers of a batch."""

from textwrap import indent

from scripts import Script, on_three

_TRAINS = """\
loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
model = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{start}for epoch in range(2):
    for rows, labels in loader:
        out = model(rows)
        loss = F.cross_entropy(out, labels)
        optimizer.zero_grad()
        loss.backward()
{before}        optimizer.step()
{after}    print("epoch", f"{{sum(p.abs().sum().item() for p in model.parameters()):.5f}}")
"""


def _script(before: str = "", after: str = "", start: str = "", told: tuple[str, ...] = ()) -> Script:
    lines = {"before": indent(before, 8 * " "), "after": indent(after, 8 * " "), "start": start}
    return Script(_TRAINS.format(**lines), same=() if told else ("epoch",), told=told)


_WEIGHTS = {  # ways to write a number into weights
    "by a method": "for p in model.parameters():\n    p.data.add_({n})\n",
    "by an operator": "for p in model.parameters():\n    p.data += {n}\n",
    "by their names": "with torch.no_grad():\n    for p in model.parameters():\n        p += {n}\n",
    "as new data": "for p in model.parameters():\n    p.data = p.data + {n}\n",
    "in a row": "model[0].weight.data[0] += {n}\n",
    "in a slice": "with torch.no_grad():\n    for p in model.parameters():\n        p[:] = p + {n}\n",
    "of a layer": "model[0].weight.data = model[0].weight.data * (1 + {n})\n",
    "of a state dict": "for name, tensor in model.state_dict().items():\n    tensor.add_({n})\n",
    "of a state dict that is loaded": "state = model.state_dict()\nfor name in state:\n    state[name] = state[name] + {n}\n"
    "model.load_state_dict(state)\n",
    "as one vector": "flat = nn.utils.parameters_to_vector(model.parameters())\n"
    "nn.utils.vector_to_parameters(flat + {n}, model.parameters())\n",
    "into an output": "with torch.no_grad():\n    for p in model.parameters():\n        torch.add(p, {n}, out=p)\n",
    "of an optimizer's groups": "for group in optimizer.param_groups:\n    for p in group['params']:\n        p.data.mul_(1 + {n})\n",
}
_GRADIENTS = {  # and into their gradients
    "by a method": "for p in model.parameters():\n    p.grad.add_({n})\n",
    "by an operator": "for p in model.parameters():\n    p.grad += {n}\n",
    "anew": "for p in model.parameters():\n    p.grad = p.grad * (1 + {n})\n",
    "in a row": "model[0].weight.grad[0] = {n}\n",
    "by another name": "for p in model.parameters():\n    slope = p.grad\n    slope += {n}\n",
    "in a list": "slopes = [p.grad for p in model.parameters()]\nfor slope in slopes:\n    slope.mul_(1 + {n})\n",
}
_NUMBERS = {"a draw": "0.01 * torch.randn(1)", "a batch's loss": "0.1 * loss.detach()", "a batch's spread": "0.1 * out.detach().std()"}
_PENALTY = """\
other = out.pow(2).mean()
last = model[2].weight
a = torch.autograd.grad(loss, last, retain_graph=True)[0]
b = torch.autograd.grad(other, last, retain_graph=True)[0]
"""
SCRIPTS: dict[str, Script] = {
    **{
        f"{title} that is written into weights {way}": _script(after=lines.replace("{n}", number))
        for title, number in _NUMBERS.items()
        for way, lines in _WEIGHTS.items()
    },
    **{
        f"{title} that is written into gradients {way}": _script(before=lines.replace("{n}", number))
        for title, number in _NUMBERS.items()
        for way, lines in _GRADIENTS.items()
    },
    **on_three(
        {
            "noise as large as each weight": _script(
                after="for p in model.parameters():\n    p.data.add_(torch.randn_like(p), alpha=0.01)\n"
            ),
            "gradients masked by chance": _script(
                before="for p in model.parameters():\n    p.grad.mul_((torch.rand_like(p) < 0.7).float())\n"
            ),
            "weights that are drawn again": _script(after="model[2].bias.data.normal_(0, 0.1)\n"),
            "a rate of its own for each batch, by its loss": _script(
                before="for p in model.parameters():\n    p.grad *= min(1.0, loss.item())\n"
            ),
            "a hook on a parameter that notes its norm": _script(
                start="norms = []\nmodel[0].weight.register_hook(lambda g: norms.append(g.norm().item()))\n",
                after="print('epoch', f'{norms[-1]:.5f}')\n",
            ),
            "hooks on parameters in a list": _script(
                start="handles = [p.register_hook(lambda g: g / (1 + 9 * g.norm())) for p in model.parameters()]\n"
            ),
            "a hook on a parameter that changes its gradient in place": _script(
                start="def limited(gradient):\n    gradient.clamp_(-0.02, 0.02)\n\n\nmodel[0].weight.register_hook(limited)\n"
            ),
        },
        rows=42,
    ),
    "weights that are frozen by a batch's loss": _script(
        after="for p in model[0].parameters():\n    p.requires_grad = bool(loss.item() > 0.69)\n"
    ),
    "a hook on a parameter that draws": _script(
        start="model[0].weight.register_hook(lambda g: g + 0.01 * torch.randn_like(g))\n", told=("DDP201",)
    ),
    "a hook on what is accumulated": _script(
        start="for p in model.parameters():\n    p.register_post_accumulate_grad_hook(lambda p: p.grad.clamp_(-0.01, 0.01))\n",
        told=("DDP201",),
    ),
    "a term weighted by how it moves the last layer": Script(
        _TRAINS.format(before="", after="", start="").replace(
            "        optimizer.zero_grad()\n",
            indent(
                _PENALTY + "loss = loss + (a.norm() / (b.norm() + 1e-4)).clamp(0, 1e4).detach() * other\noptimizer.zero_grad()\n", 8 * " "
            ),
        ),
        same=("epoch",),
        ranks=(2, 3),
    ),
    "steps along gradients that are asked for": Script(
        _TRAINS.format(before="", after="", start="").replace(
            "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n",
            indent(
                "slopes = torch.autograd.grad(loss, tuple(model.parameters()), retain_graph=True)\n"
                "optimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"
                "with torch.no_grad():\n    for p, slope in zip(model.parameters(), slopes):\n        p -= 0.01 * slope.sign()\n",
                8 * " ",
            ),
        ),
        same=("epoch",),
    ),
    "a loss with the size of its gradients": Script(
        _TRAINS.format(before="", after="", start="").replace(
            "        optimizer.zero_grad()\n",
            indent(
                "slopes = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)\n"
                "loss = loss + 0.1 * sum(slope.pow(2).sum() for slope in slopes)\noptimizer.zero_grad()\n",
                8 * " ",
            ),
        ),
        told=("DDP201", "DDP402"),
    ),
}

_CENTRES = """
    net = nn.Linear(8, 8)
    {made}
    sgd = torch.optim.SGD([{"params": net.parameters()}, {"params": [centres], "lr": 0.5}], lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    for epoch in range(3):
        for rows, kinds in loader:
            loss = torch.cdist(net(rows), centres).min(1)[0].mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"rows of the data that are trained beside a network, {how}": Script(_CENTRES.replace("{made}", made))
    for how, made in {
        "by a flag that is given": "centres = x[:3].clone().requires_grad_(True)",
        "by a flag that is named": "centres = x.mean(0, keepdim=True).requires_grad_(requires_grad=True)",
        "in place": "centres = x[:3].clone()\n    centres.requires_grad_(True)",
    }.items()
}
