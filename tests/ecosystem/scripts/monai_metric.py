"""monai: a Dice metric over decollated batches, which is asked for its result where that is printed."""
import torch
import torch.nn as nn
from monai.data import CacheDataset, DataLoader, decollate_batch
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.transforms import Activations, AsDiscrete, Compose, EnsureTyped


def samples(n, seed):
    noise = torch.Generator().manual_seed(seed)
    images = [torch.rand(1, 8, 8, generator=noise) for _ in range(n)]
    return [{"image": image, "label": (image > 0.6).float()} for image in images]


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
transforms = EnsureTyped(keys=["image", "label"], dtype=torch.get_default_dtype(), track_meta=False)
train_ds = CacheDataset(samples(48, 0), transforms, progress=False)
val_ds = CacheDataset(samples(12, 1), transforms, progress=False)
train_loader = DataLoader(train_ds, batch_size=8, shuffle=True)
val_loader = DataLoader(val_ds, batch_size=2)
model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1)).to(device)
loss_function = DiceLoss(sigmoid=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
dice_metric = DiceMetric(include_background=True, reduction="mean")
post = Compose([Activations(sigmoid=True), AsDiscrete(threshold=0.5)])

for epoch in range(2):
    model.train()
    epoch_loss, step = 0, 0
    for batch_data in train_loader:
        step += 1
        inputs, labels = batch_data["image"].to(device), batch_data["label"].to(device)
        optimizer.zero_grad()
        loss = loss_function(model(inputs), labels)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    print(f"epoch {epoch + 1} average loss: {epoch_loss / step:.4f}")

    model.eval()
    with torch.no_grad():
        for val_data in val_loader:
            val_outputs = model(val_data["image"].to(device))
            val_outputs = [post(i) for i in decollate_batch(val_outputs)]
            dice_metric(y_pred=val_outputs, y=decollate_batch(val_data["label"].to(device)))
    print(f"mean dice: {dice_metric.aggregate().item():.4f}")
    dice_metric.reset()
torch.save(model.state_dict(), "model.pt")
