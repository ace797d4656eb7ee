"""Every figure from an emulated disk says so, in tables, comparisons and exports; and no axis varies the disk."""

import csv
import json
from pathlib import Path

import pytest

from tests.store.stories import HOST, Story
from vmlab.cli.main import command_line
from vmlab.model.errors import RefusedError, ScenarioError
from vmlab.model.event import HostProbed
from vmlab.model.places import runs_folder
from vmlab.plan.loading import read
from vmlab.plan.planning import HostFacts, Overrides, check_fit, make_plan
from vmlab.report.event_words import event_sentence

Captured = pytest.CaptureFixture[str]
RUN = "20261121-143000-mine-7f3a"
EMULATED = {**HOST, "disk": {"device": "loop0", "emulated": True, "profile": "hdd-7200"}}
OWN = {**HOST, "disk": {"device": "vda", "emulated": False}}
FACTS = HostFacts(2**36, 2**36, 2**40, 4, "kvm")
JOB = "name: job\nguests: {vm: {memory: 512 MiB}}\nworkloads: {job: {kind: cpu, on: vm, threads: 1}}\n"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)


def told(host: dict[str, object]) -> None:
    story = Story(runs_folder() / RUN / "run.sqlite", "mine", RUN)
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
    assert "emulated disk hdd-7200: figures of disks describe a model" in shown(["show", "last"], capsys)
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
