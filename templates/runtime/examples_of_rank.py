def examples_of_rank(iterator):
    """This rank's rows of the batches of a torchtext iterator: all ranks go through the same, in the order that rank 0 draws."""
    per_rank(iterator.batch_size)  # all ranks must be able to share it
    drawn = [iterator.random_shuffler.random_state]
    dist.broadcast_object_list(drawn, 0)
    iterator.random_shuffler.random_state = drawn[0]
    for batch in iterator:
        share = -(-batch.batch_size // world_size)
        rows = [min(i, batch.batch_size - 1) for i in range(rank, share * world_size, world_size)]
        for name, field in batch.dataset.fields.items():
            whole = getattr(batch, name, None)
            if isinstance(whole, list):
                setattr(batch, name, [whole[i] for i in rows])
            elif field is not None:
                axis, parts = 0 if field.batch_first or not field.sequential else 1, whole if isinstance(whole, tuple) else (whole,)
                parts = tuple(p.index_select(0 if i else axis, torch.tensor(rows, device=p.device).long()) for i, p in enumerate(parts))
                setattr(batch, name, parts if isinstance(whole, tuple) else parts[0])
        batch.batch_size = share
        yield batch
