def largest_over_ranks(value):
    """The largest of all ranks' numbers, each of which is of a rank's own share of the data."""
    parts = [None] * world_size
    dist.all_gather_object(parts, value.item() if torch.is_tensor(value) else value)
    largest = max(parts)
    return torch.as_tensor(largest, dtype=value.dtype, device=value.device) if torch.is_tensor(value) else largest
