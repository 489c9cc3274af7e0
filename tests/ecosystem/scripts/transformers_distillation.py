"""Distil a larger encoder into a smaller one: soft targets, hidden states, and labels; torchmetrics collection; loguru."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from loguru import logger
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score
from transformers import BertConfig, BertForSequenceClassification, BertModel

logger.remove()
logger.add(sys.stdout, format="{level} {message}")


class Student(nn.Module):
    def __init__(self, config, classes):
        super().__init__()
        self.bert = BertModel(config)
        self.classifier = nn.Linear(config.hidden_size, classes)

    def forward(self, input_ids, attention_mask):
        out = self.bert(input_ids, attention_mask=attention_mask)
        cls = out.last_hidden_state[:, 0]
        return self.classifier(cls), cls


def config(layers):
    return BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=32, num_labels=3,
                      max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 50, (n, 10), generator=g)
    return TensorDataset(ids, torch.ones_like(ids), ids[:, 1] % 3)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    teacher = BertForSequenceClassification(config(2)).to(device).eval()
    for p in teacher.parameters():
        p.requires_grad_(False)
    student = Student(config(1), 3).to(device)
    loader = DataLoader(dataset(72, 0), batch_size=12, shuffle=True)
    val_loader = DataLoader(dataset(30, 1), batch_size=12)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    metrics = MetricCollection({"acc": MulticlassAccuracy(3, average="micro"), "f1": MulticlassF1Score(3)}).to(device)
    mean_loss = MeanMetric().to(device)
    temperature, alpha = 2.0, 0.5
    for epoch in range(2):
        student.train()
        for input_ids, mask, labels in loader:
            input_ids, mask, labels = input_ids.to(device), mask.to(device), labels.to(device)
            with torch.no_grad():
                teacher_out = teacher(input_ids, attention_mask=mask, output_hidden_states=True)
            logits, cls = student(input_ids, mask)
            soft = F.kl_div(F.log_softmax(logits / temperature, -1), F.softmax(teacher_out.logits / temperature, -1), reduction="batchmean")
            hidden = F.mse_loss(cls, teacher_out.hidden_states[-1][:, 0])
            loss = alpha * temperature**2 * soft + (1 - alpha) * F.cross_entropy(logits, labels) + 0.1 * hidden
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean_loss.update(loss.detach(), weight=len(labels))
        student.eval()
        with torch.no_grad():
            for input_ids, mask, labels in val_loader:
                logits, _ = student(input_ids.to(device), mask.to(device))
                metrics.update(logits, labels.to(device))
        values = {k: v.item() for k, v in metrics.compute().items()}
        logger.info("epoch {} loss {:.4f} accuracy {:.4f} f1 {:.4f}", epoch, mean_loss.compute().item(), values["acc"], values["f1"])
        mean_loss.reset()
        metrics.reset()
    torch.save(student.state_dict(), "student.pt")


if __name__ == "__main__":
    main()
