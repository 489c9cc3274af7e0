def start_alike(tensors):
    """Give all ranks rank 0's parameters and buffers, as DistributedDataParallel does where it wraps a module."""
    for tensor in tensors:
        dist.broadcast(tensor.detach(), 0)
