"""Nothing of libvirt is called but what only reads, on a connection that is opened read-only."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import libvirt
import pytest

import vmlab.telemetry.domains
from vmlab.telemetry.domains.libvirt_reader import (
    CONNECTION_CALLS,
    DOMAIN_CALLS,
    LibvirtReader,
    OnlyReading,
    domain_of_xml,
)

TEST = "test:///default"
READING = frozenset({"getAllDomainStats", "close", "isAlive", "name", "UUIDString", "XMLDesc"})
ONE_DOMAIN = frozenset({"lookupByName", "lookupByUUIDString", "blockInfo", "hasManagedSaveImage"})
"""Written once more, so that a longer list in the program fails here; `ONE_DOMAIN` is called where a user names one."""
OPENERS = frozenset({"open", "openAuth", "openReadOnly"})


class Recorded:
    """A libvirt object that keeps the names of what was called, and passes it on."""

    def __init__(self, inner: Any, called: list[str]) -> None:
        self._inner, self._called = inner, called

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            self._called.append(name)
            result = found(*arguments)
            if name == "openReadOnly":
                return Recorded(result, self._called)
            if name.startswith("lookup"):
                return Recorded(result, self._called)
            if name == "getAllDomainStats":
                return [(Recorded(domain, self._called), stats) for domain, stats in result]
            return result

        return call if not isinstance(found, type) else found


def test_what_is_called_of_libvirt_only_reads() -> None:
    called: list[str] = []
    reader = LibvirtReader(TEST, load=lambda: Recorded(libvirt, called))
    found = reader.statistics(processes_seen=False)
    domain = domain_of_xml(found[0].read_xml())
    reader.close()
    assert [one.name for one in found] == ["test"]
    assert (domain.name, domain.vcpus, domain.memory_bytes) == ("test", 2, 8 << 30)
    assert set(called) <= READING | {"openReadOnly", "registerErrorHandler"}
    assert {"openReadOnly", "getAllDomainStats", "XMLDesc"} <= set(called)


def test_one_domain_is_looked_up_and_only_read() -> None:
    called: list[str] = []
    reader = LibvirtReader(TEST, load=lambda: Recorded(libvirt, called))
    by_name, by_uuid = reader.find("test"), reader.find("6695eb01-f6a4-8304-79aa-97f2502e193f")
    assert by_name is not None and by_uuid is not None
    assert domain_of_xml(by_name.xml) == domain_of_xml(by_uuid.xml)
    assert by_name.disk_bytes("vda") == by_uuid.disk_bytes("vda")
    assert by_name.disk_bytes("no such disk") is None
    assert not by_name.is_saved
    assert reader.find("nobody") is None
    reader.close()
    assert set(called) - {"openReadOnly", "registerErrorHandler"} <= ONE_DOMAIN | {"XMLDesc", "close"}


def test_libvirt_itself_refuses_whatever_would_write() -> None:
    reader = LibvirtReader(TEST)
    reader.statistics(processes_seen=True)
    connection = reader._connection
    assert connection is not None
    inner = connection._inner
    domain = inner.lookupByName("test")
    for write in (domain.suspend, domain.destroy, lambda: domain.setMemory(1), lambda: inner.defineXML("<domain/>")):
        with pytest.raises(libvirt.libvirtError) as refused:
            write()
        assert refused.value.get_error_code() == libvirt.VIR_ERR_OPERATION_DENIED
    reader.close()


def test_no_other_call_passes() -> None:
    assert CONNECTION_CALLS | DOMAIN_CALLS == READING | ONE_DOMAIN
    for name in ("createXML", "defineXML", "domainEventRegisterAny", "setMemoryStatsPeriod"):
        with pytest.raises(AttributeError):
            getattr(OnlyReading(SimpleNamespace(**{name: 1}), CONNECTION_CALLS), name)


def test_the_package_opens_libvirt_in_one_way_and_place() -> None:
    """By its text: every opener of libvirt, and every place that loads it."""
    opened, loaded = [], []
    for file in Path(str(vmlab.telemetry.domains.__path__[0])).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in OPENERS and ast.unparse(node.value) == "libvirt":
                opened.append(node.attr)
            if isinstance(node, ast.Import | ast.ImportFrom) and "libvirt" in ast.unparse(node).split()[1:2]:
                loaded.append(file.name)
    assert opened == ["openReadOnly"]
    assert loaded == ["libvirt_reader.py"]


def test_without_the_extra_one_line_says_so() -> None:
    def load() -> Any:
        raise ImportError("no module")

    with pytest.raises(OSError, match="libvirt-python is not installed"):
        LibvirtReader(TEST, load=load).statistics(processes_seen=True)


def test_a_refused_connection_is_not_tried_at_every_tick() -> None:
    called: list[str] = []
    reader = LibvirtReader("test:///no/such/file", load=lambda: Recorded(libvirt, called))
    for _ in range(3):
        with pytest.raises(OSError, match="libvirt gives no metrics"):
            reader.statistics(processes_seen=True)
    assert called.count("openReadOnly") == 1


def test_a_socket_is_looked_for_and_not_woken(tmp_path: Path) -> None:
    reader = LibvirtReader(run=tmp_path)
    assert not reader.is_there()
    (tmp_path / "libvirt").mkdir()
    (tmp_path / "libvirt/virtqemud-sock-ro").touch()
    assert reader.is_there()


def test_threads_open_one_connection() -> None:
    called: list[str] = []
    reader = LibvirtReader(TEST, load=lambda: Recorded(libvirt, called))
    threads = [threading.Thread(target=lambda: reader.statistics(processes_seen=True)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert called.count("openReadOnly") == 1
    reader.close()
