class TrainingLoss(torch.nn.Module):
    """A method of a model, as a module: DistributedDataParallel averages the gradients of what the forward of a module runs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *args, **kwargs):
        return self.model.method(*args, **kwargs)
