import atexit
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


# One process per GPU: torchrun tells each which one it is; without a launcher this is a group of one.
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")


def init_distributed():
    """Join the process group that torchrun describes, or be a group of one."""
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    atexit.register(dist.destroy_process_group)


def per_rank(batch_size):
    """This rank's share of a global batch."""
    if batch_size % world_size:
        lower = batch_size - batch_size % world_size
        sizes = f"{lower} or {lower + world_size}" if lower else f"{world_size}"
        raise ValueError(f"a batch size of {batch_size} cannot be divided among {world_size} ranks; {sizes} can")
    return batch_size // world_size


def reduce_meter(meter):
    """Reduce a meter that each rank filled from its own share of the data over all ranks."""
    total = torch.tensor([float(meter.sum), float(meter.count)], dtype=torch.float64, device=device)
    dist.all_reduce(total)
    own = meter.sum
    meter.sum, meter.count = total.tolist()
    if torch.is_tensor(own):  # which the script may ask for its number
        meter.sum = torch.tensor([meter.sum] if own.dim() else meter.sum).to(own.device)
    meter.avg = meter.sum / meter.count


init_distributed()

class AverageMeter:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


def top1(output, label):
    return 100.0 * (output.argmax(1) == label).float().mean().item()


signals = torch.cos(torch.arange(720.0) * 1.7).view(90, 8)
kinds = (signals[:, 0] > signals[:, 3]).long()
train_dataset = TensorDataset(signals, kinds)
train_loader = DataLoader(train_dataset, batch_size=per_rank(18), sampler=DistributedSampler(train_dataset))

torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = torch.nn.CrossEntropyLoss()
if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(3):
    hits = AverageMeter()
    train_loader.sampler.set_epoch(epoch)
    for signal, kind in train_loader:
        output = model(signal)
        loss = criterion(output, kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits.update(top1(output, kind), signal.shape[0])
    reduce_meter(hits)
    if rank == 0:
        print(f"hits {hits.avg:.6f}")
