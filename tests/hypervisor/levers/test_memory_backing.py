"""The memory behind a guest's RAM: libvirt's elements, and what the kernel says of QEMU's mappings."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.hypervisor.block_layer import BlockLayer
from tests.hypervisor.conftest import spec
from tests.hypervisor.libvirt.test_domain_xml import FILES, FROZEN, IMAGE, SCHEMA, TCG
from vmlab.hypervisor.levers.guest_lever import RunningQemu
from vmlab.hypervisor.levers.guest_memory import MemoryBackingLever, NumaLever, ram_of
from vmlab.hypervisor.libvirt.domain_xml import domain_xml
from vmlab.model.errors import HypervisorError
from vmlab.model.results import LeverProof
from vmlab.system.rights import why_no_locked_memory

CAPABILITIES = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
RAM = 0x7F1200000000
SIZE = 512 * 2**20
OTHER = """\
55d0c0a00000-55d0c0c00000 r-xp 00000000 fe:00 1234                       /usr/bin/qemu-system-x86_64
Size:               2048 kB
KernelPageSize:        4 kB
THPeligible:           0
VmFlags: rd ex mr mw me
"""


def mapping(
    first: int, last: int, page: int = 4, eligible: int = 1, flags: str = "rd wr mr mw me dc ac sd hg mg"
) -> str:
    return (
        f"{first:x}-{last:x} rw-p 00000000 00:00 0 \n"
        f"Size:           {(last - first) // 1024} kB\n"
        f"KernelPageSize:        {page} kB\n"
        f"AnonHugePages:    {2048 * eligible} kB\n"
        f"THPeligible:           {eligible}\n"
        f"VmFlags: {flags} \n"
    )


class Monitor:
    """Answers where the guest's RAM is."""

    said = f"Host virtual address for 0x0 (pc.ram) is {RAM:#x}\r\n"

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        assert (command, arguments) == ("human-monitor-command", {"command-line": "gpa2hva 0"})
        return self.said


def qemu(folder: Path, text: str, **asked: Any) -> RunningQemu:
    (folder / "smaps").write_text(OTHER + text + OTHER.replace("55d0", "7fff"))
    return RunningQemu("web", 1, spec(**asked).resources, folder, Monitor())


def proof(folder: Path, text: str, **asked: Any) -> list[LeverProof]:
    return list(MemoryBackingLever().prove(qemu(folder, text, **asked)))


@pytest.mark.parametrize(
    ("page", "eligible", "found"), [(4, 0, "none"), (4, 1, "transparent"), (2048, 0, "2 MiB"), (1048576, 0, "1 GiB")]
)
def test_pages_are_those_of_the_kernels_mapping(tmp_path: Path, page: int, eligible: int, found: str) -> None:
    text = mapping(RAM, RAM + SIZE, page, eligible)
    for asked in ("none", "transparent", "2 MiB", "1 GiB"):
        (one,) = proof(tmp_path, text, huge_pages=asked)
        assert (one.lever, one.expected, one.found, one.agrees) == ("huge_pages", asked, found, asked == found)
    assert "of which 2 MiB are" in proof(tmp_path, mapping(RAM, RAM + SIZE), huge_pages="none")[0].by


def test_transparent_pages_that_are_allowed_and_not_there_are_not_delivered(tmp_path: Path) -> None:
    """A host whose memory is in small pieces gives none, and the kernel calls the RAM eligible all the same."""
    text = mapping(RAM, RAM + SIZE).replace("AnonHugePages:    2048 kB", "AnonHugePages:       0 kB")
    for asked in ("transparent", "none"):
        (one,) = proof(tmp_path, text, huge_pages=asked)
        assert (one.found, one.agrees) == ("transparent where the host has some, and it has none now", False)


def test_all_parts_of_the_ram_count_and_nothing_else(tmp_path: Path) -> None:
    half = RAM + SIZE // 2
    text = mapping(RAM - 4096, RAM, 4, 0) + mapping(RAM, half) + mapping(half, RAM + SIZE, 4, 0)
    text += mapping(RAM + SIZE, RAM + 2 * SIZE, 2048, 0)
    assert len(ram_of(qemu(tmp_path, text))) == 2
    (one,) = proof(tmp_path, text, huge_pages="transparent")
    assert (one.found, one.agrees) == ("transparent and none", False)


@pytest.mark.parametrize(("key", "flag"), [("ksm", "mg"), ("memory_lock", "lo")])
@pytest.mark.parametrize("asked", [True, False])
def test_a_flag_of_the_mapping_shows_it(tmp_path: Path, key: str, flag: str, asked: bool) -> None:
    having, without = mapping(RAM, RAM + SIZE, flags=f"rd wr hg {flag}"), mapping(RAM, RAM + SIZE, flags="rd wr hg")
    words = {True: "true", False: "false"}
    for text, found in ((having, True), (without, False)):
        (one,) = proof(tmp_path, text, **{key: asked})
        assert (one.lever, one.expected, one.found) == (key, words[asked], words[found])
        assert one.agrees is (asked is found)
    half = RAM + SIZE // 2
    split = mapping(RAM, half, flags=f"rd {flag}") + mapping(half, RAM + SIZE, flags="rd")
    (one,) = proof(tmp_path, split, **{key: asked})
    assert (one.found, one.agrees) == ("true and false", False)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("bind:1 anon=5 dirty=5 N1=5 kernelpagesize_kB=4", "1"),
        ("bind=static:1 N1=5", "1"),
        ("bind:0 anon=5 N0=5 kernelpagesize_kB=4", "0"),
        ("bind:0-1 N1=5", "0-1"),
        ("bind:1 anon=9 N0=4 N1=5", "1, with pages on 0"),
        ("default anon=5 dirty=5 N1=5 kernelpagesize_kB=4", "none"),
    ],
)
def test_memory_is_bound_to_a_node_and_lies_there(tmp_path: Path, said: str, found: str) -> None:
    running = qemu(tmp_path, mapping(RAM, RAM + SIZE), numa=1)
    (tmp_path / "numa_maps").write_text(f"55d0c0a00000 default file=/usr/bin/qemu N0=9\n{RAM:x} {said}\n")
    (one,) = NumaLever().prove(running)
    assert (one.lever, one.expected, one.found, one.agrees) == ("numa", "1", found, found == "1")


def test_libvirt_is_told_the_node() -> None:
    domain = etree.fromstring(domain_xml(spec(numa=1), "run1", IMAGE, FILES, TCG))
    assert [dict(one.attrib) for one in domain.iterfind("numatune/memory")] == [{"mode": "strict", "nodeset": "1"}]
    if SCHEMA.exists():
        etree.RelaxNG(etree.parse(SCHEMA)).assertValid(domain)
    assert list(NumaLever().prove(RunningQemu("web", 1, spec().resources, Path("/none"), Monitor()))) == []


def test_a_guest_that_asks_for_nothing_is_not_proved(tmp_path: Path) -> None:
    assert proof(tmp_path, mapping(RAM, RAM + SIZE)) == []


def test_a_qemu_that_does_not_say_where_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HypervisorError, match="no mapping where QEMU says"):
        ram_of(qemu(tmp_path, ""))
    monkeypatch.setattr(Monitor, "said", "Memory at address 0x0 is not RAM\r\n")
    with pytest.raises(HypervisorError, match="does not say where its guest's RAM is: Memory at address"):
        ram_of(qemu(tmp_path, ""))


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ({}, None),
        ({"huge_pages": "none"}, None),
        ({"huge_pages": "transparent"}, None),
        ({"huge_pages": "2 MiB"}, [("hugepages", {}), ("page", {"size": "2048", "unit": "KiB"})]),
        ({"ksm": True, "memory_lock": False}, None),
        ({"ksm": False}, [("nosharepages", {})]),
        ({"memory_lock": True}, [("locked", {})]),
        ({"huge_pages": "1 GiB"}, [("hugepages", {}), ("page", {"size": "1048576", "unit": "KiB"})]),
    ],
)
def test_libvirt_is_told_only_what_qemu_does_not_do_by_itself(
    asked: dict[str, Any], written: list[tuple[str, dict[str, str]]] | None
) -> None:
    for files in (FILES, FROZEN):
        domain = etree.fromstring(domain_xml(spec(**asked), "run1", IMAGE, files, TCG))
        backing = domain.find("memoryBacking")
        found = None if backing is None else [(str(one.tag), dict(one.attrib)) for one in backing.iterdescendants()]
        assert found == written
        if SCHEMA.exists():
            etree.RelaxNG(etree.parse(SCHEMA)).assertValid(domain)


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
@pytest.mark.parametrize("kept", [True, False])
def test_a_real_qemu_shows_what_it_was_told(kept: bool) -> None:
    """Without a guest, as the kernel knows the memory before it runs."""
    if kept and why_no_locked_memory() and not int(CAPABILITIES.split()[1], 16) >> 14 & 1:
        pytest.skip("nobody here may lock memory")
    ours, theirs = socket.socketpair()
    machine = f"q35,mem-merge={'off' if kept else 'on'}"
    words = ["-machine", machine, "-accel", "tcg,tb-size=16", "-m", "64", "-nodefaults", "-display", "none", "-S"]
    words += ["-overcommit", f"mem-lock={'on' if kept else 'off'}", "-mon", "m,mode=control"]
    argv = ["qemu-system-x86_64", *words, "-chardev", f"socket,id=m,fd={theirs.fileno()}"]
    process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        with ours, ours.makefile("rw") as stream:
            ours.settimeout(60)
            monitor = BlockLayer(process.pid, stream)
            asked = spec(ksm=not kept, memory_lock=kept).resources.model_copy(update={"memory_bytes": 2**26})
            for resources, agrees in (
                (asked, True),
                (asked.model_copy(update={"ksm": kept, "memory_lock": not kept}), False),
            ):
                proofs = list(MemoryBackingLever().prove(RunningQemu("web", 1, resources, monitor.process, monitor)))
                assert [(one.lever, one.agrees) for one in proofs] == [("ksm", agrees), ("memory_lock", agrees)]
    finally:
        process.kill()
        process.wait(60)
