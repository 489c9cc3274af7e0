def reduce_meter(meter):
    """Reduce a meter that each rank filled from its own share of the data over all ranks."""
    total = torch.tensor([float(meter.sum), float(meter.count)], dtype=torch.float64, device=device)
    dist.all_reduce(total)
    meter.sum, meter.count = total.tolist()
    meter.avg = meter.sum / meter.count
