"""The contract of apex.parallel: gradients are averaged at the end of each backward, as apex does it and no other way."""

import torch
import torch.distributed as dist


class DistributedDataParallel(torch.nn.Module):
    def __init__(
        self,
        module,
        message_size=10000000,
        delay_allreduce=False,
        shared_param=None,
        allreduce_trigger_params=None,
        retain_allreduce_buffers=False,
        allreduce_always_fp32=False,
        num_allreduce_streams=1,
        allreduce_communicators=None,
        gradient_average=True,
        gradient_predivide_factor=1.0,
        gradient_average_split_factor=None,
        prof=False,
    ):
        super().__init__()
        self.module = module
        self.delay_allreduce = delay_allreduce
        self.world_size = dist.get_world_size()  # raises where nobody has joined a group
        self.active, self.expected, self.callback_queued, self.disabled = [], None, False, False
        for param in module.parameters():
            if param.requires_grad:
                param.register_post_accumulate_grad_hook(self._hook)
        with torch.no_grad():
            for param in module.parameters():  # and no buffers
                dist.broadcast(param, 0)

    def disable_allreduce(self):
        self.disabled = True

    def enable_allreduce(self):
        self.disabled = False

    def _hook(self, param):
        if self.disabled:
            return
        if id(param) in self.arrived and not self.delay_allreduce and self.expected is not None:
            raise RuntimeError("The backward pass is attempting to replace an already-filled bucket slot.")
        self.arrived[id(param)] = param
        if not self.callback_queued:
            torch.autograd.Variable._execution_engine.queue_callback(self._reduce)
            self.callback_queued = True

    def _reduce(self):
        if self.delay_allreduce or self.expected is None:
            grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        else:
            if self.arrived.keys() != self.expected:
                raise RuntimeError("Some param buckets were not allreduced.")
            grads = [p.grad for p in self.module.parameters() if id(p) in self.arrived]
        if not self.delay_allreduce and self.expected is None:
            self.expected = set(self.arrived)
        flat = torch.cat([g.reshape(-1) for g in grads])
        sizes = torch.tensor([flat.numel(), -flat.numel()])
        dist.all_reduce(sizes, dist.ReduceOp.MAX)
        if sizes[0] != -sizes[1]:
            raise RuntimeError("ranks have gradients of different parameters")
        dist.all_reduce(flat)
        flat /= self.world_size
        for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
            grad.copy_(part.view_as(grad))

    def forward(self, *inputs, **kwargs):
        result = self.module(*inputs, **kwargs)
        if not self.disabled:
            active = [p for p in self.module.parameters() if p.requires_grad]
            if len(active) != len(self.active) or any(a is not b for a, b in zip(active, self.active, strict=True)):
                self.expected, self.active = None, active
            self.arrived = {}
            self.callback_queued = False
        return result


class Reducer:
    def __init__(self, module_or_grads_list):
        self.held = module_or_grads_list
        if isinstance(self.held, torch.nn.Module):
            for param in self.held.parameters():
                dist.broadcast(param.data, 0)

    def reduce(self):
        held = self.held
        tensors = [p.grad for p in held.parameters() if p.grad is not None] if isinstance(held, torch.nn.Module) else list(held)
        for tensor in tensors:
            dist.all_reduce(tensor)
            tensor /= dist.get_world_size()


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, channel_last=False):
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def _check_input_dim(self, input):
        pass


def convert_syncbn_model(module, process_group=None, channel_last=False):
    """Batch norm layers are replaced, and so are their parameters: optimizers come after."""
    made = module
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and not isinstance(module, SyncBatchNorm):
        made = SyncBatchNorm(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
        made.load_state_dict(module.state_dict())
        made.to(next((t.device for t in module.state_dict().values()), "cpu"))
    for name, child in module.named_children():
        made.add_module(name, convert_syncbn_model(child))
    return made
