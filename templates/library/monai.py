"""What inferers of monai compute, as far as it matters how their results depend on a batch. Checked on monai 1.6.1."""

import torch


class SimpleInferer:
    def __call__(self, inputs, network, *args, **kwargs):
        return network(inputs, *args, **kwargs)


class DiffusionInferer:
    def __init__(self, scheduler):
        self.scheduler = scheduler

    def __call__(self, inputs, diffusion_model, noise, timesteps, condition=None, mode="crossattn", seg=None):
        noisy = self.scheduler.add_noise(original_samples=inputs, noise=noise, timesteps=timesteps)
        if mode == "concat":
            noisy = torch.cat([noisy, condition], dim=1)
            condition = None
        return diffusion_model(x=noisy, timesteps=timesteps, context=condition)

    @torch.no_grad()
    def sample(self, input_noise, diffusion_model, scheduler=None, conditioning=None, mode="crossattn", **kwargs):
        image = input_noise
        for t in (scheduler or self.scheduler).timesteps:
            made = diffusion_model(image, timesteps=torch.Tensor((t,)).to(input_noise.device), context=conditioning)
            image, _ = (scheduler or self.scheduler).step(made, t, image)
        return image
