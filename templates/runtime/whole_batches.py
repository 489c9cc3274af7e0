def packed(value):
    """A value as bytes, with its tensors as arrays: pickled as it is, a tensor brings along all that it is a view of."""

    def reduced(tensor):
        if tensor.layout != torch.strided or tensor.dtype == torch.bfloat16:  # numpy has none of these
            return tensor.clone().__reduce_ex__(2)
        return functools.partial(torch.as_tensor, device=tensor.device.type), (tensor.detach().cpu().numpy(),)

    file = BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dispatch_table = {**copyreg.dispatch_table, torch.Tensor: reduced}
    pickler.dump(value)
    return file.getvalue()


class WholeBatches:
    """The batches of a loader, whole on all ranks: of the samples that each rank reads of them, or, not `shared`, as rank 0 reads them."""

    def __init__(self, loader, shared=True):
        self.loader, self.shared, self.collate = loader, shared, getattr(loader, "collate_fn", None)

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def __len__(self):
        return len(self.loader)

    @property
    def batch_size(self):
        size = self.loader.batch_size
        return size * world_size if size and self.shared else size  # none where a sampler draws whole batches

    def __iter__(self):
        if self.shared:
            self.loader.collate_fn = packed  # a worker hands on the samples
        return self.gathered(iter(self.loader if self.shared or rank == 0 else ()))

    def gathered(self, read):
        """Gather each batch from what all ranks read."""
        sampler, seen = getattr(getattr(self.loader, "batch_sampler", None), "sampler", None), 0
        while True:
            batch = list(itertools.islice(read, 1))
            if self.shared:
                parts = [None] * world_size
                dist.all_gather_object(parts, batch)
                shares = [pickle.loads(share) for part in parts for share in part]
                samples = [share[i] for i in range(max(map(len, shares), default=0)) for share in shares if i < len(share)]
                ended = len(shares) < (world_size if self.loader.drop_last else 1)
                drawn = len(sampler.dataset) if isinstance(sampler, DistributedSampler) else getattr(sampler, "drawn", float("inf"))
                batch = [] if ended or rank else [self.collate(samples[: min(drawn - seen, len(samples))])]  # without those that fill up
                seen += len(samples)
            sent = [None if rank else packed(batch)]
            dist.broadcast_object_list(sent, 0)
            batch = pickle.loads(sent[0]) if rank else batch
            if not batch:
                return
            yield batch[0]
