def without_repeats(loader):
    """A loader of timm whose sampler for training drops what not all ranks have a sample of; it would repeat samples to fill them up."""
    sampler = loader.sampler
    if isinstance(sampler, DistributedSampler):
        sampler.drop_last, sampler.num_samples = True, len(sampler.dataset) // sampler.num_replicas
        sampler.total_size = sampler.num_samples * sampler.num_replicas
    return loader
