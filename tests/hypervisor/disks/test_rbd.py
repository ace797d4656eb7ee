"""Images in a Ceph pool, by programs that answer as Ceph 16 and QEMU 7.2 do: what is refused, made, removed, spared."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import Start, spec
from vmlab.hypervisor.ceph import rbd
from vmlab.hypervisor.ceph.rbd import into_host_network, provide_emulator, require_pool
from vmlab.hypervisor.disks.data_disks import DataDisks, PoolDisk
from vmlab.hypervisor.domain_spec import PoolImage
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.errors import CleanupIncomplete, HypervisorError, HypervisorUnavailable, RefusedError

SIZE = 64 * 2**20
RBD = """#!{python}
import json, pathlib, sys
conf, verb, *words = sys.argv[2:]
pool = pathlib.Path({pool!r})
name = words[-1].partition("/")[2]
image, watched = pool / name, pool / (name + ".watched")
if verb == "create":
    if image.exists():
        sys.exit((print("rbd: create error: (17) File exists", file=sys.stderr), 17)[1])
    image.write_text(words[1])
else:
    if not image.exists():
        sys.exit((print("rbd: delete error: (2) No such file or directory", file=sys.stderr), 2)[1])
    if watched.exists():
        left = int(watched.read_text()) - 1
        watched.write_text(str(left)) if left else watched.unlink()
        sys.exit((print("rbd: error: image still has watchers", file=sys.stderr), 16)[1])
    image.unlink()
"""
Program = Callable[[str, str], None]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """A folder that stands for the pool ``lab``, with somebody's image in it."""
    folder = tmp_path / "pool"
    folder.mkdir()
    (folder / "foreign").write_text("64M")
    return folder


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program before all others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, text: str) -> None:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    return put


@pytest.fixture
def ceph(program: Program, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with the pool ``lab``."""
    program("rbd", RBD.format(python=sys.executable, pool=str(pool)))
    (tmp_path / "ceph.conf").write_text("[global]\n")
    monkeypatch.setenv("CEPH_CONF", str(tmp_path / "ceph.conf"))


def answer(program: Program, words: str) -> None:
    """Let qemu-img say `words` of the image that it looks for."""
    image = f"driver=rbd,pool=lab,image=vmlab,conf={os.environ['CEPH_CONF']}"
    said = f"qemu-img: Could not open '{image}': {words}"
    program("qemu-img", f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')


def test_a_pool_in_which_qemu_looked_for_the_image_can_be_had(ceph: None, program: Program, pool: Path) -> None:
    answer(program, "error reading header from vmlab: No such file or directory")
    require_pool("lab")
    assert [path.name for path in pool.iterdir()] == ["foreign"]


@pytest.mark.parametrize(
    ("words", "why", "remedy"),
    [
        ("Unknown driver 'rbd'", "needs QEMU's driver for it, which is not installed", "qemu-block-extra"),
        ("error opening pool lab: No such file or directory", "has no pool lab", "backing: rbd:POOL"),
        ("error connecting: Permission denied", "pool lab: error connecting: Permission denied", "ceph -s"),
    ],
)
def test_what_qemu_says_otherwise_refuses_the_run(
    words: str, why: str, remedy: str, ceph: None, program: Program
) -> None:
    answer(program, words)
    with pytest.raises(RefusedError) as refused:
        require_pool("lab")
    (line,) = str(refused.value).splitlines()
    assert why in line and remedy in line


def test_a_cluster_that_does_not_answer_is_given_up(ceph: None, program: Program) -> None:
    program("qemu-img", "#!/bin/sh\nexec sleep 600\n")
    with pytest.raises(RefusedError, match=r"does not answer within 0\.1 s"):
        require_pool("lab", 0.1)


def test_a_missing_program_or_configuration_is_told_first(
    ceph: None, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("qemu-img", "#!/bin/sh\nexit 99\n")
    monkeypatch.setenv("CEPH_CONF", str(tmp_path / "none.conf"))
    with pytest.raises(RefusedError, match=r"there is no .*none\.conf"):
        require_pool("lab")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="program rbd, which is not installed") as refused:
        require_pool("lab")
    assert "apt-get install --no-install-recommends ceph-common qemu-block-extra" in str(refused.value)


@pytest.fixture
def disks(tmp_path: Path) -> DataDisks:
    (tmp_path / "disks").mkdir()
    return DataDisks(tmp_path / "disks", "test", Journal(tmp_path / "journal.jsonl"))


def open_entries(folder: Path) -> list[JournalEntry]:
    return Journal(folder / "journal.jsonl").open_entries()


def in_pool(name: str = "vm") -> Any:
    return spec(name, data_bytes=SIZE, backing="rbd:lab")


def test_a_data_disk_in_a_pool_is_an_image_that_goes_with_its_guest(
    ceph: None, disks: DataDisks, pool: Path, tmp_path: Path
) -> None:
    disk = disks.make(in_pool())
    assert isinstance(disk, PoolDisk) and str(disk.source) == "rbd:lab/vmlab.test.vm"
    assert (pool / "vmlab.test.vm").read_text() == f"{SIZE}B"
    assert list((tmp_path / "disks").iterdir()) == []
    assert open_entries(tmp_path) == [JournalEntry("rbd", "rbd:lab/vmlab.test.vm")]
    disks.release("vm")
    assert [path.name for path in pool.iterdir()] == ["foreign"] and open_entries(tmp_path) == []


def test_an_image_of_that_name_is_somebody_elses(ceph: None, disks: DataDisks, pool: Path, tmp_path: Path) -> None:
    (pool / "vmlab.test.vm").write_text("theirs")
    with pytest.raises(HypervisorError, match="there is an image of that name already"):
        disks.make(in_pool())
    disks.release("vm")
    sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test")
    assert (pool / "vmlab.test.vm").read_text() == "theirs" and open_entries(tmp_path) == []


def test_what_a_killed_runner_leaves_is_swept_once_ceph_lets_go_of_it(
    ceph: None, disks: DataDisks, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rbd, "_AGAIN_SECONDS", 0.01)
    disks.make(in_pool())
    (pool / "vmlab.test.vm.watched").write_text("3")
    removed = sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test")
    assert removed == ["rbd:lab/vmlab.test.vm"]
    assert [path.name for path in pool.iterdir()] == ["foreign"] and open_entries(tmp_path) == []


def test_an_image_that_stays_is_told_and_stays_in_the_journal(
    ceph: None, disks: DataDisks, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rbd, "_WATCHED_SECONDS", -1.0)
    disks.make(in_pool())
    (pool / "vmlab.test.vm.watched").write_text("1000")
    with pytest.raises(CleanupIncomplete, match=r"cannot remove rbd:lab/vmlab\.test\.vm: error: image still has"):
        sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test")
    assert len(open_entries(tmp_path)) == 1


@pytest.mark.parametrize(
    "words",
    ["rbd:lab/foreign", "rbd:lab/vmlab.other.vm", "rbd:lab/vmlab.test", "lab/vmlab.test.vm", "rbd:lab/x/vmlab.test.vm"],
)
def test_what_is_not_the_labs_by_its_name_is_never_asked_about(
    words: str, program: Program, tmp_path: Path, disks: DataDisks
) -> None:
    program("rbd", f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    Journal(tmp_path / "journal.jsonl").add(JournalEntry("rbd", words))
    assert sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test") == []
    assert not (tmp_path / "asked").exists() and open_entries(tmp_path) == []


def test_a_program_that_hangs_or_fails_is_an_error_of_one_line(program: Program, tmp_path: Path) -> None:
    image = PoolImage("lab", "vmlab.test.vm", tmp_path / "ceph.conf")
    program("rbd", "#!/bin/sh\necho noise >&2\necho 'rbd: create error: (1) Not permitted' >&2\nexit 1\n")
    with pytest.raises(HypervisorError, match=r"^cannot make rbd:lab/vmlab\.test\.vm: create error: \(1\) Not"):
        rbd.create(image, SIZE)
    program("rbd", "#!/bin/sh\nexec sleep 600\n")
    with pytest.raises(HypervisorError, match=r"rbd rm rbd:lab/vmlab\.test\.vm took longer than 0\.1 s"):
        rbd._rbd(image, ["rm"], 0.1)


def test_a_qemu_for_a_pool_is_in_the_hosts_network_without_any_capability(isolated: Start, tmp_path: Path) -> None:
    program = isolated("reaching", str(tmp_path))
    said, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    found = json.loads(said)
    host = Path("/proc/self/ns/net").stat().st_ino
    assert found["qemu"] == {"network": host, "capabilities": ["0000000000000000"] * 5}
    assert found["asked"]["network"] == found["lab"] != host
    assert found["rbd"] == host
    assert found["refused"] == "vm: its QEMU does not reach the host's network, and so no Ceph cluster"


def test_nothing_of_it_is_made_outside_a_lab() -> None:
    with pytest.raises(HypervisorUnavailable):
        provide_emulator("/bin/sh")
    assert into_host_network() == ()
    assert not Path("/run/vmlab-host-network").exists()
