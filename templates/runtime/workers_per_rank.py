def workers_per_rank(num_workers):
    """This rank's share of the loader workers of one node, at least one unless there were none."""
    return -(-num_workers // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
