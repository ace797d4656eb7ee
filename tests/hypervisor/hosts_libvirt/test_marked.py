"""What a sweep ends in the host's own libvirt: what carries this lab's mark, and nothing that only looks like it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import libvirt
import pytest

from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.libvirt import libvirt_root, marked
from vmlab.model.errors import CleanupIncomplete, HypervisorError
from vmlab.model.names import LAB_NAMESPACE

LAB = "20261125-120000-tile-1"


def mark(lab: str) -> str:
    return f"<vmlab:lab xmlns:vmlab='{LAB_NAMESPACE}' id='{lab}'/>"


def refusal(code: int) -> libvirt.libvirtError:
    error = libvirt.libvirtError("refused")
    error.err = (code, 0, "refused", 2, "", None, None, -1, -1)
    return error


class Thing:
    """A domain or a network of libvirt."""

    def __init__(self, name: str, said: str = "", gone: int = 0) -> None:
        self._name = name
        self._said = said
        self._gone = gone
        self.ended = False

    def name(self) -> str:
        return self._name

    def metadata(self, _kind: int, space: str) -> str:
        assert space == LAB_NAMESPACE
        if not self._said:
            raise refusal(libvirt.VIR_ERR_NO_DOMAIN_METADATA)
        return self._said.replace("vmlab:", "", 1)

    def XMLDesc(self, _flags: int) -> str:
        return f"<network><name>{self._name}</name><metadata>{self._said}</metadata></network>"

    def destroy(self) -> None:
        if self._gone:
            raise refusal(self._gone)
        self.ended = True


class Connection:
    def __init__(self, domains: list[Thing], networks: list[Thing]) -> None:
        self.domains, self.networks = domains, networks
        self.closed = False

    def listAllDomains(self, flags: int) -> list[Thing]:
        assert flags == libvirt.VIR_CONNECT_LIST_DOMAINS_TRANSIENT
        return self.domains

    def listAllNetworks(self, flags: int) -> list[Thing]:
        assert flags == libvirt.VIR_CONNECT_LIST_NETWORKS_TRANSIENT
        return self.networks

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Connection:
    domains = [
        Thing(f"{LAB}-t1-web", mark(LAB)),
        Thing("renamed-by-somebody", mark(LAB)),
        Thing(f"{LAB}-t1-gone", mark(LAB), libvirt.VIR_ERR_NO_DOMAIN),
        Thing(f"{LAB}-t1-decoy"),
        Thing(f"{LAB}-t1-other", mark(f"{LAB}0")),
        Thing("production"),
    ]
    connection = Connection(domains, [Thing("vmlab-1", mark(LAB)), Thing("vmlab-2", mark("other")), Thing("default")])
    monkeypatch.setattr(libvirt, "open", lambda uri: {"qemu:///system": connection}[uri])
    monkeypatch.setattr(libvirt_root, "LOGS", tmp_path / "log" / "qemu")
    monkeypatch.setattr(marked, "NETWORKS", tmp_path / "run" / "network")
    return connection


def journal(folder: Path, *entries: JournalEntry) -> Path:
    (folder / "disks").mkdir()
    kept = Journal(folder / "journal.jsonl")
    for entry in entries:
        kept.add(entry)
    return kept.path


def test_what_carries_the_mark_is_ended_and_nothing_else(host: Connection, tmp_path: Path) -> None:
    path = journal(tmp_path, JournalEntry("libvirt", LAB))
    removed = sweep(path, tmp_path / "disks", LAB)
    assert removed == [f"domain {LAB}-t1-web", "domain renamed-by-somebody", "network vmlab-1"]
    assert [one.name() for one in (*host.domains, *host.networks) if one.ended] == [
        f"{LAB}-t1-web",
        "renamed-by-somebody",
        "vmlab-1",
    ]
    assert host.closed and Journal(path).open_entries() == []


def test_another_labs_name_in_the_journal_moves_nothing(host: Connection, tmp_path: Path) -> None:
    path = journal(tmp_path, JournalEntry("libvirt", "other"))
    assert sweep(path, tmp_path / "disks", LAB) == []
    assert not any(one.ended for one in (*host.domains, *host.networks))


def test_a_libvirt_that_does_not_answer_leaves_the_entry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuses(_uri: str) -> Any:
        raise libvirt.libvirtError("no socket")

    monkeypatch.setattr(libvirt, "open", refuses)
    path = journal(tmp_path, JournalEntry("libvirt", LAB))
    with pytest.raises(CleanupIncomplete, match="qemu:///system"):
        sweep(path, tmp_path / "disks", LAB)
    assert Journal(path).open_entries() == [JournalEntry("libvirt", LAB)]


def test_a_libvirt_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libvirt, "open", lambda _uri: time.sleep(5))
    with pytest.raises(HypervisorError, match="did not answer within 0 s"):
        marked.undo(LAB, 0.2)


def test_logs_of_the_labs_domains_go_and_those_of_others_stay(host: Connection, tmp_path: Path) -> None:
    logs = tmp_path / "log" / "qemu"
    logs.mkdir(parents=True)
    for name in (f"{LAB}-t1-web.log", "production.log", f"{LAB}-t1-decoy.log"):
        (logs / name).write_text("said")
    outside = tmp_path / "log" / "precious.log"
    outside.write_text("said")
    path = journal(
        tmp_path,
        JournalEntry("log", f"{LAB}-t1-web"),
        JournalEntry("log", "production"),
        JournalEntry("log", f"{LAB}-/../../precious"),
    )
    assert sweep(path, tmp_path / "disks", LAB) == [str(logs / f"{LAB}-t1-web.log")]
    assert sorted(file.name for file in logs.iterdir()) == [f"{LAB}-t1-decoy.log", "production.log"]
    assert outside.exists()
