"""Segmentation with MONAI: a UNet, DiceLoss, DiceMetric, decollate_batch."""
import torch
from monai.data import CacheDataset, DataLoader, decollate_batch
from monai.losses import DiceCELoss, DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Activations, AsDiscrete, Compose
from monai.utils import set_determinism

set_determinism(seed=0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def make(size, seed):
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(size):
        image = torch.randn(1, 16, 16, generator=g)
        out.append({"image": image, "label": (image > 0.3).float()})
    return out


train_ds = CacheDataset(make(48, 0), transform=Compose([]), cache_rate=1.0, progress=False)
val_ds = CacheDataset(make(16, 1), transform=Compose([]), cache_rate=1.0, progress=False)
train_loader = DataLoader(train_ds, batch_size=8, shuffle=True, num_workers=0)
val_loader = DataLoader(val_ds, batch_size=4, num_workers=0)

model = UNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(4, 8), strides=(2,), num_res_units=1).to(device)
loss_function = DiceLoss(sigmoid=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
dice_metric = DiceMetric(include_background=True, reduction="mean")
post_trans = Compose([Activations(sigmoid=True), AsDiscrete(threshold=0.5)])

best_metric, best_epoch = -1, -1
for epoch in range(2):
    model.train()
    epoch_loss, step = 0, 0
    for batch_data in train_loader:
        step += 1
        inputs, labels = batch_data["image"].to(device), batch_data["label"].to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = loss_function(outputs, labels)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    epoch_loss /= step
    print(f"epoch {epoch + 1} average loss: {epoch_loss:.4f}")
    model.eval()
    with torch.no_grad():
        for val_data in val_loader:
            val_inputs, val_labels = val_data["image"].to(device), val_data["label"].to(device)
            val_outputs = [post_trans(i) for i in decollate_batch(model(val_inputs))]
            dice_metric(y_pred=val_outputs, y=decollate_batch(val_labels))
        metric = dice_metric.aggregate().item()
        dice_metric.reset()
    if metric > best_metric:
        best_metric, best_epoch = metric, epoch + 1
        torch.save(model.state_dict(), "best_metric_model.pth")
    print(f"current mean dice {metric:.4f} best {best_metric:.4f} at {best_epoch}")
