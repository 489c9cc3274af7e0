"""Train an unconditional diffusion model: a UNet of diffusers, a noise scheduler, an average of the weights."""
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TrainingConfig:
    image_size: int = 8
    train_batch_size: int = 8
    num_epochs: int = 2
    learning_rate: float = 1e-3
    lr_warmup_steps: int = 4
    save_model_epochs: int = 1
    output_dir: str = "ddpm"
    seed: int = 0


config = TrainingConfig()
torch.manual_seed(config.seed)
device = "cuda" if torch.cuda.is_available() else "cpu"

images = torch.rand(64, 1, config.image_size, config.image_size) * 2 - 1
train_dataloader = DataLoader(TensorDataset(images), batch_size=config.train_batch_size, shuffle=True)

model = UNet2DModel(
    sample_size=config.image_size,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8, 8),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "UpBlock2D"),
).to(device)
noise_scheduler = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
lr_scheduler = get_cosine_schedule_with_warmup(
    optimizer=optimizer, num_warmup_steps=config.lr_warmup_steps, num_training_steps=len(train_dataloader) * config.num_epochs
)
ema = EMAModel(model.parameters(), decay=0.99)


def train_loop(config, model, noise_scheduler, optimizer, train_dataloader, lr_scheduler):
    global_step = 0
    for epoch in range(config.num_epochs):
        model.train()
        for step, (clean_images,) in enumerate(train_dataloader):
            clean_images = clean_images.to(device)
            noise = torch.randn(clean_images.shape, device=clean_images.device)
            bs = clean_images.shape[0]
            timesteps = torch.randint(
                0, noise_scheduler.config.num_train_timesteps, (bs,), device=clean_images.device, dtype=torch.int64
            )
            noisy_images = noise_scheduler.add_noise(clean_images, noise, timesteps)
            noise_pred = model(noisy_images, timesteps, return_dict=False)[0]
            loss = F.mse_loss(noise_pred, noise)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            ema.step(model.parameters())
            if global_step % 4 == 0:
                print(f"step {global_step} loss {loss.detach().item():.4f} lr {lr_scheduler.get_last_lr()[0]:.6f}")
            global_step += 1
        if (epoch + 1) % config.save_model_epochs == 0 or epoch == config.num_epochs - 1:
            os.makedirs(config.output_dir, exist_ok=True)
            model.save_pretrained(config.output_dir)


train_loop(config, model, noise_scheduler, optimizer, train_dataloader, lr_scheduler)
ema.copy_to(model.parameters())
torch.save(model.state_dict(), os.path.join(config.output_dir, "ema.pt"))
