def same_on_all_ranks(value):
    """Rank 0's value on every rank: a name made from the time, by chance or from what is on the disk."""
    if isinstance(value, torch.Tensor):
        shared = value.detach().contiguous()
        dist.broadcast(shared, 0)
        value.data.copy_(shared)
        return value
    values = [value]
    dist.broadcast_object_list(values, 0)
    return values[0]
