class RankBatchSampler(torch.utils.data.Sampler):
    """This rank's share of each batch that another sampler draws: all ranks draw the same batches, then share them out."""

    def __init__(self, batches):
        self.batches, self.epoch = batches, 0

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
            yield [batch[i % len(batch)] for i in turns]  # the first ones again, so that all ranks have equally many
