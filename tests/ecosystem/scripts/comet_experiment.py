"""A classifier whose run is logged by comet, offline."""
import os

import comet_ml
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

hyper_params = {"seed": 2, "batch_size": 8, "num_epochs": 3, "learning_rate": 0.05, "hidden": 12}
os.makedirs("offline", exist_ok=True)
experiment = comet_ml.OfflineExperiment(project_name="shapes", offline_directory="offline", log_code=False, display_summary_level=0)
experiment.log_parameters(hyper_params)

torch.manual_seed(hyper_params["seed"])
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
features = torch.randn(80, 6)
kinds = (features[:, 0] + features[:, 1] > 0).long()
train_set, test_set = TensorDataset(features[:64], kinds[:64]), TensorDataset(features[64:], kinds[64:])
train_loader = DataLoader(train_set, batch_size=hyper_params["batch_size"], shuffle=True)
test_loader = DataLoader(test_set, batch_size=hyper_params["batch_size"])

model = nn.Sequential(nn.Linear(6, hyper_params["hidden"]), nn.Tanh(), nn.Linear(hyper_params["hidden"], 2)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=hyper_params["learning_rate"], momentum=0.9)


def train(epoch):
    model.train()
    correct = 0
    for batch_idx, (inputs, labels) in enumerate(train_loader):
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = F.cross_entropy(outputs, labels)
        loss.backward()
        optimizer.step()
        correct += (outputs.argmax(1) == labels).sum().item()
        experiment.log_metric("batch_loss", loss.item(), step=epoch * len(train_loader) + batch_idx)
    accuracy = correct / len(train_set)
    experiment.log_metric("accuracy", accuracy, epoch=epoch)
    return accuracy


def test():
    model.eval()
    correct, total = 0, 0.0
    with torch.no_grad():
        for inputs, labels in test_loader:
            inputs, labels = inputs.to(device), labels.to(device)
            outputs = model(inputs)
            total += F.cross_entropy(outputs, labels, reduction="sum").item()
            correct += (outputs.argmax(1) == labels).sum().item()
    return correct / len(test_set), total / len(test_set)


for epoch in range(hyper_params["num_epochs"]):
    with experiment.train():
        train_accuracy = train(epoch)
    with experiment.test():
        accuracy, loss = test()
        experiment.log_metrics({"accuracy": accuracy, "loss": loss}, epoch=epoch)
    print(f"epoch {epoch}: {train_accuracy:.4f} {accuracy:.4f} {loss:.5f}")

torch.save(model.state_dict(), "model.pt")
experiment.log_model("classifier", "model.pt")
experiment.end()
