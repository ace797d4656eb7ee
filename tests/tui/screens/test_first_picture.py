"""What the console does until its first picture stands: no times are measured, but all that would delay it is counted.

The console runs on a terminal of its own; its feeds, which begin after the first picture, are replaced by a report.
"""

import gc
import json
import os
import pty
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from tests.waiting import until
from vmlab.tui.app import Console

PROGRAM = """
import dataclasses, json, sys
from pathlib import Path
from textual.css.stylesheet import Stylesheet
from vmlab.__main__ import main
from vmlab.tui.screens.live_screen import LiveScreen

parsed_again = []
reparse = Stylesheet.reparse
Stylesheet.reparse = lambda sheet: (parsed_again.append(1), reparse(sheet))[1]

def begin(screen):
    ours = {name: module for name, module in sys.modules.items() if name.startswith("vmlab")}
    classes = {value for module in ours.values() for value in vars(module).values() if isinstance(value, type)}
    made = [one.__qualname__ for one in classes if one.__module__ in ours and dataclasses.is_dataclass(one)]
    report = {"modules": list(sys.modules), "dataclasses": made, "parsed_again": len(parsed_again)}
    Path(REPORT).write_text(json.dumps(report))
    # Written like a picture, so it stands behind all that has been drawn.
    screen.app.copy_to_clipboard("begun")
    screen.app.exit()

LiveScreen.begin = begin
main()
"""
BEGUN = b"\x1b]52;"


class Start(NamedTuple):
    """What was written to the terminal, and the program's report of the moment at which the feeds would begin."""

    written: bytes
    report: dict[str, Any]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    place = tmp_path_factory.mktemp("first")
    report = place / "report.json"
    near, far = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "XDG_STATE_HOME": str(place)}
    program = [sys.executable, "-c", PROGRAM.replace("REPORT", repr(str(report)))]
    console = subprocess.Popen(program, stdin=far, stdout=far, stderr=far, env=env)
    os.close(far)
    written = b""
    try:
        while part := os.read(near, 65536):
            written += part
    except OSError:  # The last writer has closed the terminal.
        pass
    finally:
        os.close(near)
        assert console.wait(240) == 0, written
    return Start(written, json.loads(report.read_text()))


def test_the_feeds_begin_when_the_picture_is_there(start: Start) -> None:
    """However slow the machine is: a timer that runs out first would have their modules loaded before it."""
    assert 0 < start.written.find(b"LIVE") < start.written.find(BEGUN)


def test_the_picture_waits_for_no_module_that_it_does_not_need(start: Start) -> None:
    packages = ("analysis", "cli", "guests", "hypervisor", "integrity", "lab", "plan", "report", "store", "workloads")
    unwanted = {
        "click",
        "pydantic",
        "ruamel.yaml",
        "sqlite3",
        *(f"vmlab.{package}" for package in packages),
        "vmlab.model.cell_event",
        "vmlab.model.checked",
        "vmlab.model.event",
        "vmlab.model.results",
        "vmlab.model.scenarios.scenario",
        "vmlab.telemetry.recorder",
        "vmlab.tui.commands",
        "vmlab.tui.feed.live_feed",
        "vmlab.tui.state.run_state",
    }
    assert not unwanted & set(start.report["modules"])


def test_its_records_are_the_lightest_there_are(start: Start) -> None:
    """Each dataclass takes the time of four named tuples to make, and twenty of them took a thirteenth of the whole."""
    assert start.report["dataclasses"] == []


def test_style_sheets_are_parsed_once(start: Start) -> None:
    """A screen of MODES, or one whose style sheet the console has not read, has all of them parsed once more."""
    assert start.report["parsed_again"] == 0


async def test_garbage_is_collected_from_the_first_picture_on() -> None:
    gc.disable()
    try:
        async with Console().run_test() as pilot:
            await pilot.pause()
            await until(gc.isenabled, "the collection is on")
    finally:
        gc.enable()
