"""Cells with guests of added images: what they boot from, how they are reached, what is refused before they work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import pytest

from tests.fakes.image import small_image
from tests.fakes.scripted_guest import Script, ScriptedGuest
from tests.integrity.damage import flip
from tests.lab.runs import PASSED, REPORT, MemoryRun, launched
from vmlab.guests.image import added
from vmlab.guests.image.added import AddedImage
from vmlab.guests.image.adding import NewImage, add
from vmlab.hypervisor import lab_network as dhcp
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.lab.process import launcher
from vmlab.model.cell_event import (
    CellEnded,
    PhaseStarted,
    SnapshotProgressed,
    WorkloadStarted,
)
from vmlab.model.errors import ExitCode, ImageError
from vmlab.model.event import (
    Event,
    ImageReady,
    RunEnded,
)
from vmlab.plan.terms import Overrides
from vmlab.telemetry.source import Roots
from vmlab.workloads.shell import RUN_DEADLINE, Completed

pytestmark = pytest.mark.usefixtures("own_folders")
OVERRIDES = Overrides(size="full", sets=("order=as written", "guests.quick.image=own"))
"""Not cold: a guest of vmlab's own image would be frozen."""


@pytest.fixture
def image(own_folders: None, tmp_path: Path) -> AddedImage:
    """A disk of a few bytes, added as ``own``."""
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(tmp_path / "id")
    (tmp_path / "disk").write_bytes(bytes(510) + b"\x55\xaa" + bytes(2**20 - 512))
    return add(NewImage("own", tmp_path / "disk", "debian", tmp_path / "id"), lambda _text: None)


@dataclass
class OwnGuest(ScriptedGuest):
    """A guest of an added image. It says `lacks` when it is asked what it lacks."""

    lacks: str = ""
    asked: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        done = await super().run(argv, stdin=stdin, deadline=deadline, check=check)
        self.asked.append(" ".join(argv))
        if argv[-1] == "ver":
            return Completed(0, "Microsoft Windows [Version 10.0.20348.587]\r\n", "")
        return Completed(0, self.lacks, "") if "look" in argv else done

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        self.written.append(path)


class LogIns:
    """`added_guest.log_in` to guests in memory."""

    def __init__(self, image: AddedImage, lacks: str = "") -> None:
        self.guests: list[OwnGuest] = []
        self._key = asyncssh.import_private_key(image.key.read_bytes())
        self._lacks = lacks
        self.seen: list[tuple[str, str, str]] = []

    async def __call__(
        self, name: str, address: str, *, system: str, user: str, key: asyncssh.SSHKey, deadline: float
    ) -> ScriptedGuest:
        assert key.export_private_key() == self._key.export_private_key() or key == self._key
        self.seen.append((name, address, user))
        self.guests.append(OwnGuest(name, address, Script(REPORT), lacks=self._lacks))
        return self.guests[-1]


def _run(log_in: LogIns) -> tuple[MemoryRun, dict[str, DomainSpec]]:
    """A run, and its guests' domains as they were while the workloads ran."""
    run = MemoryRun(overrides=OVERRIDES, parts={"log_in": log_in})
    seen: dict[str, DomainSpec] = {}

    def look(event: Event, run: MemoryRun) -> None:
        if isinstance(event, WorkloadStarted):
            seen.update(run.hypervisor.running)

    run.on.append(look)
    return run, seen


async def test_a_guest_boots_from_the_image_that_it_names_and_is_reached_with_its_key(image: AddedImage) -> None:
    log_in = LogIns(image)
    run, seen = _run(log_in)
    assert (await run.run()).exit_code == ExitCode.PASSED and run.outcomes() == [PASSED]
    own, labs = seen["t1-quick"], seen["t1-slow"]
    assert own.image is not None and labs.image is None and labs.address is None
    assert (own.image.disk, own.image.kernel, own.image.command_line) == (image.disk, None, "")
    assert log_in.seen == [("quick", own.address, "debian")] and own.address is not None
    assert [guest.name for guest in run.guests] == ["slow"]


async def test_a_guest_with_windows_is_asked_for_nothing_that_needs_linux(tmp_path: Path, image: AddedImage) -> None:
    added.remove("own")
    key, disk = tmp_path / "id", tmp_path / "disk"
    windows = add(NewImage("own", disk, "Administrator", key, system="windows"), lambda _text: None)
    log_in = LogIns(windows)
    run, _ = _run(log_in)
    assert (await run.run()).exit_code == ExitCode.PASSED and run.outcomes() == [PASSED]
    (guest,) = log_in.guests
    assert guest.asked[:2] == ["cmd.exe /d /c ver", "sysbench --version"] and guest.written == []
    assert all(words.startswith("sysbench ") for words in guest.asked[1:]), "the workload's own alone"
    assert [name for _, _, name in log_in.seen] == ["Administrator"]


async def test_its_cell_boots_all_guests_and_freezes_none(image: AddedImage) -> None:
    run, _ = _run(LogIns(image))
    await run.run()
    (ended,) = run.of(CellEnded)
    assert ended.provision.how == "cold" and not run.of(SnapshotProgressed)
    assert "restore" not in run.hypervisor.calls and "save" not in run.hypervisor.calls
    assert any("own" in note and "boot" in note for note in run.plan.notes)


async def test_what_it_lacks_is_told_in_one_line_before_anything_works(image: AddedImage) -> None:
    run, seen = _run(LogIns(image, lacks="sysbench\nuseradd\n"))
    assert (await run.run()).exit_code == ExitCode.FAILED
    assert run.outcomes() == [("failed", ["quick (image own) lacks sysbench, useradd (passwd)"])]
    assert not seen and not run.hypervisor.running


async def test_a_byte_of_it_that_changes_makes_the_cell_invalid_and_ends_the_run(image: AddedImage) -> None:
    run, _ = _run(LogIns(image))
    run.on.append(
        lambda event, _run: flip(image.disk) if isinstance(event, PhaseStarted) and event.phase == "execute" else None
    )
    verdict = await run.run()
    ((outcome, reasons),) = run.outcomes()
    assert outcome == "invalid" and any(f"{image.id} is damaged" in reason for reason in reasons)
    assert "vmlab image rm own" in verdict.reason


class Isolated:
    """In the place of namespaces and a runner: notes whether the image is held from removal."""

    def __init__(self, image: AddedImage) -> None:
        self._image = image
        self.held: list[bool] = []
        self.status, self.starved = 0, 0
        self.proc = image.folder.parent / "proc"

    def __call__(
        self, argv: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int], own_network: bool
    ) -> int:
        self.held.append(added.ADDED.in_use(self._image.folder))
        if self.starved:
            # The kernel counts what it kills for lack of memory, which a test does not try for real.
            (self.proc / "vmstat").write_text(f"oom_kill {2 + self.starved}\n")
        return self.status


def _launched(isolated: Isolated) -> list[Event]:
    """The events of a run whose runner does nothing."""
    isolated.proc.mkdir(exist_ok=True)
    (isolated.proc / "vmstat").write_text("oom_kill 2\n")
    parts = launcher.LauncherParts(
        ensure_image=lambda _tell: small_image(), isolated=isolated, patience=0.0, roots=Roots(proc=isolated.proc)
    )
    return launched("20261122-150000-two-0002", OVERRIDES, parts)


def test_the_launcher_holds_it_and_keeps_what_it_is(image: AddedImage) -> None:
    isolated = Isolated(image)
    ready = [event for event in _launched(isolated) if isinstance(event, ImageReady)]
    assert [(one.name, one.image, one.how) for one in ready] == [("own", image.id, "added"), ("", "vmlab-1", "cached")]
    assert isolated.held == [True] and not added.ADDED.in_use(image.folder)


@pytest.mark.parametrize(
    ("status", "starved", "words"),
    [
        (137, 0, "the runner was killed by SIGKILL; "),
        (
            137,
            1,
            "the runner was killed, probably by the kernel for lack of memory: it killed a process for that while",
        ),
        (137, 3, "probably by the kernel for lack of memory: it killed 3 processes for that while"),
        (1, 1, "the runner died unexpectedly; "),
        (139, 1, "the runner died unexpectedly; "),
    ],
)
def test_a_runner_that_was_killed_is_said_to_be_and_for_lack_of_memory_where_the_kernel_counted_it(
    image: AddedImage, status: int, starved: int, words: str
) -> None:
    isolated = Isolated(image)
    isolated.status, isolated.starved = status, starved
    last = _launched(isolated)[-1]
    assert isinstance(last, RunEnded) and (last.outcome, last.exit_code) == ("aborted", ExitCode.FAILED)
    assert words in last.reason and last.reason.endswith("launcher.log has its last output")


def test_one_that_has_changed_is_refused_before_anything_starts(image: AddedImage) -> None:
    flip(image.disk)
    isolated = Isolated(image)
    last = _launched(isolated)[-1]
    assert isinstance(last, RunEnded) and last.exit_code == ExitCode.REFUSED and isolated.held == []
    assert f"{image.id} is damaged" in last.reason and "vmlab image rm own" in last.reason


def test_a_host_without_a_dhcp_server_is_refused_before_anything_starts(
    image: AddedImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dhcp, "PROGRAM", "no-such-program")
    isolated = Isolated(image)
    last = _launched(isolated)[-1]
    assert isinstance(last, RunEnded) and last.exit_code == ExitCode.REFUSED and isolated.held == []
    assert "apt-get install --no-install-recommends dnsmasq-base" in last.reason


async def test_an_image_that_has_gone_is_told_and_nothing_runs(image: AddedImage) -> None:
    run, seen = _run(LogIns(image))
    assert added.remove("own")
    with pytest.raises(ImageError, match="there is no guest image 'own'"):
        await run.run()
    assert not seen
