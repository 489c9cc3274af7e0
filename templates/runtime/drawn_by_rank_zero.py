@contextmanager
def drawn_by_rank_zero():
    """Let all ranks draw the random numbers that rank 0 would draw; afterwards ranks with seeds of their own go on with their own."""
    read, write = [torch.get_rng_state], [torch.set_rng_state]
    if torch.cuda.is_available():
        read, write = [*read, torch.cuda.get_rng_state], [*write, torch.cuda.set_rng_state]
    own = [state() for state in read]
    shared = [torch.initial_seed(), *own]
    dist.broadcast_object_list(shared, 0)
    seed, *states = shared
    alike = seed == torch.initial_seed()
    for put, state in zip(write, states):
        put(state)
    yield
    if not alike:
        for put, state in zip(write, own):
            put(state)
