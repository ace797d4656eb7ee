"""Limits of the process: one that would break a run is named before the run starts, by its option of `ulimit`.

What is refused is what the run would hit, so that a limit which the kernel does not hold anybody to refuses nothing.
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from vmlab.system import rights as process_limits
from vmlab.system.rights import Needed, too_low

GIB = 2**30
NEEDED = Needed(file_bytes=8 * GIB, address_bytes=2 * GIB, guests=4)


def limited(patch: pytest.MonkeyPatch, which: int, limit: int) -> None:
    """Only this limit is set."""
    patch.setattr(resource, "getrlimit", lambda one: (limit if one == which else resource.RLIM_INFINITY, -1))


@pytest.mark.parametrize(
    ("which", "enough", "line", "remedy"),
    [
        (resource.RLIMIT_FSIZE, 8 * GIB, "ulimit -f is 8 GiB: disk images need 8 GiB", "ulimit -f unlimited"),
        (
            resource.RLIMIT_AS,
            2 * GIB,
            "ulimit -v is 2 GiB: the QEMU of the largest guest needs 2 GiB of address space",
            "ulimit -v unlimited",
        ),
        (
            resource.RLIMIT_DATA,
            2 * GIB,
            "ulimit -d is 2 GiB: the QEMU of the largest guest needs 2 GiB of data",
            "ulimit -d unlimited",
        ),
        (
            resource.RLIMIT_NOFILE,
            512,
            "ulimit -n is 511: this process may have 511 open files, and a run needs 512",
            "ulimit -n 4096",
        ),
        (
            resource.RLIMIT_NPROC,
            256,
            "ulimit -u is 255: a run starts up to 256 processes and threads",
            "ulimit -u unlimited",
        ),
    ],
    ids=["f", "v", "d", "n", "u"],
)
def test_each_limit_is_named_just_below_what_a_run_needs(
    which: int, enough: int, line: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = tmp_path / "uid_map"
    mapped.write_text("         0     100000      65536\n")
    monkeypatch.setattr(process_limits, "_USER_MAP", mapped)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    limited(monkeypatch, which, enough)
    assert list(too_low(NEEDED)) == []
    limited(monkeypatch, which, enough - 1)
    assert list(too_low(NEEDED)) == [(line, remedy)]


def test_the_hosts_own_root_is_held_to_no_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = tmp_path / "uid_map"
    mapped.write_text("         0          0 4294967295\n")
    monkeypatch.setattr(process_limits, "_USER_MAP", mapped)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    limited(monkeypatch, resource.RLIMIT_NPROC, 10)
    assert list(too_low(NEEDED)) == []


@pytest.mark.parametrize(("guests", "files"), [(0, 512), (16, 512), (17, 522), (64, 992)])
def test_each_guest_beyond_a_few_takes_ten_open_files(guests: int, files: int) -> None:
    assert Needed(0, 0, guests).files == files
