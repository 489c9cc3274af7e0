def sum_over_ranks(value):
    """The total over all ranks of a number or tensor that each computed from its own share of the data."""
    if torch.is_tensor(value):
        total = value.detach().to(device, copy=True)
    else:
        total = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None, device=device)
    dist.all_reduce(total)
    return total if torch.is_tensor(value) else total.item()
