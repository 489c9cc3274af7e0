"""A loader that prepares the next batch while the current one is used, on a stream of its own where there is a GPU."""
import queue
import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Background(threading.Thread):
    def __init__(self, batches, ahead=3):
        super().__init__(daemon=True)
        self.queue = queue.Queue(ahead)
        self.batches = batches
        self.start()

    def run(self):
        for batch in self.batches:
            self.queue.put(batch)
        self.queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        batch = self.queue.get()
        if batch is None:
            raise StopIteration
        return batch


class PrefetchLoader(DataLoader):
    def __init__(self, device, **kwargs):
        super().__init__(**kwargs)
        self.device = device
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __iter__(self):
        self.ahead = Background(super().__iter__())
        self.preload()
        return self

    def preload(self):
        self.batch = next(self.ahead, None)
        if self.batch is None:
            return
        if self.stream is None:
            self.batch = [part.to(self.device) for part in self.batch]
            return
        with torch.cuda.stream(self.stream):
            self.batch = [part.to(self.device, non_blocking=True) for part in self.batch]

    def __next__(self):
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        if batch is None:
            raise StopIteration
        self.preload()
        return batch


class Faces(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return torch.cos(torch.arange(9.0) * (i % 5 + 1) + i), i % 5


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = PrefetchLoader(device, dataset=Faces(), batch_size=12, shuffle=True, drop_last=True)
    torch.manual_seed(8)
    model = torch.nn.Linear(9, 5).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for epoch in range(2):
        for face, person in loader:
            loss = torch.nn.functional.cross_entropy(model(face), person)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch)
    torch.save(model.state_dict(), "faces.pt")


if __name__ == "__main__":
    main()
