"""Random lines that read and change gradients, weights and learning rates between a backward pass and the next batch."""

from __future__ import annotations

import random

from .choices import script
from .compose import Generated

_START = "norms, ema, momenta, grown, shown = [], copy.deepcopy(net.state_dict()), {}, 0.0, 0.0\n"
_NORM = """\
torch.nn.utils.clip_grad_norm_(net.parameters(), 1e9)|sum(p.grad.norm() ** 2 for p in net.parameters()) ** 0.5
torch.stack([p.grad.norm() for p in net.parameters()]).norm()|max(p.grad.abs().max() for p in net.parameters())
net.near.weight.grad.norm()|net.head.bias.grad.abs().mean()|torch.cat([p.grad.flatten() for p in net.parameters()]).std()
math.sqrt(sum(p.grad.pow(2).sum().item() for p in net.parameters()))|net.near.weight.norm()|net.head.weight.grad[0].sum()
sum((p.grad * p).sum() for p in net.parameters())|F.cosine_similarity(net.near.weight.grad.flatten(), net.near.weight.flatten(), dim=0)"""
_LOSS = """\
loss = F.cross_entropy(out, kinds)|loss = F.cross_entropy(out, kinds, reduction='none').mean()
loss = F.cross_entropy(out, kinds) + 0.01 * sum(p.pow(2).sum() for p in net.parameters())
loss = F.cross_entropy(out, kinds) + 1e-3 * sum(p.abs().sum() for n, p in net.named_parameters() if 'weight' in n)
loss = (F.cross_entropy(out, kinds, reduction='none') * weights).mean()|loss = F.cross_entropy(out, kinds, reduction='sum') / 8
loss = F.cross_entropy(out, kinds) + 0.1 * (net.near.weight @ net.near.weight.t() - torch.eye(5)).pow(2).mean()
rows.requires_grad_(True)\\nout, feats = net(rows)\\nloss = F.cross_entropy(out, kinds)\\n\
slope, = torch.autograd.grad(loss, rows, create_graph=True)\\nloss = loss + 0.1 * slope.pow(2).sum()
rows.requires_grad_(True)\\nout, feats = net(rows)\\nslope, = torch.autograd.grad(out.sum(), rows, create_graph=True)\\n\
loss = F.cross_entropy(out, kinds) + 0.1 * slope.flatten(1).norm(dim=1).mean()
rows.requires_grad_(True)\\nslope, = torch.autograd.grad(F.cross_entropy(net(rows)[0], kinds), rows)\\n\
loss = F.cross_entropy(net((rows + 0.1 * slope.sign()).detach())[0], kinds)
rows.requires_grad_(True)\\nslope, = torch.autograd.grad(F.cross_entropy(net(rows)[0], kinds), rows)\\n\
loss = F.cross_entropy(net((rows + slope / slope.norm()).detach())[0], kinds)
rows.requires_grad_(True)\\nF.cross_entropy(net(rows)[0], kinds).backward()\\n\
rows = (rows + 0.1 * rows.grad / rows.grad.abs().max()).detach()\\noptimizer.zero_grad()\\nloss = F.cross_entropy(net(rows)[0], kinds)
feats.retain_grad()\\nloss = F.cross_entropy(out, kinds)"""
_BACKWARD = """\
optimizer.zero_grad()\\nloss.backward()|net.zero_grad()\\nloss.backward()
for p in net.parameters():\\n    p.grad = None\\nloss.backward()
(loss / 2).backward()\\nif i % 2 == 1:\\n    {0}\\n    optimizer.step()\\n    optimizer.zero_grad()
loss.backward()\\nif (i + 1) % 3 == 0 or i + 1 == len(train_loader):\\n    {0}\\n    optimizer.step()\\n\
    optimizer.zero_grad(set_to_none=True)
optimizer.zero_grad()\\nloss.backward(retain_graph=True)\\nout.pow(2).mean().backward()
optimizer.zero_grad()\\n(0.5 * loss).backward(retain_graph=True)\\n(0.5 * loss).backward()
slopes = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)\\noptimizer.zero_grad()\\nloss.backward()\\n\
for p, g in zip(net.parameters(), slopes):\\n    p.grad += 0.1 * g.sign()"""
_CHANGE = """\
pass|torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)|torch.nn.utils.clip_grad_value_(net.parameters(), 0.02)
for p in net.parameters():\\n    p.grad /= p.grad.norm() + 1e-6|for p in net.parameters():\\n    p.grad.data.clamp_(-0.05, 0.05)
for p in net.parameters():\\n    p.grad = p.grad.sign()|for p in net.parameters():\\n    p.grad.mul_(0.5).add_(p.data, alpha=0.01)
for p in net.parameters():\\n    p.grad += 0.01 * torch.randn_like(p.grad)|for p in net.parameters():\\n    p.grad -= p.grad.mean()
for p in net.parameters():\\n    p.grad[p.grad.abs() < 0.01] = 0
for p in net.parameters():\\n    p.grad.mul_((torch.rand_like(p) < 0.7).float())
for n, p in net.named_parameters():\\n    momenta[n] = 0.9 * momenta.get(n, 0.0) + p.grad\\n    p.grad = momenta[n].clone()
for n, p in net.named_parameters():\\n    p.grad = p.grad / (ema[n].abs() + 1)|net.near.weight.grad.zero_()
if {n} > {level}:\\n    torch.nn.utils.clip_grad_norm_(net.parameters(), {level})|if {n} > {level}:\\n    optimizer.zero_grad()
if {n} > {level}:\\n    continue|if not torch.isfinite(loss):\\n    continue
scale = min(1.0, {level} / ({n} + 1e-6))\\nfor p in net.parameters():\\n    p.grad *= scale
scale = {n}\\nfor p in net.parameters():\\n    p.grad /= scale + 1|before = copy.deepcopy(net.state_dict())
for p in net.parameters():\\n    p.grad = p.grad * loss.detach()|for p in net.parameters():\\n    p.grad *= len(rows)
for group in optimizer.param_groups:\\n    group['lr'] = 0.01 / (1 + {n})|optimizer.param_groups[0]['lr'] = 0.01 * min(1.0, loss.item())
flat = torch.nn.utils.parameters_to_vector([p.grad for p in net.parameters()])\\nfor p in net.parameters():\\n\
    p.grad = p.grad / flat.norm()"""
_STEP = """\
optimizer.step()|optimizer.step()|for p in net.parameters():\\n    p.data -= 0.01 * p.grad\\noptimizer.step()
with torch.no_grad():\\n    for p in net.parameters():\\n        p -= 0.01 * p.grad\\noptimizer.step()
with torch.no_grad():\\n    for p in net.parameters():\\n        p.add_(p.grad, alpha=-0.01)\\noptimizer.step()
for p in net.parameters():\\n    p.data.add_(p.grad.data, alpha=-0.01)\\noptimizer.step()
with torch.no_grad():\\n    for p in net.parameters():\\n        p.copy_(p - 0.01 * p.grad)\\noptimizer.step()
optimizer.step()\\nfor p in net.parameters():\\n    p.data.mul_(0.999)|optimizer.step()\\nnet.near.weight.data.clamp_(-0.3, 0.3)
optimizer.step()\\nwith torch.no_grad():\\n    net.near.weight.div_(net.near.weight.norm(dim=1, keepdim=True))
optimizer.step()\\nfor n, v in net.state_dict().items():\\n    ema[n].mul_(0.9).add_(v, alpha=0.1)
optimizer.step()\\nfor n, v in net.state_dict().items():\\n    ema[n] = 0.9 * ema[n] + 0.1 * v
optimizer.step()\\nfor p in net.parameters():\\n    p.data.add_(torch.randn_like(p), alpha=0.001)
if {n} < {level}:\\n    optimizer.step()|optimizer.step()\\nif i == 2:\\n    net.load_state_dict(ema)
optimizer.step()\\nif i % 2:\\n    for k, p in net.named_parameters():\\n        p.data.copy_(0.5 * (p.data + ema[k]))"""
_USES = """\
norms.append(float({n}))|norms.append({n}.detach() if torch.is_tensor({n}) else {n})|grown = grown + float({n})
shown = max(shown, float({n}))|grown = 0.9 * grown + 0.1 * float({n})|pass|norms.append(loss.item())|norms.append((float({n}), i))"""
_GRAD_OF_OUTPUTS = (
    "norms.append(feats.grad.norm().item())|norms.append(float(feats.grad.abs().mean()))|shown = max(shown, feats.grad.abs().max().item())"
)
_SHOWN = """\
print(epoch, grown, shown)|print(epoch, len(norms))
print(epoch, f'{sum(float(n[0] if isinstance(n, tuple) else n) for n in norms) / max(len(norms), 1):.5f}')
print(epoch, sum(v.abs().sum().item() for v in ema.values()))|print(epoch, optimizer.param_groups[0]['lr'])
print(epoch, net.near.weight.norm().item())"""


_HOOKS = """\
|||net.near.weight.register_hook(lambda g: g * 0.5)|net.head.weight.register_hook(lambda g: g.clamp(-0.02, 0.02))
for p in net.parameters():\\n    p.register_hook(lambda g: g / (g.norm() + 1))
net.near.register_full_backward_hook(lambda m, gi, go: norms.append(go[0].norm().item()))"""
_TRAINS = "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"


def gradients(seed: int) -> Generated:
    """The script of a seed."""
    rng = random.Random(seed)
    number, level = _one(rng, _NORM), rng.choice(("0.05", "0.2", "0.5"))
    loss, backward, shown, hook = (_one(rng, table) for table in (_LOSS, _BACKWARD, _SHOWN, _HOOKS))
    change, step = ("\n".join(_one(rng, table) for _ in range(times)) for table, times in ((_CHANGE, rng.randint(1, 2)), (_STEP, 1)))
    use = _one(rng, _GRAD_OF_OUTPUTS if "retain_grad" in loss else _USES)
    if "{0}" in backward:  # it steps by itself
        backward, change, step = backward.replace("{0}", "pass" if "continue" in change else change.replace("\n", "\n    ")), "", ""
    lines = [line.replace("{n}", number).replace("{level}", level) for line in (loss, backward, change, use, step) if line]
    text = script(lines, [], [shown], [], kept=f"import math\nimport warnings\n\nwarnings.simplefilter('ignore')\n{_START}{hook}\n")
    return Generated(seed, text.replace(_TRAINS, ""), tuple(f"line: {line}" for line in (*lines, shown, hook)))


def _one(rng: random.Random, table: str) -> str:
    return rng.choice([text for line in table.splitlines() for text in line.split("|")]).replace("\\n", "\n")
