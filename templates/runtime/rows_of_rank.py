def rows_of_rank(rows, batch_size=0):
    """This rank's rows of a whole batch; where a shorter one cannot be shared equally, its first rows are repeated."""
    per_rank(batch_size)  # all ranks must be able to share it
    share = -(-len(rows) // world_size)
    indices = [i % len(rows) for i in range(rank, share * world_size, world_size)]
    return [rows[i] for i in indices] if isinstance(rows, list) else rows[indices]
