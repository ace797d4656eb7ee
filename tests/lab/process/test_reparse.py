"""Figures that are made again from kept raw texts: what changes, what stays, and what is said of it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab import __version__
from vmlab.cli.main import command_line
from vmlab.lab.process.reparse import _workload
from vmlab.model.cell_event import FiguresRemade, MeasurementTaken
from vmlab.model.places import runs_folder
from vmlab.model.results import Measurement, RawOutput
from vmlab.workloads.kinds.bonnie import Bonnie
from vmlab.workloads.kinds.memcpy import Memcpy, MemcpyParams
from vmlab.workloads.registry import kinds

RUN = "20261121-143000-tile-7f3a"
CAPTURED = Path(__file__).parents[2] / "workloads/captured"
MBW = (CAPTURED / "mbw.txt").read_text()
PARAMS = MemcpyParams(array=64 * 2**20, runs=3)
Ended = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def ended(capsys: pytest.CaptureFixture[str]) -> Ended:
    def end(*arguments: str) -> tuple[int, str, str]:
        code = command_line(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return end


def _settings(kind: str = "memcpy", params: Any = None) -> dict[str, Any]:
    given = PARAMS.model_dump(mode="json", by_alias=True) if params is None else params
    return {"workloads": {"copy": {"kind": kind, "on": "vm", "params": given}}}


def _told(
    text: str | None = MBW, wrong: float = 1.0, settings: dict[str, Any] | None = None, cells: int = 1
) -> dict[str, float]:
    """A run whose parser took every bandwidth for `wrong` times as much; the figures that are right."""
    right = dict(Memcpy(PARAMS).figures({"mbw": MBW}, 60.0))
    story = Story(runs_folder() / RUN / "run.sqlite").begin({"cache": ["none"]}, cells=cells)
    for repeat in range(1, cells + 1):
        number = story.start_cell({"cache": "none"}, repeat, 1, _settings() if settings is None else settings)
        if text is not None:
            story.writer.raw(number, RawOutput("copy", 1, "copy-client", "mbw", text))
        story.ran("copy", 1, 0.0, 60.0)
        for metric, value in right.items():
            if metric != "run_time":
                kept = value * (wrong if metric.endswith("bandwidth") else 1)
                story.measure("copy", kept, metric, Memcpy.metrics[metric].unit)
        figure = Measurement("copy", 1, "copy-client", "run_time", right["run_time"], "s")
        story.writer.append(MeasurementTaken(**story.now(), cell=number, figure=figure))
        story.end_cell(wall=61.0)
    story.end()
    return right


def _figures(ended: Ended) -> dict[str, float]:
    body = json.loads(ended("show", "last", "--json")[1])
    return {one["metric"]: one["value"] for one in body["cells"][0]["measurements"]}


def test_a_figure_that_was_wrong_is_made_again_and_the_old_one_kept(ended: Ended) -> None:
    right = _told(wrong=2.0)
    before = _figures(ended)
    code, out, err = ended("reparse", "last")
    assert (code, err) == (0, "")
    wrong = {metric: value for metric, value in before.items() if value != right[metric]}
    assert len(wrong) == 3 and all(value == 2 * right[metric] for metric, value in wrong.items())
    assert out.splitlines()[-1] == "1 workload read again, 3 values changed"
    metric = "memcpy_bandwidth"
    assert f"cell 1, copy of tile 1, {metric}: {before[metric]:.6g} -> {right[metric]:.6g} (unit B/s)" in out
    assert _figures(ended) == right
    (cell,) = json.loads(ended("show", "last", "--json")[1])["cells"]
    assert {one["metric"]: (one["was"], one["value"], one["unit"]) for one in cell["remade"]} == {
        metric: (before[metric], right[metric], "B/s") for metric in wrong
    }
    assert {one["version"] for one in cell["remade"]} == {__version__}
    assert all(one["at"] > "2026" for one in cell["remade"])
    assert {over["metric"]: over["mean"] for over in cell["over_tiles"]}[metric] == right[metric]


def test_what_shows_the_new_figures_says_so(ended: Ended) -> None:
    right = _told(wrong=2.0, cells=2)
    assert "made again" not in ended("show", "last")[1]
    ended("reparse", "last")
    assert "made again" in ended("show", "last")[1]
    text = " ".join(ended("show", "last", "--explain")[1].split())
    assert f"values of copy were made again from raw output by vmlab {__version__} on " in text
    assert "cells 1, 2;" in text
    cell = " ".join(ended("show", "last:2")[1].split())
    rate = right["dumb_bandwidth"]
    assert f"copy of tile 1, dumb_bandwidth: {rate:.6g} (unit B/s), made again by vmlab {__version__}" in cell
    assert f"it was {2 * rate:.6g}" in cell


def test_a_second_time_changes_nothing(ended: Ended) -> None:
    _told(wrong=2.0)
    ended("reparse", "last")
    store = runs_folder() / RUN / "run.sqlite"
    content = store.read_bytes()
    code, out, _ = ended("reparse", "last")
    assert (code, out) == (0, "1 workload read again, 0 values changed\n")
    assert store.read_bytes() == content


def test_a_dry_run_shows_the_same_and_changes_nothing(ended: Ended) -> None:
    right = _told(wrong=2.0)
    store = runs_folder() / RUN / "run.sqlite"
    content = store.read_bytes()
    code, out, _ = ended("reparse", "last", "--dry-run", "--json")
    body = json.loads(out)
    assert (code, body["schema"], body["run"], body["dry_run"]) == (0, "vmlab.reparse/1", RUN, True)
    assert (body["workloads_read"], body["problems"], body["beyond"]) == (1, [], [])
    assert {one["metric"]: one["value"] for one in body["changes"]} == {
        metric: value for metric, value in right.items() if metric.endswith("bandwidth")
    }
    assert ended("reparse", "last", "--dry-run")[1].endswith("3 values would change\n")
    assert store.read_bytes() == content
    assert _figures(ended) != right


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"text": None}, "its raw text mbw is not kept"),
        ({"text": "what is this"}, "mbw ran nothing, not DUMB, MCBLOCK, MEMCPY"),
        ({"text": MBW.replace("1321.986", "2000.000")}, "mbw's average of MEMCPY"),
        ({"settings": {}}, "its record does not say what it was asked to do"),
        ({"settings": _settings("quantum")}, "this vmlab has no workload of the kind 'quantum'"),
        ({"settings": _settings(params={"array": "x", "runs": 3})}, "what is kept of it cannot be read (TypeError: "),
    ],
)
def test_what_cannot_be_read_again_stays_as_it_was_and_is_one_line(
    told: dict[str, Any], why: str, ended: Ended
) -> None:
    _told(wrong=2.0, **told)
    before = _figures(ended)
    code, out, err = ended("reparse", "last")
    assert (code, out) == (1, "0 workloads read again, 0 values changed\n")
    assert err.startswith("cell 1, copy of tile 1, is left as it was: ") and why in err and err.count("\n") == 1
    assert _figures(ended) == before


def test_a_kind_that_needs_more_than_texts_is_said_plainly(ended: Ended) -> None:
    _told(wrong=2.0, settings=_settings("http", {"requests": 5}), cells=2)
    code, out, err = ended("reparse", "last")
    assert (code, out) == (0, "0 workloads read again, 0 values changed\n")
    assert err == "values of http cannot be made again: they need more than its texts\n"


def test_a_run_that_is_not_over_is_refused(ended: Ended) -> None:
    _told(wrong=2.0)
    with (runs_folder() / RUN / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, out, err = ended("reparse", "last")
    assert (code, out) == (3, "")
    assert f"run {RUN} is not over" in err and err.count("\n") == 1


def test_a_run_that_is_not_there_is_wrong_usage(ended: Ended) -> None:
    code, _, err = ended("reparse", "nothing")
    assert code == 2 and err.count("\n") == 1


def test_the_history_has_every_change(ended: Ended) -> None:
    """A figure that another version made is in `remade` beside that of this one, in order."""
    right = _told(wrong=2.0)
    metric = "memcpy_bandwidth"
    story = Story(runs_folder() / RUN / "run.sqlite")
    place: dict[str, Any] = {
        "cell": 1,
        "workload": "copy",
        "tile": 1,
        "guest": "copy-client",
        "units": {metric: "B/s", "gone": "1"},
    }
    was = {metric: 2 * right[metric], "gone": 1.0}
    story.writer.append(FiguresRemade(wall=1.0, mono=5.0, version="0.0.9", was=was, values={metric: 7.0}, **place))
    story.writer.close()
    assert _figures(ended)[metric] == 7.0
    ended("reparse", "last")
    (cell,) = json.loads(ended("show", "last", "--json")[1])["cells"]
    changes = [(one["version"], one["was"], one["value"]) for one in cell["remade"] if one["metric"] == metric]
    assert changes == [("0.0.9", 2 * right[metric], 7.0), (__version__, 7.0, right[metric])]


def test_kinds_say_which_texts_they_read() -> None:
    again = {name for name, kind in kinds().items() if kind.texts}
    assert set(kinds()) - again == {"http", "iperf3", "replay"}


def test_parameters_of_a_record_are_those_of_the_plan() -> None:
    """Lists of a record are tuples again, and amounts are plain numbers."""
    for kind in (Memcpy, Bonnie):
        params = PARAMS if kind is Memcpy else Bonnie.Params.model_validate({"size": "64 MiB"})
        said = json.loads(json.dumps({"kind": kind.kind, "params": params.model_dump(mode="json", by_alias=True)}))
        assert _workload(said).params == params
