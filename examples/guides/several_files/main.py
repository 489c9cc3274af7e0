import torch
from data import loaders
from engine import evaluate, train


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, test_loader = loaders(batch_size=32)
    model = torch.nn.Linear(8, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        train(model, train_loader, optimizer, device)
        print(f"epoch {epoch}: {evaluate(model, test_loader, device):.1%} right")


if __name__ == "__main__":
    main()
