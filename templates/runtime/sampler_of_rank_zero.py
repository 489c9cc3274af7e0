class SamplerOfRankZero(torch.utils.data.Sampler):
    """What a sampler draws on rank 0, on all ranks: no seed would make the ranks draw alike."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __len__(self):
        return len(self.sampler)

    def __iter__(self):
        drawn, part = iter(self.sampler), [None]
        while part[0] != []:
            part = [[index for _, index in zip(range(100), drawn)]]
            dist.broadcast_object_list(part, 0)
            yield from part[0]
