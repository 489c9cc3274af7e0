def average_gradients(optimizer):
    """Average an optimizer's gradients over the ranks: what DistributedDataParallel does for the module that it wraps."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    found = torch.tensor([p.grad is not None for p in parameters], dtype=torch.uint8, device=device)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    for p, on_any_rank in zip(parameters, found.tolist()):
        if on_any_rank:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= world_size
