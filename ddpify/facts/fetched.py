"""Which calls fetch files from elsewhere, or unpack them: every rank of a node needs those, and one of them has to get them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpify.facts.model import Call, Lit
from ddpify.facts.tree import walk

CHECKING = frozenset(  # they look for themselves what is there
    (
        *("nltk.download", "opendatasets.download", "kagglehub.dataset_download"),
        *(f"torchvision.datasets.utils.download_{n}" for n in ("url", "and_extract_archive", "file_from_google_drive")),
    )
)
FETCHES = frozenset(
    """
        urllib.request.urlretrieve wget.download gdown.download gdown.download_folder gdown.cached_download shutil.unpack_archive
        torch.hub.download_url_to_file git.Repo.clone_from
    """.split()
)
_SHELLS = ("os.system", "os.popen", "subprocess.")
_TOOLS = re.compile(r"\b(wget|curl|unzip|tar|gdown|gunzip|7z|git|kaggle|aria2c|gsutil|aws)\b")


def fetches(call: Call) -> bool:
    """Whether a call fetches files from elsewhere or unpacks them."""
    paths = call.func.paths()
    if paths & (FETCHES | CHECKING) or (call.method == "extractall" and isinstance(call.node.func, ast.Attribute)):
        return True
    return any(p.startswith(_SHELLS) for p in paths) and any(_TOOLS.search(text) for text in _command_texts(call))


def _command_texts(call: Call) -> Iterator[str]:
    """The texts of a command."""
    for node in walk(call.node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for value in call.args:
        yield from (o.value for o in value.objs if isinstance(o, Lit) and isinstance(o.value, str))
