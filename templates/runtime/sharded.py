def sharded(dataset, options):
    """DataLoader options for this rank's share of a data set: a distributed sampler, the batch and the workers divided."""
    options = dict(options)
    sampler = DistributedSampler(dataset, shuffle=options.pop("shuffle", False), drop_last=options.get("drop_last", False))
    if options.get("sampler") is not None:
        sampler = RankSampler(options["sampler"], options.get("drop_last", False))
    options["sampler"] = sampler
    options["batch_size"] = per_rank(options.get("batch_size", 1))
    if options.get("num_workers"):
        options["num_workers"] = workers_per_rank(options["num_workers"])
    return options
