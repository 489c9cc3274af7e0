class Meter:
    """An average that is added to."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = self.count = self.avg = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count
