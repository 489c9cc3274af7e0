"""Segmentation with a Unet of segmentation_models_pytorch and a Dice loss."""
import segmentation_models_pytorch as smp
import torch
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


class Shapes(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.images = torch.randn(size, 3, 32, 32, generator=g)
        self.masks = (self.images.mean(1, keepdim=True) > 0).float()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = smp.Unet("resnet18", encoder_weights=None, in_channels=3, classes=1, decoder_channels=(32, 16, 16, 8, 8)).to(device)
    dice = smp.losses.DiceLoss(smp.losses.BINARY_MODE, from_logits=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=24)
    train_loader = DataLoader(Shapes(48, 0), batch_size=8, shuffle=True)
    valid_loader = DataLoader(Shapes(16, 1), batch_size=8)
    for epoch in range(2):
        model.train()
        total = 0.0
        for images, masks in tqdm(train_loader):
            images, masks = images.to(device), masks.to(device)
            logits = model(images)
            loss = dice(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        tps, fps, fns, tns = [], [], [], []
        with torch.no_grad():
            for images, masks in valid_loader:
                pred = (model(images.to(device)).sigmoid() > 0.5).long()
                tp, fp, fn, tn = smp.metrics.get_stats(pred, masks.long().to(device), mode="binary")
                tps.append(tp)
                fps.append(fp)
                fns.append(fn)
                tns.append(tn)
        iou = smp.metrics.iou_score(torch.cat(tps), torch.cat(fps), torch.cat(fns), torch.cat(tns), reduction="micro")
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} iou {iou:.4f}")
    torch.save(model.state_dict(), "unet.pt")


if __name__ == "__main__":
    main()
