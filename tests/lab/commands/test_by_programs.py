"""What programs do with a run that goes on: the API follows, changes and stops it as the command line does."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

import vmlab
from tests.host.inside.taken_away import TAKEN
from tests.lab.answering_run import Answering, answering
from tests.lab.conftest import NewHome
from tests.lab.faked import CELL_FILE, CELL_SECONDS, DEAF, HUNG, LOAD, MEMORY, ROOT, SOON, Home, until
from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import CommandFailed, ExitCode, RefusedError, UsageError
from vmlab.model.places import runs_folder

PREFIX = TAKEN["root"].prefix
PAGE = Path(__file__).parents[3] / "docs/reference/api.md"
RUN = "20261121-143000-tile-aaaa"
FAILING = """\
name: failing
guests: {users: {vcpus: 1, memory: 512 MiB}}
workloads: {cpu: {kind: cpu, on: users, threads: 1}}
axes: {cache: [writeback, none]}
repeats: 50
order: as written
"""
STARTED = ("run", "cpu-overhead", "--size", "smoke", "--detach")


@pytest.fixture
def mine(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A user whose labs have no guests, who is also that of this process."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "VMLAB_RUNTIME_DIR"):
        monkeypatch.setenv(name, home.environment()[name])
    monkeypatch.setattr("vmlab.lab.process.measuring_runs.RUN_FOLDERS", (home.host,))
    return home


def test_events_come_as_they_happen_until_the_run_is_over(mine: Home) -> None:
    ends = mine.folder / "ends"
    assert mine.run(*STARTED, **{CELL_FILE: str(ends), CELL_SECONDS: "0"})[0] == 0
    attached = vmlab.attach_run()
    assert (attached.outcome, attached.cells_planned, attached.cell) == ("running", 0, None)
    kinds = []
    for event in attached:
        kinds.append(event.kind)
        if event.kind == "CellStarted":
            assert event.cell is not None
            assert (attached.cell, attached.cells_ended, attached.exit_code) == (event.cell, event.cell - 1, None)
            assert event.at.tzinfo is UTC and event.fields["repeat"] >= 1 and event.sentence.startswith("cell ")
            # The cell does not end before this event has come.
            ends.touch()
    assert kinds[0] == "RunStarted" and kinds[-1] == "RunEnded" and "WorkloadProgressed" not in kinds
    assert attached.cells_ended == attached.cells_planned == kinds.count("CellEnded") > 0
    assert (attached.outcome, attached.exit_code, attached.cell) == ("passed", 0, None)
    assert not RunFolder.of(attached.id).alive()
    assert list(attached) == []
    again = vmlab.attach_run(attached.id)
    assert [event.kind for event in again] == kinds and again.outcome == "passed"


def test_the_example_of_the_page_stops_a_run_at_its_first_failure(
    mine: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(import vmlab\n\nrun = vmlab.attach_run.*?)```", PAGE.read_text(), re.DOTALL)
    scenario = mine.folder / "failing.yaml"
    scenario.write_text(FAILING)
    said = {CELL_SECONDS: "0.3", LOAD: json.dumps({"none": "failed"}), MEMORY: str(60 * 2**30)}
    code, run, words = mine.run("run", str(scenario), "--detach", **said)
    assert code == 0, words
    exec(compile(example, str(PAGE), "exec"), {})
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == "aborted" and told[0].startswith(f"0 100 run {run.strip()} started: failing, ")
    assert [end["outcome"] for end in mine.events("CellEnded")][:2] == ["passed", "failed"]
    (end,) = mine.events("RunEnded")
    assert (end["outcome"], end["reason"]) == ("aborted", "stopped")


def test_a_run_is_stopped_and_cleared_away(mine: Home) -> None:
    assert mine.run(*STARTED)[0] == 0
    until(mine.in_a_cell, "the first cell")
    with pytest.raises(vmlab.VmlabError, match="is under way"):
        vmlab.remove_runs("last")
    stopped = vmlab.stop_run()
    (asked,) = mine.events("CommandReceived")
    assert (asked["command"], asked["origin"]) == ("stop", "vmlab.stop_run")
    assert (stopped, stopped.outcome) == (vmlab.open_run("last"), "aborted")
    assert not RunFolder.of(stopped.id).remains()
    with pytest.raises(vmlab.VmlabError, match=r"run .* is not running"):
        vmlab.stop_run(stopped)
    with pytest.raises(vmlab.VmlabError, match="no run is under way"):
        vmlab.stop_run()
    assert vmlab.remove_runs(stopped) == [stopped.id]


def test_a_run_that_hears_nothing_is_killed(mine: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.lab.commands.stopping.ANSWER_SECONDS", 1.0)
    monkeypatch.setattr("vmlab.lab.commands.stopping.SILENT_SECONDS", 1.0)
    assert mine.run(*STARTED, **{DEAF: HUNG})[0] == 0
    until(mine.in_a_cell, "the first cell")
    assert vmlab.stop_run().outcome == "aborted"
    (end,) = mine.events("RunEnded")
    assert end["reason"] == "killed: it did not stop within 1 s of `vmlab.stop_run`"


def test_a_run_whose_processes_are_gone_ends_as_aborted(mine: Home) -> None:
    assert mine.run(*STARTED)[0] == 0
    until(mine.in_a_cell, "the first cell")
    attached, kinds = vmlab.attach_run(), []
    for event in attached:
        kinds.append(event.kind)
        # Under load a second cell may have begun before the first one's event is taken, and both are dead by then.
        if event.kind == "CellStarted" and kinds.count("CellStarted") == 1:
            os.kill(mine.pid("launcher_pid"), signal.SIGKILL)
            # The kernel ends the runner with the launcher, before or after this line.
            with suppress(ProcessLookupError):
                os.kill(mine.pid("runner_pid"), signal.SIGKILL)
    assert (attached.outcome, attached.exit_code, "RunEnded" in kinds) == ("aborted", None, False)
    (swept,) = [one for one in vmlab.clean_runs()["runs"] if one["run"] == attached.id]
    assert swept["removed"] and not swept["left"] and vmlab.clean_runs()["runs"] == []


def test_of_several_runs_one_is_to_be_named(homes: NewHome, monkeypatch: pytest.MonkeyPatch) -> None:
    home = homes("anna")
    for name in ("XDG_STATE_HOME", "VMLAB_RUNTIME_DIR"):
        monkeypatch.setenv(name, home.environment()[name])
    for _ in range(2):
        assert home.run(*STARTED, "--concurrent")[0] == 0
    for call in (vmlab.attach_run, vmlab.stop_run, vmlab.coming_cells):
        with pytest.raises(vmlab.VmlabError, match="2 runs are under way, and one is to be named"):
            call()
    for record in home.records():
        assert vmlab.stop_run(record.name).outcome == "aborted"


ANOTHER = """
import vmlab
run = vmlab.attach_run()
asked = False
for event in run:
    # The run stays in its first cell meanwhile; by the second one's event it may be over.
    if event.kind == "CellStarted" and not asked:
        asked = True
        assert vmlab.open_run(run.id).outcome == "running" == vmlab.listing()["runs"][0]["outcome"]
        for call in (vmlab.stop_run, vmlab.coming_cells, lambda: vmlab.set_running_cell(cache="none")):
            try:
                call()
            except vmlab.VmlabError as error:
                print(f"{error.exit_code:d} {error}", flush=True)
print(run.outcome, run.exit_code)
"""


def test_another_user_follows_a_run_and_cannot_change_it(mine: Home) -> None:
    nobody = [*PREFIX, sys.executable, "-c"]
    if subprocess.run([*nobody, "import tests"], cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("this checkout is not readable for other users")
    ends = mine.folder / "ends"
    assert mine.run(*STARTED, **{CELL_FILE: str(ends), CELL_SECONDS: "0"})[0] == 0
    until(mine.in_a_cell, "the first cell")
    (record,) = mine.records()
    for folder in (record, *itertools.takewhile(lambda one: one != mine.host.parent, record.parents)):
        folder.chmod(0o755)
    with subprocess.Popen(
        [*nobody, ANOTHER], env=mine.environment(HOME=str(mine.folder)), cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        told = [other.stdout.readline() for _ in range(3)]
        ends.touch()
        told.append(other.stdout.read().splitlines()[-1])
        assert other.wait(SOON) == 0
    refused = f"3 run {record.name} is one of root; it obeys that user and root alone\n"
    assert told == [refused, refused, refused, "passed 0"]
    assert mine.events("CommandReceived") == []


def coming(number: int, state: str = "planned") -> dict[str, Any]:
    axes = {"tiles": 1, "cache": "writeback"}
    return {"cell": number, "axes": axes, "repeat": 1, "state": state, "planned": axes}


@pytest.fixture
def living(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "r"))
    Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]}).close()
    with answering(RUN, {"coming": [coming(2), coming(3, "skipped")]}) as found:
        yield found


def test_the_cells_to_come_are_those_of_the_command_line(living: Answering, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["set", "--list", "--json"]) == 0
    found = vmlab.coming_cells()
    assert found == vmlab.coming_cells(vmlab.open_run(RUN)) == json.loads(capsys.readouterr().out)
    assert [one["cell"] for one in found["cells"]] == [2, 3]
    assert vmlab.set_coming_cells(RUN, cell=3, skip=True) == found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cache": "none", "tiles": 2}, ["cache=none", "tiles=2"]),
        ({"cell": 2, "cache": "none"}, ["--cell", "2", "cache=none"]),
        ({"cell": 3, "skip": True}, ["--cell", "3", "skip"]),
        ({"planned": True}, ["planned"]),
    ],
)
def test_a_run_is_asked_for_what_the_command_line_asks(
    change: dict[str, Any], words: list[str], living: Answering
) -> None:
    vmlab.set_coming_cells(**change)
    assert command_line(["set", *words]) == 0
    (ours, theirs) = (asked for _, asked in living.asked)
    assert ours.pop("origin") == "vmlab.set_coming_cells" and theirs.pop("origin") == "vmlab set"
    assert ours == theirs


SWITCHED = {"cell": 3, "what": "cache", "before": "writeback", "after": "none"}
DRAINED = {"pauses_ms": {"t1-web": 4.0}, "drained_seconds": 1.5, "drained_bytes": None}


@pytest.mark.parametrize(
    ("change", "words", "answer", "expected"),
    [
        ({"cache": "none"}, "cache=none", SWITCHED | DRAINED, SWITCHED | DRAINED),
        ({"ksm": "on"}, "ksm=on", SWITCHED | {"what": "ksm"}, SWITCHED | {"what": "ksm", "drained_seconds": None}),
        (
            {"tiles": 2},
            "tiles=2",
            {"cell": 3, "before": 1, "after": 2},
            {"cell": 3, "what": "tiles", "before": 1, "after": 2},
        ),
        ({"end": True}, "end", {"cell": 3, "ended": True}, {"cell": 3, "what": "end", "before": None, "after": None}),
    ],
)
def test_running_guests_are_changed_as_by_the_command_line(
    change: Any,
    words: str,
    answer: dict[str, Any],
    expected: dict[str, Any],
    living: Answering,
    capsys: pytest.CaptureFixture[str],
) -> None:
    living.answer = answer
    done = vmlab.set_running_cell(**change)
    assert {name: getattr(done, name) for name in expected} == expected
    assert command_line(["set", words, "--now"]) == 0
    assert capsys.readouterr().out == f"{done.sentence}\n"
    (ours, theirs) = (asked for _, asked in living.asked)
    assert (ours.pop("origin"), theirs.pop("origin")) == ("vmlab.set_running_cell", "vmlab set")
    assert ours == theirs


@pytest.mark.parametrize("change", [{}, {"cache": "none", "ksm": "on"}, {"end": True, "tiles": 2}])
def test_one_thing_of_the_running_cell_is_changed_at_a_time(change: Any, living: Answering) -> None:
    with pytest.raises(vmlab.VmlabError, match="one thing is changed at a time"):
        vmlab.set_running_cell(RUN, **change)
    assert living.asked == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (UsageError("cache unsafe promises other flushes"), ExitCode.USAGE),
        (RefusedError("cache=none needs O_DIRECT"), ExitCode.REFUSED),
        (CommandFailed("cell 3 was not switched"), ExitCode.FAILED),
    ],
)
def test_a_refusal_of_the_run_is_raised(answer: vmlab.VmlabError, code: ExitCode, living: Answering) -> None:
    living.answer = answer
    with pytest.raises(vmlab.VmlabError, match=f"^{answer}$") as caught:
        vmlab.set_running_cell(cache="none")
    assert caught.value.exit_code == code
    with pytest.raises(type(answer)):
        vmlab.set_coming_cells(cache="none")


def test_the_host_is_recorded_until_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "r"))
    for wrong in ({"interval": 0.001}, {"interval": 7200.0}, {"keep_seconds": 0.0}, {"keep_bytes": 5000}):
        with pytest.raises(vmlab.VmlabError, match="a recording"):
            vmlab.record_host(**wrong)
    with pytest.raises(vmlab.VmlabError, match="a recording lasts 20 ms or more"):
        vmlab.record_host(0.0)
    assert vmlab.runs() == []
    run = vmlab.record_host(interval=0.05)
    attached = vmlab.attach_run()
    assert attached.id == run
    for event in attached:
        if event.kind == "PhaseStarted":
            assert (attached.phase, vmlab.stop_run().outcome) == ("execute", "passed")
    assert (attached.outcome, attached.exit_code) == ("passed", 0)
    assert subprocess.run(["pgrep", "-f", run], check=False).returncode == 1
    assert vmlab.open_run(run).advice()["schema"].startswith("vmlab.advice/")


def test_a_run_that_did_not_begin_here_does_not_go_on(living: Answering) -> None:
    with pytest.raises(vmlab.VmlabError, match=f"run {RUN} is none that began to measure here"):
        vmlab.resume_run(RUN)
