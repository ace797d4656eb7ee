"""Every figure from an emulated disk says so, in tables, comparisons and exports; and no axis varies the disk."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.store.stories import HOST, Story
from vmlab.cli.main import command_line
from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.model.event import HostProbed
from vmlab.model.places import runs_folder
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides
from vmlab.report.event_words import event_sentence
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.sides import sides_of
from vmlab.tui.state.charts import title_of
from vmlab.tui.state.compared import compared_sides
from vmlab.tui.widgets.charts.chart_board import EACH

Captured = pytest.CaptureFixture[str]
RUN, OTHER = "20261121-143000-mine-7f3a", "20261121-153000-mine-7f3b"
NETWORK = "Lab network"
EMULATED: dict[str, Any] = {**HOST, "disk": {"device": "loop0", "emulated": True, "profile": "hdd-7200"}}
OWN = {**HOST, "disk": {"device": "vda", "emulated": False}}
FACTS = HostFacts(2**36, 2**36, 2**40, 4, "kvm")
JOB = "name: job\nguests: {vm: {memory: 512 MiB}}\nworkloads: {job: {kind: cpu, on: vm, threads: 1}}\n"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)


def told(host: dict[str, object], run: str = RUN) -> None:
    store = runs_folder() / run / "run.sqlite"
    store.unlink(missing_ok=True)
    story = Story(store, "mine", run)
    figures = [{"rows": {"cache": mode}, "value": "5.0", "unit": "s"} for mode in ("none", "writeback")]
    said = {"reference": {"source": "a paper", "figures": figures}}
    story.begin({"cache": ["none", "writeback"]}, {"rows": ["cache"], "columns": ["workloads"]}, said=said, host=host)
    for mode in ("none", "writeback"):
        story.start_cell({"cache": mode}, guests=1)
        story.measure("primes", 5.0)
        story.end_cell(wall=5.0)
    story.end()


def shown(arguments: list[str], capsys: Captured) -> str:
    assert command_line(arguments) == 0
    return capsys.readouterr().out


def test_tables_and_published_figures_say_so(capsys: Captured) -> None:
    told(EMULATED)
    assert "emulated disk hdd-7200: disk metrics describe a model" in shown(["show", "last", "--explain"], capsys)
    assert "emulated disk" in shown(["show", "last"], capsys)
    beside = json.loads(shown(["show", "last", "--reference", "--json"], capsys))
    assert {tuple(one["measured"]["ordered"]) for one in beside["figures"]} == {("emulated disk",)}
    assert shown(["show", "last", "--reference"], capsys).count("tcg, emulated disk") == 2


def test_the_hosts_own_disk_is_not_spoken_of(capsys: Captured) -> None:
    told(OWN)
    assert "emulated disk" not in shown(["show", "last"], capsys) + shown(["show", "last", "--reference"], capsys)


def test_exports_say_so(capsys: Captured, tmp_path: Path) -> None:
    told(EMULATED)
    shown(["export", "last", "--format", "csv", "-o", str(tmp_path / "run.csv")], capsys)
    with (tmp_path / "run.csv").open(newline="") as file:
        assert {row["ordered"] for row in csv.DictReader(file)} == {"emulated disk"}


def compared(capsys: Captured, *arguments: str) -> str:
    return shown(["compare", f"{RUN}:1", f"{RUN}:2", *arguments], capsys)


def test_comparisons_say_so(capsys: Captured, tmp_path: Path) -> None:
    told(EMULATED)
    assert "all values are from a host with an emulated disk" in compared(capsys, "--explain")
    assert "emulated disk" in compared(capsys)
    assert json.loads(compared(capsys, "--json"))["ordered"] == ["emulated disk"]
    told(EMULATED, OTHER)
    for name in ("both.html", "both.md"):
        shown(["report", RUN, OTHER, "-o", str(tmp_path / name)], capsys)
        assert "all values are from a host with an emulated disk" in (tmp_path / name).read_text()
    gate = str(tmp_path / "gate.xml")
    compared(capsys, "--fail-if", "primes.run_time > +20 %", "--lenient", "--junit", gate)
    properties = etree.parse(gate).findall(".//testsuite/properties/property")
    assert [(one.get("name"), one.get("value")) for one in properties] == [
        ("accelerator", "tcg"),
        ("ordered", "emulated disk"),
    ]
    told(OWN)
    assert "emulated disk" not in compared(capsys)
    assert json.loads(compared(capsys, "--json"))["ordered"] == []


def test_the_number_of_the_loop_device_is_no_condition(capsys: Captured) -> None:
    """Nor is it one against the host's own disk, of which the other facts tell it apart."""
    told(EMULATED)
    told({**EMULATED, "disk": {**EMULATED["disk"], "device": "loop7"}}, OTHER)
    assert json.loads(shown(["compare", RUN, OTHER, "--json"], capsys))["differs"] == []
    told(OWN, OTHER)
    differs = json.loads(shown(["compare", RUN, OTHER, "--json"], capsys))["differs"]
    assert {one["what"] for one in differs} == {"host disk emulated", "host disk profile"}


def test_the_consoles_comparison_says_so(capsys: Captured) -> None:
    told(EMULATED)
    found = compared_sides([one.side for one in sides_of([Pick(runs_folder() / RUN / "run.sqlite")])])
    assert ", under emulation (TCG), on an emulated disk; " in found.sentence
    assert found.rows[0].label == "Run times under emulation (TCG), on an emulated disk"
    assert found.ordered == ("emulated disk",)


def test_the_consoles_charts_of_the_disk_say_so() -> None:
    titles = {title_of(chart, ["emulated disk"]): title_of(chart, []) for panel in EACH for chart in panel}
    assert titles == {"Emulated disk": "Disk"} | {name: name for name in ("CPU", "Memory", "Pressure", "KSM", NETWORK)}


def test_the_event_says_so() -> None:
    sentence = event_sentence(HostProbed(accelerator="kvm", host=EMULATED))
    assert sentence is not None
    assert sentence.text.startswith("accelerator kvm; emulated disk hdd-7200: ")


@pytest.mark.parametrize(
    "axes",
    [
        "axes: {host.disk: [hdd-7200]}",
        "axes: {d: {values: [hdd-7200], sets: host.disk}}",
        "axes: {d: {points: {a: {host.disk: hdd-7200}}}}",
    ],
)
def test_no_axis_varies_it(axes: str) -> None:
    with pytest.raises(ScenarioError, match=r"host.disk'? is the same in all cells of a run, so no axis varies it"):
        make_plan(read(Path("job.yaml"), f"{JOB}{axes}\n"), Overrides(), FACTS)


def test_an_assignment_orders_it() -> None:
    plan = make_plan(read(Path("job.yaml"), JOB), Overrides(sets=("host.disk=raid10-4",)), FACTS)
    assert plan.scenario.host.disk == "raid10-4"


def test_a_host_that_cannot_have_one_refuses_it_before_anything_starts() -> None:
    host = HostFacts(2**36, 2**36, 2**40, 4, "kvm", unsettable={"disk": "/dev/fuse is missing: modprobe fuse"})
    plan = make_plan(read(Path("job.yaml"), f"{JOB}host: {{disk: hdd-7200}}\n"), Overrides(), host)
    with pytest.raises(RefusedError, match=r"the scenario sets host\.disk, and /dev/fuse is missing") as refused:
        check_fit(plan, host)
    assert int(refused.value.exit_code) == 3
