def averages_over_ranks(gradients):
    """Gradients by parameters, averaged over the ranks: `torch.autograd.grad` gives this rank's, whatever wraps the model."""
    averages = []
    for gradient in gradients:
        if gradient is not None:
            gradient = gradient.clone()
            dist.all_reduce(gradient)
            gradient /= world_size
        averages.append(gradient)
    return tuple(averages)
