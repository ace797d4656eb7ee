"""Guests of the host beside a lab: found by their processes, and what each took over a span."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vmlab.model.names import HELPER_CHANNEL
from vmlab.telemetry.domains.neighbour_readings import between, counted_neighbours, neighbours
from vmlab.telemetry.domains.neighbours import Neighbour, described, named

TICKS = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count() or 1
RUNNER, IN_LAB, DATABASE, UNNAMED, SHELL = 10, 11, 20, 21, 30
MIB = 1 << 20


def process(proc: Path, pid: int, words: list[str], *, parent: int = 1, cpu: float = 0.0, moved: int = 0) -> None:
    """A process as /proc shows it, with 100 MiB of memory."""
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    (folder / "cmdline").write_bytes("\0".join([*words, ""]).encode())
    fields = ["S", str(parent), *["0"] * 9, str(int(cpu * TICKS)), "0", *["0"] * 6, "77"]
    (folder / "stat").write_text(f"{pid} (qemu (x) y) {' '.join(fields)}")
    (folder / "status").write_text(f"Name:\tqemu\nVmRSS:\t{100 << 10} kB\n")
    (folder / "io").write_text(f"read_bytes: {moved}\nwrite_bytes: {moved}\n")


def qemu(*more: str) -> list[str]:
    return ["/usr/bin/qemu-system-x86_64", *more]


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, RUNNER, ["python", "-m", "vmlab.lab.run.runner", "r1"])
    process(tmp_path, IN_LAB, qemu("-name", "guest=t1-web", "-m", "512"), parent=RUNNER)
    process(tmp_path, DATABASE, qemu("-name", "guest=db,debug-threads=on", "-m", "1024", "-smp", "4"))
    process(tmp_path, UNNAMED, qemu("-m", "256"))
    process(tmp_path, SHELL, ["bash", "qemu-system-x86_64"])
    return tmp_path


def test_guests_of_labs_and_other_programs_are_no_neighbours(proc: Path) -> None:
    assert neighbours(proc) == (
        Neighbour("db", 4, 1024 * MIB, 100 * MIB),
        Neighbour("qemu-21", 1, 256 * MIB, 100 * MIB),
    )


@pytest.mark.parametrize("form", ['{{"driver":"virtserialport","name":"{}"}}', "virtserialport,name={}"])
def test_guests_of_a_lab_in_the_host_s_own_libvirt_are_none_either(proc: Path, form: str) -> None:
    process(proc, 40, qemu("-name", "guest=run-t1-web", "-device", form.format(HELPER_CHANNEL)))
    process(proc, 41, qemu("-name", "guest=run-t1-mail", "-device", form.format("org.qemu.guest_agent.0")))
    assert [one.name for one in neighbours(proc)] == ["db", "qemu-21", "run-t1-mail"]
    assert [one.name for one in counted_neighbours(proc).values()].count("run-t1-web") == 0


def test_what_they_may_still_take_is_said(proc: Path) -> None:
    told = "2 guests of its own (db, qemu-21): 5 vCPUs, 200 MiB of memory, which may grow by 1.05 GiB"
    assert described(neighbours(proc)) == told
    many = [Neighbour(f"g{number}", 1, MIB, 2 * MIB) for number in range(5)]
    assert named(many) == "5 guests of its own (g0, g1, g2, 2 more)"
    assert sum(one.growth_bytes for one in many) == 0


def test_what_some_do_not_tell_is_not_counted_as_nothing() -> None:
    """A memory that is not known is no memory of 0 which cannot grow: the sums are then the least of it."""
    known, unknown = Neighbour("db", 4, 1024 * MIB, 100 * MIB), Neighbour("lxd", 0, 0, 200 * MIB)
    told = "2 guests of its own (db, lxd): at least 4 vCPUs, 300 MiB of memory, which may grow by at least 924 MiB"
    assert described([known, unknown]) == told
    told = (
        "1 guest of its own (lxd): an unknown number of vCPUs, 200 MiB of memory, which may grow by an unknown amount"
    )
    assert described([unknown]) == told


def test_memory_devices_count_and_an_unread_configuration_does_not(proc: Path) -> None:
    dimm = ("-object", "memory-backend-ram,id=m0,size=2G", "-device", "pc-dimm,memdev=m0")
    process(proc, DATABASE, qemu("-name", "db", "-m", "1024", "-smp", "4", *dimm))
    process(proc, UNNAMED, qemu("-name", "u1", "-readconfig", "/run/gone.conf"))
    assert neighbours(proc) == (
        Neighbour("db", 4, 3072 * MIB, 100 * MIB),
        Neighbour("u1", 0, 0, 100 * MIB),
    )


def test_each_has_its_share_of_all_cpus_and_of_the_disks(proc: Path) -> None:
    before = counted_neighbours(proc)
    process(proc, DATABASE, qemu("-name", "db"), cpu=5.0, moved=10 * MIB)
    process(proc, 22, qemu("-name", "new"), cpu=1.0)
    process(proc, IN_LAB, qemu("-name", "t1-web"), parent=RUNNER, cpu=9.0)
    used = between(before, counted_neighbours(proc), 10.0)
    assert [one.name for one in used] == ["db", "new", "qemu-21"]
    assert [one.cpu_percent * CPUS for one in used] == pytest.approx([50, 10, 0])
    assert [one.disk_bytes_per_second for one in used] == [2 * MIB, 0, 0]


def test_one_that_ended_meanwhile_is_left_out_and_one_whose_bytes_are_hidden_has_none(proc: Path) -> None:
    (proc / str(DATABASE) / "stat").unlink()
    (proc / str(UNNAMED) / "io").unlink()
    assert [one.disk_bytes for one in counted_neighbours(proc).values()] == [0]
