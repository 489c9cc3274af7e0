class RankSampler(Sampler):
    """This rank's share of what another sampler draws: all ranks draw the same order, then take turns."""

    def __init__(self, sampler, drop_last=False):
        self.sampler, self.drop_last, self.epoch = sampler, drop_last, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.sampler) // world_size if self.drop_last else -(-len(self.sampler) // world_size)

    def __iter__(self):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.epoch)
            drawn = list(self.sampler)
        drawn += drawn[: len(self) * world_size - len(drawn)]
        return iter(drawn[rank : len(self) * world_size : world_size])
