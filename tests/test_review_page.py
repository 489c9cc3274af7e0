"""The page of a review: whole, safe and complete as text; and used in a browser."""

from __future__ import annotations

import html
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ddpify.attribution import attributed
from ddpify.conversion import Conversion, convert
from ddpify.options import Options
from ddpify.report.diff import split
from ddpify.report.highlight import highlighted
from ddpify.report.review_page import render
from ddpify.report.variants import Block, variants

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*/train.py"))
NAMES = [path.parent.name for path in EXAMPLES]
VOID = ("meta", "link", "input", "br")

TRAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{odd}
for epoch in range(3):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "done")
{end}"""
ODD = (
    'print("</script><script>alert(1)</script> & \'quoted\' \\"twice\\"")\n'
    'print("日本 é \N{RIGHT-TO-LEFT OVERRIDE} turned \N{ZERO WIDTH SPACE} \x07 bell")\n'
    'text = """\n</style><!-- several\n\tlines ]]>\n"""\n'
    f'long = "{"x" * 30_000}"\n'
)
BLOCKED = TRAIN.format(odd="", end="    model.extra = torch.nn.Linear(8, 1)\n")
LOGGING = TRAIN.format(odd="", end="".join(f'print("result {n}", epoch)\n' for n in range(9)))


def odd(newline: str = "\n", bom: bool = False) -> Conversion:
    text = TRAIN.format(odd=ODD, end='print("no newline at the end")').replace("\n", newline)
    return convert(("\ufeff" * bom + text).encode(), shown="odd <b>&.py")


@lru_cache
def example(name: str) -> Conversion:
    return convert(ROOT / "examples" / name / "train.py")


@lru_cache
def conversion_of(name: str) -> Conversion:
    """A conversion by its name here."""
    if name in NAMES:
        return example(name)
    if name == "spawn":
        return convert(EXAMPLES[0], OPTIONS[name])
    if name == "apex":
        return convert(EXAMPLES[2], OPTIONS[name])
    if name == "blocked":
        return convert(BLOCKED, shown="blocked.py")
    if name == "nothing":
        return convert("import torch\n\nprint(torch.ones(3))\n", shown="nothing.py")
    if name == "refused":
        return convert("import lightning as L\n\nclass M(L.LightningModule):\n    pass\n\nL.Trainer().fit(M())\n", shown="driven.py")
    return odd("\r\n", True) if name == "odd CRLF" else odd()


OPTIONS = {"spawn": Options(launcher="spawn"), "apex": Options(amp="apex-O1", fused_adam=True)}
PAGES = (*NAMES, *OPTIONS, "odd", "odd CRLF", "blocked", "nothing", "refused")


@lru_cache
def page_of(name: str) -> str:
    options = OPTIONS.get(name, Options())
    return render(conversion_of(name), options, options.command_line().split())


@pytest.fixture(scope="module", params=PAGES)
def made(request: pytest.FixtureRequest) -> tuple[Conversion, str]:
    return conversion_of(request.param), page_of(request.param)


class Read(HTMLParser):
    """A page as text and attributes; its tags must close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}>"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data

    def of(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


def unmarked(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def test_is_whole_and_loads_nothing(made: tuple[Conversion, str]) -> None:
    _, page = made
    read = Read(page)
    ids = read.of("id")
    assert len(ids) == len(set(ids))
    assert {i for value in read.of("aria-labelledby") for i in value.split()} <= set(ids)
    assert {value[1:] for value in read.of("href") if value.startswith("#")} <= set(ids)
    assert not read.of("src") and "url(" not in page and "@import" not in page and "default-src 'none'" in page
    assert all(tag == "a" or value == "data:," for tag, name, value in read.attributes if name == "href")
    assert page.count("<script") == page.count("</script>") == 2
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\u202e\u200b]", page)
    assert len(page) < 400_000
    page.encode()


def test_tells_every_change_finding_and_rule(made: tuple[Conversion, str]) -> None:
    conversion, page = made
    read = Read(page)
    text, ids = unmarked(read.text), read.of("id")
    for change in conversion.changes:
        assert change.id in ids and unmarked(change.why) in text
        assert not change.without or f"Without it: {unmarked(change.without)}." in text
    for finding in conversion.findings:
        assert text.count(unmarked(finding.message)) >= 2  # first of all, and beside its line
        assert unmarked(finding.fix) in text
    for code in {item.code for item in (*conversion.changes, *conversion.findings)}:
        assert f"rule-{code}" in ids
    assert conversion.changed == ("command" in ids)
    assert unmarked(conversion.reason) in text


def test_every_line_is_there(made: tuple[Conversion, str]) -> None:
    conversion, _ = made
    pieces, _ = variants(conversion, attributed(conversion)) if conversion.changed else ([], ())
    for file in pieces:
        whole = [line for part in file.parts for line in (part.lines if isinstance(part, Block) else (part,))]
        assert [(line.kind, line.text, line.old, line.new) for line in whole] == [(x.kind, x.text, x.old, x.new) for x in file.file.lines]
        assert all(line.changes for line in whole if line.kind != " ")


@pytest.mark.parametrize("name", [*NAMES, "apex", "spawn", "odd CRLF"])
def test_variants_are_what_the_conversion_makes(name: str) -> None:
    conversion = conversion_of(name)
    pieces, switches = variants(conversion, attributed(conversion))
    assert [i for s in switches for i in s.ids] == [c.id for c in conversion.changes if c.without]
    chance = random.Random(name)
    for _ in range(4):
        out = frozenset(i for switch in switches if chance.random() < 0.5 for i in switch.ids)
        made = conversion.without(out)
        for file in pieces:
            lines = [ln for p in file.parts for ln in (p.variants[p.mask(out)] if isinstance(p, Block) else (p,))]
            after = "".join(line.text for line in lines if line.kind != "-")
            before = "".join(line.text for line in lines if line.kind != "+")
            module = next((m for m in made.modules if m.shown == file.file.shown), None)
            bom = "\ufeff" * (module.source if module else made.source).bom
            assert after == bom + (module.code if module else made.code)
            assert before == bom + (module.source.original if module else made.original)
            assert not out & {i for line in lines if line.kind != " " for i in line.changes}


def test_many_neighbours_go_together() -> None:
    conversion = convert(LOGGING, shown="logging.py")
    pieces, switches = variants(conversion, attributed(conversion))
    assert sorted(len(switch.ids) for switch in switches) == [1, 9] or sorted(len(s.ids) for s in switches) == [10]
    assert all(len(block.variants) <= 16 for file in pieces for block in file.blocks)
    assert "neighbours and it go together" in unmarked(Read(render(conversion, Options())).text)


def test_begins_with_what_is_left_out() -> None:
    conversion = example("imagenet_style")
    out = frozenset(change.id for change in conversion.changes if change.without)
    page = render(conversion, Options(), left_out=out)
    text = Read(page).text
    assert f"--skip {','.join(c.id for c in conversion.changes if c.id in out)}" in text
    shown = re.sub(r'<div class="way" data-mask="\d+" hidden>.*?\n</div>', "", page, flags=re.DOTALL)
    assert page.count('aria-checked="false"') == len(out) and shown.count("r kept") >= len(out)


def test_says_that_there_is_nothing_to_see() -> None:
    texts = {name: unmarked(Read(page_of(name)).text) for name in ("nothing", "refused", "blocked")}
    assert "Nothing to do:" in texts["nothing"] and "Not converted:" in texts["refused"]
    assert "No line is changed yet" in texts["blocked"] and "To do by hand" in texts["blocked"]


def test_odd_characters_are_spelled() -> None:
    text = Read(page_of("odd")).text
    assert "U+202E" in text and "U+200B" in text and "U+0007" in text and "no newline at the end of the file" in text
    assert "U+FEFF" in Read(page_of("odd CRLF")).text
    lines = split('a = """</x>\r\ny"""\rb\n\tdef f(): pass  # é\x0c')
    spelled = [re.sub(r'<span class="odd">U\+(....)</span>', lambda u: chr(int(u[1], 16)), line) for line in highlighted(lines)]
    plain = [line.rstrip("\n").removesuffix("\r") for line in lines]
    assert [re.sub("<[^>]*>", "", x).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">") for x in spelled] == plain


def test_colours_can_be_read() -> None:
    """WCAG AA, in light and dark: every colour of a text on every ground that it stands on."""
    css = (ROOT / "templates" / "review" / "page.css").read_text()
    pairs = {name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)}

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for ground in ("paper", "soft", "add", "del", "kept", "bad-soft", "warn-soft", "note-soft"):
        for ink in ("ink", "quiet", "accent", "good", "bad", "warn", "key", "name", "text", "number", "mark", "comment"):
            for theme in (0, 1):
                low, high = sorted((luminance(pairs[ground][theme]), luminance(pairs[ink][theme])))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground, theme)


def test_a_long_script_stays_small() -> None:
    text = (ROOT / "examples" / "distillation" / "train.py").read_text()
    block = "\n\ndef helper_{n}(values, scale=1.0):\n" + "".join(
        f"    # step {i}\n    values_{i} = [v * scale + {i} for v in values]\n" for i in range(12)
    )
    longer = text.replace("\ndef main", "".join(block.format(n=n) for n in range(112)) + "\n\ndef main", 1)
    assert longer.count("\n") > 3000
    conversion = convert(longer, shown="long.py")
    page = render(conversion, Options())
    assert len(page) < 3_000_000
    assert "more characters" not in page


def test_the_command(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from ddpify.cli import app

    script, page = tmp_path / "train.py", tmp_path / "page.html"
    shutil.copy(EXAMPLES[0], script)
    done = CliRunner().invoke(app, ["review", str(script), "--html", str(page), "--ignore", "DDP501-nothing", "--amp", "torch"])
    assert done.exit_code == 0, done.output
    assert done.stdout == "" and " changes" in done.stderr and f"the page is {page}" in done.stderr
    assert f"ddpify convert {script} --amp torch" in page.read_text()
    before = script.read_bytes()
    assert CliRunner().invoke(app, ["review", str(script), "--html", str(script)]).exit_code == 2 and script.read_bytes() == before
    assert CliRunner().invoke(app, ["review", str(script)]).exit_code == 2
    script.write_text(BLOCKED)
    assert CliRunner().invoke(app, ["review", str(script), "--html", str(page)]).exit_code == 1


def test_the_command_of_a_choice_in_a_project_with_settings(tmp_path: Path) -> None:
    """What settings and comments leave out is not offered, and the command shown makes what the page shows."""
    from typer.testing import CliRunner

    from ddpify.cli import app

    script, page = tmp_path / "train.py", tmp_path / "page.html"
    text = EXAMPLES[NAMES.index("imagenet_style")].read_text()
    script.write_text(text.replace('best: {best:.2f}% right")', 'best: {best:.2f}% right")  # ddpify: skip'))
    (tmp_path / "pyproject.toml").write_text('[tool.ddpify]\namp = "torch"\nignore = ["DDP502"]\n')
    base = convert(script)
    skipped = [change.id for change in base.changes if change.without][:2]
    runner = CliRunner()
    arguments = [str(script), "--amp", "keep", "--skip", ",".join(skipped)]
    assert runner.invoke(app, ["review", *arguments, "--html", str(page)]).exit_code == 0
    command = shlex.split(page_command(page.read_text()))
    assert command == ["ddpify", "convert", str(script), "--amp", "keep", "--skip", ",".join(skipped)]
    assert runner.invoke(app, command[1:]).stdout == runner.invoke(app, ["convert", *arguments]).stdout
    assert "1 change is left out by these options" in unmarked(Read(page.read_text()).text)
    assert runner.invoke(app, ["review", str(script), "--ignore", "DDP501", "--html", str(page)]).exit_code == 2  # a part of the core
    assert runner.invoke(app, ["review", str(script), "--select", "DDP502", "--html", str(page)]).exit_code == 0
    assert page_command(page.read_text()) == f"ddpify convert {script} --amp torch --select=DDP502"


def page_command(page: str) -> str:
    found = re.search(r'<pre id="command"[^>]*>(.*?)</pre>', page)
    assert found
    return html.unescape(found[1])


# --- a browser ------------------------------------------------------------------------------------------------------------
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None)
SHOWN = """
() => [...document.querySelectorAll(".file:not(.unchanged)")].map((file) => [...file.querySelectorAll(".r")]
  .filter((row) => !row.closest("[hidden]")).map((row) => {
    const code = row.querySelector("code").cloneNode(true);
    for (const odd of code.querySelectorAll(".odd")) odd.remove();
    const kind = row.classList.contains("add") ? "+" : row.classList.contains("del") ? "-" : " ";
    return [kind, code.textContent, row.children[0].textContent, row.children[1].textContent];
  }))
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens pages; at the end none must have complained or asked the network for anything."""
    contexts, told, asked = [], [], []

    def go(page: str, width: int = 1300, **context: Any) -> Any:
        file = tmp_path / "page.html"
        file.write_text(page, encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **context))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: told.append(message.text))
        tab.on("pageerror", lambda error: told.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(file.as_uri())
        return tab

    yield go
    for context in contexts:
        context.close()
    assert not told
    assert not [url for url in asked if not url.startswith(("file://", "data:,"))]


def diff_of(command: str) -> list[str]:
    """The changed lines that a command shows."""
    words = shlex.split(command)
    assert words[0] == "ddpify"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, env=env, timeout=120, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


@pytest.mark.parametrize("name", NAMES)
def test_in_a_browser(name: str, visit: Any) -> None:
    path = Path("examples", name, "train.py")
    conversion = example(name)
    page = page_of(name).replace(f"{ROOT}/", "")  # as if it had been named from there
    tab = visit(page, permissions=["clipboard-read", "clipboard-write"])
    command = tab.locator("#command")
    assert command.inner_text() == f"ddpify convert {path}"
    before = tab.evaluate(SHOWN)

    # what is left out: one by the key, the others by the mouse, and all taken again
    switches = tab.locator("[data-switch]")
    count = switches.count()
    assert count == sum(bool(change.without) for change in conversion.changes)
    for _ in range(200):
        tab.keyboard.press("j")
        if tab.locator(".entry.current [data-switch]").count():
            break
    first = tab.locator(".entry.current")
    assert tab.locator(".r.at").count() and first.get_attribute("aria-current") == "true"
    tab.keyboard.press("x")
    assert first.locator("[data-switch]").get_attribute("aria-checked") == "false"
    chosen = {first.get_attribute("id")}
    for at in range(2, count, 2):
        switches.nth(at).click()
        chosen ^= {switches.nth(at).locator("xpath=ancestor::li").get_attribute("id")}
    assert set(command.inner_text().rpartition(" ")[2].split(",")) == chosen
    tab.locator("#copy").click()
    tab.locator("#copy", has_text="Copied").wait_for()
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied == command.inner_text()
    shown = tab.evaluate(SHOWN)
    assert [kind + text for file in shown for kind, text, *_ in file if kind != " "] == diff_of(copied)
    for file in shown:
        assert [new for kind, _, _, new in file if kind != "-"] == [str(n + 1) for n in range(sum(kind != "-" for kind, *_ in file))]
    assert "\n".join(text for kind, text, *_ in shown[0] if kind != "-") + "\n" == conversion.without(chosen).code
    tab.locator("#all").click()
    assert tab.evaluate(SHOWN) == before

    # moving about
    last = tab.locator(".current").get_attribute("id")
    tab.keyboard.press("k")
    tab.keyboard.press("j")
    assert tab.locator(".current").get_attribute("id") == last and tab.locator(".current").count() == 1
    tab.keyboard.press("o")
    tab.locator("details.text[open] .rule").first.wait_for()
    tab.keyboard.press("o")
    assert not tab.locator("details.text[open]").count()

    # folds
    fold = tab.locator("details.fold").first
    if fold.count():
        fold.locator("summary").focus()
        tab.keyboard.press("Enter")
        assert fold.locator(".r").first.is_visible()
        tab.keyboard.press("f")
        tab.keyboard.press("f")
        assert not tab.locator("details.fold[open]").count()

    # filters
    items = tab.locator("[data-item]").count()
    for kind, of in (("level", "data-level"), ("family", "data-code")):
        for at in range(tab.locator(f"[data-filter-{kind}]").count()):
            button = tab.locator(f"[data-filter-{kind}]").nth(at)
            button.click()
            wanted = button.get_attribute(f"data-filter-{kind}")
            visible = tab.locator("[data-item]:visible")
            assert all(visible.nth(n).get_attribute(of).startswith(wanted) for n in range(visible.count()))
            assert f"{visible.count()} of {items} shown" == tab.locator("#filtered").inner_text()
            button.click()
    tab.keyboard.press("/")
    tab.keyboard.type("process group")
    assert 0 < tab.locator("[data-item]:visible").count() < items and "DDP101" in tab.locator("[data-item]:visible").first.inner_text()
    tab.locator("#filter").fill("")
    tab.keyboard.press("Escape")
    assert tab.locator("[data-item]:visible").count() == items

    # side by side: nothing is gone, and the halves do not lie on each other
    tab.keyboard.press("u")
    assert tab.locator("#split").get_attribute("aria-pressed") == "true"
    assert tab.evaluate(SHOWN) == before
    middle = tab.evaluate("(b => b.left + b.width / 2)(document.querySelector('.diff .lines-of').getBoundingClientRect())")
    box = "e => [...document.querySelectorAll(e)].filter(x => x.checkVisibility()).map(x => x.getBoundingClientRect())"
    boxes = {kind: tab.evaluate(f"({box})('.diff .{kind}').map(b => [b.left, b.right])") for kind in ("add", "del")}
    assert all(left >= middle - 1 for left, _ in boxes["add"]) and all(right <= middle + 1 for _, right in boxes["del"])
    tab.keyboard.press("u")
    tab.keyboard.press("?")
    assert tab.locator("dialog[open]").count()
    tab.keyboard.press("Escape")
    assert not tab.locator("dialog[open]").count()


WIDE = """
() => [document.documentElement.scrollWidth, innerWidth, Math.max(...[...document.querySelectorAll("body *")]
  .filter((e) => e.checkVisibility() && !e.closest("#command")).map((e) => e.getBoundingClientRect().right))]
"""


@pytest.mark.parametrize("name", [*NAMES, "odd", "blocked", "refused", "nothing", "apex"])
def test_narrow_dark_and_without_scripts(name: str, visit: Any) -> None:
    conversion, page = conversion_of(name), page_of(name)
    tab = visit(page, 400)
    for keys in ("", "u", "f"):
        if keys:
            tab.keyboard.press(keys)
        wide, width, right = tab.evaluate(WIDE)
        assert wide <= width and right <= width + 0.5
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(ground)
    assert light == "rgb(253, 253, 252)"
    dark = visit(page, color_scheme="dark")
    assert dark.evaluate(ground) == "rgb(21, 25, 29)"
    if dark.locator("#theme").count():
        dark.locator("#theme").click()
        assert dark.evaluate(ground) == light
    dark.emulate_media(media="print")
    assert dark.evaluate(ground) == "rgb(255, 255, 255)" and not dark.locator(".tools:visible, button:visible").count()

    still = visit(page, 400, java_script_enabled=False)
    assert not still.locator("button:visible, input:visible").count()
    assert still.locator(".entry:visible").count() == len(conversion.changes)
    assert still.locator(".note:visible").count() == len(conversion.findings)
    changed = [line for file in attributed(conversion) for line in file.lines if line.kind != " "]
    assert still.locator(".add:visible, .del:visible").count() == len(changed)
    if still.locator("details.fold").count():
        still.locator("details.fold summary").first.click()
        assert still.locator("details.fold .r").first.is_visible()


def test_copying_without_permission_and_a_choice_to_begin_with(visit: Any) -> None:
    conversion = example("imagenet_style")
    out = frozenset(change.id for change in conversion.changes if change.without)
    tab = visit(render(conversion, Options(), left_out=out))
    tab.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    tab.evaluate("() => { document.execCommand = () => false; }")
    tab.keyboard.press("c")
    tab.locator("#state", has_text="Ctrl+C").wait_for()
    assert tab.evaluate("getSelection().toString()") == tab.locator("#command").inner_text()
    shown = tab.evaluate(SHOWN)
    assert "\n".join(text for kind, text, *_ in shown[0] if kind != "-") + "\n" == conversion.without(out).code
    tab.locator("#all").click()
    assert "\n".join(text for kind, text, *_ in tab.evaluate(SHOWN)[0] if kind != "-") + "\n" == conversion.code


def test_odd_text_is_shown_as_it_is(visit: Any) -> None:
    conversion = conversion_of("odd")
    tab = visit(page_of("odd"))
    assert tab.evaluate("document.querySelectorAll('body script').length") == 1
    shown = tab.evaluate(SHOWN)[0]
    odd_ones = str.maketrans("", "", "\N{RIGHT-TO-LEFT OVERRIDE}\N{ZERO WIDTH SPACE}\x07")
    after = [text for kind, text, *_ in shown if kind != "-"]
    assert [line for line in after if len(line) < 400] == [
        line for line in conversion.code.translate(odd_ones).split("\n") if len(line) < 400
    ]
