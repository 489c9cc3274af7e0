# One process per GPU: mp.spawn starts them, and init_distributed tells each which one it is.
rank = local_rank = 0
world_size = int(os.environ.get("WORLD_SIZE", 1))
device = torch.device("cpu")


def init_distributed(process):
    """Join the group of the processes that mp.spawn has started."""
    global rank, local_rank, device
    rank = local_rank = process
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        device = torch.device("cuda", local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=rank)
    atexit.register(dist.destroy_process_group)
