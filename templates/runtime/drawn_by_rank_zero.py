@contextmanager
def drawn_by_rank_zero():
    """Let all ranks draw the random numbers that rank 0 would draw; afterwards each goes on with its own."""
    read, write = [torch.get_rng_state], [torch.set_rng_state]
    own = [state() for state in read]
    shared = list(own)
    dist.broadcast_object_list(shared, 0)
    for put, state in zip(write, shared):
        put(state)
    yield
    if rank != 0:
        for put, state in zip(write, own):
            put(state)
