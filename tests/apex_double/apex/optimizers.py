"""apex's fused optimizers by their signatures."""

import torch


class FusedAdam(torch.optim.Optimizer):
    def __init__(
        self,
        params,
        lr=1e-3,
        bias_correction=True,
        betas=(0.9, 0.999),
        eps=1e-8,
        adam_w_mode=True,
        weight_decay=0.0,
        amsgrad=False,
        set_grad_none=True,
        capturable=False,
        master_weights=False,
    ):
        if amsgrad:
            raise RuntimeError("FusedAdam does not support the AMSGrad variant.")
        defaults = {"lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)
        self.decoupled = adam_w_mode

    def zero_grad(self):
        for group in self.param_groups:
            for param in group["params"]:
                param.grad = None

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            (one, two), lr, decay = group["betas"], group["lr"], group["weight_decay"]
            fixed = [1 - b ** group["step"] if group["bias_correction"] else 1.0 for b in (one, two)]
            for param in group["params"]:
                if param.grad is None:
                    continue
                state = self.state[param]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(param), torch.zeros_like(param)
                grad = param.grad if self.decoupled else param.grad + decay * param
                state["exp_avg"].mul_(one).add_(grad, alpha=1 - one)
                state["exp_avg_sq"].mul_(two).addcmul_(grad, grad, value=1 - two)
                update = (state["exp_avg"] / fixed[0]) / ((state["exp_avg_sq"] / fixed[1]).sqrt() + group["eps"])
                param.add_(update + decay * param if self.decoupled else update, alpha=-lr)


class FusedSGD(torch.optim.SGD):
    def __init__(
        self,
        params,
        lr,
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        wd_after_momentum=False,
        materialize_master_grads=True,
        set_grad_none=False,
    ):
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov)

    def zero_grad(self):
        super().zero_grad()
