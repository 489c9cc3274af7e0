"""Train a small decoder-only transformer on a token file with a Trainer class."""
import math
import os
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 32
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.0
    bias: bool = False


@dataclass
class TrainConfig:
    data_dir: str = "tokens"
    out_dir: str = "run"
    batch_size: int = 8
    grad_accum: int = 2
    max_steps: int = 10
    eval_every: int = 5
    eval_batches: int = 4
    lr: float = 1e-3
    min_lr: float = 1e-4
    warmup: int = 2
    weight_decay: float = 0.1
    clip: float = 1.0
    seed: int = 1337
    resume: bool = False


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.c_attn = nn.Linear(cfg.n_embd, 3 * cfg.n_embd, bias=cfg.bias)
        self.c_proj = nn.Linear(cfg.n_embd, cfg.n_embd, bias=cfg.bias)
        self.dropout = cfg.dropout

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        q = q.view(B, T, self.n_head, -1).transpose(1, 2)
        k = k.view(B, T, self.n_head, -1).transpose(1, 2)
        v = v.view(B, T, self.n_head, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(cfg.n_embd), nn.LayerNorm(cfg.n_embd)
        self.attn = CausalSelfAttention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(), nn.Linear(4 * cfg.n_embd, cfg.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(cfg.vocab_size, cfg.n_embd),
                wpe=nn.Embedding(cfg.block_size, cfg.n_embd),
                drop=nn.Dropout(cfg.dropout),
                h=nn.ModuleList(Block(cfg) for _ in range(cfg.n_layer)),
                ln_f=nn.LayerNorm(cfg.n_embd),
            )
        )
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
            if getattr(m, "bias", None) is not None:
                nn.init.zeros_(m.bias)

    def forward(self, idx, targets=None):
        _, t = idx.shape
        assert t <= self.cfg.block_size
        x = self.transformer.wte(idx) + self.transformer.wpe(torch.arange(t, device=idx.device))
        x = self.transformer.drop(x)
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, n):
        for _ in range(n):
            logits, _ = self(idx[:, -self.cfg.block_size :])
            idx = torch.cat([idx, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
        return idx


class TokenFile:
    def __init__(self, path, block_size, batch_size, device):
        self.path, self.block_size, self.batch_size, self.device = path, block_size, batch_size, device

    def next_batch(self):
        tokens = np.memmap(self.path, dtype=np.uint16, mode="r")
        starts = np.random.randint(0, len(tokens) - self.block_size - 1, size=self.batch_size)
        x = np.stack([tokens[s : s + self.block_size] for s in starts]).astype(np.int64)
        y = np.stack([tokens[s + 1 : s + 1 + self.block_size] for s in starts]).astype(np.int64)
        return torch.from_numpy(x).to(self.device), torch.from_numpy(y).to(self.device)


class Trainer:
    def __init__(self, model_cfg, cfg):
        self.cfg = cfg
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        os.makedirs(cfg.out_dir, exist_ok=True)
        self.model = GPT(model_cfg).to(self.device)
        self.model_cfg = model_cfg
        decay = [p for p in self.model.parameters() if p.dim() >= 2]
        rest = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=cfg.lr, betas=(0.9, 0.95))
        self.splits = {
            s: TokenFile(os.path.join(cfg.data_dir, f"{s}.bin"), model_cfg.block_size, cfg.batch_size, self.device) for s in ("train", "val")
        }
        self.step = 0
        self.best = float("inf")
        if cfg.resume:
            self.load()

    def lr_at(self, step):
        c = self.cfg
        if step < c.warmup:
            return c.lr * (step + 1) / c.warmup
        progress = (step - c.warmup) / max(1, c.max_steps - c.warmup)
        return c.min_lr + 0.5 * (c.lr - c.min_lr) * (1 + math.cos(math.pi * progress))

    @torch.inference_mode()
    def estimate_loss(self):
        self.model.eval()
        result = {}
        for name, split in self.splits.items():
            losses = []
            for _ in range(self.cfg.eval_batches):
                x, y = split.next_batch()
                _, loss = self.model(x, y)
                losses.append(loss.item())
            result[name] = sum(losses) / len(losses)
        self.model.train()
        return result

    def save(self):
        path = os.path.join(self.cfg.out_dir, "ckpt.pt")
        torch.save(
            {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "model_args": asdict(self.model_cfg), "step": self.step},
            path,
        )

    def load(self):
        ckpt = torch.load(os.path.join(self.cfg.out_dir, "ckpt.pt"), map_location=self.device)
        self.model.load_state_dict(ckpt["model"])
        self.optimizer.load_state_dict(ckpt["optimizer"])
        self.step = ckpt["step"]

    def run(self):
        self.model.train()
        while self.step < self.cfg.max_steps:
            for group in self.optimizer.param_groups:
                group["lr"] = self.lr_at(self.step)
            if self.step % self.cfg.eval_every == 0:
                losses = self.estimate_loss()
                print(f"step {self.step}: train {losses['train']:.4f} val {losses['val']:.4f}")
                if losses["val"] < self.best:
                    self.best = losses["val"]
                    if self.step > 0:
                        self.save()
            accumulated = 0.0
            for _ in range(self.cfg.grad_accum):
                x, y = self.splits["train"].next_batch()
                with torch.autocast(device_type=self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
                    _, loss = self.model(x, y)
                loss = loss / self.cfg.grad_accum
                loss.backward()
                accumulated += loss.item()
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            if self.step % 2 == 0:
                print(f"iter {self.step} loss {accumulated:.4f} norm {norm:.3f}")
            self.step += 1
        self.save()
        sample = self.model.generate(torch.zeros(1, 1, dtype=torch.long, device=self.device), 5)
        print("sample", sample[0].tolist())


def prepare(folder):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(0)
    for name, n in (("train", 3000), ("val", 600)):
        rng.integers(0, 32, n).astype(np.uint16).tofile(os.path.join(folder, f"{name}.bin"))


def main():
    cfg = TrainConfig()
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    prepare(cfg.data_dir)
    Trainer(GPTConfig(), cfg).run()


if __name__ == "__main__":
    main()
