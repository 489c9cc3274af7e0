def gather_over_ranks(values, turn=1):
    """All ranks' lists as one, in the order of the data: the ranks took turns, `turn` entries at a time."""
    parts = [None] * world_size
    dist.all_gather_object(parts, [value.detach().cpu().numpy() if torch.is_tensor(value) else value for value in values])
    turns = range(0, max(map(len, parts)), turn)
    gathered = [value for at in turns for part in parts for value in part[at : at + turn]]
    mine = next(iter(values), None)
    return [torch.as_tensor(value, device=mine.device) for value in gathered] if torch.is_tensor(mine) else gathered
