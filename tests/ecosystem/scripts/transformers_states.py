"""An encoder of transformers without a class of one's own, trained to tell words apart by its first state."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModel, RobertaConfig

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = RobertaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=20,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
encoder = AutoModel.from_config(config).to(device)
head = nn.Linear(16, 3).to(device)
g = torch.Generator().manual_seed(0)
ids = torch.randint(3, 50, (64, 10), generator=g)
loader = DataLoader(TensorDataset(ids, ids[:, 2] % 3), batch_size=8, shuffle=True)
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-3)
for epoch in range(2):
    total = 0.0
    for tokens, labels in loader:
        tokens, labels = tokens.to(device), labels.to(device)
        states = encoder(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
        loss = F.cross_entropy(head(states[:, 0]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")
torch.save({"encoder": encoder.state_dict(), "head": head.state_dict()}, "encoder.pt")
