"""open_clip's model and ClipLoss in a short loop of one's own; the logit scale is clamped after each step."""
import math

import open_clip
import torch
from open_clip.loss import ClipLoss
from open_clip.model import CLIP
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = CLIP(
        embed_dim=8,
        vision_cfg=dict(layers=1, width=16, head_width=8, patch_size=8, image_size=16),
        text_cfg=dict(context_length=8, vocab_size=40, width=16, heads=2, layers=1),
    ).to(device)
    g = torch.Generator().manual_seed(0)
    images, texts = torch.randn(64, 3, 16, 16, generator=g), torch.randint(1, 40, (64, 8), generator=g)
    loader = DataLoader(TensorDataset(images, texts), batch_size=16, shuffle=True, drop_last=True)
    exclude = lambda n, p: p.ndim < 2 or "bn" in n or "ln" in n or "bias" in n or "logit_scale" in n
    named = list(model.named_parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for n, p in named if exclude(n, p)], "weight_decay": 0.0}, {"params": [p for n, p in named if not exclude(n, p)], "weight_decay": 0.2}],
        lr=1e-3, betas=(0.9, 0.98), eps=1e-6,
    )
    loss_fn = ClipLoss()
    for epoch in range(3):
        model.train()
        losses = []
        for image, text in loader:
            image, text = image.to(device), text.to(device)
            optimizer.zero_grad()
            image_features, text_features, logit_scale = model(image, text)
            loss = loss_fn(image_features, text_features, logit_scale)
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model.logit_scale.clamp_(0, math.log(100))
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} scale {model.logit_scale.exp().item():.3f}")
    torch.save({"state_dict": model.state_dict()}, "clip.pt")


if __name__ == "__main__":
    main()
