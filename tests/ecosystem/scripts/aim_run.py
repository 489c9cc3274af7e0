"""An autoencoder whose run is tracked by aim, in a repository of its own."""
import torch
import torch.nn as nn
from aim import Run
from torch.utils.data import DataLoader, TensorDataset

run = Run(repo="tracked", experiment="autoencoder", log_system_params=False, system_tracking_interval=None, capture_terminal_logs=False)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
num_epochs, hidden, batch_size, learning_rate = 3, 4, 8, 0.02
run["hparams"] = {"num_epochs": num_epochs, "hidden": hidden, "batch_size": batch_size, "learning_rate": learning_rate}
torch.manual_seed(4)

rows = torch.randn(72, 3) @ torch.randn(3, 10)
train_loader = DataLoader(TensorDataset(rows[:56]), batch_size=batch_size, shuffle=True)
test_loader = DataLoader(TensorDataset(rows[56:]), batch_size=batch_size)


class Autoencoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, hidden))
        self.decoder = nn.Sequential(nn.Linear(hidden, 8), nn.Tanh(), nn.Linear(8, 10))

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = Autoencoder(hidden).to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)

for epoch in range(num_epochs):
    model.train()
    for i, (batch,) in enumerate(train_loader):
        batch = batch.to(device)
        loss = criterion(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 3 == 0:
            run.track(loss.item(), name="loss", epoch=epoch, context={"subset": "train"})
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for (batch,) in test_loader:
            batch = batch.to(device)
            total += criterion(model(batch), batch).item() * len(batch)
            count += len(batch)
    run.track(total / count, name="loss", epoch=epoch, context={"subset": "test"})
    print(f"epoch {epoch}: {total / count:.5f}")

torch.save({"model": model.state_dict(), "epoch": epoch}, "autoencoder.pt")
run.close()
