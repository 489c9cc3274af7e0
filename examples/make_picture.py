"""Makes the picture in README: a conversion as a terminal shows it.

    python examples/make_picture.py [examples/terminal.svg]

The script is examples/guides/first.py. Of the diff the parts below the imports and helpers are shown.
"""

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

import ddpify
from ddpify.attribution import attributed
from ddpify.report import terminal
from ddpify.report.annotated import with_codes

HERE = Path(__file__).parent
WIDTH = 132
LINKS = re.compile(r"\x1b]8;;[^\x1b]*\x1b\\")
FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)  # they would be fetched over the network; the reader's own will do


def main(picture: Path) -> None:
    """Write the picture."""
    done = ddpify.convert((HERE / "guides" / "first.py").read_text(), shown="train.py")
    lines = with_codes(attributed(done), done.changes, True).splitlines()
    below = max(i for i, line in enumerate(lines) if "init_distributed()" in line)
    report = terminal.report(done, terminal.command("run it:", done.run_command("train.py")), False, True)
    shown = ["$ ddpify convert train.py", "  ...", *lines[below + 1 :], "", *LINKS.sub("", report).splitlines()]
    console = Console(record=True, width=WIDTH, file=open("/dev/null", "w"), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi("\n".join(shown)))
    svg = FONTS.sub("\n", console.export_svg(title="ddpify", unique_id="terminal"))
    picture.write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE / "terminal.svg")
