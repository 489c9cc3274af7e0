"""Segmentation of crops with MONAI: dictionaries, several crops of an image, list_data_collate, pictures in TensorBoard."""
import torch
from monai.data import DataLoader, Dataset, decollate_batch, list_data_collate
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import AsDiscrete, Compose, Lambda
from monai.utils import set_determinism
from monai.visualize import plot_2d_or_3d_image
from torch.utils.tensorboard import SummaryWriter

set_determinism(seed=3)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def quarters(item):
    corners = [(top, left) for top in (0, 16) for left in (0, 16)]
    return [{key: value[:, top : top + 16, left : left + 16] for key, value in item.items()} for top, left in corners]


def make(count, seed):
    g = torch.Generator().manual_seed(seed)
    images = torch.randn(count, 1, 32, 32, generator=g)
    return [{"img": image, "seg": (image > 0.5).float()} for image in images]


train_ds = Dataset(data=make(32, 0), transform=Compose([Lambda(quarters)]))
train_loader = DataLoader(train_ds, batch_size=4, shuffle=True, num_workers=0, collate_fn=list_data_collate)
val_ds = Dataset(data=make(8, 1))
val_loader = DataLoader(val_ds, batch_size=1, num_workers=0, collate_fn=list_data_collate)
model = UNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(4, 8), strides=(2,), num_res_units=1).to(device)
loss_function = DiceLoss(sigmoid=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
dice_metric = DiceMetric(include_background=True, reduction="mean")
binary = AsDiscrete(threshold=0.0)

best_metric = -1
writer = SummaryWriter("crops")
for epoch in range(2):
    model.train()
    epoch_loss = 0
    for step, batch in enumerate(train_loader, 1):
        inputs, labels = batch["img"].to(device), batch["seg"].to(device)
        optimizer.zero_grad()
        loss = loss_function(model(inputs), labels)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    epoch_loss /= step
    writer.add_scalar("train_loss", epoch_loss, epoch + 1)
    print(f"epoch {epoch + 1} average loss: {epoch_loss:.4f}")
    model.eval()
    with torch.no_grad():
        for batch in val_loader:
            outputs = [binary(o) for o in decollate_batch(model(batch["img"].to(device)))]
            dice_metric(y_pred=outputs, y=batch["seg"].to(device))
        metric = dice_metric.aggregate().item()
        dice_metric.reset()
        if metric > best_metric:
            best_metric = metric
            torch.save(model.state_dict(), "best.pth")
        print(f"mean dice: {metric:.4f} best mean dice: {best_metric:.4f}")
        plot_2d_or_3d_image(outputs, epoch + 1, writer, index=0, tag="output")
writer.close()
