def batches_of_rank(dataset, batch_size):
    """Every world_size-th batch of a data set, as indices: together the ranks evaluate each sample once."""
    starts = range(rank * batch_size, len(dataset), world_size * batch_size)
    return [i for start in starts for i in range(start, min(start + batch_size, len(dataset)))]
