"""A run that was stopped, killed or lost its machine goes on in its own record, with the cells that are left."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest

import vmlab
from tests.lab.conftest import NewHome
from tests.lab.faked import CELL_FILE, CELL_SECONDS, NO_LAST_WORD, PROBE, SOON, Home, until
from tests.store.stories import Story
from vmlab.analysis.document import run_document
from vmlab.analysis.record.timeline import RunSpans
from vmlab.analysis.shape import RunDocument
from vmlab.fleet import starting
from vmlab.lab.process.resuming import resume_run
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import CellEnded, FiguresRemade
from vmlab.model.errors import UsageError
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter
from vmlab.system.removal import mark

SCENARIO = PROBE + "repeats: 5\n"
CELLS = 10


_SAID = {"run": "x", "source": "own.yaml", "overrides": {"size": "smoke"}, "seed": 1}
FOREIGN_REQUESTS: dict[str, str] = {
    "in order": json.dumps(_SAID),
    "empty": "",
    "nested": "[" * 100_000,
    "a list": "[]",
    "null": "null",
    "not UTF-8": "\udcff",
    "no overrides": json.dumps({"run": "x"}),
    "overrides of text": json.dumps(_SAID | {"overrides": "all"}),
    "fields missing": json.dumps({"overrides": {}}),
    "a source of numbers": json.dumps(_SAID | {"source": [1]}),
    "no seed": json.dumps(_SAID | {"seed": "1"}),
    "a huge seed": json.dumps(_SAID | {"seed": 10**400}),
    "held for ever": json.dumps(_SAID | {"held": float("inf")}),
    **{
        f"{name} {value!r}"[:40]: json.dumps(_SAID | {"overrides": {name: value}})
        for name, value in (
            ("size", 7),
            ("tiles", [[1]]),
            ("tiles", "1"),
            ("tiles", [1e9]),
            ("cache", ["fast"]),
            ("repeats", "often"),
            ("sets", [1]),
            ("sets", {"a": 1}),
            ("loop", float("nan")),
            ("assets", [None]),
            ("targets", "yes"),
            ("hypervisor", {}),
        )
    },
}


@pytest.mark.parametrize("request_text", FOREIGN_REQUESTS.values(), ids=FOREIGN_REQUESTS)
def test_a_request_that_came_with_an_archive_resumes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_text: str
) -> None:
    """It is anybody's text, and the run began on another host; one line says so, and nothing is changed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))
    folder = RunFolder.of("20261121-143000-own-7f3a")
    story = Story(folder.store, "own", folder.id).begin({"cache": ["none"]})
    story.close()
    mark(folder.path, folder.id)
    folder.request.write_bytes(request_text.encode("utf-8", "surrogateescape"))
    folder.scenario.write_text("name: own\nworkloads: {primes: {kind: cpu, on: host, threads: 1}}\n")
    kept = folder.store.read_bytes()
    with pytest.raises(UsageError, match=f"^run {folder.id}") as refused:
        resume_run(folder)
    assert len(str(refused.value)) < 200 and "\n" not in str(refused.value)
    expected = "none that began" if request_text == FOREIGN_REQUESTS["in order"] else "its request.json cannot be read"
    assert expected in str(refused.value)
    assert folder.store.read_bytes() == kept


def begun(home: Home) -> str:
    """The id of a run that was started, and is in a cell after the second one, which lasts."""
    file, ending = home.folder / "probe.yaml", home.folder / "cells end"
    file.write_text(SCENARIO)
    ending.touch()
    started = home.run("run", str(file), "--detach", **{CELL_SECONDS: "0.5", CELL_FILE: str(ending)})
    assert started[0] == 0, started
    until(lambda: len(home.events("CellEnded")) >= 2, "the end of the second cell")
    ending.unlink()
    until(lambda: len(home.events("CellStarted")) > len(home.events("CellEnded")), "a further cell")
    return started[1].strip()


def killed(home: Home) -> str:
    """The id of a run that was killed in a cell, as if its machine were gone."""
    run = begun(home)
    for name in ("runner_pid", "launcher_pid"):
        # The kernel kills the one with the other.
        with suppress(ProcessLookupError):
            os.kill(home.pid(name), signal.SIGKILL)
    until(lambda: home.run("attach", run, **NO_LAST_WORD)[0] == 1, "its end")
    return run


def changed(home: Home, statement: str, *values: object) -> None:
    """Change the record of the newest run."""
    with closing(sqlite3.connect(home.records()[-1] / "run.sqlite")) as connection, connection:
        connection.execute(statement, values)


def document_of(home: Home) -> RunDocument:
    with RunReader(home.records()[-1] / "run.sqlite") as reader:
        return run_document(reader)


def resumed(home: Home, run: str, *words: str) -> tuple[int, str, str]:
    return home.run("resume", run, *words, **{CELL_SECONDS: "0.1"})


def cut_off(home: Home) -> tuple[int, list[int]]:
    """How many cells have ended, and which has begun without an end."""
    ended = [event["cell"] for event in home.events("CellEnded")]
    return len(ended), [event["cell"] for event in home.events("CellStarted") if event["cell"] not in ended]


def all_measured_once(home: Home, ended: int, broke_off: list[int]) -> None:
    """Whether each cell has one end that counts, so many of them from before the cut."""
    begun = Counter(event["cell"] for event in home.events("CellStarted"))
    assert begun == Counter([*range(1, CELLS + 1), *broke_off])
    assert [event["cell"] for event in home.events("CellWithdrawn")] == broke_off
    (end,) = home.events("RunEnded")
    assert (end["outcome"], end["exit_code"]) == ("passed", 0)
    document = document_of(home)
    assert [cell.outcome for cell in document.cells] == ["passed"] * CELLS
    assert any(f"cut off after {ended} of {CELLS} cells, and resumed" in one for one in document.run.notices)


def test_a_run_that_was_killed_goes_on_with_the_cells_that_are_left(home: Home) -> None:
    run = killed(home)
    ended, broke_off = cut_off(home)
    assert 2 <= ended < CELLS
    code, _, words = resumed(home, run)
    assert code == 0, words
    assert all(f"cell {cell} broke off: the run was cut off" in words for cell in broke_off)
    all_measured_once(home, ended, broke_off)
    assert not [*(home.folder / "run").glob("*"), *(home.host / "vmlab-measuring").glob("*")]
    code, _, words = resumed(home, run)
    assert (code, "has ended" in words) == (2, True), words


def test_a_run_that_was_stopped_goes_on_and_may_be_left_and_stopped_again(home: Home) -> None:
    run = begun(home)
    assert home.run("stop", run)[0] == 0
    assert home.events("RunEnded")[0]["outcome"] == "aborted"
    count = len(home.events("CellStarted"))
    code, output, _ = home.run("resume", run, "--detach", **{CELL_SECONDS: "3600"})
    assert (code, output.strip()) == (0, run)
    until(lambda: len(home.events("CellStarted")) > count, "a cell")
    assert not home.events("RunEnded")
    assert "is under way" in resumed(home, run)[2]
    assert home.run("stop", run)[0] == 0
    code, output, words = resumed(home, run, "--json")
    assert code == 0, words
    assert [cell["outcome"] for cell in json.loads(output)["cells"]] == ["passed"] * CELLS
    assert Counter(event["cell"] for event in home.events("CellStarted")).keys() == set(range(1, CELLS + 1))


def test_beside_another_run_it_is_refused_or_waits_for_its_turn_or_goes_ahead(homes: NewHome) -> None:
    """As `vmlab run` does; the refusal names both ways. Two that wait for one run do not both measure it."""
    anna, bert = homes("anna"), homes("bert")
    run = killed(anna)
    bert.run("run", "cpu-overhead", "--size", "smoke", "--detach")
    until(bert.in_a_cell, "the first cell")
    code, _, words = resumed(anna, run)
    assert (code, len(words.splitlines())) == (3, 1), words
    assert f"run {bert.records()[0].name} of bert" in words
    assert "`--wait` waits for its turn, `--concurrent` measures at the same time" in words
    ended, broke_off = cut_off(anna)
    waiting = []
    for place in (1, 2):
        waiting.append(anna.spawn("resume", run, "--wait", **{CELL_SECONDS: "0.1"}))
        stream = waiting[-1].stderr
        assert stream is not None
        assert stream.readline().startswith(f"waiting: place {place} of {place}, begins in about ")
    assert not anna.events("CommandReceived")
    assert bert.run("stop")[0] == 0
    _, words = waiting[0].communicate(timeout=SOON)
    assert waiting[0].returncode == 0, words
    all_measured_once(anna, ended, broke_off)
    _, words = waiting[1].communicate(timeout=SOON)
    # The last process of the first may still be about to end.
    assert waiting[1].returncode == 2 and ("has ended" in words or "is under way" in words), words
    assert not [*(anna.host / "vmlab-measuring").glob("*")]


def test_one_that_goes_ahead_is_counted_and_noted(homes: NewHome) -> None:
    anna, bert, carl = homes("anna"), homes("bert"), homes("carl")
    run = killed(anna)
    bert.run("run", "cpu-overhead", "--size", "smoke", "--detach")
    until(bert.in_a_cell, "the first cell")
    code, _, words = anna.run("resume", run, "--concurrent", "--detach", **{CELL_SECONDS: "3600"})
    assert code == 0, words
    until(lambda: anna.events("AnotherRunSeen") and bert.events("AnotherRunSeen"), "that each sees the other")
    waiting = carl.spawn("run", "cpu-overhead", "--size", "smoke", "--wait", **{CELL_SECONDS: "0"})
    assert waiting.stderr is not None
    line = waiting.stderr.readline()
    assert line.count("measures now") == 2 and run in line, line
    assert bert.run("stop")[0] == 0
    assert f"run {run} of anna" in carl.run("run", "cpu-overhead", "--size", "smoke")[2]
    assert waiting.poll() is None
    assert anna.run("stop", run)[0] == 0
    assert waiting.wait(SOON) == 0


def test_waiting_and_going_ahead_are_for_one_host_and_exclude_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        vmlab.resume_run("last", wait=True, concurrent=True)
    monkeypatch.setattr(starting, "is_fleet", lambda path: True)
    for way in ({"tell": print}, {"concurrent": True}):
        with pytest.raises(UsageError, match="are for a run on one host"):
            starting.resume(RunFolder("one", Path("/nowhere")), **way)


@pytest.mark.parametrize("ahead", [0.0, 1e7, -1e5])
def test_times_go_on_without_a_gap_whatever_the_clocks_were_before(home: Home, ahead: float) -> None:
    """The clock of the boot before was far ahead of that of this one, or far behind; and it was two days ago."""
    run = killed(home)
    found = cut_off(home)
    moved = "json_set(body, '$.mono', mono + ?1, '$.wall', wall - 172800)"
    changed(home, f"UPDATE events SET mono = mono + ?1, wall = wall - 172800, body = {moved}", ahead)
    changed(home, "UPDATE samples SET mono = mono + ?, wall = wall - 172800", ahead)
    assert resumed(home, run)[0] == 0
    all_measured_once(home, *found)
    with RunReader(home.records()[-1] / "run.sqlite") as reader:
        events = [event for _, event in reader.events()]
        samples = [row.mono for row in reader.sample_rows()]
        spans = RunSpans.read(reader)
    # Each process reads both clocks one after the other, and appends a moment later.
    steps = [after.mono - before.mono for before, after in pairwise(events)]
    assert min(steps) > -1.0 and max(steps) < 60.0
    assert samples == sorted(samples)
    for event in events:
        if isinstance(event, CellEnded):
            assert spans.wall_at(event.mono) == pytest.approx(event.wall, abs=1.0)
    assert any("resumed about 48 h later" in one for one in document_of(home).run.notices)


@pytest.mark.parametrize("known", ["kernel", "image"])
def test_a_host_that_is_another_by_now_is_refused_and_the_cells_are_kept(home: Home, known: str) -> None:
    run = killed(home)
    ended, _ = cut_off(home)
    path = "$.host.kernel" if known == "kernel" else "$.image"
    kind = "HostProbed" if known == "kernel" else "ImageReady"
    changed(home, "UPDATE events SET body = json_set(body, ?, 'another') WHERE kind = ?", path, kind)
    code, _, words = resumed(home, run)
    assert code == 3, words
    assert f"{known}: then another, now " in words
    assert [cell.outcome for cell in document_of(home).cells] == ["passed"] * ended


def test_what_cannot_go_on_is_left_as_it_is(home: Home) -> None:
    run = killed(home)
    record = home.records()[-1]
    before = document_of(home)

    def refused(code: int, words: str) -> None:
        found = resumed(home, run)
        assert (found[0], words in found[2]) == (code, True), found

    request = record / "request.json"
    asked = json.loads(request.read_text())
    request.write_text(json.dumps({**asked, "held": 60.0}))
    refused(2, "is a part of a fleet's run")
    request.write_text(json.dumps(asked))
    scenario = record / "scenario.yaml"
    scenario.write_text(SCENARIO.replace("repeats: 5", "repeats: 1"))
    refused(3, "start it anew")
    scenario.write_text(SCENARIO.replace("events: 10", "events: 11"))
    refused(3, "cell 1 would be planned otherwise now")
    scenario.write_text(SCENARIO)
    (record / "vmlab.mark").rename(record / "mark")
    refused(2, "is none that began to measure here")
    (record / "mark").rename(record / "vmlab.mark")
    assert document_of(home) == before
    assert resumed(home, run)[0] == 0


def test_a_run_that_was_killed_before_its_last_words_says_them(home: Home) -> None:
    (home.folder / "probe.yaml").write_text(SCENARIO)
    code, run, _ = home.run("run", str(home.folder / "probe.yaml"), "--detach", **{CELL_SECONDS: "0.1"})
    assert (code, home.run("attach", run := run.strip())[0]) == (0, 0)
    changed(home, "DELETE FROM events WHERE kind IN ('RunnerFinished', 'RunEnded')")
    assert resumed(home, run)[0] == 0
    assert len(home.events("CellStarted")) == CELLS and not home.events("CellWithdrawn")
    assert home.events("RunEnded")[0]["outcome"] == "passed"


def test_what_was_read_again_meanwhile_moves_no_times(home: Home) -> None:
    """Figures that are made again have the time of their cell by the monotonic clock, which is not the last one."""
    run = killed(home)
    with RunReader(home.records()[-1] / "run.sqlite") as reader:
        first, *_ = (event for _, event in reader.events())
    with closing(RunWriter(home.records()[-1] / "run.sqlite")) as writer:
        writer.append(
            FiguresRemade(
                wall=first.wall + 9e4,
                mono=first.mono,
                cell=1,
                workload="primes",
                tile=1,
                guest="one",
                version="0.1.0",
                was={},
                values={},
                units={},
            )
        )
    assert resumed(home, run)[0] == 0
    with RunReader(home.records()[-1] / "run.sqlite") as reader:
        events = [event for _, event in reader.events() if not isinstance(event, FiguresRemade)]
    assert all(after.mono - before.mono > -1.0 for before, after in pairwise(events))


def test_an_image_that_was_refused_once_is_not_held_against_the_run(home: Home) -> None:
    """The host has the image of the first cells again."""
    run = killed(home)
    changed(home, "UPDATE events SET body = json_set(body, '$.image', 'another') WHERE kind = 'ImageReady'")
    assert resumed(home, run)[0] == 3
    changed(
        home,
        "UPDATE events SET body = json_set(body, '$.image', ?) WHERE kind = 'ImageReady'",
        home.events("ImageReady")[-1]["image"],
    )
    assert resumed(home, run)[0] == 0


def test_a_run_whose_coming_cells_were_changed_is_started_anew(home: Home) -> None:
    run = begun(home)
    code, _, words = home.run("set", run, "--cell", str(CELLS), "skip")
    assert code == 0, words
    assert home.run("stop", run)[0] == 0
    assert "its cells to come were changed" in resumed(home, run)[2]
