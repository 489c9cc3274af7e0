def with_repeated(count):
    """How many rows the ranks take of so many: a few are repeated, so that all ranks have equally many."""
    return -(-count // world_size) * world_size
