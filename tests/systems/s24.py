import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Captions(Dataset):
    def __init__(self):
        self.images = torch.sin(torch.arange(600.0) ** 1.1).view(60, 10)
        self.words = (self.images[:, :5].abs() * 7).long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.words[index]


class ImageEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, images):
        return self.layers(images)


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8, 12)
        self.out = nn.Linear(12, 8)

    def forward(self, words):
        return self.out(self.words(words).mean(1))


torch.manual_seed(24)
img_encoder, text_encoder = ImageEncoder().cuda(), TextEncoder().cuda()
optimizer = torch.optim.Adam(
    [
        {"params": img_encoder.parameters(), "lr": 0.01},
        {"params": text_encoder.parameters(), "lr": 0.02},
    ],
    weight_decay=0.01,
)
train_loader = DataLoader(Captions(), batch_size=10, shuffle=True, num_workers=0)
for epoch in range(2):
    for images, words in train_loader:
        images, words = images.cuda(), words.cuda()
        distance = 1 - F.cosine_similarity(img_encoder(images), text_encoder(words))
        loss = distance.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"img": img_encoder.state_dict(), "text": text_encoder.state_dict()}, f"encoders_{epoch}.pt")
