def with_averaged_gradient(hook):
    """A parameter's hook, given the average of its gradients over the ranks: that of DistributedDataParallel comes after hooks."""

    def averaged(gradient):
        total = gradient.clone()
        dist.all_reduce(total)
        total /= world_size
        changed = hook(total)
        return total if changed is None else changed

    return averaged
