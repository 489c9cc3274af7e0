"""Makes a gallery: a review page for each example, and an index of them.

    python examples/make_gallery.py gallery

Open gallery/index.html. No page needs a network.
"""

import ast
import sys
from html import escape
from pathlib import Path

import ddpify
from ddpify.options import Options
from ddpify.report import review_page

HERE = Path(__file__).parent
SCRIPTS = {
    "a classifier": "imagenet_style/train.py",
    "nn.DataParallel, everything at top level": "dataparallel_toplevel/train.py",
    "a trainer class": "trainer_class/train.py",
    "a language model": "language_model/train.py",
    "a GAN": "gan/train.py",
    "distillation": "distillation/train.py",
    "segmentation": "gallery/segmentation.py",
    "contrastive learning": "gallery/contrastive.py",
    "diffusion": "gallery/diffusion.py",
    "a model of transformers": "gallery/text_classifier.py",
    "graphs": "gallery/graphs.py",
    "several modules": "guides/several_files/main.py",
    "a notebook": "guides/train.ipynb",
}
PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Converted scripts</title>
<style>
body {{ font: 1rem/1.6 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; color-scheme: light dark; }}
li {{ margin: 0.8rem 0; }}
small {{ display: block; opacity: 0.75; }}
</style>
<h1>Converted scripts</h1>
<p>Each page shows what ddpify changes in a script, with the reason beside every line.</p>
<ul>
{items}
</ul>
</html>
"""
ITEM = '<li><a href="{page}">{title}</a><small>{about}</small></li>'


def main(folder: Path) -> None:
    """Write the pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    items = []
    for title, script in SCRIPTS.items():
        done = ddpify.convert(HERE / script)
        page = script.replace("/", "_").rpartition(".")[0] + ".html"
        (folder / page).write_text(review_page.render(done, Options(), [], frozenset()), encoding="utf-8")
        about = (ast.get_docstring(ast.parse(done.original)) or "").partition("\n")[0]
        changes = f"{len(done.changes)} changes, exit code {done.exit_code}"
        items.append(ITEM.format(page=page, title=escape(title), about=escape(f"{about} {changes}".strip())))
    (folder / "index.html").write_text(PAGE.format(items="\n".join(items)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path("gallery"))
