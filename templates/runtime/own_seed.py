def own_seed(made=itertools.count(step=1_000_000)):
    """A seed for each sampler, in the order in which all ranks make them: with one seed, several would draw the same orders."""
    return next(made)
