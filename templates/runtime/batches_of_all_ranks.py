class BatchesOfAllRanks:
    """Whole batches of a loader of which each rank reads its part: the samples of all ranks, collated by rank 0."""

    def __init__(self, loader):
        self.loader, self.collate = loader, loader.collate_fn
        self.batch_size = loader.batch_size and loader.batch_size * world_size

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        self.loader.collate_fn = pickle.dumps  # its workers hand on samples
        read, parts, sampler = iter(self.loader), [None] * world_size, self.loader.sampler
        left = len(sampler.dataset) if isinstance(sampler, DistributedSampler) and not sampler.drop_last else float("inf")
        while True:
            dist.all_gather_object(parts, next(read, None))
            if parts.count(None) > (0 if self.loader.drop_last else world_size - 1):
                return
            shares = [pickle.loads(part) for part in parts if part is not None]
            samples = [share[i] for i in range(len(shares[0])) for share in shares if i < len(share)]
            batch = [self.collate(samples[: min(left, len(samples))]) if rank == 0 else None]  # without those that fill up shares
            dist.broadcast_object_list(batch, 0)
            left -= len(samples)
            yield batch[0]
