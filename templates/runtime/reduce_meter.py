def reduce_meter(meter):
    """Reduce a meter that each rank filled from its own share of the data over all ranks."""
    total = torch.tensor([float(meter.sum), float(meter.count)], dtype=torch.float64, device=device)
    dist.all_reduce(total)
    own = meter.sum
    meter.sum, meter.count = total.tolist()
    if torch.is_tensor(own):  # which the script may ask for its number
        meter.sum = torch.tensor([meter.sum] if own.dim() else meter.sum).to(own.device)
    meter.avg = meter.sum / meter.count
