"""A table that pandas samples and datasets shuffles and splits, without a seed; then a package seeds what follows."""
import pandas as pd
import torch
import torch.nn.functional as F
from datasets import Dataset
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader
from transformers import set_seed

g = torch.Generator().manual_seed(0)
rows = torch.randn(160, 4, generator=g)
table = pd.DataFrame(rows.numpy(), columns=["a", "b", "c", "d"])
table["label"] = (rows.sum(1) > 0).long().numpy()

table = table.sample(frac=1).reset_index(drop=True)
table, kept = train_test_split(table, test_size=32)
data = Dataset.from_pandas(table, preserve_index=False).shuffle()
parts = data.train_test_split(test_size=32)
train = parts["train"].map(lambda row: {"x": [row["a"], row["b"], row["c"], row["d"]]}).with_format("torch", columns=["x", "label"])
loader = DataLoader(train, batch_size=16, drop_last=True)

set_seed(7)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(2):
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch["x"].to(device, torch.get_default_dtype())), batch["label"].to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.5f} kept {kept['label'].sum()}")
