"""Pinning: libvirt's elements, and what the kernel says of QEMU's threads, on a dummy of /proc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.hypervisor.conftest import spec
from tests.hypervisor.libvirt.test_domain_xml import FILES, IMAGE, SCHEMA, TCG
from vmlab.hypervisor.levers.cpu_pinning import PinningLever
from vmlab.hypervisor.levers.guest_lever import RunningQemu
from vmlab.hypervisor.libvirt.domain_xml import domain_xml

MAIN, FIRST, SECOND, IOTHREAD, WORKER, OF_RING = 100, 101, 102, 103, 104, 105


class Qemu:
    """A dummy of a process with two virtual CPUs, an iothread and two workers of it; each may use all of four CPUs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.allowed = dict.fromkeys((MAIN, FIRST, SECOND, IOTHREAD, WORKER, OF_RING), "0-3")

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        answers = {
            # Not in order, which nobody promises.
            "query-cpus-fast": [
                {"cpu-index": 1, "thread-id": SECOND},
                {"cpu-index": 0, "thread-id": FIRST},
            ],
            "query-iothreads": [{"id": "iothread1", "thread-id": IOTHREAD}],
        }
        return answers[command]

    def shown(self, **asked: Any) -> list[tuple[str, str, str, bool]]:
        names = {
            MAIN: "qemu (x) 1",
            FIRST: "CPU 0/TCG",
            SECOND: "CPU 1/TCG",
            IOTHREAD: "IO iothread1",
            WORKER: "worker",
            OF_RING: "iou-wrk-71103",
        }
        for number, cpus in self.allowed.items():
            task = self.folder / "task" / str(number)
            task.mkdir(parents=True, exist_ok=True)
            (task / "comm").write_text(f"{names[number]}\n")
            (task / "status").write_text(f"Name:\t{names[number]}\nCpus_allowed:\tf\nCpus_allowed_list:\t{cpus}\n")
            (task / "stat").write_text(f"{number} ({names[number]}) S {' '.join(map(str, range(4, 53)))}\n")
        resources = spec(**asked).resources.model_copy(update={"vcpus": 2})
        qemu = RunningQemu("web", 1, resources, self.folder, self, cpus=frozenset(range(4)))
        proofs = list(PinningLever().prove(qemu))
        assert "last on CPUs 39;39" in proofs[0].by
        return [(one.lever, one.expected, one.found, one.agrees) for one in proofs]


@pytest.fixture
def qemu(tmp_path: Path) -> Qemu:
    return Qemu(tmp_path)


def test_threads_that_may_use_all_are_not_pinned(qemu: Qemu) -> None:
    assert qemu.shown() == [("pin", "none", "none", True), ("emulator_pin", "none", "none", True)]
    # More than guests may use, as where the lab itself was started on some of the CPUs.
    qemu.allowed[FIRST] = "0-7"
    assert qemu.shown()[0] == ("pin", "none", "none", True)


@pytest.mark.parametrize(
    ("pin", "first", "second", "found", "agrees"),
    [
        ("3;2", "3", "2", "3;2", True),
        ("2-3", "2-3", "2-3", "2,3", True),
        ("0-3", "0-3", "0-3", "0,1,2,3", True),
        ("3;2", "2", "3", "2;3", False),
        ("3;2", "3", "0-3", "3;0,1,2,3", False),
        ("none", "0-3", "1", "none;1", False),
        ("spread", "0-3", "0-3", "0,1,2,3", False),
    ],
)
def test_each_virtual_cpu_is_looked_at(qemu: Qemu, pin: str, first: str, second: str, found: str, agrees: bool) -> None:
    qemu.allowed |= {FIRST: first, SECOND: second}
    lever, _, got, same = qemu.shown(pin=pin)[0]
    assert (lever, got, same) == ("pin", found, agrees)


def test_the_other_threads_are_looked_at_without_iothreads_and_their_workers(qemu: Qemu) -> None:
    qemu.allowed[MAIN] = "1"
    assert qemu.shown(emulator_pin="1")[1] == ("emulator_pin", "1", "1", True)
    assert qemu.shown()[1] == ("emulator_pin", "none", "1", False)
    qemu.allowed[MAIN] = "0-3"
    assert qemu.shown(emulator_pin="1")[1] == ("emulator_pin", "1", "0,1,2,3", False)


def test_libvirt_is_told_of_the_virtual_cpus_that_there_are() -> None:
    one = spec(shares=512, pin="0-1,3", emulator_pin="0")
    domain = etree.fromstring(domain_xml(one, "run1", IMAGE, FILES, TCG))
    tune = domain.find("cputune")
    assert tune is not None
    # An emulated guest with one processor may have two, and libvirt refuses to pin what has no thread.
    assert [(node.tag, dict(node.attrib)) for node in tune] == [
        ("shares", {}),
        ("vcpupin", {"vcpu": "0", "cpuset": "0-1,3"}),
        ("emulatorpin", {"cpuset": "0"}),
    ]
    if SCHEMA.exists():
        etree.RelaxNG(etree.parse(SCHEMA)).assertValid(domain)


def test_each_virtual_cpu_has_its_own_set() -> None:
    one = spec(pin="0;1")
    resources = one.resources.model_copy(update={"vcpus": 2})
    domain = etree.Element("domain")
    PinningLever().describe(domain, resources)
    assert [node.get("cpuset") for node in domain.iterfind("cputune/vcpupin")] == ["0", "1"]


def test_a_guest_that_is_not_pinned_is_as_it_was() -> None:
    domain = etree.Element("domain")
    PinningLever().describe(domain, spec().resources)
    assert len(domain) == 0
