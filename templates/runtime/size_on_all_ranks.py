def size_on_all_ranks(count, loader):
    """How many samples a batch has on all ranks together, without those that are repeated to fill up the last one of an epoch."""
    sampler = loader.sampler
    repeats = isinstance(sampler, DistributedSampler) and not sampler.drop_last and count < loader.batch_size
    return count * world_size - (sampler.total_size - len(sampler.dataset) if repeats else 0)
