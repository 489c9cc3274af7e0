def gather_over_ranks(values, turn=1):
    """All ranks' lists as one, in the order of the data: the ranks took turns, `turn` entries at a time."""
    mine = [(value.device.type, value.detach().cpu().numpy()) if torch.is_tensor(value) else (None, value) for value in values]
    parts = [None] * world_size
    dist.all_gather_object(parts, mine)
    turns = range(0, max(map(len, parts)), turn)
    gathered = [pair for at in turns for part in parts for pair in part[at : at + turn]]
    return [torch.as_tensor(value, device=kind) if kind else value for kind, value in gathered]
