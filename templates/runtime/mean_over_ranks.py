def mean_over_ranks(loss, amount):
    """This rank's part of the average over all ranks, of a loss that is an average over its own amount of weights or valid targets."""
    total = amount.detach().clone()
    dist.all_reduce(total)
    return loss.masked_fill(amount == 0, 0) * (amount * world_size / total)
