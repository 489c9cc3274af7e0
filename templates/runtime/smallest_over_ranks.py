def smallest_over_ranks(value):
    """The smallest of all ranks' numbers, each of which is of a rank's own share of the data."""
    parts = [None] * world_size
    dist.all_gather_object(parts, value.item() if torch.is_tensor(value) else value)
    smallest = min(parts)
    return torch.as_tensor(smallest, dtype=value.dtype, device=value.device) if torch.is_tensor(value) else smallest
