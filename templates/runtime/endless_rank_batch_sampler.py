class EndlessRankBatchSampler(torch.utils.data.Sampler):
    """This rank's share of each batch that a sampler without an end draws: all ranks draw the same, by a state kept for it."""

    def __init__(self, batches):
        self.batches, self.epoch = batches, 0

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
            yield [batch[i % len(batch)] for i in turns]  # the first ones again, so that all ranks have equally many
