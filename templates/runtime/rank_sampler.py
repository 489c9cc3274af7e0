class RankSampler(torch.utils.data.Sampler):
    """This rank's share of what another sampler draws: all ranks draw the same order, then take turns."""

    def __init__(self, sampler, drop_last=False):
        self.sampler, self.drop_last, self.epoch = sampler, drop_last, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.share(len(self.sampler))

    def share(self, number):
        return number // world_size if self.drop_last else -(-number // world_size)

    def __iter__(self):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.epoch)
            drawn = [index for index in self.sampler]
        self.drawn = len(drawn)
        turns = range(rank, self.share(len(drawn)) * world_size, world_size)
        return iter([drawn[i % len(drawn)] for i in turns])  # the first ones again, so that all ranks have equally many
