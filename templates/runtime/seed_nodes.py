def seed_nodes(nodes):
    """The nodes that a loader samples around, which a mask may tell: as many as there are samples."""
    nodes = torch.as_tensor(nodes)
    return nodes.nonzero() if nodes.dtype == torch.bool else nodes
