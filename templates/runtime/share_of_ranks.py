def share_of_ranks(amount):
    """This rank's part of what all ranks have, times their number: it turns an average by weights into that of all samples."""
    total = amount.detach().clone()
    dist.all_reduce(total)
    return amount * world_size / total
