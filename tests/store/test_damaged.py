"""A store that was damaged: one line that names it, whatever is wrong in it, and never a traceback."""

from __future__ import annotations

import dataclasses
import json
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.model import checked as checking
from vmlab.model.checked import MOST_VALUES
from vmlab.model.domain import Domain, DomainDisk
from vmlab.model.errors import VmlabError
from vmlab.model.event import Event
from vmlab.model.event_json import from_json, to_json
from vmlab.model.places import runs_folder
from vmlab.model.results import CacheProof, LeverProof, Measurement, NeighbourUse, NetworkProof, Provision
from vmlab.model.run import HIGHEST_SEED, MOST_NUMBERED, MOST_OF_EACH, MOST_REPEATS, MOST_TILES
from vmlab.store.reader import RunReader
from vmlab.store.run_list import RunList
from vmlab.store.writer import UnreadableEventError, event_row
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.feed.run_facts import rows_of
from vmlab.tui.feed.sides import course_of, sides_of
from vmlab.tui.state.compared import compared_sides
from vmlab.tui.state.run_state import RunState

GOOD, BAD = "20261121-143000-tile-good", "20261121-150000-tile-bad"
EXAMPLES: dict[str, Any] = {
    "str": "word",
    "int": 3,
    "int | None": 3,
    "float": 2.5,
    "Clock": 2.5,
    "Cell": 3,
    "Count": 3,
    "Guests": 3,
    "Repeat": 3,
    "Seed": 3,
    "Tile": 3,
    "bool": True,
    "TimeOfDay": 1795271400.0,
    "Reading": 1.5,
    "Reading | None": 1.5,
    "Code": 0,
    "list[str]": ["a reason"],
    "list[Cell]": [1, 2],
    "list[Clock]": [1.5, -2.5],
    "Axes": {"tiles": 1, "cache": "none"},
    "Provision": Provision("cold", 4.5, 4, {"t1-front": "ab"}),
    "CacheProof": CacheProof("t1-front", "/a", True, False, True, False, "none", True),
    "LeverProof": LeverProof("t1-front", 1, "io", "native", "native", True, "/proc/PID/maps"),
    "NetworkProof": NetworkProof("tunnel", "", "both", 3, 2, None, True),
    "Measurement": Measurement("web", 3, "front", "run_time", 1.5, "s"),
    "Settings": {"tiles": 1, "cache": "none", "host": {"thp": "never"}},
    "Seen": {"boot": {"units": ["a.service"]}, "data_disk": {"bytes": 1}},
    "list[CellToCome] | None": [
        {"cell": 2, "axes": {"tiles": 1}, "repeat": 1, "state": "skipped", "planned": {"tiles": 1}}
    ],
    "list[Domain]": [Domain("db", "libvirt", vcpus=2, disks=(DomainDisk("vda", "/db"),))],
    "list[NeighbourUse]": [NeighbourUse("db", 34.2, 0.0)],
    "dict[str, str]": {"run_time": "s"},
    "dict[str, Reading]": {"run_time": 1.5},
    "LatencyScale": [10_000, 10, 71],
    "LatencyCounts": {"root": {"read": [3, 1]}},
    "HostBody": {"cpu": "AMD", "cpus": 2},
}
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    "many",
    "",
    -7,
    2.5,
    10**30,
    1e308,
    nan,
    inf,
    [],
    [[1]],
    {},
    {"a": {"b": [None]}},
)
HOSTILE_WITHIN: tuple[Any, ...] = (
    {"tiles": "two"},
    {"cache": None},
    {"guests": "x"},
    {"snapshots": 3},
    {"seconds": "x"},
    ["x", 3],
    {"tiles": []},
)


def example(kind: type[Event]) -> Event:
    """An event of `kind` whose every field holds something."""
    return kind(**{field.name: EXAMPLES[str(field.type)] for field in dataclasses.fields(kind)})


KINDS = sorted(Event.registry.values(), key=lambda kind: kind.__name__)
FIELDS = [(kind, field.name) for kind in KINDS for field in dataclasses.fields(kind) if "flat" not in field.metadata]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_comes_back_as_it_went_in(kind: type[Event]) -> None:
    assert from_json(to_json(example(kind))) == example(kind)


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name in FIELDS])
def test_a_field_holds_what_its_type_says_or_the_event_is_refused(kind: type[Event], name: str) -> None:
    body = json.loads(to_json(example(kind)))
    refused = 0
    for value in (*HOSTILE, *HOSTILE_WITHIN):
        try:
            event = from_json(json.dumps({**body, name: value}))
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"{kind.__name__}: {name} cannot be ")
            assert len(str(error)) < 120 and "\n" not in str(error)
        else:
            assert event is not None
            assert _fits(getattr(event, name), _type(kind, name))
    assert refused >= 8
    del body[name]
    try:
        assert from_json(json.dumps(body)) is not None
    except ValueError as error:
        assert str(error) == f"{kind.__name__}: {name} is missing"


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name in FIELDS])
def test_what_the_writer_takes_every_reader_takes(kind: type[Event], name: str) -> None:
    refused = 0
    for value in HOSTILE:
        event = dataclasses.replace(example(kind), **{name: value})
        try:
            body = event_row(event)[-1]
        except UnreadableEventError:
            refused += 1
        else:
            assert from_json(body) is not None
    assert refused


def _type(kind: type[Event], name: str) -> str:
    return next(str(field.type) for field in dataclasses.fields(kind) if field.name == name)


def _fits(value: Any, name: str) -> bool:
    """Whether a value is of the same sort as the right one of the type `name`; a whole number does for a figure."""
    wanted = EXAMPLES[name]
    if value is None:
        return "None" in name or isinstance(wanted, float)
    if isinstance(wanted, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(wanted)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("CellStarted", {"axes": {"tiles": MOST_TILES + 1}}),
        ("CellStarted", {"axes": {"tiles": -1}}),
        ("CellStarted", {"settings": {"tiles": 10**9}}),
        ("CellStarted", {"cell": MOST_NUMBERED + 1}),
        ("CellStarted", {"repeat": MOST_REPEATS + 1}),
        ("CellStarted", {"guests": MOST_TILES * MOST_OF_EACH + 1}),
        ("MeasurementTaken", {"tile": MOST_TILES + 1}),
        ("TilesChanged", {"after": 100_000}),
        ("RepeatsEnded", {"repeats": MOST_REPEATS + 1}),
        ("RunStarted", {"seed": HIGHEST_SEED + 1}),
        ("RunStarted", {"cells": MOST_NUMBERED + 1}),
        ("HostProbed", {"host": {"ordered": {"cpus": "2", "memory_bytes": None}}}),
        ("HostProbed", {"host": {"disk": {"emulated": True}}}),
        ("CellStarted", {"settings": {"guests": {"db": {"vcpus": "2"}}}}),
        ("CommonStartSet", {"moments": [1e20]}),
        ("CellStarted", {"settings": {"x": [{}] * MOST_VALUES}}),
        ("CellStarted", {"settings": {"x": {"y": [[[]] * (MOST_VALUES // 2)] * 2}}}),
        ("CellStarted", {"axes": {f"a{number}": 1 for number in range(MOST_VALUES + 1)}}),
        ("HostProbed", {"host": {"x": {f"a{number}": [] for number in range(MOST_VALUES)}}}),
        ("RunStarted", {"assets": {f"a{number}": "" for number in range(MOST_VALUES + 1)}}),
        ("DiskLatencyRead", {"counts": {f"disk{number}": {} for number in range(65)}}),
        ("DiskLatencyRead", {"counts": {"root": {f"kind{number}": [1, 1] for number in range(9)}}}),
        ("DiskLatencyRead", {"counts": {"root": {"read": [0] * 2003}}}),
    ],
)
def test_a_number_has_the_bounds_that_it_has_in_a_scenario(kind: str, changed: dict[str, Any]) -> None:
    """No reader makes room for 10⁹ tiles because a record says so."""
    body = json.loads(to_json(example(Event.registry[kind])))
    with pytest.raises(ValueError, match=rf"^{kind}: \w+ cannot be "):
        from_json(json.dumps(body | changed))


@pytest.mark.parametrize("how", [[], pytest.param(["each"], marks=pytest.mark.nightly)], ids=["all", "each"])
def test_numbers_at_their_extremes_hurt_no_reader(how: list[str]) -> None:
    """Each kind of event and the stored scenario, read by `show` and the console in a process of bounded memory."""
    limits = (1500 * 2**20,) * 2
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.extremes", *how],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 4 * len(KINDS)


@pytest.mark.parametrize(
    "text", ["", "[]", "7", '"RunEnded"', "{}", '{"kind": 7}', '{"kind": []}', "[" * 100_000, "{" * 9], ids=range(9)
)
def test_what_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        from_json(text)
    assert len(str(caught.value)) < 120


def test_a_type_that_nothing_can_check_is_a_defect_of_the_program() -> None:
    with pytest.raises(TypeError, match="no check for"):
        checking.check_of(set[int])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of two runs."""
    folder = tmp_path_factory.mktemp("whole")
    for name in (GOOD, BAD):
        story = Story(folder / name / "run.sqlite", run=name).begin({"cache": ["none", "writeback"]})
        for cache in ("none", "writeback"):
            story.start_cell({"cache": cache})
            story.execute(3.0, [{"cpu_user_percent": 4.0}, {"cpu_user_percent": 5.0}])
            story.measure("web", 3.0)
            story.end_cell(wall=3.0)
        story.end()
    return folder


@pytest.fixture
def runs(whole: Path) -> None:
    """Two runs: the newer one is to be damaged."""
    shutil.copytree(whole, runs_folder())


def _store() -> Path:
    return runs_folder() / BAD / "run.sqlite"


STATEMENTS = {
    "an event that is not UTF-8": "UPDATE events SET body = CAST(x'7b22ff' AS TEXT)",
    "a beginning that is not UTF-8": "UPDATE events SET body = CAST(x'7b22ff' AS TEXT) WHERE id = 1",
    "an event of bytes": "UPDATE events SET body = x'ff00fe'",
    "an event that is a number": "UPDATE events SET body = 7",
    "an event under another's name": "UPDATE events SET kind = 'RunStarted' WHERE kind = 'CellEnded'",
    "a text for a time": "UPDATE events SET body = json_set(body, '$.wall', 'noon')",
    "a time beyond all years": "UPDATE events SET body = json_set(body, '$.wall', 1e18)",
    "a text for the number of cells": "UPDATE events SET body = json_set(body, '$.cells', 'many') WHERE id = 1",
    "a text for a figure": "UPDATE events SET body = json_set(body, '$.value', 'fast') WHERE kind = 'MeasurementTaken'",
    "reasons that are none": "UPDATE events SET body = json_set(body, '$.reasons', 7) WHERE kind = 'CellEnded'",
    "an exit code that is none": "UPDATE events SET body = json_set(body, '$.exit_code', 99) WHERE kind = 'RunEnded'",
    "no table of events": "DROP TABLE events",
    "no table of samples": "DROP TABLE samples",
    "no layouts": "DELETE FROM layouts",
    "layouts that are none": "UPDATE layouts SET names = '[1, 2]'",
    "samples cut short": "UPDATE samples SET body = x'00'",
    "samples of text": "UPDATE samples SET body = 'text'",
    "samples at no time": "UPDATE samples SET mono = 'noon'",
    "samples without measure": "UPDATE samples SET body = replace(hex(body), '0', 'F')",
    "output of text": "INSERT INTO raw_outputs VALUES (99, 1, 'web', 1, 'front', 'ab', 'text')",
    "output by bytes": "INSERT INTO raw_outputs VALUES (99, 'one', x'ff', 'x', 'front', 'ab', x'00')",
    "a scenario that is null": "UPDATE documents SET body = x'00' WHERE name = 'scenario'",
    "a scenario that is a list": "UPDATE documents SET body = '[[]]' WHERE name = 'scenario'",
    "axes that are none": """UPDATE documents SET body = '{"axes": {"cache": {"values": [{}]}}}'""",
    "axes that are a word": """UPDATE documents SET body = '{"axes": "cache"}'""",
    "axes without an end": """UPDATE documents SET body = '{"axes": {"tiles": {"values": [1000000000]}}}'""",
    "workloads that are none": """UPDATE documents SET body = '{"workloads": {"web": {"kind": [], "from": {}}}}'""",
}
FILES = ("half of the file", "noise in the file")
HARMLESS = {"an event under another's name", "a scenario that is a list", "workloads that are none"}
IN_OUTPUT = {"output of text", "output by bytes"}
REPLAYED = (
    HARMLESS | IN_OUTPUT | {"samples at no time", "axes that are none", "axes that are a word", "axes without an end"}
)
COMMANDS = (
    ("show", BAD),
    ("show", BAD, "--json"),
    ("show", f"{BAD}:1"),
    ("show", BAD, "--raw", "--json"),
    ("compare", GOOD, BAD),
    ("attach", BAD, "--json"),
)


@pytest.fixture(params=[*STATEMENTS, *FILES])
def damage(request: pytest.FixtureRequest, runs: None) -> str:
    """What was damaged."""
    name: str = request.param
    if name in STATEMENTS:
        with closing(sqlite3.connect(_store())) as connection:
            connection.execute(STATEMENTS[name])
            connection.commit()
    else:
        whole = _store().read_bytes()
        noise = whole[:4096] + b"\xff\x00\x9b" * (len(whole) // 3)
        _store().write_bytes(whole[: len(whole) // 2] if name.startswith("half") else noise)
    return name


def test_ls_lists_the_others(damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["ls"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(GOOD) and "passed" in line for line in lines)
    assert any(line.startswith(BAD) for line in lines)
    assert command_line(["ls", "--json"]) == 0
    told = {run["id"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert set(told) == {GOOD, BAD}
    if "problem" in told[BAD]:
        assert str(_store()) in told[BAD]["problem"]
        assert lines[-1] == told[BAD]["problem"]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    "statement", ["an event that is not UTF-8", "a beginning that is not UTF-8", "a text for a time"]
)
def test_ls_names_what_is_damaged(statement: str, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(_store())) as connection:
        connection.execute(STATEMENTS[statement])
        connection.commit()
    assert command_line(["ls"]) == 0
    assert f"cannot read {_store()}: " in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:1] + command[2:]))
def test_what_reads_one_run_has_one_clear_line(
    damage: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = command_line(list(command))
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    reads_damage = damage in FILES or ((damage in IN_OUTPUT) if "--raw" in command else damage not in IN_OUTPUT)
    assert code == (reads_damage and damage not in HARMLESS)
    if code and command[0] != "attach":
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert said.err.startswith("vmlab: ")


def test_the_console_lists_replays_and_compares_or_says_why_not(damage: str) -> None:
    runs = RunList().read()
    assert {run.id for run in runs} == {GOOD, BAD}
    assert len(rows_of(runs)) == 2
    if damage not in REPLAYED:
        with pytest.raises(VmlabError) as refused:
            RecordedRun(_store())
        assert "\n" not in str(refused.value)
    else:
        recording = RecordedRun(_store())
        state = RunState({}, recording.intent)
        for event in recording.events:
            state.apply(event)
        assert state.snapshot().id == BAD
        assert len(recording.marks) <= 2
    for picks in ([Pick(_store())], [Pick(_store()), Pick(runs_folder() / GOOD / "run.sqlite")]):
        if damage not in HARMLESS | IN_OUTPUT:
            with pytest.raises(VmlabError) as refused:
                compared_sides([one.side for one in sides_of(picks)], every_metric=True)
            assert "\n" not in str(refused.value)
        else:
            sides = sides_of(picks)
            assert compared_sides([one.side for one in sides], every_metric=True).rows
            assert all(
                len(times) == len(values)
                for one in sides
                for times, values in course_of(one, "cpu_user_percent").curves
            )


@pytest.mark.usefixtures("runs")
def test_no_outcome_is_said_of_a_record_whose_samples_are_gone(capsys: pytest.CaptureFixture[str]) -> None:
    """The events are whole, and tell that the run passed."""
    with closing(sqlite3.connect(_store())) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'samples'")
        ((size,),) = connection.execute("PRAGMA page_size")
    with _store().open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert command_line(["attach", BAD]) == 1
    said = capsys.readouterr()
    assert "2/2  writeback" in said.err and "run passed" not in said.out + said.err
    assert said.err.splitlines()[-1].startswith("vmlab: ")
    assert "damaged" in said.err or "malformed" in said.err


@pytest.mark.usefixtures("runs")
def test_a_store_without_its_log_is_what_was_folded_in() -> None:
    story = Story(_store().with_name("other.sqlite")).begin({})
    story.writer.checkpoint()
    story.note("in the log alone")
    copied = _store().with_name("copy.sqlite")
    copied.write_bytes(story.writer.path.read_bytes())
    story.close()
    with RunReader(copied) as reader:
        assert [type(event).__name__ for _, event in reader.events()] == ["RunStarted", "HostProbed"]
