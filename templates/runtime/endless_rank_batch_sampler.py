class EndlessRankBatchSampler(torch.utils.data.Sampler):
    """This rank's share of each batch that a sampler without an end draws: all ranks draw the same, by a state kept for it."""

    def __init__(self, batches, fill=True):
        self.batches, self.fill, self.epoch = batches, fill, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        batches, state = None, torch.Generator().manual_seed(self.epoch).get_state()
        while True:
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(state)
                batches = iter(self.batches) if batches is None else batches
                batch = list(next(batches))
                state = torch.get_rng_state()
            turns = range(rank, -(-len(batch) // world_size) * world_size, world_size)
            shared = [batch[i % len(batch)] for i in turns]  # the first ones again, so that all ranks have equally many
            yield shared if self.fill else batch[rank::world_size]
