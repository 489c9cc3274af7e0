@contextmanager
def first_on_node():
    """Let the first rank of each node go ahead (it downloads), the others after it."""
    if local_rank != 0:
        dist.barrier()
    yield
    if local_rank == 0:
        dist.barrier()
