"""`vmlab tune`: its plan, its two runs, the verdict and its exit code; runs are told, and no guest starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import vmlab
from tests.analysis.comparison.test_tuned import reading
from tests.analysis.tuned_runs import CONFIRMATION, OWN, SCREENING, Reading, told
from tests.cli.called import ended
from tests.plan.test_planning import HOST
from vmlab.analysis.comparison.tuned import LEAST_REPEATS
from vmlab.cli.commands import tune_command
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import ExitCode
from vmlab.model.places import runs_folder
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import ScenarioFile, load
from vmlab.plan.terms import Overrides
from vmlab.report.tune_text import TOO_FEW

FIO = ("--rw", "randwrite", "--bs", "4k", "--levers", "cache,queues,allocation")


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = ended("tune", *words)
    told = capsys.readouterr()
    return code, told.out, told.err


class Lab:
    """Stands in for runs: each is told with the figures that `figures` gives, and ends with the next of `codes`."""

    def __init__(self, figures: Reading, codes: list[ExitCode] | None = None) -> None:
        self.figures = figures
        self.codes = codes or []
        self.files: list[ScenarioFile] = []

    def started(self, file: ScenarioFile, *_: object, **__: object) -> RunFolder:
        run = (SCREENING, CONFIRMATION)[min(len(self.files), 1)]
        self.files.append(file)
        told(runs_folder(), run, file, self.figures)
        return RunFolder.of(run)

    def follow(self, *_: object) -> ExitCode:
        return self.codes.pop(0) if self.codes else ExitCode.PASSED


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Lab]:
    def made(figures: Reading, codes: list[ExitCode] | None = None) -> Lab:
        found = Lab(figures, codes)
        monkeypatch.setattr(tune_command, "started", found.started)
        monkeypatch.setattr(tune_command, "follow", found.follow)
        return found

    return made


def test_the_plan_says_the_minutes_first_and_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, *FIO, "--plan")
    assert code == 0
    assert out.startswith("about ") and " min" in out.splitlines()[0]
    design = "4 settings and their mirror images in 3 blocks"
    for part in ("24 cells", design, "2 settings, 8 repeats", "cache=none, io=native"):
        assert part in out
    assert "prove no difference" not in out
    _, few, _ = said(capsys, *FIO, "--plan", "--repeats", "6")
    assert "fewer than 7 repeats prove no difference between 3 settings" in few
    code, out, _ = said(capsys, "--rw", "randwrite", "--plan")
    assert code == 0 and "left out: read_ahead: " in out and "8 settings and their mirror images in 2 blocks" in out
    code, out, _ = said(capsys, "--rw", "randwrite", "--plan", "--json", "--levers", "cache,queues", "--repeats", "9")
    found = json.loads(out)
    assert (found["schema"], [one["lever"] for one in found["levers"]]) == ("vmlab.tune-plan/1", ["cache", "queues"])
    assert (found["screening"]["cells"], found["confirmation"]["cells"], found["blocks"]) == (20, 27, 5)
    whole = found["screening"]["estimated_seconds"] + found["confirmation"]["estimated_seconds"]
    assert found["estimated_seconds"] == pytest.approx(whole, abs=0.2)
    assert not runs_folder().exists()


@pytest.mark.parametrize("levers", [4, 5])
def test_it_fits_into_twelve_minutes_by_default(levers: int) -> None:
    """A cell of fio's usual work, and so many levers, emulated."""
    from vmlab.analysis.comparison.tuned import USUAL_REPEATS
    from vmlab.plan.tuning.fio_options import FioOptions
    from vmlab.plan.tuning.screening_design import screening, usual_blocks

    (cell,) = make_plan(FioOptions("randwrite").scenario(), Overrides(), HOST).cells
    cells = len(screening(levers)) * usual_blocks(levers) + 3 * USUAL_REPEATS
    assert HOST.accelerator_guess == "tcg"
    assert cells * cell.seconds <= 12 * 60


def test_two_runs_make_the_verdict(capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab], tmp_path: Path) -> None:
    made = lab(reading(1, cache=0.5, queues=1.4))
    code, out, err = said(capsys, *FIO, "-o", "best.yaml")
    assert (code, len(made.files)) == (0, 2)
    for part in (
        "what each lever is worth here",
        "a guide: ",
        "confirmation, the verdict",
        "confirmed: queues=2 is better than the default",
        "libvirt:  <driver name='qemu' cache='writeback' io='threads' discard='unmap' detect_zeroes='off' queues='2'/>",
        "proxmox:  # virtioN is the data disk's slot",
        "qm set VMID --virtioN STORAGE:VOLUME,cache=writeback,aio=threads,iothread=0,discard=on,detect_zeroes=0",
        "TCG: these values describe emulation",
    ):
        assert part in out
    assert out.startswith("about ")
    assert "the winning scenario is in best.yaml" in err
    assert load(str(tmp_path / "best.yaml")).scenario.guests["vm"].data_queues == 2
    code, again, _ = said(capsys, "--of", CONFIRMATION, SCREENING)
    assert code == 0
    # The same, but for the plan that stands before it.
    assert again.split() == out[out.index("what each lever") :].split()
    code, json_again, _ = said(capsys, "--of", SCREENING, CONFIRMATION, "--json")
    found = json.loads(json_again)
    assert (found["schema"], found["winner"], found["lines"]["libvirt"][0][:7]) == ("vmlab.tune/1", "b", "<driver")
    assert found == vmlab.tune_runs(SCREENING, CONFIRMATION)
    assert vmlab.tune_runs(SCREENING)["undecided"]


def test_as_json_it_prints_one_document(capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab]) -> None:
    lab(reading(2, queues=1.4))
    code, out, _ = said(capsys, *FIO, "--json")
    found: dict[str, Any] = json.loads(out)
    assert (code, found["confirmation"]) == (0, CONFIRMATION)
    assert "data_queues: 2" in found["scenario"]
    assert found["levers"][0]["lever"] == "queues"


def test_nothing_is_written_where_nothing_wins(capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab]) -> None:
    lab(reading(3, cache=0.4))
    code, out, err = said(capsys, *FIO, "-o", "best.yaml")
    assert code == 0
    assert "no setting is proven better than the default" in out
    assert "nothing is written to best.yaml" in err and not Path("best.yaml").exists()
    assert "lines to copy" not in out


@pytest.mark.parametrize("code", [ExitCode.FAILED, ExitCode.CLEANUP_INCOMPLETE])
def test_a_screening_that_fails_ends_it(
    capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab], code: ExitCode
) -> None:
    made = lab(reading(4, queues=1.4), [code])
    ended_with, _, err = said(capsys, *FIO)
    assert (ended_with, len(made.files)) == (code, 1)
    assert f"vmlab tune --confirm {SCREENING}" in err
    later = lab(reading(5, queues=1.4))
    later.files.append(made.files[0])
    ended_with, out, err = said(capsys, "--confirm", SCREENING)
    assert ended_with == 0 and "confirmed: queues=2" in out
    assert TOO_FEW not in err
    assert TOO_FEW in said(capsys, "--confirm", SCREENING, "--repeats", str(LEAST_REPEATS - 1))[2]


def test_a_confirmation_that_fails_ends_with_its_code(
    capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab]
) -> None:
    lab(reading(4, queues=1.4), [ExitCode.INVALID, ExitCode.FAILED])
    code, _, err = said(capsys, *FIO)
    assert code == ExitCode.FAILED
    assert f"vmlab tune --of {SCREENING} {CONFIRMATION}" in err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "name a scenario, or fio's work with --rw"),
        (("--bs", "4k"), "--bs is an option of fio, and needs --rw"),
        (("disk-matrix", "--rw", "read"), "name a scenario, or fio's work with --rw"),
        (("--rw", "read", "--bs", "4x"), "is no size of fio's"),
        (("--rw", "read", "--levers", "cahce,queues"), "did you mean 'cache'?"),
        (("--rw", "read", "--levers", "cache"), "takes 2 levers or more"),
        (("--rw", "read", "--metric", "iopz"), "did you mean"),
        (("--rw", "read", "--blocks", "1"), "--blocks"),
        (("--confirm", "last", "--levers", "cache"), "--confirm takes the scenario"),
        (("--of", "last", "--plan"), "--of analyses runs as they are"),
        (("--of", "last", "--confirm", "last"), "name a scenario, or fio's work"),
        (("tile",), "data disk"),
        (("--rw", "randread", "--iodepth", "4", "--ioengine", "psync"), "depth must be 1"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab], words: tuple[str, ...], line: str
) -> None:
    made = lab(reading(1))
    code, out, err = said(capsys, *words)
    assert (code, out, made.files) == (2, "", [])
    assert line in err and len(err.splitlines()) == 1


def test_a_scenario_of_ones_own_is_tuned(capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab]) -> None:
    Path("own.yaml").write_text(OWN)
    made = lab(reading(6, read_ahead=1.5))
    code, out, _ = said(capsys, "own.yaml", "--levers", "cache,read_ahead", "--metric", "iops")
    assert code == 0 and len(made.files) == 2
    assert "confirmed: read_ahead=4 MiB is better than the default" in out
    assert "guest:    echo 4096 > /sys/block/vdX/queue/read_ahead_kb" in out


SENT = """\
name: sent
guests:
  vm: {vcpus: 4, memory: 512 MiB, data: 2 GiB}
workloads:
  sent:
    {kind: command, on: vm, run: ./bench.sh, files: [./bench.sh], metrics: {iops: {find: "([0-9]+)", better: higher}}}
"""


@pytest.mark.parametrize("fails", [False, True])
def test_a_confirmation_sends_the_files_of_its_screening(
    capsys: pytest.CaptureFixture[str], lab: Callable[..., Lab], tmp_path: Path, fails: bool
) -> None:
    (tmp_path / "own").mkdir()
    Path("own/sent.yaml").write_text(SENT)
    Path("own/bench.sh").write_text("echo 1\n")
    Path("bench.sh").write_text("echo another\n")
    made = lab(reading(6, cache=1.5), [ExitCode.FAILED] if fails else None)
    code, _, err = said(capsys, "own/sent.yaml", "--levers", "cache,queues", "--metric", "iops")
    assert code == (ExitCode.FAILED if fails else 0), err
    if fails:
        Path("own/bench.sh").unlink()
        code, _, err = said(capsys, "--confirm", SCREENING)
        assert code == 0, err
    screening, confirmation = made.files
    assert screening.files == confirmation.files
    plan = make_plan(confirmation, Overrides(), HOST)
    assert plan.cells[0].workloads[0].params.model_dump()["files"][0]["sha256"] == sha256(b"echo 1\n").hexdigest()
