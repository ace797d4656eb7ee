"""The door to the terminal: nothing hostile passes it, and nothing goes round it."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vmlab
from tests.model.test_visible import HOSTILE
from tests.on_a_terminal import on_a_terminal
from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.cli.progress import RunProgress
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    PhaseStarted,
    WorkloadProgressed,
)
from vmlab.model.event import (
    Notice,
    RunEnded,
    RunStarted,
)
from vmlab.model.places import runs_folder
from vmlab.model.results import RawOutput
from vmlab.model.visible import Control
from vmlab.system.terminal import put

OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*\b")
"""An option on a command line or in the text of a page."""
EVIL = "".join(text for text, _ in HOSTILE.values()) + "\nforged line"
STORED = EVIL.encode("utf-8", "ignore").decode()
"""What a name or a text of a store can hold; SQLite takes no half surrogate pair."""
ARGUMENT = EVIL.replace("\0", "").replace("\ud800", "")
"""What a shell can hand over: any byte but NUL."""
RUN = "20261121-143000-tile-evil"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One run in which every text that can be hostile is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    story = Story(runs_folder() / RUN / "run.sqlite", scenario=EVIL, run=RUN)
    host = {"hostname": EVIL, "cpu": EVIL, "cpus": 2, "kernel": EVIL}
    story.begin({f"cache{EVIL}": [EVIL, "none"]}, accelerator=EVIL, host=host, size=EVIL)
    for value in (EVIL, "none"):
        story.start_cell({f"cache{EVIL}": value})
        story.execute(2.0, [{"cpu_user_percent": 4.0}])
        story.measure(f"web{STORED}", 3.0, unit=EVIL, metric=f"m{EVIL}")
        story.measure(f"web{STORED}", 3.0)
        story.writer.raw(story.cells, RawOutput(STORED, 1, STORED, STORED, STORED + "\udc9b2J"))
        story.end_cell(outcome="invalid", reasons=[EVIL], wall=3.0)
    story.note(EVIL)
    story.end(outcome=EVIL, exit_code=4, reason=EVIL)
    return tmp_path


def assert_harmless(said: str) -> None:
    assert [sign for sign in said if sign not in "\n\t" and not sign.isprintable() and not sign.isspace()] == []
    assert "\r" not in said and "\x85" not in said and "\u2028" not in said
    said.encode()


@pytest.mark.parametrize(
    "command",
    [
        ["ls"],
        ["ls", "--json"],
        ["show", RUN],
        ["show", RUN, "--json"],
        ["show", f"{RUN}:1"],
        ["show", RUN, "--raw"],
        ["show", RUN, "--raw", "--json"],
        ["compare", f"{RUN}:1", f"{RUN}:2"],
        ["compare", f"{RUN}:1", f"{RUN}:2", "--json"],
        ["attach", RUN],
        ["show", ARGUMENT],
        ["show", f"/{ARGUMENT}"],
        ["plan", ARGUMENT],
        ["plan", "tile", "--set", f"workloads.web.requests={ARGUMENT}"],
        ["plan", "tile", "--set", ARGUMENT],
        ["plan", "tile", "--cache", ARGUMENT],
        ["plan", "tile", f"--{ARGUMENT}"],
        [ARGUMENT],
    ],
    ids=lambda command: command[0][:10],
)
def test_every_command_shows_what_is_hostile(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = command_line(command)
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    # The run was invalid, and attaching to it ends as the run did.
    assert code == (2 if ARGUMENT in command[-1] else 4 if command[0] == "attach" else 0)
    assert said.out or code == 2
    assert_harmless(said.out)
    assert_harmless(said.err)
    if "--json" in command:
        json.loads(said.out)
    elif "--raw" not in command:
        # Only raw output has lines of its own.
        assert not any(line.lstrip().startswith("forged line") for line in (said.out + said.err).splitlines())
    if code == 2:
        assert (said.out, said.err.count("\n")) == ("", 1)


def test_a_scenario_shows_its_summary_and_its_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        'name: x\nsummary: "a\\e]0;title\\a\\u202E\\u009B\\nforged"\nguests: {a: {memory: 64 MiB}}\n'
        "workloads: {primes: {kind: cpu, on: a, events: 10, threads: 1}}\n"
    )
    assert command_line(["plan", str(path)]) == 0
    said = capsys.readouterr().out
    assert_harmless(said)
    assert "a\\x1b]0;title\\x07\\u202e\\u009b\\nforged" in said
    assert command_line(["plan", str(path), "--set", 'summary="\\u202E"', "--json"]) == 0
    assert_harmless(capsys.readouterr().out)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_moving_line_still_moves_and_shows_what_is_hostile() -> None:
    stream = _Terminal()
    progress = RunProgress(stream)
    for event in (
        RunStarted(run="r", scenario=EVIL, size="smoke", seed=1, cells=1, expected_seconds=5),
        CellStarted(cell=1, axes={EVIL: EVIL}, repeat=1, guests=1),
        PhaseStarted(cell=1, phase=EVIL),
        WorkloadProgressed(cell=1, workload=EVIL, tile=1, done=1, total=2, unit="s", stage=EVIL),
        Notice(level="warning", text=EVIL),
        CellEnded(cell=1, outcome="failed", reasons=[EVIL, EVIL], wall_seconds=1, start_skew_ms=1),
        RunEnded(outcome="failed", exit_code=1, reason=EVIL),
    ):
        progress.show(event)
    said = stream.getvalue()
    assert said.count("\r\x1b[2K") > 7
    assert_harmless(said.replace("\r\x1b[2K", ""))
    assert said.count("\n") == 5


def test_what_an_encoding_lacks_is_escaped() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    put(stream, Control("\x1b[K"), "± 3\n")
    stream.seek(0)
    assert stream.buffer.read() == b"\x1b[K\\xb1 3\n"


def test_nothing_goes_round_the_door() -> None:
    """No other module writes to a standard stream; programs that run in guests talk to the lab, not to people."""
    root = Path(vmlab.__file__).parent
    sources = {path for path in root.rglob("*.py") if "payload" not in path.parts} - {root / "system/terminal.py"}
    assert [place for path in sources for place in _writings(path)] == []


STREAMS = ("sys.stdout", "sys.stderr", "sys.stdout.buffer", "sys.stderr.buffer")
WRITERS = ("print", "click.echo", "click.secho", *(f"{stream}.write" for stream in STREAMS))


def _writings(path: Path) -> list[str]:
    """The places of `path` that write to a standard stream."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [f"{path}:{call.lineno}" for call in calls if ast.unparse(call.func) in WRITERS]


RUN_THAT_ENDED = """
import sys
import vmlab.cli.one_run as commands
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.places import runs_folder
run, options = sys.argv[1], sys.argv[2:]
commands.check_ready = lambda: None
commands.start_run = lambda *given, **named: RunFolder(run, runs_folder() / run)
sys.argv = ["vmlab", "run", "tile", "--size", "smoke", *options]
from vmlab.__main__ import main
main()
"""


@pytest.mark.parametrize("option", [[], ["--json"]])
@pytest.mark.parametrize(("passed", "code"), [(True, 1), (False, 4)])
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_a_run_ends_as_it_should_where_its_figures_cannot_be_printed(
    option: list[str], passed: bool, code: int, redirection: str
) -> None:
    run = "20261121-150000-tile-full"
    story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
    story.end(*(() if passed else ("invalid", 4)))
    program = [sys.executable, "-c", RUN_THAT_ENDED, run, *option]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *program], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert f"`vmlab show {run}` prints its results" in done.stderr


def test_a_terminal_of_bytes_gets_no_control_byte(tmp_path: Path) -> None:
    """The whole way, to a real terminal, with a name that is no UTF-8."""
    program = [sys.executable.encode(), b"-m", b"vmlab", b"show", b"\x9b2J\xff\x1b[2J"]
    _, said = on_a_terminal(program, env={**os.environ, "LC_ALL": "C"})
    assert b"\x9b" not in said and b"\x1b" not in said and b"no run is called" in said
