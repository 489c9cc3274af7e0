def on_any_rank(condition):
    """Whether a condition holds on any rank, so that all take the same branch."""
    flag = torch.tensor(float(bool(condition)), device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return flag.item() > 0
