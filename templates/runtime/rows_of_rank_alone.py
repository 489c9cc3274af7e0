def rows_of_rank(rows, batch_size=0):
    """This rank's rows of a whole batch, as many as every other rank has."""
    per_rank(batch_size)  # all ranks must be able to share it
    rows = rows[rank : len(rows) // world_size * world_size : world_size]
    return rows.contiguous() if hasattr(rows, "contiguous") else rows  # what a view may be taken of
