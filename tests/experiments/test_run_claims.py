"""`make experiments` over told runs: it goes on where it was killed, keeps its bound of time, and waits for quiet."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.checklist import Checklist
from tests.experiments import run_all, run_claims
from tests.experiments.records import answers_in, archive_of, kept
from tests.experiments.run_claims import (
    CONTROL,
    Asked,
    Experiment,
    as_before,
    experiments,
    go_on,
    is_finished,
    keep_answers,
    table,
)
from tests.experiments.told import tell
from vmlab.model.errors import RefusedError
from vmlab.model.places import runs_folder
from vmlab.plan.terms import ForClaims
from vmlab.store.run_list import list_runs

TOLD = (sys.executable, "-m", "tests.experiments.told")
NAMES = ("memcpy-overhead", "network-vpc")
FOUND = [Experiment(name, 2, 2, 28, 5.0, 10.0) for name in NAMES]
Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(Path(__file__).parents[2])
    return tmp_path


def _gone_on(folder: Path, printed: Printed, asked: Asked, start: str) -> list[list[str]]:
    """The words of each line that a start prints."""
    go_on(FOUND, asked, folder, Checklist(folder / start))
    return [line.split() for line in printed.readouterr().out.splitlines()]


def _commands(folder: Path, start: str, name: str) -> list[str]:
    lines = (folder / start / f"{name}.log").read_text().splitlines()
    return [line.split()[2] for line in lines if line.startswith("$ vmlab ")]


def _quiet() -> float:
    return 0.0


def _wait_for_a_cell(name: str) -> None:
    """Wait until a run of a scenario has a cell that ended."""
    end = time.monotonic() + 120
    while not any(run.scenario == name and run.cells_done for run in list_runs()):
        assert time.monotonic() < end, name
        time.sleep(0.2)


@pytest.mark.parametrize("resumes", [True, False])
def test_killed_in_the_middle_it_goes_on(
    folder: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    """What has a record is not run again, and what was cut off goes on, or is done anew where it cannot; after that
    nothing is left.
    """
    program = (
        "from pathlib import Path\n"
        "from tests.checklist import Checklist\n"
        "from tests.experiments.test_run_claims import FOUND, TOLD, Asked, _quiet, go_on\n"
        f"folder = Path({str(folder)!r})\n"
        "go_on(FOUND, Asked(command=TOLD, busy=_quiet), folder, Checklist(folder / 'first'))\n"
    )
    monkeypatch.setenv("TOLD", "hang=network-vpc")
    driver = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
    try:
        _wait_for_a_cell("network-vpc")
    finally:
        below = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
        driver.wait()
        for one in below:
            with suppress(psutil.NoSuchProcess):
                one.kill()
    assert is_finished("memcpy-overhead", "smoke", folder) and not is_finished("network-vpc", "smoke", folder)
    first = kept("memcpy-overhead", folder / "records/smoke")

    monkeypatch.setenv("TOLD", "resumes" if resumes else "")
    asked = Asked(command=TOLD, busy=_quiet)
    lines = _gone_on(folder, capsys, asked, "second")
    assert [(line[0], line[-1]) for line in lines] == [("ok", "network-vpc")]
    anew = [] if resumes else ["run"]
    assert _commands(folder, "second", "network-vpc") == ["ls", "resume", *anew, "show"]
    assert not (folder / "second/memcpy-overhead.log").exists()
    assert kept("memcpy-overhead", folder / "records/smoke") == first
    runs = sorted((run.scenario, run.outcome, run.cells_done == run.cells_planned) for run in list_runs())
    cut_off = [] if resumes else [("network-vpc", "aborted", False)]
    assert runs == [("memcpy-overhead", "passed", True), *cut_off, ("network-vpc", "passed", True)]
    assert _gone_on(folder, capsys, asked, "third") == []


def test_one_look_in_place_of_three_is_run_and_kept_so(folder: Path, capsys: Printed) -> None:
    go_on(FOUND[:1], Asked(repeats="claims-once", command=TOLD, busy=_quiet), folder, Checklist(folder / "output"))
    record = kept("memcpy-overhead", folder / "records/smoke")
    # Two claims of one comparison each: 6 repeats that agree have a p of 2 / 2^6, and one is to spare.
    assert record and record["looks"] == [7]
    assert "--repeats claims-once" in (folder / "output/memcpy-overhead.log").read_text()
    (once, *_), (thrice, *_) = (experiments(["tile-backing"], "smoke", word) for word in ("claims-once", "claims"))
    assert once.least == once.most < 0.7 * thrice.most


def test_a_run_that_passed_without_a_record_is_taken_and_not_repeated(
    folder: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell("memcpy-overhead", claims="claims")
    before = len([*runs_folder().iterdir()])
    go_on(FOUND[:1], Asked(command=TOLD, busy=_quiet), folder, Checklist(folder / "output"))
    assert capsys.readouterr().out.startswith("ok")
    assert _commands(folder, "output", "memcpy-overhead") == ["ls", "show", "show"]
    assert is_finished("memcpy-overhead", "smoke", folder)
    assert len([*runs_folder().iterdir()]) == before

    keep_answers(NAMES, "smoke", folder, folder / "docs", TOLD)
    assert sorted(path.name for path in (folder / "docs").iterdir()) == [
        "memcpy-overhead.json",
        "memcpy-overhead.vmlab",
    ]
    record, whole = (kept("memcpy-overhead", folder / one) for one in ("docs", "records/smoke"))
    assert record and whole and record["beside"]["claims"] == whole["beside"]["claims"]
    assert record["machine"] == whole["machine"] and "figures" not in record["beside"]
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "elsewhere"))
    assert answers_in(archive_of("memcpy-overhead", folder / "docs")) == record["beside"]["claims"]


@pytest.mark.parametrize(("repeats", "has_answers"), [("claims", True), ("claims-once", False)])
def test_a_run_with_invalid_cells_is_kept_if_its_claims_have_enough_others(
    folder: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch, repeats: ForClaims, has_answers: bool
) -> None:
    """Six repeats answer both claims, and two are lost; three looks have twelve, and one look seven."""
    monkeypatch.setenv("TOLD", "invalid=memcpy-overhead")
    report = Checklist(folder / "output")
    asked = Asked(repeats=repeats, command=TOLD, busy=_quiet)
    go_on(FOUND[:1], asked, folder, report)
    assert report.failed == (not has_answers)
    assert ("is invalid: steal" in capsys.readouterr().out) != has_answers
    assert is_finished("memcpy-overhead", "smoke", folder) == has_answers
    # Started again, it takes such a run that has no record, if that has answers.
    (folder / "records/smoke/memcpy-overhead.json").unlink(missing_ok=True)
    go_on(FOUND[:1], asked, folder, Checklist(folder / "again"))
    ran = "run" in _commands(folder, "again", "memcpy-overhead")
    assert ran != has_answers


def test_answers_of_a_larger_size_stay_and_those_of_a_smaller_one_give_way(folder: Path, capsys: Printed) -> None:
    for size in ("demo", "smoke"):
        go_on(FOUND[:1], Asked(size=size, command=TOLD, busy=_quiet), folder, Checklist(folder / "output"))
    capsys.readouterr()
    found = []
    for size in ("smoke", "demo", "smoke"):
        keep_answers(NAMES[:1], size, folder, folder / "docs", TOLD)
        record = kept(NAMES[0], folder / "docs")
        assert record
        found.append(record["beside"]["run"]["size"])
    assert found == ["smoke", "demo", "demo"]
    assert capsys.readouterr().out == f"left           {NAMES[0]}: it has answers of size demo\n"


def test_a_record_whose_claims_changed_since_is_not_taken_for_an_answer(folder: Path, capsys: Printed) -> None:
    asked = Asked(command=TOLD, busy=_quiet)
    go_on(FOUND[:1], asked, folder, Checklist(folder / "first"))
    place = folder / "records/smoke/memcpy-overhead.json"
    place.write_text(place.read_text().replace("17.5 % slower", "27.5 % slower"))
    assert not is_finished("memcpy-overhead", "smoke", folder)
    go_on(FOUND[:1], asked, folder, Checklist(folder / "second"))
    assert _commands(folder, "second", "memcpy-overhead") == ["ls", "run", "show"]
    assert is_finished("memcpy-overhead", "smoke", folder)


def test_on_another_day_each_is_asked_as_it_was_and_on_the_same_day_not_at_all(folder: Path, capsys: Printed) -> None:
    ways = {"memcpy-overhead": Asked(repeats="claims-once", command=TOLD, busy=_quiet), NAMES[1]: Asked(command=TOLD)}
    for name, asked in ways.items():
        tell(name, claims=asked.repeats)
        go_on([replace(FOUND[0], name=name)], replace(asked, busy=_quiet), folder, Checklist(folder / "output"))
    keep_answers(NAMES, "smoke", folder, folder / "docs", TOLD)
    capsys.readouterr()
    default = Asked(size="demo", command=TOLD, busy=_quiet)
    # The told runs began on 2026-11-21.
    assert as_before([*NAMES, "tile"], default, "2026-11-21", folder / "docs") == {}
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == [
        "memcpy-overhead:",
        f"{NAMES[1]}:",
        "tile:",
    ]
    assert as_before(NAMES, default, "2026-11-22", folder / "docs") == {
        "memcpy-overhead": replace(default, size="smoke", repeats="claims-once"),
        NAMES[1]: replace(default, size="smoke", repeats="claims"),
    }


def test_a_failed_run_has_no_record(folder: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOLD", "failed=memcpy-overhead")
    report = Checklist(folder / "output")
    go_on(FOUND[:1], Asked(command=TOLD, busy=_quiet), folder, report)
    assert report.failed == 1 and "is failed" in capsys.readouterr().out
    assert not is_finished("memcpy-overhead", "smoke", folder)


def test_the_bound_of_time_is_kept(folder: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is estimated to fit no more is not begun, and what takes longer is stopped, and goes on the next time."""
    monkeypatch.setenv("TOLD", "hang=memcpy-overhead")
    began = time.monotonic()
    lines = _gone_on(folder, capsys, Asked(seconds=12.0, command=TOLD, busy=_quiet), "long")
    assert time.monotonic() - began < 60
    assert [line[:2] for line in lines] == [["left", f"{name}:"] for name in NAMES]
    assert "the next start has it go on" in " ".join(lines[0])

    # The rest of a run may need less than the whole, and what is longer than all of the time is begun as well.
    monkeypatch.setenv("TOLD", "resumes")
    asked = Asked(seconds=60.0, command=TOLD, busy=_quiet)
    go_on([replace(one, most=600.0) for one in FOUND], asked, folder, Checklist(folder / "short"))
    found = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(line[0], line[-1]) for line in found] == [("ok", name) for name in NAMES]
    assert [_commands(folder, "short", name)[-2] for name in NAMES] == ["resume", "run"]


def test_it_waits_until_the_machine_does_nothing_else(folder: Path, capsys: Printed) -> None:
    looks = iter([50.0, 1.0, 1.0, 40.0, 1.0, 1.0, 1.0])
    go_on(FOUND[:1], Asked(command=TOLD, busy=lambda: next(looks)), folder, Checklist(folder / "output"))
    assert [*looks] == [] and is_finished("memcpy-overhead", "smoke", folder)
    capsys.readouterr()

    def never() -> float:
        time.sleep(0.1)
        return 50.0

    lines = _gone_on(folder, capsys, Asked(seconds=10.5, command=TOLD, busy=never), "busy")
    assert [" ".join(line) for line in lines] == ["left network-vpc: the machine did other work for too long"]


def test_claims_with_known_answers_can_be_run_the_same_way() -> None:
    (found,) = experiments([CONTROL.stem], "smoke", "claims-once")
    assert (found.claims, found.here, found.absent) == (5, 5, "")
    # Three sides, with as many repeats as one comparison takes, and one to spare.
    assert found.cells == 3 * 7


def test_the_plan_sets_claims_against_minutes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pool: str) -> None:
        raise RefusedError(f"no cluster has {pool}")

    monkeypatch.setattr(run_all, "require_pool", refuse)
    found = experiments(["tile-backing", "disk-shared", *NAMES], "smoke")
    assert [one.price for one in found] == sorted(one.price for one in found)
    absent = {one.name: one.absent for one in found if one.absent}
    assert "Ceph" in absent.pop("disk-shared")
    # Where guests are emulated, nothing tells what virtualization costs.
    assert not absent or ({*absent} == {*NAMES} and all("what emulation costs" in why for why in absent.values()))
    lines = [*table(found, "smoke", folder)]
    assert len(lines) == 2 + len(found)
    present = [one for one in found if not one.absent]
    total, claims = sum(one.most for one in present), sum(one.here for one in present)
    assert lines[1 + len(present)].split()[-2:] == [f"{total / 60:.0f}", str(claims)]
    assert all("absent" in line for line in lines[2 + len(present) :])


def test_a_host_without_kvm_is_refused_in_one_line_that_says_why(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_claims, "lacks_kvm", lambda: "guests are emulated (TCG): there is no /dev/kvm")
    monkeypatch.setattr(sys, "argv", ["experiments", "--host", "kvm"])
    assert run_claims.main() == 3
    assert capsys.readouterr().out == "experiments: guests are emulated (TCG): there is no /dev/kvm\n"


def test_what_an_emulated_host_said_of_kvm_is_kept_with_that_and_not_recorded(
    folder: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for word in ("qemu", "none"):
        monkeypatch.setattr(run_claims, "virtualization", lambda word=word: word)
        go_on(FOUND[:1], Asked(command=TOLD, busy=_quiet, kvm=True), folder / word, Checklist(folder / word / "output"))
        record = kept("memcpy-overhead", folder / word / "records/smoke")
        assert record and record["machine"]["virtualization"] == word
        keep_answers(NAMES[:1], "smoke", folder / word, folder / word / "docs", TOLD)
        found.append(kept("memcpy-overhead", folder / word / "docs") is not None)
    assert found == [False, True]
    assert "its host is emulated, so that its figures count for nothing" in capsys.readouterr().out
