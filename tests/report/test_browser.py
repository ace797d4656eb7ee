"""The page in a browser: how many sheets it prints on, and how it looks on a phone. Skipped where there is none."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape
from pathlib import Path
from typing import Any

import pytest

from tests.report.test_page import gathered, parsed, words
from vmlab.report.demo.duration import FOLDER
from vmlab.report.page.report_page import html_report
from vmlab.store.runs import STORE

PHONE, TALL = 390, 800
"""Pixels of CSS of a common phone."""
HIGH = 3000
"""Pixels of CSS that a run may take before anything is unfolded."""
SMALLEST = 8.0
"""Pixels of CSS of the smallest text in a chart."""
MEASURE = """
const high = document.documentElement.scrollHeight;
document.querySelectorAll("details").forEach(one => one.open = true);
const texts = [...document.querySelectorAll("figure svg text")].filter(one => one.getBoundingClientRect().width > 0);
// Some texts are turned by 90 degrees.
const scale = matrix => Math.hypot(matrix.a, matrix.b);
const heights = texts.map(one => parseFloat(getComputedStyle(one).fontSize) * scale(one.getScreenCTM()));
parent.postMessage(JSON.stringify({
  high, wide: document.documentElement.scrollWidth, seen: innerWidth,
  texts: texts.length, smallest: Math.min(...heights)
}), "*");
"""
AROUND = """<!DOCTYPE html><iframe width="{width}" height="{height}" style="border: 0" srcdoc="{page}"></iframe>
<pre id="found"></pre><script>
addEventListener("message", message => document.getElementById("found").textContent = message.data);
</script>"""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed, which prints the page and measures it")
    return found


@pytest.fixture(scope="module")
def page() -> str:
    """The report of the demo's recording: six cells."""
    run = gathered(FOLDER / STORE)
    assert len(run.document.cells) == 6
    return html_report([run]).decode()


def browsed(chromium: str, folder: Path, text: str, *options: str) -> bytes:
    """What Chromium writes to its output on a page of `text`."""
    (folder / "page.html").write_text(text)
    # A phone has no scroll bar that takes a part of its width.
    still = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile")
    ran = subprocess.run(
        [chromium, *still, *options, (folder / "page.html").as_uri()], check=True, capture_output=True, timeout=120
    )
    return ran.stdout


def test_six_cells_print_on_six_sheets_at_most(chromium: str, page: str, tmp_path: Path) -> None:
    browsed(chromium, tmp_path, page, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path}/page.pdf")
    sheets = re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())
    assert 1 < len(sheets) <= 6


def test_charts_are_legible_on_a_phone_and_nothing_is_wider_than_it(chromium: str, page: str, tmp_path: Path) -> None:
    # The page's own policy lets no script run, not even this one.
    free = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", page)
    assert free != page
    measured = free.replace("</body>", f"<script>{MEASURE}</script></body>")
    around = AROUND.format(width=PHONE, height=TALL, page=escape(measured))
    dumped = browsed(chromium, tmp_path, around, "--virtual-time-budget=20000", "--dump-dom").decode()
    match = re.search(r'<pre id="found">(\{.*?\})</pre>', dumped)
    assert match is not None, dumped[-500:]
    found: dict[str, Any] = json.loads(match[1])
    assert found["seen"] == PHONE and found["texts"] > 100
    assert found["wide"] <= PHONE and found["high"] <= HIGH
    assert found["smallest"] >= SMALLEST


def test_each_sentence_of_the_answer_has_one_colon_at_most() -> None:
    answer = words(parsed(gathered(FOLDER / STORE)), "//div[@class='answer']/p")
    assert len(answer) > 1
    assert [sentence for sentence in answer if sentence.count(":") > 1] == []
