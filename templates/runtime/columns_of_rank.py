def columns_of_rank(data):
    """This rank's columns of data whose columns are the batch and whose rows are steps through time."""
    per_rank(data.shape[1])  # all ranks must be able to share them
    data = data[:, rank::world_size]
    return data.contiguous() if hasattr(data, "contiguous") else data  # what a view may be taken of
