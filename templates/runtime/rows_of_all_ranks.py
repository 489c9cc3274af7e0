def rows_of_all_ranks(outputs, size, several=False, alike=()):
    """All ranks' rows of what a model made of theirs, for a whole batch of this size.

    `several`: more than one of each sample; `alike`: which outputs have no rows, and stay as they are.
    """
    if isinstance(outputs, torch.Tensor):
        share = -(-size // world_size)
        samples = outputs.unflatten(0, (share, -1 if several else 1))
        return from_all_ranks(samples)[:size].flatten(0, 1)
    if isinstance(outputs, dict):
        return {key: rows_of_all_ranks(rows, size, several) for key, rows in outputs.items()}
    return type(outputs)(part if i in alike else rows_of_all_ranks(part, size, several) for i, part in enumerate(outputs))
