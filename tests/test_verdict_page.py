"""The page and the table of a verdict."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from verdicts import FAILED, ROWS, START, rank, verdict

from ddpify.rehearse.compare import Row
from ddpify.rehearse.verify import Verdict
from ddpify.report import curves
from ddpify.report.verdict import clean, conditions, terminal
from ddpify.report.verdict_page import render

ODD = "out/<script>alert(1)</script>&.txt"
COMMAND = "ddpify verify train.py --html page.html -- --name 'a <b>'"
VOID = ("meta", "link")


def line(at: float, text: str) -> tuple[float, str, dict[str, Any]]:
    return at, "line", {"stream": "stdout", "text": text, "redrawn": False}


def write(at: float, path: str) -> tuple[float, str, dict[str, Any]]:
    return at, "write", {"path": path, "what": "open"}


def failing() -> Verdict:
    said = [line(0.6, "epoch 0 <loss> 1.5"), write(0.7, "out/log.csv"), (0.8, "save", {"path": "out/model.pt", "values": {}})]
    said += [write(0.8, "out/model.pt"), (0.2, "joined", {"backend": "gloo"}), (3.9, "left", {})]
    ranks = [
        rank(0, off=0.5, begins=10, events=said),
        rank(1, off=0.5, begins=10, events=[*said, write(2.0, ODD), line(2.1, "rank 1 speaks")]),
    ]
    return verdict(FAILED, rank(2, events=said), ranks)


def hanging() -> Verdict:
    row = Row("ran", "ran to the end", False, "its processes waited for each other", "a collective that not all ranks come to", "DDP403")
    ranks = [rank(r, 0, begins=10, ends=False) for r in (0, 1)]
    stacks = 'rank 0, process 100:\n  File "train.py", line 41 in <module>'
    return verdict((row, *ROWS[3:]), ranks=ranks, stacks=stacks, seconds=(4.0, 49.0), output="begin\n")


def dying() -> Verdict:
    failed = (2.0, "failed", {"error": "ValueError: <odd>", "text": 'Traceback\n  File "train.py", line 3\nValueError: <odd>'})
    row = Row("ran", "ran to the end", False, "rank 1: ValueError: <odd>")
    return verdict((row, *ROWS[1:]), ranks=[rank(0, 7), rank(1, 5, events=[failed])], output="\x1b[31mred\x1b[0m\x07 end\n")


def diverging() -> Verdict:
    ranks = [rank(0, 50), rank(1, 50)]
    for found in (rank_.steps for rank_ in ranks):
        found[30].losses[:], found[31].losses[:], found[32].parameters[0][0] = [math.nan], [math.inf], math.nan
    return verdict(FAILED, rank(2, 50), ranks)


def could_not() -> Verdict:
    return replace(verdict(), rows=(), pair=None, reason="the original needs <data>", output="FileNotFoundError\n", conditions=())


def spawned() -> Verdict:
    parent = [{"at": START + 9.0 + s, "pid": 99, "rank": -1, "world": 1, "kind": k} for s, k in ((0.0, "start"), (5.0, "exit"))]
    return replace(verdict(parent=parent), launcher="spawn")


PAGES = {
    "holds": verdict(),
    "fails": failing(),
    "two optimizers": verdict(single=rank(2, 40, 2, (0, 1)), ranks=[rank(0, 40, 2, (0, 1)), rank(1, 40, 2, (0, 1))]),
    "many losses of a step": verdict(single=rank(2, 9, 8), ranks=[rank(0, 9, 8), rank(1, 9, 8)]),
    "one step": verdict(single=rank(2, 1), ranks=[rank(0, 1), rank(1, 1)]),
    "no step": verdict(single=rank(2, 0), ranks=[rank(0, 0), rank(1, 0)]),
    "one rank alone": verdict(ranks=[rank(0)]),
    "hangs": hanging(),
    "dies": dying(),
    "diverges": diverging(),
    "spawned": spawned(),
    "could not run": could_not(),
}


class Tags(HTMLParser):
    """The tags of a page, which must close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}>"


def svgs(page: str) -> list[ElementTree.Element]:
    """The outermost drawings, as XML."""
    found, depth, start = [], 0, 0
    for tag in re.finditer(r"<svg\b|</svg>", page):
        if tag[0] == "<svg":
            start = start if depth else tag.start()
            depth += 1
        else:
            depth -= 1
            if not depth:
                found.append(ElementTree.fromstring(page[start : tag.end()]))
    return found


def numbers(page: str) -> list[dict[str, Any]]:
    return [json.loads(html.unescape(found)) for found in re.findall(r'data-numbers="([^"]*)"', page)]


def text(value: str) -> str:
    return html.escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


@pytest.mark.parametrize("name", PAGES)
def test_is_whole_and_self_contained(name: str) -> None:
    page = render(PAGES[name], COMMAND)
    tags = Tags(page)
    ids = [value for _, attribute, value in tags.attributes if attribute == "id"]
    assert len(ids) == len(set(ids))
    named = [i for _, attribute, value in tags.attributes if attribute == "aria-labelledby" for i in value.split()]
    assert set(named) <= set(ids)
    assert "http:" not in page.replace("http://www.w3.org/", "") and "https:" not in page
    assert {value for _, attribute, value in tags.attributes if attribute in ("src", "href")} == {"data:,"}
    assert "url(" not in page and "@import" not in page and "default-src 'none'" in page
    assert "None" not in page and "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    for svg in svgs(page):
        assert svg.get("aria-hidden") == "true" or (svg.findtext("title") and svg.find("desc") is not None)
        for path in svg.iter("path"):
            assert re.fullmatch(r"[\dMVHLZhv .\-]+", path.get("d") or "")
    assert len(page) < 100_000
    assert text(COMMAND) in page


@pytest.mark.parametrize("name", PAGES)
def test_tells_all_rows_causes_and_conditions(name: str) -> None:
    found = PAGES[name]
    page = render(found)
    for row in found.rows:
        assert text(row.title) in page and text(row.seen) in page and row.rule in page
        assert all(text(part) in page for part in row.cause.split("`"))
    for condition in conditions(found) if not found.reason else ():
        assert text(condition) in page
    assert text(found.reason) in page


def test_files_lines_and_their_writers() -> None:
    page = render(failing())
    assert "<script>alert" not in page and text(ODD) in page
    table = page[page.index('<table class="files">') :]
    rows = re.findall(r"<tr[^>]*><th scope=\"row\">(.*?)</th>\s*(.*?)</tr>", table, re.DOTALL)
    counts = {re.split(r"\s*<span", name)[0]: re.findall(r">([\d–]+)</td>", cells) for name, cells in rows}
    assert counts == {"out/log.csv": ["1", "1", "1"], "out/model.pt": ["1", "1", "1"], text(ODD): ["–", "–", "1"]}
    assert table.index("checkpoint") > table.index("out/model.pt")
    assert "epoch 0 &lt;loss&gt; 1.5" in page and "rank 1 speaks" in page
    assert "No process wrote a file." in render(verdict())


def test_curves_are_those_of_the_runs() -> None:
    found = failing()
    assert found.pair
    loss, apart, among = numbers(render(found))
    by_name = {c["name"]: c["values"] for c in loss["curves"]}
    assert loss["steps"] == list(range(1, 21)) and set(by_name) == {"original", "mean over ranks", "rank 0", "rank 1"}
    ranks = [found.pair.ranks.ranks[r].steps for r in (0, 1)]
    for i, mean in enumerate(by_name["mean over ranks"]):
        assert float(mean) == pytest.approx(sum(steps[i].losses[0] for steps in ranks) / 2, rel=1e-3)
        assert float(by_name["original"][i]) == pytest.approx(found.pair.single.first.steps[i].losses[0], rel=1e-3)
    assert apart["curves"][0]["values"][0] == "0" and float(apart["curves"][0]["values"][-1]) == pytest.approx(0.2)
    assert set(among["curves"][0]["values"]) == {"0"}


def test_each_loss_of_each_optimizer_has_a_chart() -> None:
    page = render(PAGES["two optimizers"])
    titles = re.findall(r'<svg role="img" aria-labelledby="loss.*?<title[^>]*>(.*?)</title>', page, re.DOTALL)
    assert titles == [
        "Adam of net.0.weight and 1 more, first loss of a step",
        "Adam of net.0.weight and 1 more, second loss of a step",
        "Adam of critic.0.weight and 1 more",
    ]
    first, _, other = numbers(page)[:3]
    assert first["steps"] == list(range(1, 41, 2)) and other["steps"] == list(range(2, 41, 2))
    assert "Mean of up to 8 losses of a step" in render(PAGES["many losses of a step"])


def test_what_failed_is_shown() -> None:
    page = render(hanging())
    assert "line 41 in &lt;module&gt;" in page and "begin" in page and 'class="silent"' in page
    page = render(dying())
    assert "ValueError: &lt;odd&gt;" in page and "How rank 1 failed" in page and "red\ufffd end" in page and 'class="mark failed"' in page
    assert "spawning parent" in render(spawned())
    assert "∞, NaN" in render(diverging())


def test_thousands_of_steps_are_thinned_and_keep_their_extremes() -> None:
    lines = [line(0.5 + i / 1000, f"step {i}") for i in range(3000)]
    ranks = [rank(r, 3000, 2, (0, 1), events=lines if r == 0 else ()) for r in range(4)]
    ranks[0].steps[1700].losses[0] += 500.0
    ranks[2].steps[1234].parameters[0][0] += 1e-3
    single = rank(9, 3000, 2, (0, 1), events=lines)
    page = render(verdict(single=single, ranks=ranks))
    assert len(page) < 700_000
    first, apart = numbers(page)[0], numbers(page)[-1]
    assert 1701 in first["steps"] and 1235 in apart["steps"] and len(first["steps"]) < 900
    assert first["steps"][0] == 1 and first["steps"][-1] == 2999
    assert page.count('class="mark line"') < 600 and "2960 lines in between" in page


def test_many_ranks_that_all_talk_stay_small() -> None:
    said = [line(0.5 + i / 1000, f"<{i}> " + "word " * 80) for i in range(3000)] + [
        write(0.5 + i / 1000, f"out/{i}.txt") for i in range(3000)
    ]
    optimizers = tuple(range(6))
    ranks = [rank(r, 1200, 2, optimizers, events=said) for r in range(8)]
    page = render(verdict(single=rank(9, 1200, 2, optimizers, events=said), ranks=ranks))
    assert len(page) < 1_000_000 and "2700 more files are not listed" in page


@pytest.mark.parametrize("values", [[0.693147] * 5, [1.0, 2.0], [0.0], [-3e-9, 4e-9], [1e30, 1.0], [5e7, 6e7], [math.inf], [None], []])
def test_axes_hold_their_values(values: list[float | None]) -> None:
    axis = curves.linear(values)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 9 and len({tick.label for tick in ticks}) == len(ticks)
    assert all(-1e-9 <= tick.at <= 100 + 1e-9 for tick in ticks)
    for value in values:
        if value is not None and math.isfinite(value):
            assert axis.low <= value <= axis.high and 0 <= axis.at(value) <= 1


@pytest.mark.parametrize("values", [[0.0], [1e-16, 1e-3, 0.0], [math.inf, 0.0], [1e300], [], [1e-6], [5.0]])
def test_difference_axes_hold_zero_and_the_tolerance(values: list[float]) -> None:
    axis = curves.decades(values, 1e-6)
    assert 0 < axis.at(1e-6) < 1 and axis.low < 1e-6 < axis.high
    assert axis.at(0.0) == 1.0 and axis.at(math.inf) == 0.0
    assert len(axis.ticks()) <= 10
    if axis.zero:
        assert axis.ticks()[0] == curves.Tick(100.0, "0") and axis.at(axis.low) < 0.95


@pytest.mark.parametrize("total", [1, 2, 3, 7, 20, 60, 999, 3000])
def test_step_ticks_are_steps(total: int) -> None:
    labels = [int(tick.label) for tick in curves.step_ticks(total)]
    assert labels[0] == 1 and labels == sorted(set(labels)) and labels[-1] <= total and len(labels) <= 7


def test_what_the_conversion_leaves_is_told() -> None:
    found = replace(verdict(), left=1)
    assert "leaves 1 place to review" in " ".join(terminal(found).split())
    assert "<code>ddpify convert train.py</code>" in render(found)
    assert "leaves" not in render(verdict()).partition("<section")[0] + terminal(verdict())


# --- the terminal ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("name", PAGES)
def test_table_keeps_to_its_width(name: str, width: int) -> None:
    table = terminal(PAGES[name], width=width)
    body = table.partition("\nunder these conditions")[0] if "File" in table else table
    assert all(len(row) <= width for row in body.splitlines() if "File" not in row)
    assert "\x1b" not in table
    for row in PAGES[name].rows:
        assert row.title in table and " ".join(row.seen.split()) in " ".join(table.split())


def test_table_cuts_what_is_endless_and_paints_only_when_asked() -> None:
    found = verdict((Row("ran", "ran to the end", False, "word " * 500 + "\x1b[2J\x07"), *ROWS[1:]))
    assert len(terminal(found)) < 2500 and "\x1b" not in terminal(found)
    assert "\x1b[1;31mFAILS" in terminal(found, colour=True) and "\x1b[2J" not in terminal(found, colour=True)
    assert terminal(verdict()).endswith("train.py (converted): all hold, 1 not seen (2 ranks under torchrun)\n")


def test_clean_text_can_be_shown() -> None:
    assert clean("a\x1b[31mb\x1b[0m\r\nc\td\x00\udc80") == "ab\nc\td\ufffd\ufffd"
    clean("\udcff\ud800").encode()


# --- a browser ------------------------------------------------------------------------------------------------------------
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None)
PROBE = """
<!DOCTYPE html><title>probe</title>
<iframe style="width: {width}px; height: 800px; border: 0" srcdoc="{page}"></iframe><pre id="found"></pre>
<script>
addEventListener("load", () => {{
  const page = document.querySelector("iframe").contentWindow, all = page.document;
  const plot = all.querySelector(".plot");
  plot.focus();
  plot.dispatchEvent(new page.KeyboardEvent("keydown", {{ key: "End" }}));
  const boxes = [...all.querySelectorAll("h1, tr, .plot > svg, .lane > svg, pre, li")].map((e) => e.getBoundingClientRect());
  const shown = [...all.querySelectorAll("h1, .properties td, .plot > svg, .files td, footer")].filter((e) => e.checkVisibility());
  document.getElementById("found").textContent = JSON.stringify({{
    wide: all.documentElement.scrollWidth,
    right: Math.max(...boxes.map((box) => box.right)),
    shown: shown.length,
    requests: page.performance.getEntriesByType("resource").map((entry) => entry.name),
    told: plot.querySelector(".readout").textContent,
  }});
}});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [400, 1200])
def test_in_a_browser(tmp_path: Path, width: int) -> None:
    file = tmp_path / "probe.html"
    file.write_text(PROBE.format(width=width, page=html.escape(render(failing(), COMMAND))), encoding="utf-8")
    line_ = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"]
    line_ += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,900", "--dump-dom", file.as_uri()]
    done = subprocess.run(line_, capture_output=True, text=True, timeout=120, check=False)
    assert "CONSOLE" not in done.stderr, done.stderr
    probed = re.search(r'<pre id="found">(.*?)</pre>', done.stdout)
    assert probed, done.stderr
    found = json.loads(html.unescape(probed[1]))
    assert found["wide"] <= width and found["right"] <= width
    assert found["requests"] == []
    assert found["told"].startswith("step 20") and "original" in found["told"]
    assert found["shown"] == 1 + 2 * len(FAILED) + 3 + 3 * 3 + 1
