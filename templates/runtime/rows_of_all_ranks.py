def rows_of_all_ranks(outputs, size, several=False):
    """All ranks' rows of what a model made of theirs, for a whole batch of this size; with `several`, more than one of each sample."""
    if isinstance(outputs, torch.Tensor):
        share = -(-size // world_size)
        samples = outputs.unflatten(0, (share, -1 if several else 1))
        return from_all_ranks(samples)[:size].flatten(0, 1)
    if isinstance(outputs, dict):
        return {key: rows_of_all_ranks(rows, size, several) for key, rows in outputs.items()}
    return type(outputs)(rows_of_all_ranks(rows, size, several) for rows in outputs)
