def own_seed(made=itertools.count()):
    """A seed for each sampler, in the order in which all ranks make them: with one seed, those side by side would draw the same orders."""
    return next(made)
