class ShareOfStream(torch.utils.data.IterableDataset):
    """Every world_size-th sample of a stream; the last ones are repeated or dropped, so that all ranks have equally many."""

    def __init__(self, stream, drop_last=False):
        self.stream, self.drop_last = stream, drop_last

    def __len__(self):
        return len(self.stream) // world_size if self.drop_last else -(-len(self.stream) // world_size)

    def __iter__(self):
        turn = []
        for sample in self.stream:
            turn.append(sample)
            if len(turn) == world_size:
                yield turn[rank]
                turn = []
        if turn and not self.drop_last:
            yield turn[rank % len(turn)]
