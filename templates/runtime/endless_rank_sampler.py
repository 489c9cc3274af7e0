class EndlessRankSampler(torch.utils.data.Sampler):
    """This rank's share of what a sampler without an end draws: all ranks draw the same, by a state of the generator kept for it."""

    def __init__(self, sampler):
        self.sampler, self.epoch = sampler, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.sampler) // world_size

    def __iter__(self):
        indices, state = None, torch.Generator().manual_seed(self.epoch).get_state()
        while True:
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(state)
                indices = iter(self.sampler) if indices is None else indices
                turn = [next(indices) for _ in range(world_size)]
                state = torch.get_rng_state()
            yield turn[rank]
