class BatchesOfRankZero:
    """The batches of a loader as rank 0 reads them, whole on all ranks: they have no part that a rank could read by itself."""

    def __init__(self, batches):
        self.batches = batches

    def __getattr__(self, name):
        return getattr(self.batches, name)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        read, part = iter(self.batches if rank == 0 else ()), [None]
        while part[0] != []:
            part = [[batch for _, batch in zip(range(1), read)]]
            dist.broadcast_object_list(part, 0)
            yield from part[0]
