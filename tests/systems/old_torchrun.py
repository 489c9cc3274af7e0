import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("gloo")
device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")

# forty points on a wave
points = torch.sin(torch.arange(160.0)).view(40, 4)
dataset = TensorDataset(points, points.sum(1, keepdim=True))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=5, sampler=sampler)


def loss_of(x, y):
    return torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))


torch.manual_seed(0)
model = DDP(torch.nn.Linear(4, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(x, y).backward()
        optimizer.step()
    if local_rank == 0:
        print("epoch", epoch, "on", dist.get_world_size())
if local_rank == 0:
    torch.save(model.module.state_dict(), "line.pt")
dist.destroy_process_group()
