class RankBatchSampler(torch.utils.data.Sampler):
    """This rank's share of each batch that another sampler draws: all ranks draw the same batches, then share them out."""

    def __init__(self, batches, fill=True):
        self.batches, self.fill, self.epoch = batches, fill, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.epoch)
            drawn = [list(batch) for batch in self.batches]
        for batch in drawn:
            turns = range(rank, -(-len(batch) // world_size) * world_size, world_size)
            shared = [batch[i % len(batch)] for i in turns]  # the first ones again, so that all ranks have equally many
            yield shared if self.fill else batch[rank::world_size]
