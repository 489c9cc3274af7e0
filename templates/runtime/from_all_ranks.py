class AllRanksRows(torch.autograd.Function):
    """The rows of all ranks, in the order of the whole batch; each rank's rows get the gradients of all ranks' losses."""

    @staticmethod
    def forward(ctx, rows):
        parts = [torch.empty_like(rows) for _ in range(world_size)]
        dist.all_gather(parts, rows)
        return torch.stack(parts, 1).flatten(0, 1).clone()  # not a view, which nothing could change in place

    @staticmethod
    def backward(ctx, gradient):
        return RowsOfSum.apply(gradient)


class RowsOfSum(torch.autograd.Function):
    """This rank's rows of the sum over all ranks; its gradient is gathered, for losses that depend on gradients."""

    @staticmethod
    def forward(ctx, rows):
        total = rows.contiguous().clone()
        dist.all_reduce(total)
        return total[rank::world_size]

    @staticmethod
    def backward(ctx, gradient):
        return AllRanksRows.apply(gradient.contiguous())


def from_all_ranks(rows):
    """The whole batch, of which this rank has every world_size-th row, for a loss that cannot be averaged over ranks."""
    return AllRanksRows.apply(rows.contiguous())
