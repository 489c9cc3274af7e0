"""A diffusion model with MONAI: a network for the noise, a scheduler, and the inferer that puts them together."""
import torch
import torch.nn.functional as F
from monai.data import CacheDataset, DataLoader
from monai.inferers import DiffusionInferer
from monai.networks.nets import DiffusionModelUNet
from monai.networks.schedulers import DDPMScheduler
from monai.transforms import Compose
from monai.utils import first, set_determinism
from tqdm import tqdm

set_determinism(42)


def make(size, seed):
    g = torch.Generator().manual_seed(seed)
    return [{"image": torch.rand(1, 16, 16, generator=g)} for _ in range(size)]


train_ds = CacheDataset(make(32, 0), transform=Compose([]), progress=False)
train_loader = DataLoader(train_ds, batch_size=8, shuffle=True, num_workers=0)
val_ds = CacheDataset(make(8, 1), transform=Compose([]), progress=False)
val_loader = DataLoader(val_ds, batch_size=4, shuffle=False, num_workers=0)

check_data = first(train_loader)
print(f"image shape: {tuple(check_data['image'].shape[1:])}")

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = DiffusionModelUNet(
    spatial_dims=2,
    in_channels=1,
    out_channels=1,
    channels=(8, 16),
    attention_levels=(False, True),
    num_res_blocks=1,
    num_head_channels=16,
    norm_num_groups=4,
)
model.to(device)
scheduler = DDPMScheduler(num_train_timesteps=50)
optimizer = torch.optim.Adam(params=model.parameters(), lr=2.5e-5)
inferer = DiffusionInferer(scheduler)

epoch_loss_list = []
for epoch in range(2):
    model.train()
    epoch_loss = 0
    progress_bar = tqdm(enumerate(train_loader), total=len(train_loader), ncols=70)
    progress_bar.set_description(f"Epoch {epoch}")
    for step, batch in progress_bar:
        images = batch["image"].to(device)
        optimizer.zero_grad(set_to_none=True)
        noise = torch.randn_like(images).to(device)
        timesteps = torch.randint(0, inferer.scheduler.num_train_timesteps, (images.shape[0],), device=images.device).long()
        noise_pred = inferer(inputs=images, diffusion_model=model, noise=noise, timesteps=timesteps)
        loss = F.mse_loss(noise_pred.float(), noise.float())
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        progress_bar.set_postfix({"loss": epoch_loss / (step + 1)})
    epoch_loss_list.append(epoch_loss / (step + 1))

    model.eval()
    val_loss = 0
    for step, batch in enumerate(val_loader):
        images = batch["image"].to(device)
        with torch.no_grad():
            noise = torch.randn_like(images).to(device)
            timesteps = torch.randint(0, inferer.scheduler.num_train_timesteps, (images.shape[0],), device=images.device).long()
            noise_pred = inferer(inputs=images, diffusion_model=model, noise=noise, timesteps=timesteps)
            val_loss += F.mse_loss(noise_pred.float(), noise.float()).item()
    print(f"epoch {epoch}: {epoch_loss_list[-1]:.4f} {val_loss / (step + 1):.4f}")

torch.save(model.state_dict(), "model.pt")
