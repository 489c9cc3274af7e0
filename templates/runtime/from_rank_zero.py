def from_rank_zero(value):
    """Rank 0's number on every rank, so that all take the same decision."""
    agreed = torch.tensor(float(value), dtype=torch.float64, device=device)
    dist.broadcast(agreed, 0)
    return agreed.item()
