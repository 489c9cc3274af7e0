"""Scripts about numbers that outlive a loop, and about decisions: what every rank must agree on."""

from scripts import Script

SCRIPTS: dict[str, Script] = {
    # --- evaluation -----------------------------------------------------------------------------------------------------
    "a validation function that returns averages": Script(
        """
        def validate(model, loader, criterion):
            model.eval()
            total_loss = 0.0
            correct = 0
            total = 0
            with torch.no_grad():
                for inputs, labels in loader:
                    inputs, labels = inputs.to(device), labels.to(device)
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                    total_loss += loss.item() * inputs.size(0)
                    _, predicted = torch.max(outputs.data, 1)
                    total += labels.size(0)
                    correct += (predicted == labels).sum().item()
            return total_loss / total, 100.0 * correct / total


        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6, shuffle=False)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(3):
            model.train()
            for inputs, labels in train_loader:
                inputs, labels = inputs.to(device), labels.to(device)
                optimizer.zero_grad()
                loss = criterion(model(inputs), labels)
                loss.backward()
                optimizer.step()
            val_loss, val_acc = validate(model, val_loader, criterion)
            print(f"Epoch [{epoch + 1}/3] val loss: {val_loss:.4f}, val acc: {val_acc:.2f}%")
        """,
        same=("Epoch",),
    ),
    "one evaluation for two loaders": Script(
        """
        @torch.no_grad()
        def evaluate(net, loader):
            net.eval()
            correct, n = 0, 0
            for X, t in loader:
                out = net(X.cuda())
                correct += (out.argmax(dim=1) == t.cuda()).sum().item()
                n += t.shape[0]
            return correct / n


        train_iter = DataLoader(TensorDataset(x[:40], y[:40]), 8, shuffle=True)
        valid_iter = DataLoader(TensorDataset(x[:11], y[:11]), 4)
        test_iter = DataLoader(TensorDataset(x[21:], y[21:]), 6)
        net = nn.Linear(8, 2).cuda()
        trainer = torch.optim.SGD(net.parameters(), lr=0.2)
        loss_fn = nn.CrossEntropyLoss()
        for epoch in range(4):
            net.train()
            for X, t in train_iter:
                l = loss_fn(net(X.cuda()), t.cuda())
                trainer.zero_grad()
                l.backward()
                trainer.step()
            valid_acc = evaluate(net, valid_iter)
            test_acc = evaluate(net, test_iter)
            print("epoch %d, valid acc %.4f, test acc %.4f" % (epoch + 1, valid_acc, test_acc))
        """,
        same=("epoch",),
    ),
    "one evaluation for the training set and the test set": Script(
        """
        def check_accuracy(loader, model):
            num_correct = 0
            num_samples = 0
            model.eval()
            with torch.no_grad():
                for a, b in loader:
                    scores = model(a)
                    _, predictions = scores.max(1)
                    num_correct += (predictions == b).sum()
                    num_samples += predictions.size(0)
            print(f"Got {num_correct} / {num_samples} with accuracy {float(num_correct) / float(num_samples) * 100:.2f}")
            model.train()


        train_loader = DataLoader(dataset=TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(dataset=TensorDataset(x[:11], y[:11]), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for epoch in range(2):
            for batch_idx, (data, targets) in enumerate(train_loader):
                scores = model(data)
                loss = criterion(scores, targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        check_accuracy(train_loader, model)
        check_accuracy(test_loader, model)
        """,
        same=("Got",),
    ),
    "a mean of batch means over a short last batch": Script(
        """
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            train_loss, valid_loss = 0.0, 0.0
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                loss = criterion(model(data), target)
                loss.backward()
                optimizer.step()
                train_loss += loss.item()
            model.eval()
            with torch.no_grad():
                for data, target in val_loader:
                    valid_loss += criterion(model(data), target).item()
            print(f"Epoch {epoch}: train {train_loss / len(train_loader):.6f} valid {valid_loss / len(val_loader):.6f}")
        """,
        same=("Epoch",),
    ),
    "a mean of batch accuracies, counted by hand": Script(
        """
        def accuracy(output, target):
            return (output.argmax(1) == target).float().mean()


        train_dl = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        valid_dl = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for xb, yb in train_dl:
                loss = F.cross_entropy(model(xb), yb)
                loss.backward()
                opt.step()
                opt.zero_grad()
            model.eval()
            with torch.no_grad():
                tot_loss, tot_acc, count = 0.0, 0.0, 0
                for xb, yb in valid_dl:
                    pred = model(xb)
                    tot_loss += F.cross_entropy(pred, yb)
                    tot_acc += accuracy(pred, yb)
                    count += 1
            print("valid", epoch, round((tot_loss / count).item(), 5), round((tot_acc / count).item(), 5))
        """,
        same=("valid",),
    ),
    "a sum over a generator of batches": Script(
        """
        train_dl = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        valid_dl = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        model = nn.Linear(8, 2)
        loss_func = F.cross_entropy
        opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(3):
            model.train()
            for xb, yb in train_dl:
                pred = model(xb)
                loss = loss_func(pred, yb)
                loss.backward()
                opt.step()
                opt.zero_grad()

            model.eval()
            with torch.no_grad():
                valid_loss = sum(loss_func(model(xb), yb) for xb, yb in valid_dl)
            print(f"{epoch} valid {valid_loss / len(valid_dl):.6f}")
        """,
        same=("0", "1", "2"),
    ),
    "losses of batches and their sizes zipped": Script(
        """
        import numpy as np


        def loss_batch(model, loss_func, xb, yb, opt=None):
            loss = loss_func(model(xb), yb)
            if opt is not None:
                loss.backward()
                opt.step()
                opt.zero_grad()
            return loss.item(), len(xb)


        def fit(epochs, model, loss_func, opt, train_dl, valid_dl):
            for epoch in range(epochs):
                model.train()
                for xb, yb in train_dl:
                    loss_batch(model, loss_func, xb, yb, opt)
                model.eval()
                with torch.no_grad():
                    losses, nums = zip(*[loss_batch(model, loss_func, xb, yb) for xb, yb in valid_dl])
                val_loss = np.sum(np.multiply(losses, nums)) / np.sum(nums)
                print(f"epoch {epoch} {val_loss:.6f}")


        model = nn.Linear(8, 2)
        train_dl = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        valid_dl = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        fit(3, model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), train_dl, valid_dl)
        """,
        same=("epoch",),
    ),
    "an epoch with or without an optimizer": Script(
        """
        def run_epoch(model, loader, criterion, optimizer=None):
            is_train = optimizer is not None
            model.train(is_train)
            total_loss, total_correct, total = 0.0, 0, 0
            with torch.set_grad_enabled(is_train):
                for inputs, targets in loader:
                    inputs, targets = inputs.to(device), targets.to(device)
                    outputs = model(inputs)
                    loss = criterion(outputs, targets)
                    if is_train:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    total_loss += loss.item() * inputs.size(0)
                    total_correct += (outputs.argmax(1) == targets).sum().item()
                    total += inputs.size(0)
            return total_loss / total, total_correct / total


        device = "cuda" if torch.cuda.is_available() else "cpu"
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).to(device)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(1, 4):
            train_loss, train_acc = run_epoch(model, train_loader, criterion, optimizer)
            val_loss, val_acc = run_epoch(model, val_loader, criterion)
            print(f"{epoch:02d} train {train_loss:.4f}/{train_acc:.4f} val {val_loss:.4f}/{val_acc:.4f}")
        """,
        same=("01", "02", "03"),
    ),
    "an epoch function with a flag for training": Script(
        """
        def one_epoch(net, loader, train: bool):
            if train:
                net.train()
            else:
                net.eval()
            loss_sum, hits, n = 0.0, 0, 0
            for batch, labels in loader:
                batch, labels = batch.cuda(), labels.cuda()
                if train:
                    optimizer.zero_grad()
                    logits = net(batch)
                    loss = F.cross_entropy(logits, labels)
                    loss.backward()
                    optimizer.step()
                else:
                    with torch.no_grad():
                        logits = net(batch)
                        loss = F.cross_entropy(logits, labels)
                loss_sum += loss.item() * len(labels)
                hits += int((logits.argmax(1) == labels).sum())
                n += len(labels)
            name = "train" if train else "valid"
            print("%s loss=%.5f acc=%.5f" % (name, loss_sum / n, hits / n))
            return loss_sum / n


        net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
        loader_train = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        loader_valid = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        best = 1e9
        for epoch in range(4):
            one_epoch(net, loader_train, True)
            current = one_epoch(net, loader_valid, train=False)
            if current < best:
                best = current
                torch.save({"state_dict": net.state_dict(), "loss": best}, "best.pth.tar")
        """,
        same=("train", "valid"),
    ),
    "phases of the transfer learning tutorial": Script(
        """
        import copy
        import time


        def train_model(model, criterion, optimizer, scheduler, num_epochs=25):
            since = time.time()
            best_model_wts = copy.deepcopy(model.state_dict())
            best_acc = 0.0
            for epoch in range(num_epochs):
                print("Epoch {}/{}".format(epoch, num_epochs - 1))
                print("-" * 10)
                for phase in ["train", "val"]:
                    if phase == "train":
                        model.train()
                    else:
                        model.eval()
                    running_loss = 0.0
                    running_corrects = 0
                    for inputs, labels in dataloaders[phase]:
                        inputs = inputs.to(device)
                        labels = labels.to(device)
                        optimizer.zero_grad()
                        with torch.set_grad_enabled(phase == "train"):
                            outputs = model(inputs)
                            _, preds = torch.max(outputs, 1)
                            loss = criterion(outputs, labels)
                            if phase == "train":
                                loss.backward()
                                optimizer.step()
                        running_loss += loss.item() * inputs.size(0)
                        running_corrects += torch.sum(preds == labels.data)
                    if phase == "train":
                        scheduler.step()
                    epoch_loss = running_loss / dataset_sizes[phase]
                    epoch_acc = running_corrects.double() / dataset_sizes[phase]
                    print("{} Loss: {:.4f} Acc: {:.4f}".format(phase, epoch_loss, epoch_acc))
                    if phase == "val" and epoch_acc > best_acc:
                        best_acc = epoch_acc
                        best_model_wts = copy.deepcopy(model.state_dict())
            time_elapsed = time.time() - since
            print("Training complete in {:.0f}m {:.0f}s".format(time_elapsed // 60, time_elapsed % 60))
            print("Best val Acc: {:4f}".format(best_acc))
            model.load_state_dict(best_model_wts)
            return model


        datasets = {"train": TensorDataset(x, y), "val": TensorDataset(x[21:], y[21:])}
        dataloaders = {k: DataLoader(datasets[k], batch_size=4, shuffle=True) for k in ["train", "val"]}
        dataset_sizes = {k: len(datasets[k]) for k in ["train", "val"]}
        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        model_ft = nn.Linear(8, 2).to(device)
        optimizer_ft = torch.optim.SGD(model_ft.parameters(), lr=0.1, momentum=0.9)
        exp_lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer_ft, step_size=2, gamma=0.1)
        model_ft = train_model(model_ft, nn.CrossEntropyLoss(), optimizer_ft, exp_lr_scheduler, num_epochs=3)
        torch.save(model_ft.state_dict(), "model_ft.pth")
        """,
        same=("Epoch", "train Loss", "val Loss", "Best val"),
    ),
    "phases whose loader is chosen by a conditional": Script(
        """
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4, shuffle=False)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        criterion = nn.CrossEntropyLoss()
        history = {"train": [], "val": []}
        for epoch in range(3):
            for phase in ("train", "val"):
                training = phase == "train"
                loader = train_loader if training else val_loader
                model.train(training)
                running_loss, seen = 0.0, 0
                for data, target in loader:
                    data, target = data.cuda(), target.cuda()
                    with torch.set_grad_enabled(training):
                        loss = criterion(model(data), target)
                    if training:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    running_loss += loss.item() * data.size(0)
                    seen += data.size(0)
                history[phase].append(running_loss / seen)
        print("train", ["%.5f" % v for v in history["train"]])
        print("val", ["%.5f" % v for v in history["val"]])
        """,
        same=("train", "val"),
    ),
    "an evaluate method of a trainer": Script(
        """
        class Trainer:
            def __init__(self, model, train_loader, val_loader, lr=0.1):
                self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.model = model.to(self.device)
                self.train_loader = train_loader
                self.val_loader = val_loader
                self.criterion = nn.CrossEntropyLoss()
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
                self.best = 0.0

            def train_one_epoch(self):
                self.model.train()
                for data, target in self.train_loader:
                    data, target = data.to(self.device), target.to(self.device)
                    self.optimizer.zero_grad()
                    self.criterion(self.model(data), target).backward()
                    self.optimizer.step()

            @torch.no_grad()
            def evaluate(self):
                self.model.eval()
                loss, correct = 0.0, 0
                for data, target in self.val_loader:
                    data, target = data.to(self.device), target.to(self.device)
                    output = self.model(data)
                    loss += self.criterion(output, target).item()
                    correct += output.argmax(dim=1).eq(target).sum().item()
                return {"loss": loss / len(self.val_loader), "acc": correct / len(self.val_loader.dataset)}

            def fit(self, epochs):
                for epoch in range(epochs):
                    self.train_one_epoch()
                    stats = self.evaluate()
                    print(f"[{epoch}] loss {stats['loss']:.5f} acc {stats['acc']:.5f}")
                    if stats["acc"] > self.best:
                        self.best = stats["acc"]
                        torch.save(self.model.state_dict(), "best.pt")


        Trainer(
            nn.Linear(8, 2),
            DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
            DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6),
        ).fit(3)
        """,
        same=("[",),
    ),
    "totals kept on the trainer": Script(
        """
        class Solver(object):
            def __init__(self):
                self.train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
                self.test_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6, shuffle=False)
                self.model = nn.Linear(8, 2).cuda()
                self.criterion = nn.CrossEntropyLoss().cuda()
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

            def train(self):
                self.model.train()
                self.train_loss = 0
                self.train_correct = 0
                self.total = 0
                for data, target in self.train_loader:
                    data, target = data.cuda(), target.cuda()
                    self.optimizer.zero_grad()
                    output = self.model(data)
                    loss = self.criterion(output, target)
                    loss.backward()
                    self.optimizer.step()
                    self.train_loss += loss.item()
                    prediction = torch.max(output, 1)
                    self.total += target.size(0)
                    self.train_correct += (prediction[1] == target).sum().item()

            def test(self):
                self.model.eval()
                self.test_correct = 0
                self.test_total = 0
                with torch.no_grad():
                    for data, target in self.test_loader:
                        output = self.model(data.cuda())
                        self.test_total += target.size(0)
                        self.test_correct += (output.argmax(1) == target.cuda()).sum().item()

            def run(self):
                accuracy = 0
                for epoch in range(1, 4):
                    print("===> epoch: %d/3" % epoch)
                    self.train()
                    print("train loss %.4f acc %.4f" % (self.train_loss / len(self.train_loader), self.train_correct / self.total))
                    self.test()
                    accuracy = max(accuracy, self.test_correct / self.test_total)
                print("best accuracy: %.3f%%" % (accuracy * 100))


        def main():
            solver = Solver()
            solver.run()


        if __name__ == "__main__":
            main()
        """,
        same=("===>", "train", "best"),
    ),
    "hits and losses added up as tensors": Script(
        """
        def test(model, loader):
            model.eval()
            correct = torch.tensor(0).cuda()
            test_loss = torch.zeros((), device=device)
            with torch.no_grad():
                for data, target in loader:
                    data, target = data.to(device), target.to(device)
                    logits = model(data)
                    test_loss += F.cross_entropy(logits, target, reduction="sum")
                    correct += (logits.argmax(1) == target).sum()
            n = len(loader.dataset)
            print(f"Test set: Average loss: {test_loss / n:.4f}, Accuracy: {correct}/{n} ({100.0 * correct / n:.0f}%)")


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                data, target = data.to(device), target.to(device)
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            test(model, test_loader)
        """,
        same=("Test set",),
    ),
    "totals in a dictionary of metrics": Script(
        """
        def evaluate(model, loader):
            model.eval()
            metrics = {"loss": 0.0, "correct": 0, "total": 0}
            with torch.no_grad():
                for data, target in loader:
                    output = model(data)
                    metrics["loss"] += F.cross_entropy(output, target, reduction="sum").item()
                    metrics["correct"] += (output.argmax(1) == target).sum().item()
                    metrics["total"] += target.numel()
            metrics["loss"] /= metrics["total"]
            metrics["acc"] = metrics["correct"] / metrics["total"]
            return metrics


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            metrics = evaluate(model, val_loader)
            print("val " + ", ".join(f"{k}: {v:.4f}" for k, v in metrics.items()))
        """,
        same=("val",),
    ),
    "totals in a defaultdict": Script(
        """
        from collections import defaultdict


        def print_metrics(metrics, epoch_samples, phase):
            outputs = []
            for k in sorted(metrics.keys()):
                outputs.append("{}: {:4f}".format(k, metrics[k] / epoch_samples))
            print("{}: {}".format(phase, ", ".join(outputs)))


        def calc_loss(pred, target, metrics):
            bce = F.binary_cross_entropy_with_logits(pred, target)
            mse = F.mse_loss(torch.sigmoid(pred), target)
            loss = bce * 0.5 + mse * 0.5
            metrics["bce"] += bce.item() * target.size(0)
            metrics["mse"] += mse.item() * target.size(0)
            metrics["loss"] += loss.item() * target.size(0)
            return loss


        dataloaders = {
            "train": DataLoader(TensorDataset(x, (x > 0.2).double()), batch_size=4, shuffle=True),
            "val": DataLoader(TensorDataset(x[21:], (x[21:] > 0).double()), batch_size=6),
        }
        model = nn.Linear(8, 8).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(3):
            for phase in ["train", "val"]:
                model.train() if phase == "train" else model.eval()
                metrics = defaultdict(float)
                epoch_samples = 0
                for inputs, labels in dataloaders[phase]:
                    inputs, labels = inputs.cuda(), labels.cuda()
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        loss = calc_loss(model(inputs), labels, metrics)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    epoch_samples += inputs.size(0)
                print_metrics(metrics, epoch_samples, phase)
        """,
        same=("train", "val"),
    ),
    "a list of losses averaged by numpy": Script(
        """
        import numpy as np

        train_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        valid_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        avg_train_losses, avg_valid_losses = [], []
        for epoch in range(1, 4):
            train_losses = []
            valid_losses = []
            model.train()
            for batch, (data, target) in enumerate(train_loader, 1):
                optimizer.zero_grad()
                loss = criterion(model(data), target)
                loss.backward()
                optimizer.step()
                train_losses.append(loss.item())
            model.eval()
            with torch.no_grad():
                for data, target in valid_loader:
                    loss = criterion(model(data), target)
                    valid_losses.append(loss.item())
            train_loss = np.average(train_losses)
            valid_loss = np.mean(valid_losses)
            avg_train_losses.append(train_loss)
            avg_valid_losses.append(valid_loss)
            print(f"[{epoch}/3] train_loss: {train_loss:.5f} valid_loss: {valid_loss:.5f}")
        print("lowest", round(min(avg_valid_losses), 5))
        """,
        same=("[", "lowest"),
    ),
    "a list of losses, summed and divided by its length": Script(
        """
        def validate(net, loader):
            net.eval()
            losses = []
            accs = []
            for data, label in loader:
                with torch.no_grad():
                    out = net(data)
                losses.append(F.cross_entropy(out, label).item())
                accs.append((out.argmax(1) == label).float().mean().item())
            net.train()
            return sum(losses) / len(losses), sum(accs) / len(accs)


        def main():
            net = nn.Linear(8, 2)
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
            for epoch in range(3):
                epoch_losses = []
                for data, label in loader:
                    loss = F.cross_entropy(net(data), label)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    epoch_losses.append(loss.item())
                val_loss, val_acc = validate(net, val_loader)
                mean_loss = sum(epoch_losses) / len(epoch_losses)
                print("epoch: {}, loss: {:.5f}, val: {:.5f}, acc: {:.5f}".format(epoch, mean_loss, val_loss, val_acc))


        main()
        """,
        same=("epoch",),
    ),
    "steps that return dictionaries, stacked at the end": Script(
        """
        class Base(nn.Module):
            def training_step(self, batch):
                images, labels = batch
                return F.cross_entropy(self(images), labels)

            def validation_step(self, batch):
                images, labels = batch
                out = self(images)
                loss = F.cross_entropy(out, labels)
                acc = torch.tensor(torch.sum(out.argmax(1) == labels).item() / len(labels))
                return {"val_loss": loss.detach(), "val_acc": acc}

            def validation_epoch_end(self, outputs):
                epoch_loss = torch.stack([o["val_loss"] for o in outputs]).mean()
                epoch_acc = torch.stack([o["val_acc"] for o in outputs]).mean()
                return {"val_loss": epoch_loss.item(), "val_acc": epoch_acc.item()}


        class Net(Base):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(8, 2)

            def forward(self, xb):
                return self.linear(xb)


        @torch.no_grad()
        def evaluate(model, val_loader):
            model.eval()
            outputs = [model.validation_step(batch) for batch in val_loader]
            return model.validation_epoch_end(outputs)


        model = Net()
        train_loader = DataLoader(TensorDataset(x, y), 4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), 6)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        history = []
        for epoch in range(3):
            model.train()
            train_losses = []
            for batch in train_loader:
                loss = model.training_step(batch)
                train_losses.append(loss)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            result = evaluate(model, val_loader)
            result["train_loss"] = torch.stack(train_losses).mean().item()
            losses = f"train_loss: {result['train_loss']:.4f}, val_loss: {result['val_loss']:.4f}"
            print(f"Epoch [{epoch}], {losses}, val_acc: {result['val_acc']:.4f}")
            history.append(result)
        """,
        same=("Epoch",),
        told=("DDP201",),
    ),
    "losses stacked into a tensor": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        net = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(data.cuda()), target.cuda()).backward()
                optimizer.step()
            with torch.no_grad():
                losses, hits = [], []
                for data, target in val_loader:
                    out = net(data.cuda())
                    losses.append(F.cross_entropy(out, target.cuda()))
                    hits.append(out.argmax(1) == target.cuda())
            print(f"val {torch.stack(losses).mean().item():.5f} {torch.cat(hits).double().mean().item():.5f}")
        """,
        same=("val",),
    ),
    "meters of the imagenet example": Script(
        """
        import time


        class AverageMeter(object):
            def __init__(self, name, fmt=":f"):
                self.name = name
                self.fmt = fmt
                self.reset()

            def reset(self):
                self.val = 0
                self.avg = 0
                self.sum = 0
                self.count = 0

            def update(self, val, n=1):
                self.val = val
                self.sum += val * n
                self.count += n
                self.avg = self.sum / self.count

            def __str__(self):
                fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
                return fmtstr.format(**self.__dict__)


        class ProgressMeter(object):
            def __init__(self, num_batches, meters, prefix=""):
                self.num_batches = num_batches
                self.meters = meters
                self.prefix = prefix

            def display(self, batch):
                entries = [self.prefix + f"[{batch}/{self.num_batches}]"]
                print("\\t".join(entries + [str(meter) for meter in self.meters]))


        def accuracy(output, target, topk=(1,)):
            with torch.no_grad():
                maxk = max(topk)
                batch_size = target.size(0)
                _, pred = output.topk(maxk, 1, True, True)
                pred = pred.t()
                correct = pred.eq(target.view(1, -1).expand_as(pred))
                res = []
                for k in topk:
                    correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
                    res.append(correct_k.mul_(100.0 / batch_size))
                return res


        def train(train_loader, model, criterion, optimizer, epoch):
            batch_time = AverageMeter("Time", ":6.3f")
            losses = AverageMeter("Loss", ":.4e")
            top1 = AverageMeter("Acc@1", ":6.2f")
            progress = ProgressMeter(len(train_loader), [batch_time, losses, top1], prefix=f"Train: [{epoch}]")
            model.train()
            end = time.time()
            for i, (images, target) in enumerate(train_loader):
                images, target = images.cuda(non_blocking=True), target.cuda(non_blocking=True)
                output = model(images)
                loss = criterion(output, target)
                acc1, acc2 = accuracy(output, target, topk=(1, 2))
                losses.update(loss.item(), images.size(0))
                top1.update(acc1[0].item(), images.size(0))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                batch_time.update(time.time() - end)
                end = time.time()
                if i % 5 == 0:
                    progress.display(i)


        def validate(val_loader, model, criterion):
            losses = AverageMeter("Loss", ":.4e")
            top1 = AverageMeter("Acc@1", ":6.2f")
            top2 = AverageMeter("Acc@2", ":6.2f")
            model.eval()
            with torch.no_grad():
                for i, (images, target) in enumerate(val_loader):
                    images, target = images.cuda(), target.cuda()
                    output = model(images)
                    acc1, acc2 = accuracy(output, target, topk=(1, 2))
                    losses.update(criterion(output, target).item(), images.size(0))
                    top1.update(acc1[0].item(), images.size(0))
                    top2.update(acc2[0].item(), images.size(0))
                print(" * Acc@1 {top1.avg:.3f} Acc@2 {top2.avg:.3f} Loss {losses.avg:.5f}".format(top1=top1, top2=top2, losses=losses))
            return top1.avg


        model = nn.Linear(8, 4).cuda()
        criterion = nn.CrossEntropyLoss().cuda()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        best_acc1 = 0
        for epoch in range(3):
            train(train_loader, model, criterion, optimizer, epoch)
            acc1 = validate(val_loader, model, criterion)
            is_best = acc1 > best_acc1
            best_acc1 = max(acc1, best_acc1)
            if is_best:
                torch.save({"epoch": epoch + 1, "state_dict": model.state_dict(), "best_acc1": best_acc1}, "model_best.pth.tar")
        """,
        same=(" * Acc@1",),
    ),
    "a meter in a local module": Script(
        """
        from utils import AverageMeter, accuracy


        def train(loader, model, criterion, optimizer):
            losses, top1 = AverageMeter(), AverageMeter()
            model.train()
            for input, target in loader:
                input, target = input.cuda(), target.cuda()
                output = model(input)
                loss = criterion(output, target)
                losses.update(loss.item(), input.size(0))
                top1.update(accuracy(output, target), input.size(0))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return losses.avg, top1.avg


        def validate(loader, model, criterion):
            losses, top1 = AverageMeter(), AverageMeter()
            model.eval()
            with torch.no_grad():
                for input, target in loader:
                    input, target = input.cuda(), target.cuda()
                    output = model(input)
                    losses.update(criterion(output, target).item(), input.size(0))
                    top1.update(accuracy(output, target), input.size(0))
            return losses.avg, top1.avg


        model = nn.Linear(8, 2).cuda()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        for epoch in range(3):
            train_loss, train_acc = train(loader, model, criterion, optimizer)
            val_loss, val_acc = validate(val_loader, model, criterion)
            print("epoch %d: %.5f %.5f %.5f %.5f" % (epoch, train_loss, train_acc, val_loss, val_acc))
        """,
        same=("epoch",),
        files={
            "utils.py": '''\
class AverageMeter(object):
    """Computes and stores the average and current value"""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target):
    return (output.argmax(1) == target).sum().item() / target.size(0)
'''
        },
    ),
    "a dictionary of meters": Script(
        """
        class Meter:
            def __init__(self):
                self.total, self.n = 0.0, 0

            def add(self, value, n):
                self.total += value * n
                self.n += n

            @property
            def avg(self):
                return self.total / max(self.n, 1)


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            meters = {name: Meter() for name in ("train_loss", "val_loss", "val_acc")}
            model.train()
            for data, target in train_loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                meters["train_loss"].add(loss.item(), data.size(0))
            model.eval()
            for data, target in val_loader:
                with torch.no_grad():
                    output = model(data)
                meters["val_loss"].add(F.cross_entropy(output, target).item(), data.size(0))
                meters["val_acc"].add((output.argmax(1) == target).double().mean().item(), data.size(0))
            print(f"epoch {epoch} " + " ".join(f"{name} {meter.avg:.5f}" for name, meter in meters.items()))
        """,
        same=("epoch",),
    ),
    "a confusion matrix filled pair by pair": Script(
        """
        nb_classes = 2
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, nb_classes).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()

        model.eval()
        confusion_matrix = torch.zeros(nb_classes, nb_classes)
        with torch.no_grad():
            for i, (inputs, classes) in enumerate(val_loader):
                inputs = inputs.cuda()
                classes = classes.cuda()
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                for t, p in zip(classes.view(-1), preds.view(-1)):
                    confusion_matrix[t.long(), p.long()] += 1
        print("matrix", confusion_matrix.tolist())
        print("by class", (confusion_matrix.diag() / confusion_matrix.sum(1)).tolist())
        """,
        same=("matrix", "by class"),
    ),
    "a confusion matrix by bincount": Script(
        """
        import numpy as np


        class Evaluator(object):
            def __init__(self, num_class):
                self.num_class = num_class
                self.confusion_matrix = np.zeros((self.num_class,) * 2)

            def Pixel_Accuracy(self):
                return np.diag(self.confusion_matrix).sum() / self.confusion_matrix.sum()

            def Mean_IoU(self):
                hist = self.confusion_matrix
                return np.nanmean(np.diag(hist) / (hist.sum(axis=1) + hist.sum(axis=0) - np.diag(hist)))

            def add_batch(self, gt_image, pre_image):
                mask = (gt_image >= 0) & (gt_image < self.num_class)
                label = self.num_class * gt_image[mask].astype("int") + pre_image[mask]
                count = np.bincount(label, minlength=self.num_class**2)
                self.confusion_matrix += count.reshape(self.num_class, self.num_class)

            def reset(self):
                self.confusion_matrix = np.zeros((self.num_class,) * 2)


        pixels = (x > 0.3).long() + (x > -0.3).long()
        train_loader = DataLoader(TensorDataset(x, pixels), batch_size=4, shuffle=True, drop_last=True)
        val_loader = DataLoader(TensorDataset(x[21:], pixels[21:]), batch_size=6, shuffle=False)
        model = nn.Conv1d(1, 3, 3, padding=1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        evaluator = Evaluator(3)
        best_pred = 0.0
        for epoch in range(2):
            model.train()
            for image, target in train_loader:
                image, target = image.unsqueeze(1).cuda(), target.cuda()
                optimizer.zero_grad()
                loss = F.cross_entropy(model(image), target)
                loss.backward()
                optimizer.step()
            model.eval()
            evaluator.reset()
            for image, target in val_loader:
                with torch.no_grad():
                    output = model(image.unsqueeze(1).cuda())
                pred = np.argmax(output.data.cpu().numpy(), axis=1)
                evaluator.add_batch(target.cpu().numpy(), pred)
            print("Validation Acc:{:.5f}, mIoU:{:.5f}".format(evaluator.Pixel_Accuracy(), evaluator.Mean_IoU()))
            if evaluator.Mean_IoU() > best_pred:
                best_pred = evaluator.Mean_IoU()
                torch.save(model.state_dict(), "model_best.pth")
        """,
        same=("Validation",),
    ),
    "a confusion matrix by torch's bincount": Script(
        """
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            mat = torch.zeros((2, 2), dtype=torch.int64)
            with torch.inference_mode():
                for data, target in val_loader:
                    pred = model(data).argmax(1)
                    inds = 2 * target + pred
                    mat += torch.bincount(inds, minlength=4).reshape(2, 2)
            h = mat.double()
            print("acc %.4f recall %s" % ((h.diag().sum() / h.sum()).item(), (h.diag() / h.sum(1)).tolist()))
        """,
        same=("acc",),
    ),
    "a confusion matrix by numpy's add.at": Script(
        """
        import numpy as np


        def evaluate(net, loader, n_classes):
            net.eval()
            cm = np.zeros((n_classes, n_classes), dtype=np.int64)
            for inputs, labels in loader:
                with torch.no_grad():
                    preds = net(inputs).argmax(dim=1)
                np.add.at(cm, (labels.numpy(), preds.numpy()), 1)
            return cm


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(net(data), target).backward()
                optimizer.step()
            cm = evaluate(net, val_loader, 2)
            print("confusion", cm.tolist(), "accuracy", round(np.trace(cm) / cm.sum(), 4))
        """,
        same=("confusion",),
    ),
    "true and false positives counted": Script(
        """
        def evaluate(model, loader):
            tp = fp = fn = tn = 0
            model.eval()
            with torch.no_grad():
                for data, target in loader:
                    pred = (torch.sigmoid(model(data.cuda())).squeeze(1) > 0.5).long().cpu()
                    tp += ((pred == 1) & (target == 1)).sum().item()
                    fp += ((pred == 1) & (target == 0)).sum().item()
                    fn += ((pred == 0) & (target == 1)).sum().item()
                    tn += ((pred == 0) & (target == 0)).sum().item()
            precision = tp / (tp + fp + 1e-8)
            recall = tp / (tp + fn + 1e-8)
            f1 = 2 * precision * recall / (precision + recall + 1e-8)
            return precision, recall, f1, (tp + tn) / (tp + fp + fn + tn)


        model = nn.Linear(8, 1).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        criterion = nn.BCEWithLogitsLoss()
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        dev_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        for epoch in range(3):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                loss = criterion(model(data.cuda()).squeeze(1), target.double().cuda())
                loss.backward()
                optimizer.step()
            p, r, f1, acc = evaluate(model, dev_loader)
            print(f"P={p:.4f} R={r:.4f} F1={f1:.4f} acc={acc:.4f}")
        """,
        same=("P=",),
    ),
    "predictions concatenated, accuracy by numpy": Script(
        """
        import numpy as np


        def predict(model, loader):
            model.eval()
            outputs, targets = [], []
            with torch.no_grad():
                for data, target in loader:
                    outputs.append(model(data.to(device)).cpu())
                    targets.append(target)
            return torch.cat(outputs), torch.cat(targets)


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.to(device)), target.to(device)).backward()
                optimizer.step()
            outputs, targets = predict(model, test_loader)
            accuracy = np.mean(outputs.numpy().argmax(1) == targets.numpy())
            print(f"epoch {epoch}: accuracy {accuracy:.5f} loss {F.cross_entropy(outputs, targets).item():.5f}")
        """,
        same=("epoch",),
    ),
    "arrays appended to arrays": Script(
        """
        import numpy as np

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        dev_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                model.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
            model.eval()
            loss_total = 0
            predict_all = np.array([], dtype=int)
            labels_all = np.array([], dtype=int)
            with torch.no_grad():
                for texts, labels in dev_loader:
                    outputs = model(texts.cuda())
                    loss_total += F.cross_entropy(outputs, labels.cuda())
                    labels = labels.data.cpu().numpy()
                    predic = torch.max(outputs.data, 1)[1].cpu().numpy()
                    labels_all = np.append(labels_all, labels)
                    predict_all = np.append(predict_all, predic)
            acc = (labels_all == predict_all).mean()
            print("Val Loss: {:.5f}, Val Acc: {:.2%}".format(loss_total / len(dev_loader), acc))
        """,
        same=("Val",),
    ),
    "predictions extended as lists, scored by sklearn": Script(
        """
        from sklearn.metrics import accuracy_score, f1_score


        def evaluate(model, loader, criterion, device):
            model.eval()
            all_preds, all_labels = [], []
            running_loss = 0.0
            with torch.no_grad():
                for inputs, labels in loader:
                    inputs, labels = inputs.to(device), labels.to(device)
                    outputs = model(inputs)
                    running_loss += criterion(outputs, labels).item()
                    preds = outputs.argmax(dim=1)
                    all_preds.extend(preds.cpu().numpy().tolist())
                    all_labels.extend(labels.cpu().numpy().tolist())
            acc = accuracy_score(all_labels, all_preds)
            f1 = f1_score(all_labels, all_preds, average="macro")
            return running_loss / len(loader), acc, f1


        def main():
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = nn.Linear(8, 2).to(device)
            criterion = nn.CrossEntropyLoss()
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
            for epoch in range(3):
                model.train()
                for inputs, labels in train_loader:
                    inputs, labels = inputs.to(device), labels.to(device)
                    optimizer.zero_grad()
                    loss = criterion(model(inputs), labels)
                    loss.backward()
                    optimizer.step()
                val_loss, acc, f1 = evaluate(model, val_loader, criterion, device)
                print(f"Val loss {val_loss:.4f} acc {acc:.4f} f1 {f1:.4f}")


        if __name__ == "__main__":
            main()
        """,
        same=("Val",),
    ),
    "a list added to, and a confusion matrix by sklearn": Script(
        """
        from sklearn.metrics import confusion_matrix

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        y_pred, y_true = [], []
        model.eval()
        for data, target in test_loader:
            with torch.no_grad():
                out = model(data)
            y_pred += out.argmax(1).tolist()
            y_true += target.tolist()
        cm = confusion_matrix(y_true, y_pred)
        print("cm", cm.tolist())
        print("wrong", [i for i, (a, b) in enumerate(zip(y_true, y_pred)) if a != b])
        """,
        same=("cm", "wrong"),
    ),
    "an area under the curve by sklearn": Script(
        """
        import numpy as np
        from sklearn.metrics import roc_auc_score

        loader = DataLoader(TensorDataset(x, y.double()), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:].double()), batch_size=6)
        model = nn.Linear(8, 1).cuda()
        criterion = nn.BCEWithLogitsLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        best_auc = 0
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                loss = criterion(model(data.cuda()), target.view(-1, 1).cuda())
                loss.backward()
                optimizer.step()
            model.eval()
            probs, labels = [], []
            with torch.no_grad():
                for data, target in val_loader:
                    logits = model(data.cuda())
                    probs.append(torch.sigmoid(logits).cpu().numpy())
                    labels.append(target.numpy())
            auc = roc_auc_score(np.concatenate(labels), np.vstack(probs)[:, 0])
            if auc > best_auc:
                best_auc = auc
                torch.save(model.state_dict(), "best_auc.pth")
            print(f"epoch {epoch} auc {auc:.5f} best {best_auc:.5f}")
        """,
        same=("epoch",),
    ),
    "hits by class as in the tutorial": Script(
        """
        classes = ("plane", "car")
        trainloader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        testloader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6, shuffle=False)
        net = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(2):
            for i, data in enumerate(trainloader, 0):
                inputs, labels = data
                optimizer.zero_grad()
                outputs = net(inputs)
                loss = criterion(outputs, labels)
                loss.backward()
                optimizer.step()
        print("Finished Training")

        class_correct = list(0.0 for i in range(2))
        class_total = list(0.0 for i in range(2))
        with torch.no_grad():
            for data in testloader:
                images, labels = data
                outputs = net(images)
                _, predicted = torch.max(outputs, 1)
                c = (predicted == labels).squeeze()
                for i in range(len(labels)):
                    label = labels[i]
                    class_correct[label] += c[i].item()
                    class_total[label] += 1
        for i in range(2):
            print("Accuracy of %5s : %.2f %%" % (classes[i], 100 * class_correct[i] / class_total[i]))
        """,
        same=("Finished", "Accuracy"),
    ),
    "hits by the name of the class": Script(
        """
        classes = ("plane", "car")
        trainloader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        testloader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for inputs, labels in trainloader:
                optimizer.zero_grad()
                F.cross_entropy(net(inputs), labels).backward()
                optimizer.step()

        correct_pred = {classname: 0 for classname in classes}
        total_pred = {classname: 0 for classname in classes}
        with torch.no_grad():
            for data in testloader:
                images, labels = data
                outputs = net(images)
                _, predictions = torch.max(outputs, 1)
                for label, prediction in zip(labels, predictions):
                    if label == prediction:
                        correct_pred[classes[label]] += 1
                    total_pred[classes[label]] += 1
        for classname, correct_count in correct_pred.items():
            accuracy = 100 * float(correct_count) / total_pred[classname]
            print(f"Accuracy for class: {classname:5s} is {accuracy:.1f} %")
        """,
        same=("Accuracy",),
    ),
    "predictions stored by index": Script(
        """
        import numpy as np


        class Indexed(Dataset):
            def __init__(self, data, labels):
                self.data, self.labels = data, labels

            def __len__(self):
                return len(self.data)

            def __getitem__(self, index):
                return self.data[index], self.labels[index], index


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_set = Indexed(x[21:], y[21:])
        val_loader = DataLoader(val_set, batch_size=6)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
            model.eval()
            predictions = np.zeros(len(val_set))
            with torch.no_grad():
                for data, target, index in val_loader:
                    prob = F.softmax(model(data.cuda()), dim=1)[:, 1]
                    predictions[index.numpy()] = prob.cpu().numpy()
            ends = round(predictions[0], 5), round(predictions[-1], 5)
            print("epoch", epoch, "first and last", ends, "mean", round(predictions.mean(), 5))
        np.save("predictions.npy", predictions)
        """,
        same=("epoch",),
    ),
    "predictions written to a csv file": Script(
        """
        import csv

        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[21:]), batch_size=6, shuffle=False)
        model = nn.Linear(8, 2).cuda()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                criterion(model(data.cuda()), target.cuda()).backward()
                optimizer.step()

        model.eval()
        results = []
        with torch.no_grad():
            for (data,) in test_loader:
                results.extend(model(data.cuda()).argmax(dim=1).cpu().tolist())
        with open("submission.csv", "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["id", "label"])
            for i, label in enumerate(results):
                writer.writerow([i, label])
        print(f"{len(results)} predictions written, {sum(results)} ones, the first are {results[:8]}")
        """,
        same=("23 predictions",),
    ),
    "rows written to a csv file in the loop": Script(
        """
        def predict(model, loader, path):
            model.eval()
            rows = 0
            with open(path, "w") as f:
                f.write("id,score\\n")
                with torch.no_grad():
                    for i, (data, _) in enumerate(loader):
                        scores = torch.sigmoid(model(data)).squeeze(1)
                        for score in scores.tolist():
                            f.write(f"{rows},{score:.6f}\\n")
                            rows += 1
            print("wrote", rows, "rows to", path)


        train_loader = DataLoader(TensorDataset(x, y.double()), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.binary_cross_entropy_with_logits(model(data).squeeze(1), target).backward()
                optimizer.step()
        predict(model, test_loader, "scores.csv")
        """,
        same=("wrote",),
    ),
    "an averaged copy that is evaluated": Script(
        """
        import copy


        @torch.no_grad()
        def update_ema(ema_model, model, decay=0.9):
            for e, p in zip(ema_model.parameters(), model.parameters()):
                e.data.mul_(decay).add_(p.data, alpha=1 - decay)


        @torch.no_grad()
        def evaluate(net, loader):
            net.eval()
            loss_sum, hits = 0.0, 0
            for data, target in loader:
                out = net(data.cuda())
                loss_sum += F.cross_entropy(out, target.cuda(), reduction="sum").item()
                hits += (out.argmax(1) == target.cuda()).sum().item()
            return loss_sum / len(loader.dataset), hits / len(loader.dataset)


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).cuda()
        ema_model = copy.deepcopy(model)
        for p in ema_model.parameters():
            p.requires_grad_(False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                optimizer.step()
                update_ema(ema_model, model)
            loss, acc = evaluate(model, val_loader)
            ema_loss, ema_acc = evaluate(ema_model, val_loader)
            print(f"epoch {epoch} raw {loss:.5f} {acc:.4f} ema {ema_loss:.5f} {ema_acc:.4f}")
        torch.save({"model": model.state_dict(), "ema": ema_model.state_dict()}, "last.pt")
        """,
        same=("epoch",),
    ),
    "a shadow of the weights that is swapped in": Script(
        """
        class EMA:
            def __init__(self, model, decay):
                self.model = model
                self.decay = decay
                self.shadow = {}
                self.backup = {}

            def register(self):
                for name, param in self.model.named_parameters():
                    if param.requires_grad:
                        self.shadow[name] = param.data.clone()

            def update(self):
                for name, param in self.model.named_parameters():
                    if param.requires_grad:
                        new_average = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                        self.shadow[name] = new_average.clone()

            def apply_shadow(self):
                for name, param in self.model.named_parameters():
                    if param.requires_grad:
                        self.backup[name] = param.data
                        param.data = self.shadow[name]

            def restore(self):
                for name, param in self.model.named_parameters():
                    if param.requires_grad:
                        param.data = self.backup[name]
                self.backup = {}


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ema = EMA(model, 0.9)
        ema.register()
        for epoch in range(2):
            model.train()
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                ema.update()
            ema.apply_shadow()
            model.eval()
            val_loss = 0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data), target).item()
            print(f"epoch {epoch} val {val_loss / len(val_loader):.5f}")
            ema.restore()
        """,
        same=("epoch",),
    ),
    "an evaluation every few steps": Script(
        """
        def evaluate(model, loader):
            was_training = model.training
            model.eval()
            losses = 0.0
            with torch.no_grad():
                for data, target in loader:
                    losses += F.cross_entropy(model(data), target).item()
            model.train(was_training)
            return losses / len(loader)


        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        eval_every = 5
        global_step = 0
        best_val = float("inf")
        for epoch in range(2):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
                global_step += 1
                if global_step % eval_every == 0:
                    val_loss = evaluate(model, val_loader)
                    print(f"val at step {global_step}: {val_loss:.6f}")
                    if val_loss < best_val:
                        best_val = val_loss
                        torch.save(model.state_dict(), "best.pt")
        print(f"best {best_val:.6f}")
        """,
        same=("val", "best"),
    ),
    "an evaluation written out inside the training loop": Script(
        """
        trainloader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        testloader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2), nn.LogSoftmax(dim=1)).cuda()
        criterion = nn.NLLLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
        epochs = 2
        steps = 0
        running_loss = 0
        print_every = 4
        for epoch in range(epochs):
            for inputs, labels in trainloader:
                steps += 1
                inputs, labels = inputs.cuda(), labels.cuda()
                logps = model.forward(inputs)
                loss = criterion(logps, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                running_loss += loss.item()
                if steps % print_every == 0:
                    test_loss = 0
                    accuracy = 0
                    model.eval()
                    with torch.no_grad():
                        for inputs, labels in testloader:
                            inputs, labels = inputs.cuda(), labels.cuda()
                            logps = model.forward(inputs)
                            test_loss += criterion(logps, labels).item()
                            ps = torch.exp(logps)
                            top_p, top_class = ps.topk(1, dim=1)
                            equals = top_class == labels.view(*top_class.shape)
                            accuracy += torch.mean(equals.type(torch.DoubleTensor)).item()
                    print(f"Train loss: {running_loss / print_every:.3f}")
                    print(f"Test loss: {test_loss / len(testloader):.4f}.. Test accuracy: {accuracy / len(testloader):.4f}")
                    running_loss = 0
                    model.train()
        """,
        same=("Test",),
    ),
    "the first and the first three guesses": Script(
        """
        def topk_correct(output, target, k):
            pred = output.topk(k, dim=1)[1]
            return pred.eq(target.unsqueeze(1)).any(dim=1).sum().item()


        def test(model, loader):
            model.eval()
            top1, top3, count = 0, 0, 0
            with torch.no_grad():
                for data, target in loader:
                    out = model(data)
                    top1 += topk_correct(out, target, 1)
                    top3 += topk_correct(out, target, 3)
                    count += len(target)
            return top1 / count * 100, top3 / count * 100


        labels = torch.arange(44) % 5
        loader = DataLoader(TensorDataset(x, labels), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[21:], labels[21:]), batch_size=6)
        model = nn.Linear(8, 5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        for epoch in range(3):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            top1, top3 = test(model, test_loader)
            print(f"top1 {top1:.3f} top3 {top3:.3f}")
        """,
        same=("top1",),
    ),
    "the perplexity of the average loss": Script(
        """
        import math


        class LM(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb = nn.Embedding(6, 5)
                self.rnn = nn.GRU(5, 7, batch_first=True)
                self.out = nn.Linear(7, 6)

            def forward(self, tokens):
                h, _ = self.rnn(self.emb(tokens))
                return self.out(h)


        tokens = (torch.arange(44 * 9) ** 2 % 11 % 6).view(44, 9)
        train_loader = DataLoader(TensorDataset(tokens[:, :-1], tokens[:, 1:]), batch_size=4, shuffle=True)
        valid_loader = DataLoader(TensorDataset(tokens[21:, :-1], tokens[21:, 1:]), batch_size=6)
        model = LM().cuda()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


        def evaluate(loader):
            model.eval()
            total_loss, total_tokens = 0.0, 0
            with torch.no_grad():
                for src, tgt in loader:
                    out = model(src.cuda())
                    loss = criterion(out.view(-1, 6), tgt.cuda().reshape(-1))
                    total_loss += loss.item() * tgt.numel()
                    total_tokens += tgt.numel()
            return total_loss / total_tokens


        for epoch in range(1, 3):
            model.train()
            train_loss = 0.0
            for src, tgt in train_loader:
                optimizer.zero_grad()
                loss = criterion(model(src.cuda()).view(-1, 6), tgt.cuda().reshape(-1))
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.25)
                optimizer.step()
                train_loss += loss.item()
            valid_loss = evaluate(valid_loader)
            print(f"| epoch {epoch} | train ppl {math.exp(train_loss / len(train_loader)):8.4f} | valid ppl {math.exp(valid_loss):8.4f}")
        """,
        same=("| epoch",),
    ),
    "the smallest and the largest loss of the batches": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            lowest, highest = float("inf"), 0.0
            worst = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    losses = F.cross_entropy(model(data), target, reduction="none")
                    lowest = min(lowest, losses.mean().item())
                    highest = max(highest, losses.mean().item())
                    if losses.max().item() > worst:
                        worst = losses.max().item()
            print(f"val between {lowest:.5f} and {highest:.5f}, worst sample {worst:.5f}")
        """,
        same=("val",),
    ),
    "errors of a regression and its r squared": Script(
        """
        import numpy as np

        goal = x.sum(1, keepdim=True)
        loader = DataLoader(TensorDataset(x, goal), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], goal[21:]), batch_size=6)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(3):
            model.train()
            squares, count = 0.0, 0
            for data, target in loader:
                loss = F.mse_loss(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                squares += loss.item() * data.shape[0]
                count += data.shape[0]
            rmse = np.sqrt(squares / count)
            model.eval()
            predicted, true = [], []
            mae = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    out = model(data)
                    mae += (out - target).abs().sum().item()
                    predicted.append(out.squeeze(1).numpy())
                    true.append(target.squeeze(1).numpy())
            predicted, true = np.concatenate(predicted), np.concatenate(true)
            r2 = 1 - ((true - predicted) ** 2).sum() / ((true - true.mean()) ** 2).sum()
            print(f"epoch {epoch}: train rmse {rmse:.5f}, val mae {mae / len(val_loader.dataset):.5f}, r2 {r2:.5f}")
        """,
        same=("epoch",),
    ),
    # --- numbers of the training ----------------------------------------------------------------------------------------
    "a list of the epochs' losses printed at the end": Script(
        """
        def train(model, loader, optimizer, epochs):
            train_losses = []
            for epoch in range(epochs):
                running_loss = 0.0
                for images, labels in loader:
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(images.cuda()), labels.cuda())
                    loss.backward()
                    optimizer.step()
                    running_loss += loss.item()
                train_losses.append(running_loss / len(loader))
            return train_losses


        model = nn.Linear(8, 2).cuda()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        losses = train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1), 3)
        for epoch, loss in enumerate(losses):
            print(f"epoch {epoch}: {loss:.6f}")
        torch.save({"model": model.state_dict(), "losses": losses}, "final.pth")
        """,
        same=("epoch",),
    ),
    "a loss divided by the size of the data set": Script(
        """
        def train(epoch):
            model.train()
            train_loss = 0
            for batch_idx, (data, target) in enumerate(train_loader):
                data, target = data.to(device), target.to(device)
                optimizer.zero_grad()
                loss = criterion(model(data), target)
                loss.backward()
                train_loss += loss.item() * len(data)
                optimizer.step()
                if batch_idx % 5 == 0:
                    print("Train Epoch: {} [{}/{} ({:.0f}%)]\\tLoss: {:.6f}".format(
                        epoch, batch_idx * len(data), len(train_loader.dataset), 100.0 * batch_idx / len(train_loader), loss.item()))
            print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(train_loader.dataset)))


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).to(device)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for epoch in range(1, 4):
            train(epoch)
        """,
        same=("====>",),
    ),
    "a loss divided by the last index": Script(
        """
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        trainloader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            train_loss = 0
            correct = 0
            total = 0
            for batch_idx, (inputs, targets) in enumerate(trainloader):
                optimizer.zero_grad()
                outputs = net(inputs)
                loss = F.cross_entropy(outputs, targets)
                loss.backward()
                optimizer.step()
                train_loss += loss.item()
                _, predicted = outputs.max(1)
                total += targets.size(0)
                correct += predicted.eq(targets).sum().item()
            print("Loss: %.5f | Acc: %.3f%% (%d/%d)" % (train_loss / (batch_idx + 1), 100.0 * correct / total, correct, total))
        """,
        same=("Loss",),
    ),
    "a running loss that starts anew every few steps": Script(
        """
        trainloader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(2):
            running_loss = 0.0
            for i, data in enumerate(trainloader, 0):
                inputs, labels = data
                optimizer.zero_grad()
                outputs = net(inputs)
                loss = criterion(outputs, labels)
                loss.backward()
                optimizer.step()
                running_loss += loss.item()
                if i % 4 == 3:
                    print(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 4:.3f}")
                    running_loss = 0.0
        print("Finished Training")
        torch.save(net.state_dict(), "./cifar_net.pth")
        """,
        same=("Finished",),
    ),
    "a dictionary of totals in training": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = nn.Linear(8, 4)
                self.dec = nn.Linear(4, 8)
                self.cls = nn.Linear(4, 2)

            def forward(self, x):
                z = torch.tanh(self.enc(x))
                return self.dec(z), self.cls(z)


        def train_one_epoch(model, loader, optimizer):
            totals = {"total": 0.0, "recon": 0.0, "cls": 0.0}
            for data, target in loader:
                recon, logits = model(data)
                losses = {"recon": F.mse_loss(recon, data), "cls": F.cross_entropy(logits, target)}
                loss = losses["recon"] + 0.5 * losses["cls"]
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                totals["total"] += loss.item()
                for name, value in losses.items():
                    totals[name] += value.item()
            return {name: value / len(loader) for name, value in totals.items()}


        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            stats = train_one_epoch(model, loader, optimizer)
            print(f"epoch {epoch}: total {stats['total']:.5f} recon {stats['recon']:.5f} cls {stats['cls']:.5f}")
        """,
        same=("epoch",),
    ),
    "tensors read after the loop": Script(
        """
        def train_epoch(net, loader, opt):
            total_loss, total_hits, n = 0, 0, 0
            for batch, label in loader:
                batch, label = batch.cuda(), label.cuda()
                out = net(batch)
                loss = F.cross_entropy(out, label)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total_loss += loss.detach() * batch.size(0)
                total_hits += (out.argmax(-1) == label).sum()
                n += batch.size(0)
            return (total_loss / n).item(), total_hits.item() / n


        net = nn.Linear(8, 2).cuda()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            l, a = train_epoch(net, loader, opt)
            print("epoch %d loss %.5f acc %.4f" % (epoch, l, a))
        """,
        same=("epoch",),
    ),
    "a smoothed loss printed after the loop": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        avg_loss = None
        for epoch in range(3):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                avg_loss = loss.item() if avg_loss is None else 0.98 * avg_loss + 0.02 * loss.item()
            print(f"epoch {epoch} smoothed loss {avg_loss:.6f}")
        """,
        same=("epoch",),
    ),
    "samples seen steer the learning rate": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        base_lr = 0.2
        optimizer = torch.optim.SGD(model.parameters(), lr=base_lr)
        epochs = 3
        seen = 0
        for epoch in range(epochs):
            for data, target in loader:
                lr = base_lr * (1 - seen / (epochs * len(loader.dataset))) ** 0.9
                for group in optimizer.param_groups:
                    group["lr"] = lr
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
                seen += len(data)
            print(f"epoch {epoch} seen {seen} lr {lr:.6f}")
        """,
        same=("epoch",),
    ),
    "a stop after so many samples": Script(
        """
        def main():
            max_samples = 100
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            num_samples, epoch = 0, 0
            done = False
            while not done:
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data.cuda()), target.cuda()).backward()
                    optimizer.step()
                    num_samples += data.size(0)
                    if num_samples >= max_samples:
                        done = True
                        break
                epoch += 1
            print(f"trained on {num_samples} samples in {epoch} epochs")


        main()
        """,
        same=("trained",),
    ),
    "a checkpoint every so many samples": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total_samples, next_save = 0, 30
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
                total_samples += target.shape[0]
                if total_samples >= next_save:
                    torch.save({"model": model.state_dict(), "samples": total_samples}, f"samples_{total_samples}.pt")
                    print("saved at", total_samples)
                    next_save += 30
        """,
        same=("saved",),
    ),
    "a global step that warms up": Script(
        """
        class Trainer:
            def __init__(self, model, loader):
                self.model = model
                self.loader = loader
                self.optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
                self.global_step = 0

            def adjust_lr(self, peak=0.2, warmup=8):
                lr = peak * min(1.0, self.global_step / warmup)
                for group in self.optimizer.param_groups:
                    group["lr"] = lr
                return lr

            def train(self, epochs):
                for epoch in range(epochs):
                    epoch_loss, batches = 0.0, 0
                    for data, target in self.loader:
                        self.global_step += 1
                        lr = self.adjust_lr()
                        loss = F.cross_entropy(self.model(data), target)
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                        epoch_loss += loss.item()
                        batches += 1
                        if self.global_step % 10 == 0:
                            torch.save(self.model.state_dict(), f"step_{self.global_step}.pt")
                    print(f"step {self.global_step} lr {lr:.5f} loss {epoch_loss / batches:.5f}")


        Trainer(nn.Linear(8, 2), DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)).train(4)
        """,
        same=("step",),
    ),
    "an accuracy in percent": Script(
        """
        def binary_acc(y_pred, y_test):
            y_pred_tag = torch.round(torch.sigmoid(y_pred))
            correct_results_sum = (y_pred_tag == y_test).sum().double()
            acc = correct_results_sum / y_test.shape[0]
            return acc * 100


        train_loader = DataLoader(dataset=TensorDataset(x, y.double()), batch_size=4, shuffle=True)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        model.to(device)
        criterion = nn.BCEWithLogitsLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        model.train()
        for e in range(1, 4):
            epoch_loss = 0
            epoch_acc = 0
            for X_batch, y_batch in train_loader:
                X_batch, y_batch = X_batch.to(device), y_batch.to(device)
                optimizer.zero_grad()
                y_pred = model(X_batch)
                loss = criterion(y_pred, y_batch.unsqueeze(1))
                acc = binary_acc(y_pred, y_batch.unsqueeze(1))
                loss.backward()
                optimizer.step()
                epoch_loss += loss.item()
                epoch_acc += acc.item()
            print(f"Epoch {e + 0:03}: | Loss: {epoch_loss / len(train_loader):.5f} | Acc: {epoch_acc / len(train_loader):.3f}")
        """,
        same=("Epoch",),
    ),
    "several losses returned as a tuple": Script(
        """
        class VAE(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc1 = nn.Linear(8, 6)
                self.fc21 = nn.Linear(6, 3)
                self.fc22 = nn.Linear(6, 3)
                self.fc3 = nn.Linear(3, 8)

            def forward(self, x):
                h = F.relu(self.fc1(x))
                mu, logvar = self.fc21(h), self.fc22(h)
                return self.fc3(mu), mu, logvar


        def train(model, loader, optimizer):
            total_loss, total_rec, total_kl = 0.0, 0.0, 0.0
            for (data,) in loader:
                recon, mu, logvar = model(data)
                rec = F.mse_loss(recon, data)
                kl = -0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())
                loss = rec + 0.1 * kl
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total_loss += loss.item()
                total_rec += rec.item()
                total_kl += kl.item()
            n = len(loader)
            return total_loss / n, total_rec / n, total_kl / n


        model = VAE()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        loader = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        for epoch in range(3):
            loss, rec, kl = train(model, loader, optimizer)
            print("epoch: %d loss: %.5f rec: %.5f kl: %.5f" % (epoch, loss, rec, kl))
        """,
        same=("epoch",),
    ),
    "a history that is returned and written": Script(
        """
        import json


        def fit(model, train_loader, val_loader, optimizer, criterion, epochs):
            history = {"loss": [], "acc": [], "val_loss": [], "val_acc": []}
            for epoch in range(epochs):
                model.train()
                loss_sum, correct, n = 0.0, 0, 0
                for xb, yb in train_loader:
                    optimizer.zero_grad()
                    out = model(xb)
                    loss = criterion(out, yb)
                    loss.backward()
                    optimizer.step()
                    loss_sum += loss.item() * xb.size(0)
                    correct += (out.argmax(1) == yb).sum().item()
                    n += xb.size(0)
                history["loss"].append(loss_sum / n)
                history["acc"].append(correct / n)

                model.eval()
                loss_sum, correct, n = 0.0, 0, 0
                with torch.no_grad():
                    for xb, yb in val_loader:
                        out = model(xb)
                        loss_sum += criterion(out, yb).item() * xb.size(0)
                        correct += (out.argmax(1) == yb).sum().item()
                        n += xb.size(0)
                history["val_loss"].append(loss_sum / n)
                history["val_acc"].append(correct / n)
            return history


        model = nn.Linear(8, 2)
        history = fit(
            model,
            DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
            DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6),
            torch.optim.SGD(model.parameters(), lr=0.1),
            nn.CrossEntropyLoss(),
            epochs=3,
        )
        with open("history.json", "w") as f:
            json.dump(history, f)
        for name, values in history.items():
            print("history", name, " ".join(f"{v:.5f}" for v in values))
        """,
        same=("history",),
    ),
    "results in a named tuple": Script(
        """
        from collections import namedtuple

        Result = namedtuple("Result", ["loss", "accuracy", "samples"])


        def process(model, loader, optimizer=None):
            total, hits, samples = 0.0, 0.0, 0
            model.train(optimizer is not None)
            for data, target in loader:
                data, target = data.cuda(), target.cuda()
                with torch.set_grad_enabled(optimizer is not None):
                    output = model(data)
                    loss = F.cross_entropy(output, target)
                if optimizer is not None:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total += loss.item() * len(target)
                hits += (output.argmax(1) == target).sum().item()
                samples += len(target)
            return Result(loss=total / samples, accuracy=hits / samples, samples=samples)


        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:11], y[:11]), batch_size=4)
        for epoch in range(3):
            trained = process(model, train_loader, optimizer)
            tested = process(model, test_loader)
            print(f"train {trained.loss:.5f} {trained.accuracy:.4f} of {trained.samples}")
            print(f"test {tested.loss:.5f} {tested.accuracy:.4f} of {tested.samples}")
        """,
        same=("train", "test"),
    ),
    "the loss of the last batch": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        num_epochs = 3
        for epoch in range(num_epochs):
            for images, labels in loader:
                outputs = model(images)
                loss = criterion(outputs, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print("Epoch [{}/{}], Loss: {:.4f}".format(epoch + 1, num_epochs, loss.item()))
        torch.save(model.state_dict(), "model.ckpt")
        print("trained for", num_epochs, "epochs")
        """,
        same=("trained",),
    ),
    "a root of the mean squared error": Script(
        """
        import math

        loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], x[21:].sum(1)), batch_size=6)
        model = nn.Linear(8, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(3):
            sse, n = 0.0, 0
            for data, target in loader:
                data, target = data.cuda(), target.cuda()
                pred = model(data).view(-1)
                loss = ((pred - target) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                sse += ((pred.detach() - target) ** 2).sum().item()
                n += target.size(0)
            val_sse, val_n = 0.0, 0
            with torch.no_grad():
                for data, target in val_loader:
                    val_sse += F.mse_loss(model(data.cuda()).view(-1), target.cuda(), reduction="sum").item()
                    val_n += target.size(0)
            print(f"epoch {epoch} rmse {math.sqrt(sse / n):.5f} val rmse {math.sqrt(val_sse / val_n):.5f}")
        """,
        same=("epoch",),
    ),
    "a progress bar that shows the average": Script(
        """
        from tqdm import tqdm

        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            total_loss = 0
            loop = tqdm(train_loader, desc=f"Epoch {epoch}")
            for i, (data, target) in enumerate(loop):
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total_loss += loss.item()
                loop.set_postfix(loss=total_loss / (i + 1))
            model.eval()
            val_loss, correct = 0, 0
            with torch.no_grad():
                for data, target in tqdm(val_loader, leave=False):
                    out = model(data.cuda())
                    val_loss += F.cross_entropy(out, target.cuda()).item()
                    correct += (out.argmax(1).cpu() == target).sum().item()
            print(f"epoch {epoch} loss {total_loss / len(train_loader):.5f} val {val_loss / len(val_loader):.5f} {correct / 23:.5f}")
        """,
        same=("epoch",),
    ),
    "numbers for tensorboard": Script(
        """
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter("runs/test")
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        n_iter = 0
        for epoch in range(2):
            losses = []
            for data, target in train_loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                writer.add_scalar("Loss/batch", loss.item(), n_iter)
                n_iter += 1
            train_loss = sum(losses) / len(losses)
            val_loss = 0.0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data), target).item()
            val_loss = val_loss / len(val_loader)
            writer.add_scalar("Loss/train", train_loss, epoch)
            writer.add_scalar("Loss/val", val_loss, epoch)
            print(f"epoch {epoch} {train_loss:.5f} {val_loss:.5f} after {n_iter}")
        writer.close()
        """,
        same=("epoch",),
    ),
    # --- decisions ------------------------------------------------------------------------------------------------------
    "the best checkpoint copied beside the last": Script(
        """
        import shutil


        def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
            torch.save(state, filename)
            if is_best:
                shutil.copyfile(filename, "model_best.pth.tar")


        def validate(val_loader, model):
            model.eval()
            hits, n = 0, 0
            with torch.no_grad():
                for input, target in val_loader:
                    hits += (model(input.cuda()).argmax(1) == target.cuda()).sum().item()
                    n += target.size(0)
            acc = 100.0 * hits / n
            print(f" * Prec {acc:.3f}")
            return acc


        def main():
            best_prec = 0
            model = nn.Linear(8, 2).cuda()
            optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
            train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
            for epoch in range(3):
                model.train()
                for input, target in train_loader:
                    loss = F.cross_entropy(model(input.cuda()), target.cuda())
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                prec = validate(val_loader, model)
                is_best = prec > best_prec
                best_prec = max(prec, best_prec)
                save_checkpoint(
                    {"epoch": epoch + 1, "state_dict": model.state_dict(), "best_prec": best_prec, "optimizer": optimizer.state_dict()},
                    is_best,
                )
            print(f"Best accuracy: {best_prec:.3f}")


        if __name__ == "__main__":
            main()
        """,
        same=(" * Prec", "Best"),
    ),
    "the best weights loaded for a last test": Script(
        """
        import copy


        def accuracy(model, loader):
            model.eval()
            correct, total = 0, 0
            with torch.no_grad():
                for data, target in loader:
                    correct += (model(data).argmax(1) == target).sum().item()
                    total += len(target)
            return correct / total


        train_loader = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[20:31], y[20:31]), batch_size=4)
        test_loader = DataLoader(TensorDataset(x[31:], y[31:]), batch_size=5)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        best_acc, best_epoch, best_state = -1.0, -1, None
        for epoch in range(5):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            acc = accuracy(model, val_loader)
            print(f"epoch {epoch} val {acc:.4f}")
            if acc > best_acc:
                best_acc, best_epoch = acc, epoch
                best_state = copy.deepcopy(model.state_dict())
        model.load_state_dict(best_state)
        test_acc = accuracy(model, test_loader)
        print(f"test accuracy {test_acc:.4f} of epoch {best_epoch}")
        torch.save(best_state, "best_model.pt")
        """,
        same=("epoch", "test"),
    ),
    "the best file loaded for a last test": Script(
        """
        class EarlyStopping:
            \"\"\"Early stops the training if validation loss doesn't improve after a given patience.\"\"\"

            def __init__(self, patience=7, verbose=False, delta=0, path="checkpoint.pt", trace_func=print):
                self.patience = patience
                self.verbose = verbose
                self.counter = 0
                self.best_score = None
                self.early_stop = False
                self.val_loss_min = float("inf")
                self.delta = delta
                self.path = path
                self.trace_func = trace_func

            def __call__(self, val_loss, model):
                score = -val_loss
                if self.best_score is None:
                    self.best_score = score
                    self.save_checkpoint(val_loss, model)
                elif score < self.best_score + self.delta:
                    self.counter += 1
                    self.trace_func(f"EarlyStopping counter: {self.counter} out of {self.patience}")
                    if self.counter >= self.patience:
                        self.early_stop = True
                else:
                    self.best_score = score
                    self.save_checkpoint(val_loss, model)
                    self.counter = 0

            def save_checkpoint(self, val_loss, model):
                if self.verbose:
                    self.trace_func(f"Validation loss decreased ({self.val_loss_min:.6f} --> {val_loss:.6f}).  Saving model ...")
                torch.save(model.state_dict(), self.path)
                self.val_loss_min = val_loss


        def train_model(model, patience, n_epochs):
            early_stopping = EarlyStopping(patience=patience, verbose=True)
            for epoch in range(1, n_epochs + 1):
                model.train()
                for batch, (data, target) in enumerate(train_loader, 1):
                    optimizer.zero_grad()
                    loss = criterion(model(data), target)
                    loss.backward()
                    optimizer.step()
                model.eval()
                valid_loss, n = 0.0, 0
                with torch.no_grad():
                    for data, target in valid_loader:
                        valid_loss += criterion(model(data), target).item()
                        n += 1
                early_stopping(valid_loss / n, model)
                if early_stopping.early_stop:
                    print("Early stopping")
                    break
            model.load_state_dict(torch.load("checkpoint.pt"))
            return model


        train_loader = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=4, shuffle=True)
        valid_loader = DataLoader(TensorDataset(x[20:30], y[20:30]), batch_size=4)
        test_loader = DataLoader(TensorDataset(x[31:], y[31:]), batch_size=5)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
        model = train_model(model, 2, 8)
        model.eval()
        test_loss = 0.0
        with torch.no_grad():
            for data, target in test_loader:
                test_loss += criterion(model(data), target).item() * data.size(0)
        print("Test Loss: {:.6f}".format(test_loss / len(test_loader.dataset)))
        """,
        same=("Early", "Validation", "Test"),
    ),
    "an early stop by a flag": Script(
        """
        train_iter = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        dev_iter = DataLoader(TensorDataset(x[:11], 1 - y[:11]), batch_size=4)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        total_batch = 0
        dev_best_loss = float("inf")
        last_improve = 0
        flag = False
        for epoch in range(10):
            print("Epoch [{}/{}]".format(epoch + 1, 10))
            for i, (trains, labels) in enumerate(train_iter):
                model.train()
                outputs = model(trains.cuda())
                model.zero_grad()
                loss = F.cross_entropy(outputs, labels.cuda())
                loss.backward()
                optimizer.step()
                if total_batch % 4 == 0:
                    model.eval()
                    loss_total = 0
                    with torch.no_grad():
                        for texts, truth in dev_iter:
                            loss_total += F.cross_entropy(model(texts.cuda()), truth.cuda())
                    dev_loss = loss_total / len(dev_iter)
                    if dev_loss < dev_best_loss:
                        dev_best_loss = dev_loss
                        torch.save(model.state_dict(), "saved.ckpt")
                        improve = "*"
                        last_improve = total_batch
                    else:
                        improve = ""
                    print(f"Iter: {total_batch:>6}, Val Loss: {dev_loss.item():.5f} {improve}")
                total_batch += 1
                if total_batch - last_improve > 16:
                    print("No optimization for a long time, auto-stopping...")
                    flag = True
                    break
            if flag:
                break
        """,
        same=("Epoch", "Iter", "No"),
    ),
    "an early stop by a break": Script(
        """
        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        val_losses = []
        for epoch in range(10):
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            losses = []
            with torch.no_grad():
                for data, target in val_loader:
                    losses.append(F.cross_entropy(model(data), target).item())
            val_losses.append(sum(losses) / len(losses))
            print(f"val {val_losses[-1]:.5f}")
            if len(val_losses) > 2 and val_losses[-1] > val_losses[-2] > val_losses[-3]:
                print("val loss keeps rising, stop at", epoch)
                break
        """,
        same=("val",),
    ),
    "an early stop by a return": Script(
        """
        def evaluate(model, loader):
            model.eval()
            loss = 0.0
            with torch.no_grad():
                for data, target in loader:
                    loss += F.cross_entropy(model(data), target, reduction="sum").item()
            return loss / len(loader.dataset)


        def train(model, train_loader, val_loader, optimizer, epochs, patience):
            best, wait = float("inf"), 0
            for epoch in range(epochs):
                model.train()
                for data, target in train_loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data), target).backward()
                    optimizer.step()
                val_loss = evaluate(model, val_loader)
                if val_loss < best:
                    best, wait = val_loss, 0
                    torch.save(model.state_dict(), "best.pt")
                else:
                    wait += 1
                    if wait >= patience:
                        return best, epoch
            return best, epochs - 1


        if __name__ == "__main__":
            model = nn.Linear(8, 2)
            best, epoch = train(
                model,
                DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True),
                DataLoader(TensorDataset(x[:11], 1 - y[:11]), batch_size=4),
                torch.optim.SGD(model.parameters(), lr=0.1),
                epochs=10,
                patience=2,
            )
            print(f"stopped at {epoch} with {best:.6f}")
        """,
        same=("stopped",),
    ),
    "an early stop by leaving the program": Script(
        """
        import sys

        train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[:10], 1 - y[:10]), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        best_loss = 1e10
        bad_epochs = 0
        for epoch in range(10):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            model.eval()
            val_loss = 0
            with torch.no_grad():
                for data, target in val_loader:
                    val_loss += F.cross_entropy(model(data), target).item()
            val_loss /= len(val_loader)
            if val_loss < best_loss:
                best_loss = val_loss
                bad_epochs = 0
            else:
                bad_epochs += 1
            if bad_epochs == 2:
                print("early stopping at epoch %d, best loss %.5f" % (epoch, best_loss))
                torch.save(model.state_dict(), "final.pt")
                sys.exit()
        print("finished")
        """,
        same=("early", "finished"),
    ),
    "a plateau of the validation loss": Script(
        """
        def validate(model, loader, criterion):
            model.eval()
            losses = []
            with torch.no_grad():
                for data, target in loader:
                    losses.append(criterion(model(data.cuda()), target.cuda()).item())
            return sum(losses) / len(losses)


        def main():
            model = nn.Linear(8, 2).cuda()
            criterion = nn.CrossEntropyLoss()
            optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=1)
            train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            val_loader = DataLoader(TensorDataset(x[21:], 1 - y[21:]), batch_size=6)
            for epoch in range(5):
                model.train()
                for data, target in train_loader:
                    optimizer.zero_grad()
                    loss = criterion(model(data.cuda()), target.cuda())
                    loss.backward()
                    optimizer.step()
                val_loss = validate(model, val_loader, criterion)
                scheduler.step(val_loss)
                print(f"val_loss {val_loss:.5f} lr {optimizer.param_groups[0]['lr']:.6f}")
                if optimizer.param_groups[0]["lr"] < 1e-3:
                    print("val_loss too flat, stop")
                    break


        main()
        """,
        same=("val_loss",),
    ),
    "a plateau of the accuracy": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_loader = DataLoader(TensorDataset(x[21:], y[21:]), batch_size=6)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=0)
        for epoch in range(4):
            model.train()
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            model.eval()
            correct = 0
            for data, target in val_loader:
                with torch.no_grad():
                    correct += model(data).argmax(1).eq(target).sum()
            acc = correct / len(val_loader.dataset)
            scheduler.step(acc)
            print(f"acc {acc:.4f} lr {scheduler.get_last_lr()[0]:.5f}")
        """,
        same=("acc",),
    ),
    "a plateau of the training loss": Script(
        """
        class AverageMeter:
            def __init__(self):
                self.sum = 0
                self.count = 0

            def update(self, val, n=1):
                self.sum += val * n
                self.count += n

            @property
            def avg(self):
                return self.sum / self.count


        def train_epoch(model, loader, optimizer):
            losses = AverageMeter()
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.update(loss.item(), data.size(0))
            return losses.avg


        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0, threshold=0.3)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(5):
            train_loss = train_epoch(model, loader, optimizer)
            scheduler.step(train_loss)
            print(f"loss {train_loss:.6f} lr {optimizer.param_groups[0]['lr']:.6f}")
        """,
        same=("loss",),
    ),
    "a batch that is skipped when its loss is not a number": Script(
        """
        x[5, 2] = float("nan")
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total, batches, skipped = 0.0, 0, 0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                if torch.isnan(loss):
                    skipped += 1
                    continue
                loss.backward()
                optimizer.step()
                total += loss.item()
                batches += 1
            print(f"epoch {epoch} loss {total / batches:.6f} skipped {skipped}")
        """,
        same=("epoch",),
    ),
    "a warning and a skip, which never happen": Script(
        """
        import numpy as np

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            running = 0.0
            for i, (data, target) in enumerate(loader):
                loss = F.cross_entropy(model(data), target)
                if np.isnan(loss.item()) or loss.item() > 1e4:
                    print("Warning: bad loss at step", i, "skipping")
                    continue
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                running += loss.item()
            print(f"epoch {epoch} {running / len(loader):.5f}")
        """,
        same=("epoch",),
    ),
    "an exit when the loss is not finite": Script(
        """
        import math
        import sys


        def train_one_epoch(model, data_loader, optimizer, device, epoch):
            model.train()
            mean_loss = torch.zeros(1).to(device)
            optimizer.zero_grad()
            for step, (images, labels) in enumerate(data_loader):
                loss = F.cross_entropy(model(images.to(device)), labels.to(device))
                loss_value = loss.item()
                if not math.isfinite(loss_value):
                    print("Loss is {}, stopping training".format(loss_value))
                    sys.exit(1)
                loss.backward()
                mean_loss = (mean_loss * step + loss.detach()) / (step + 1)
                optimizer.step()
                optimizer.zero_grad()
            return mean_loss.item()


        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        data_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            mean_loss = train_one_epoch(model, data_loader, optimizer, device, epoch)
            print("[epoch {}] mean loss {}".format(epoch, round(mean_loss, 5)))
        """,
        same=("[epoch",),
    ),
    "an assertion that the loss is a number": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            epoch_loss = 0
            for data, target in loader:
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                assert not torch.isnan(loss), "loss is nan"
                if torch.isinf(loss):
                    raise ValueError("loss is infinite")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                epoch_loss += loss.item()
            print("Epoch %d finished, loss: %.5f" % (epoch + 1, epoch_loss / len(loader)))
        """,
        same=("Epoch",),
    ),
    "a step that may run out of memory": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            epoch_loss = 0.0
            for i, (data, target) in enumerate(loader):
                try:
                    optimizer.zero_grad()
                    loss = criterion(model(data.cuda()), target.cuda())
                    loss.backward()
                    optimizer.step()
                except RuntimeError as e:
                    if "out of memory" in str(e):
                        print("| WARNING: ran out of memory, skipping batch", i)
                        torch.cuda.empty_cache()
                        continue
                    else:
                        raise e
                epoch_loss += loss.item()
            print(f"epoch {epoch} loss {epoch_loss / len(loader):.5f}")
        """,
        same=("epoch",),
    ),
    "a limit of time": Script(
        """
        import time

        start = time.time()
        limit = 3600
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.5f}")
            if time.time() - start > limit:
                print("time is up")
                break
        torch.save(model.state_dict(), "model.pt")
        """,
        same=("epoch",),
    ),
    "a limit of time within the epoch": Script(
        """
        import time


        def train(max_seconds):
            started = time.time()
            step = 0
            for epoch in range(3):
                for data, target in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(data), target).backward()
                    optimizer.step()
                    step += 1
                    if time.time() - started >= max_seconds:
                        return step
            return step


        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        print("steps", train(3600.0))
        """,
        same=("steps",),
    ),
    "a stop when the training loss is low": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for epoch in range(20):
            epoch_loss = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                epoch_loss += loss.item()
            epoch_loss /= len(loader)
            if epoch_loss < 0.35:
                print(f"converged at epoch {epoch} with {epoch_loss:.5f}")
                break
        torch.save(model.state_dict(), "converged.pt")
        """,
        same=("converged",),
    ),
    "a stop in the loop when the accuracy is high": Script(
        """
        def train(model, loader, optimizer, target_acc):
            for epoch in range(10):
                correct, total = 0, 0
                for data, target in loader:
                    output = model(data)
                    loss = F.cross_entropy(output, target)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    correct += (output.argmax(1) == target).sum().item()
                    total += target.size(0)
                    if total >= 24 and correct / total > target_acc:
                        print(f"reached {correct / total:.4f} after {total} samples of epoch {epoch}")
                        return
                print(f"epoch {epoch} accuracy {correct / total:.4f}")


        model = nn.Linear(8, 2)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        train(model, loader, torch.optim.SGD(model.parameters(), lr=0.3), 0.9)
        """,
        same=("epoch", "reached"),
    ),
    "an interrupt that saves the weights": Script(
        """
        import sys

        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.RMSprop(net.parameters(), lr=0.01)


        def train_net(net, epochs):
            for epoch in range(epochs):
                net.train()
                epoch_loss = 0
                for imgs, true in loader:
                    loss = F.cross_entropy(net(imgs.cuda()), true.cuda())
                    epoch_loss += loss.item()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                print("Epoch finished ! Loss: {:.5f}".format(epoch_loss / len(loader)))
                torch.save(net.state_dict(), "CP{}.pth".format(epoch + 1))


        if __name__ == "__main__":
            try:
                train_net(net=net, epochs=3)
            except KeyboardInterrupt:
                torch.save(net.state_dict(), "INTERRUPTED.pth")
                print("Saved interrupt")
                try:
                    sys.exit(0)
                except SystemExit:
                    os._exit(0)
        """,
        same=("Epoch",),
    ),
    "a learning rate divided when the loss rises": Script(
        """
        def val(model, dataloader):
            model.eval()
            total, count = 0.0, 0
            with torch.no_grad():
                for data, label in dataloader:
                    total += F.cross_entropy(model(data), label).item()
                    count += 1
            model.train()
            return total / count


        model = nn.Linear(8, 2)
        train_dataloader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        val_dataloader = DataLoader(TensorDataset(x[:11], 1 - y[:11]), batch_size=4)
        lr = 0.2
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        previous_loss = 1e100
        for epoch in range(4):
            for data, label in train_dataloader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), label)
                loss.backward()
                optimizer.step()
            val_loss = val(model, val_dataloader)
            if val_loss > previous_loss:
                lr = lr * 0.5
                for param_group in optimizer.param_groups:
                    param_group["lr"] /= 10
            previous_loss = val_loss
            print("epoch:{}, val:{:.5f}, lr:{:.6f}".format(epoch, val_loss, optimizer.param_groups[0]["lr"]))
        """,
        same=("epoch",),
    ),
    "a learning rate divided when the training loss rises": Script(
        """
        model = nn.Linear(8, 2).cuda()
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        lr = 2.0
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        history = []
        for epoch in range(5):
            losses = []
            for data, target in loader:
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            history.append(sum(losses) / len(losses))
            if len(history) > 1 and history[-1] > 0.7 * history[-2]:
                lr /= 10
                optimizer = torch.optim.SGD(model.parameters(), lr=lr)
            print(f"epoch {epoch} loss {history[-1]:.5f} lr {lr:.5f}")
        """,
        same=("epoch",),
    ),
    "a question that is never asked": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=3)
        parser.add_argument("--interactive", action="store_true")
        args = parser.parse_args()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(args.epochs):
            total = 0.0
            for data, target in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data.cuda()), target.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.5f}")
            if args.interactive:
                answer = input("continue? [y/n] ")
                if answer != "y":
                    break
        """,
        same=("epoch",),
    ),
}
