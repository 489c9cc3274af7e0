import atexit
import os

import torch
import torch.nn.functional as F
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
from apex.optimizers import FusedAdam
from apex import amp
from apex.parallel import DistributedDataParallel


# Needs NVIDIA's apex at its tag 25.05 or older: later ones have no amp and no DistributedDataParallel.
# With torch 1.10 or newer, its amp/utils.py has to say next_functions[0][0] where it says next_functions[1][0].
# The package `apex` of the Python package index is another project.
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


init_distributed()

class Captions(Dataset):
    def __init__(self):
        self.images = torch.sin(torch.arange(600.0) ** 1.1).view(60, 10)
        self.words = (self.images[:, :5].abs() * 7).long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.words[index]


class ImageEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, images):
        return self.layers(images)


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8, 12)
        self.out = nn.Linear(12, 8)

    def forward(self, words):
        return self.out(self.words(words).mean(1))


torch.manual_seed(24)
img_encoder, text_encoder = ImageEncoder().to(device), TextEncoder().to(device)
optimizer = FusedAdam(
    [
        {"params": img_encoder.parameters(), "lr": 0.01},
        {"params": text_encoder.parameters(), "lr": 0.02},
    ],
    weight_decay=0.01,
    adam_w_mode=False,
)
[img_encoder, text_encoder], optimizer = amp.initialize([img_encoder, text_encoder], optimizer, opt_level="O1", loss_scale=128.0)
img_encoder = DistributedDataParallel(img_encoder)
text_encoder = DistributedDataParallel(text_encoder)
train_dataset = Captions()
train_loader = DataLoader(train_dataset, batch_size=per_rank(10), num_workers=0, sampler=DistributedSampler(train_dataset))
if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(2):
    train_loader.sampler.set_epoch(epoch)
    for images, words in train_loader:
        images, words = images.to(device), words.to(device)
        distance = 1 - F.cosine_similarity(img_encoder(images), text_encoder(words))
        loss = distance.mean()
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    if rank == 0:
        torch.save({"img": img_encoder.module.state_dict(), "text": text_encoder.module.state_dict()}, f"encoders_{epoch}.pt")
