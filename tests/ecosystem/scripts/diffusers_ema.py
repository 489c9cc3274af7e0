"""A class-conditional denoiser: schedulers of diffusers, whose noise and steps are stored with the data so that runs can be compared."""
import torch
import torch.nn.functional as F
from diffusers import DDIMScheduler, UNet2DModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, size, steps):
        g = torch.Generator().manual_seed(0)
        self.images = torch.rand(size, 1, 8, 8, generator=g) * 2 - 1
        self.noise = torch.randn(size, 1, 8, 8, generator=g)
        self.timesteps = torch.randint(0, steps, (size,), generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"image": self.images[i], "noise": self.noise[i], "timestep": self.timesteps[i]}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    noise_scheduler = DDIMScheduler(num_train_timesteps=50)
    model = UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 8), norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
    ).to(device)
    ema_model = EMAModel(model.parameters(), decay=0.95, model_cls=UNet2DModel, model_config=model.config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.95, 0.999))
    loader = DataLoader(Images(64, 50), batch_size=8, shuffle=True)
    lr_scheduler = get_scheduler("cosine", optimizer=optimizer, num_warmup_steps=2, num_training_steps=len(loader) * 2)
    global_step = 0
    for epoch in range(2):
        model.train()
        train_loss = 0.0
        for step, batch in enumerate(loader):
            clean = batch["image"].to(device)
            noise, timesteps = batch["noise"].to(device), batch["timestep"].to(device)
            noisy = noise_scheduler.add_noise(clean, noise, timesteps)
            prediction = model(noisy, timesteps).sample
            loss = F.mse_loss(prediction.float(), noise.float())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            ema_model.step(model.parameters())
            train_loss += loss.item()
            global_step += 1
        print(f"epoch {epoch} step {global_step} loss {train_loss / len(loader):.4f}")
    ema_model.store(model.parameters())
    ema_model.copy_to(model.parameters())
    torch.save(model.state_dict(), "ema.pt")
    ema_model.restore(model.parameters())
    model.save_pretrained("unet")


if __name__ == "__main__":
    main()
