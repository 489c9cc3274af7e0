def rows_of_rank(rows, batch_size=0):
    """This rank's rows of a whole batch; where a shorter one cannot be shared equally, its last row is repeated."""
    if hasattr(rows, "items"):
        return {key: rows_of_rank(part, batch_size) for key, part in rows.items()}
    per_rank(batch_size)  # all ranks must be able to share it
    share = -(-len(rows) // world_size)
    indices = [min(i, len(rows) - 1) for i in range(rank, share * world_size, world_size)]
    return [rows[i] for i in indices] if isinstance(rows, list) else rows[indices]
