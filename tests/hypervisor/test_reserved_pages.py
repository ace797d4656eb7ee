"""Huge pages are reserved beside those of others and given back, on a dummy of /sys; all have one number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.settings_keeper import HugePages
from vmlab.model.errors import RefusedError
from vmlab.telemetry.setting_files import pool_of, write_setting
from vmlab.telemetry.source import Roots

SMALL, LARGE = pool_of(2**21), pool_of(2**30)


class Host:
    """A dummy of /sys where others have reserved some pages, and a run."""

    def __init__(self, folder: Path) -> None:
        self.roots = Roots(sys=folder / "sys")
        self.set(SMALL, 7)
        self.set(LARGE, 1)
        (folder / "disks").mkdir()
        self.disks = folder / "disks"
        self.journal = Journal(folder / "journal.jsonl")
        self.pages = HugePages(self.journal, self.roots)

    def set(self, file: str, count: int) -> None:
        path = self.roots.sys / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{count}\n")

    def now(self) -> tuple[int, int]:
        small, large = (int((self.roots.sys / file).read_text()) for file in (SMALL, LARGE))
        return small, large

    def swept(self) -> list[str]:
        lines: list[str] = []
        sweep(self.journal.path, self.disks, "test", roots=self.roots, tell=lines.append)
        assert self.journal.open_entries() == []
        return lines


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def guest(name: str, huge_pages: str | None = "2 MiB", gib: int = 1) -> DomainSpec:
    one = spec(name, huge_pages=huge_pages)
    return DomainSpec(name, name, 1, one.resources.model_copy(update={"memory_bytes": gib * 2**30}), one.mac)


def test_as_many_are_reserved_as_the_guests_need_and_given_back_with_the_last(host: Host) -> None:
    host.pages.reserve([guest("a"), guest("b"), guest("c", "1 GiB", 3), guest("d", "transparent"), guest("e", None)])
    assert host.now() == (7 + 1024, 1 + 3)
    for name in ("a", "d", "e", "c"):
        host.pages.release(name)
    assert host.now() == (7 + 1024, 1 + 3)
    host.pages.release("b")
    assert host.now() == (7, 1)
    assert host.journal.open_entries() == [] and host.pages.lines() == []


def test_guests_without_them_reserve_none(host: Host) -> None:
    host.pages.reserve([guest("a", None), guest("b", "none")])
    assert host.now() == (7, 1)
    assert not host.journal.path.exists()


def test_guests_that_come_later_have_theirs_beside_them(host: Host) -> None:
    host.pages.reserve([guest("a")])
    host.pages.reserve([guest("b")])
    host.pages.release("a")
    assert host.now() == (7 + 1024, 1)
    host.pages.release("b")
    assert host.now() == (7, 1)


def test_guests_that_never_started_leave_nothing_to_their_next_start(host: Host) -> None:
    for _ in range(2):
        host.pages.reserve([guest("a"), guest("b")])
    assert host.now() == (7 + 1024, 1)


def test_two_labs_give_back_their_own_in_any_order(host: Host) -> None:
    other = HugePages(Journal(host.disks / "other.jsonl"), host.roots)
    host.pages.reserve([guest("a")])
    other.reserve([guest("b")])
    host.pages.release("a")
    # As many are reserved as when the second one began, and they are its own.
    assert host.now() == (7 + 512, 1)
    other.release("b")
    assert host.now() == (7, 1)
    assert host.pages.lines() == other.lines() == []


@pytest.mark.parametrize("killed", [False, True])
def test_what_others_reserve_meanwhile_stays(host: Host, killed: bool) -> None:
    host.pages.reserve([guest("a")])
    host.pages.reserve([guest("b")])
    host.set(SMALL, 7 + 1024 + 100)
    if not killed:
        host.pages.release("a")
        host.pages.release("b")
    assert host.swept() == []
    assert host.now() == (107, 1)


@pytest.mark.parametrize("killed", [False, True])
def test_where_somebody_has_taken_them_nothing_is_lowered_further(host: Host, killed: bool) -> None:
    host.pages.reserve([guest("a")])
    host.set(SMALL, 3)
    if not killed:
        host.pages.release("a")
    (line,) = host.swept() if killed else host.pages.lines()
    assert line.endswith("nr_hugepages is 3 by somebody else's hand and stays so; 512 were the run's")
    assert host.now() == (3, 1)


@pytest.mark.parametrize(("was", "ours"), [("7", "519"), ("8", "3"), ("", "3"), ("0", "-3"), ("none", "5")])
def test_a_run_that_was_killed_before_it_reserved_takes_nothing_away(host: Host, was: str, ours: str) -> None:
    host.journal.add(JournalEntry("setting", SMALL, was=was, ours=ours))
    assert host.swept() == []
    assert host.now() == (7, 1)


@pytest.mark.parametrize(("was", "now", "left"), [(1024, 1124, 1024), (0, 300, 0), (0, 512, 0), (1024, 600, 600)])
def test_a_run_that_was_killed_while_it_reserved_gives_back_what_it_got(
    host: Host, monkeypatch: pytest.MonkeyPatch, was: int, now: int, left: int
) -> None:
    """The kernel's loop ends early where a signal is pending: SIGKILL leaves a part of the pages reserved."""

    def part(roots: Roots, name: str, _value: str) -> None:
        write_setting(roots, name, str(now))
        raise KeyboardInterrupt

    host.set(SMALL, was)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("vmlab.hypervisor.settings_keeper.write_setting", part)
        host.pages.reserve([guest("a")])
    assert host.swept() == []
    assert host.now() == (left, 1)


def test_pages_are_given_back_where_somebody_has_freed_as_many_of_his_own(host: Host) -> None:
    host.set(SMALL, 512)
    host.pages.reserve([guest("a")])
    host.set(SMALL, 512)
    assert host.swept() == []
    assert host.now() == (0, 1)


@pytest.mark.parametrize("known", [True, False])
def test_pages_of_an_earlier_boot_are_gone(host: Host, tmp_path: Path, known: bool) -> None:
    """Also where the power was lost while the kernel reserved: what there is now the user has reserved at boot."""
    host.pages.reserve([guest("a")])
    if not known:
        (entry,) = host.journal.open_entries()
        host.journal.replace(entry, replace(entry, got=""))
    host.roots = Roots(sys=host.roots.sys, proc=tmp_path / "proc")
    boot = host.roots.proc / "sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("another\n")
    host.set(SMALL, 1024)
    assert host.swept() == []
    assert host.now() == (1024, 1)


def test_a_refused_reservation_leaves_what_others_reserve_meanwhile(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def some(roots: Roots, name: str, value: str) -> None:
        write_setting(roots, name, "10" if int(value) > 500 else value)

    def others_too(*entries: JournalEntry) -> None:
        Journal.replace(host.journal, *entries)
        host.set(SMALL, 10 + 100)

    monkeypatch.setattr("vmlab.hypervisor.settings_keeper.write_setting", some)
    monkeypatch.setattr(host.journal, "replace", others_too)
    with pytest.raises(RefusedError, match="it has memory in one piece for 3"):
        host.pages.reserve([guest("a")])
    assert host.now() == (7 + 100, 1)
    assert host.journal.open_entries() == []


def test_a_host_without_so_much_memory_in_one_piece_is_put_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def some(roots: Roots, name: str, value: str) -> None:
        write_setting(roots, name, str(min(int(value), 3)) if name == LARGE else value)

    monkeypatch.setattr("vmlab.hypervisor.settings_keeper.write_setting", some)
    host.pages.reserve([guest("z")])
    with pytest.raises(RefusedError, match="cannot reserve 4 huge pages of 1 GiB: it has memory in one piece for 2"):
        host.pages.reserve([guest("a"), guest("b", "1 GiB", 4)])
    # Those of guests that run stay.
    assert host.now() == (7 + 512, 1)
    host.pages.release("z")
    assert host.now() == (7, 1)
    assert host.journal.open_entries() == []
