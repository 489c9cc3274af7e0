"""A VQ-VAE whose codebook follows the encoder by moving averages."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class VectorQuantizerEMA(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost=0.25, decay=0.9, epsilon=1e-5):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.commitment_cost, self.decay, self.epsilon = commitment_cost, decay, epsilon
        embedding = torch.randn(num_embeddings, embedding_dim)
        self.register_buffer("embedding", embedding)
        self.register_buffer("cluster_size", torch.zeros(num_embeddings))
        self.register_buffer("embedding_avg", embedding.clone())

    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, self.embedding_dim)
        distances = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embedding.t() + self.embedding.pow(2).sum(1)
        indices = distances.argmin(dim=1)
        encodings = F.one_hot(indices, self.num_embeddings).type(flat.dtype)
        quantized = F.embedding(indices, self.embedding).view(z.shape)
        if self.training:
            with torch.no_grad():
                self.cluster_size.mul_(self.decay).add_(encodings.sum(0), alpha=1 - self.decay)
                self.embedding_avg.mul_(self.decay).add_(encodings.t() @ flat, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                size = (self.cluster_size + self.epsilon) / (n + self.num_embeddings * self.epsilon) * n
                self.embedding.copy_(self.embedding_avg / size.unsqueeze(1))
        loss = self.commitment_cost * F.mse_loss(z, quantized.detach())
        quantized = z + (quantized - z).detach()
        probs = encodings.mean(0)
        perplexity = torch.exp(-torch.sum(probs * torch.log(probs + 1e-10)))
        return quantized.permute(0, 3, 1, 2).contiguous(), loss, perplexity


class VQVAE(nn.Module):
    def __init__(self, hidden=16, dim=8, codes=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, hidden, 4, 2, 1), nn.ReLU(), nn.Conv2d(hidden, dim, 3, 1, 1))
        self.quantize = VectorQuantizerEMA(codes, dim)
        self.decoder = nn.Sequential(nn.Conv2d(dim, hidden, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(hidden, 1, 4, 2, 1))

    def forward(self, x):
        z = self.encoder(x)
        quantized, vq_loss, perplexity = self.quantize(z)
        return self.decoder(quantized), vq_loss, perplexity


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    g = torch.Generator().manual_seed(0)
    images = torch.rand(128, 1, 16, 16, generator=g)
    train = DataLoader(TensorDataset(images[:96]), batch_size=16, shuffle=True)
    valid = DataLoader(TensorDataset(images[96:]), batch_size=16)
    variance = images[:96].var().item()
    model = VQVAE().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, amsgrad=False)
    best = float("inf")
    for epoch in range(2):
        model.train()
        recon_sum, perplexities = 0.0, []
        for (x,) in train:
            x = x.to(device)
            optimizer.zero_grad()
            recon, vq_loss, perplexity = model(x)
            recon_error = F.mse_loss(recon, x) / variance
            loss = recon_error + vq_loss
            loss.backward()
            optimizer.step()
            recon_sum += recon_error.item()
            perplexities.append(perplexity.item())
        model.eval()
        val = 0.0
        with torch.no_grad():
            for (x,) in valid:
                x = x.to(device)
                recon, _, _ = model(x)
                val += F.mse_loss(recon, x, reduction="sum").item()
        val /= len(valid.dataset)
        print(f"epoch {epoch} recon {recon_sum / len(train):.4f} val {val:.3f}")
        if val < best:
            best = val
            torch.save(model.state_dict(), "vqvae.pt")


if __name__ == "__main__":
    main()
