def on_device(loader, device):
    """The batches of a loader, each where the network is."""
    for points, labels in loader:
        yield points.to(device), labels.to(device)
