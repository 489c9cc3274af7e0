"""Which models are wrapped, and which of them with `find_unused_parameters`: those that need it, and no others."""

from pathlib import Path

import pytest
import table_unused
import table_wraps
from scripts import converted, text

import ddpify
from ddpify import Options


def test_what_is_asked_for_is_done() -> None:
    full, resting = text(table_unused.SCRIPTS["a mean and a variance"]), text(table_unused.SCRIPTS["a part of a backbone"])
    assert "find_unused_parameters=True" in ddpify.convert(full, Options(find_unused_parameters="on")).code
    assert "find_unused_parameters" not in ddpify.convert(resting, Options(find_unused_parameters="off")).code


BACKBONE = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
{imported}

{model}

loader = DataLoader(TensorDataset(torch.ones(64, 3, 8, 8), torch.zeros(64).long()), batch_size=8, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.cross_entropy({out}, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = {made}
        self.head = nn.Linear(512, 2)

    def forward(self, x):
        return self.head({used})


model = Net()"""
TORCHVISION, TRANSFORMERS = "from torchvision import models", "from transformers import BertModel"
# model, unused parts, batch norm
LIBRARY = {
    "whole": (TORCHVISION, NET.format(made="models.resnet18()", used="self.net(x)"), False, True),
    "layer by layer": (TORCHVISION, NET.format(made="models.resnet18()", used="self.net.layer1(self.net.conv1(x))"), True, True),
    "its layers but the last": (
        TORCHVISION,
        NET.format(made="nn.Sequential(*list(models.resnet18().children())[:-1])", used="self.net(x)"),
        False,
        True,
    ),
    "its layers but the last, without gradients": (
        TORCHVISION,
        NET.format(made="nn.Sequential(*list(models.resnet18().children())[:-1])", used="self.fixed(x)").replace(
            "    def forward", "    @torch.no_grad()\n    def fixed(self, x):\n        return self.net(x).flatten(1)\n\n    def forward"
        ),
        True,
        True,
    ),
    "without batch norm": (TORCHVISION, "model = models.vit_b_16(num_classes=2)", False, False),
    "the states": (
        TRANSFORMERS,
        NET.format(made='BertModel.from_pretrained("bert")', used="self.net(x).last_hidden_state[:, 0]"),
        True,
        False,
    ),
    "the states, and sizes of two dimensions": (
        TRANSFORMERS,
        NET.format(made='BertModel.from_pretrained("bert")', used="self.net(x)[0][: x.shape[1]]").replace(
            "        return", "        rows, columns = x.size()\n        states, _ = self.net(x)\n        return"
        ),
        True,
        False,
    ),
    "one of both, by a flag": (
        TRANSFORMERS,
        NET.format(made='BertModel.from_pretrained("bert")', used="self.taken(self.net(x))").replace(
            "    def forward",
            "    def taken(self, out):\n        if self.pools:\n            return out.pooler_output\n"
            "        return out.last_hidden_state[:, 0]\n\n    def forward",
        ),
        True,
        False,
    ),
    "the pooled state": (
        TRANSFORMERS,
        NET.format(made='BertModel.from_pretrained("bert")', used="self.net(x).pooler_output"),
        False,
        False,
    ),
}


@pytest.mark.parametrize("title", LIBRARY)
def test_models_of_libraries(title: str) -> None:
    imported, model, rests, normed = LIBRARY[title]
    code = ddpify.convert(BACKBONE.format(imported=imported, model=model, out="model(x)")).code
    assert ("find_unused_parameters=True" in code, "convert_sync_batchnorm" in code) == (rests, normed)


@pytest.mark.parametrize("title", table_wraps.SEVERAL)
def test_each_model_that_a_function_trains_is_wrapped_where_it_is_made(title: str, tmp_path: Path) -> None:
    code = converted(table_wraps.SEVERAL[title], tmp_path).code
    made = 1 if "which a call makes" in title else 2  # such a one is wrapped in the function
    assert code.count(" = DistributedDataParallel(") == made
    assert "average_gradients" not in code and "drawn_by_rank_zero" not in code
