"""An image classifier of transformers under bfloat16 autocast on GPUs, with a trainer class of the script's own."""
import argparse
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import ViTConfig, ViTForImageClassification


class Images(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 3, (size,), generator=g)
        self.pixels = torch.randn(size, 3, 16, 16, generator=g) + self.labels.view(-1, 1, 1, 1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"pixel_values": self.pixels[i], "labels": self.labels[i]}


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr, device, folder):
        self.model = model.to(device)
        self.train_loader, self.val_loader = train_loader, val_loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.device, self.folder = device, Path(folder)
        self.best = 0.0

    def train_epoch(self, epoch):
        self.model.train()
        running_loss, correct, seen = 0.0, 0, 0
        for batch in self.train_loader:
            pixels, labels = batch["pixel_values"].to(self.device), batch["labels"].to(self.device)
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
                outputs = self.model(pixel_values=pixels, labels=labels)
            self.optimizer.zero_grad()
            outputs.loss.backward()
            self.optimizer.step()
            running_loss += outputs.loss.item() * labels.size(0)
            correct += (outputs.logits.argmax(-1) == labels).sum().item()
            seen += labels.size(0)
        print(f"epoch {epoch} loss {running_loss / seen:.4f} accuracy {correct / seen:.4f}")

    @torch.no_grad()
    def validate(self, epoch):
        self.model.eval()
        correct = seen = 0
        for batch in self.val_loader:
            outputs = self.model(pixel_values=batch["pixel_values"].to(self.device))
            correct += (outputs.logits.argmax(-1).cpu() == batch["labels"]).sum().item()
            seen += len(batch["labels"])
        accuracy = correct / seen
        if accuracy > self.best:
            self.best = accuracy
            self.folder.mkdir(parents=True, exist_ok=True)
            torch.save(self.model.state_dict(), self.folder / "best.pt")
        print(f"epoch {epoch} validation accuracy {accuracy:.4f} best {self.best:.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4, num_labels=3,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    trainer = Trainer(
        ViTForImageClassification(config),
        DataLoader(Images(64, 0), batch_size=args.batch_size, shuffle=True),
        DataLoader(Images(24, 1), batch_size=args.batch_size),
        1e-3, device, "out",
    )
    for epoch in range(args.epochs):
        trainer.train_epoch(epoch)
        trainer.validate(epoch)


if __name__ == "__main__":
    main()
