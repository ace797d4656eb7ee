"""Logical volumes, by commands that answer as LVM 2.03 does: what is refused, made, removed and spared."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.disks.data_disks import DataDisks, VolumeDisk
from vmlab.hypervisor.domain_spec import LogicalVolume
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.lvm import logical_volumes
from vmlab.hypervisor.lvm.logical_volumes import look_at, named, physical_volumes, require_group
from vmlab.model.errors import CleanupIncomplete, HypervisorError, RefusedError

GIB, MIB = 2**30, 2**20
LVM = """#!{python}
import json, pathlib, sys
state = pathlib.Path({state!r})
volumes = json.loads(state.read_text())
program, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
def fail(said, code=5):
    sys.exit((print("  " + said, file=sys.stderr), code)[1])
def option(name):
    return words[words.index(name) + 1]
def report(kind, rows):
    print(json.dumps(dict(report=[{{kind: rows}}])))
if words[-1].split("/")[0] != "vg0":
    fail('Volume group "%s" not found\\n  Cannot process volume group' % words[-1].split("/")[0])
if program == "vgs":
    every = dict(vg_free="1073741824", vg_extent_size="4194304", vg_attr="wz--n-")
    rows = [every] if option("-o") != "pv_name" else [dict(pv_name="/dev/sdb1"), dict(pv_name="/dev/sdc")]
    report("vg", rows)
elif program == "lvcreate":
    name = "vg0/" + option("--name")
    if name in volumes:
        fail('Logical Volume "%s" already exists in volume group "vg0"' % option("--name"))
    volumes[name] = dict(tags=[option("--addtag")], size=option("--size"), words=words)
elif program == "lvs" and words[-1] == "vg0":
    report("lv", [dict(lv_name=name[4:], origin=found.get("origin", "")) for name, found in volumes.items()])
elif words[-1] not in volumes:
    fail('Failed to find logical volume "%s"' % words[-1])
elif program == "lvs":
    found = volumes[words[-1]]
    row = dict(vg_name="vg0", lv_name=words[-1][4:], lv_tags=",".join(found["tags"]), segtype="linear")
    report("lv", [row | dict(lv_size=found["size"], lv_kernel_major="253", lv_kernel_minor="7")])
elif volumes[words[-1]].get("busy"):
    fail("Logical volume %s contains a filesystem in use." % words[-1])
elif option("--select") == 'lv_tags="%s"' % ",".join(volumes[words[-1]]["tags"]):
    del volumes[words[-1]]
state.write_text(json.dumps(volumes))
"""
FOREIGN = {"vg0/home": {"tags": [], "size": "1"}, "vg0/vmlab.tests.vm": {"tags": ["vmlab.test"], "size": "1"}}
"""Volumes of others: without a tag, and with a name much like the lab's own and its tag."""


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that stands for the volume group ``vg0``, with somebody's volumes in it."""
    state, programs = tmp_path / "group.json", tmp_path / "bin"
    state.write_text(json.dumps(FOREIGN))
    programs.mkdir()
    for name in ("vgs", "lvs", "lvcreate", "lvremove"):
        (programs / name).write_text(LVM.format(python=sys.executable, state=str(state)))
        (programs / name).chmod(0o755)
    monkeypatch.setattr(logical_volumes, "_PATH", f"{programs}:{os.environ['PATH']}")
    return state


@pytest.fixture
def disks(tmp_path: Path) -> DataDisks:
    (tmp_path / "disks").mkdir()
    return DataDisks(tmp_path / "disks", "test", Journal(tmp_path / "journal.jsonl"))


def make(disks: DataDisks) -> VolumeDisk:
    disk = disks.make(spec("vm", data_bytes=64 * MIB, backing="lvm:vg0"))
    assert isinstance(disk, VolumeDisk)
    return disk


def volumes(group: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(group.read_text())
    return found


def change(group: Path, **fields: object) -> None:
    """Change what is known of the lab's volume."""
    found = volumes(group)
    found["vg0/vmlab.test.vm"] |= fields
    group.write_text(json.dumps(found))


def open_entries(folder: Path) -> list[JournalEntry]:
    return Journal(folder / "journal.jsonl").open_entries()


def swept(folder: Path) -> list[str]:
    return sweep(folder / "journal.jsonl", folder / "disks", "test")


def test_a_disk_is_a_linear_volume_with_the_labs_tag_that_goes_with_its_guest(
    group: Path, disks: DataDisks, tmp_path: Path
) -> None:
    disk = make(disks)
    assert disk.source.block and disk.source.path == Path("/dev/vg0/vmlab.test.vm")
    (made,) = volumes(group).keys() - FOREIGN.keys()
    words = volumes(group)[made]["words"]
    assert made == "vg0/vmlab.test.vm" and isinstance(words, list)
    for option in (["--type", "linear"], ["--addtag", "vmlab.test"], ["--size", f"{64 * MIB}b"]):
        assert words[words.index(option[0]) :][:2] == option
    assert open_entries(tmp_path) == [JournalEntry("volume", made)]
    disks.release("vm")
    assert volumes(group) == FOREIGN and open_entries(tmp_path) == []


def test_a_volume_of_that_name_is_somebody_elses(group: Path, disks: DataDisks, tmp_path: Path) -> None:
    theirs = FOREIGN | {"vg0/vmlab.test.vm": {"tags": ["vmlab.test"], "size": "1"}}
    group.write_text(json.dumps(theirs))
    with pytest.raises(HypervisorError, match=r"there is a volume of that name already: vg0/vmlab\.test\.vm"):
        make(disks)
    disks.release("vm")
    assert swept(tmp_path) == [] and open_entries(tmp_path) == []
    assert volumes(group) == theirs


def test_what_a_killed_runner_leaves_is_swept(group: Path, disks: DataDisks, tmp_path: Path) -> None:
    make(disks)
    assert swept(tmp_path) == ["vg0/vmlab.test.vm"] and open_entries(tmp_path) == []
    assert volumes(group) == FOREIGN


@pytest.mark.parametrize("tags", [[], ["vmlab.tes"], ["vmlab.test2", "backup"]])
def test_a_volume_without_the_labs_tag_stays(tags: list[str], group: Path, disks: DataDisks, tmp_path: Path) -> None:
    make(disks)
    change(group, tags=tags)
    assert swept(tmp_path) == [] and open_entries(tmp_path) == []
    assert "vg0/vmlab.test.vm" in volumes(group)


@pytest.mark.parametrize(
    "words",
    ["vg0/home", "vg0/vmlab.tests.vm", "vg0/vmlab.test", "vmlab.test.vm", "vg0/x/vmlab.test.vm", "-vg/vmlab.test.vm"],
)
def test_what_is_not_the_labs_by_its_name_is_never_asked_about(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disks: DataDisks
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("LVM was asked")

    monkeypatch.setattr(logical_volumes, "_run", never)
    Journal(tmp_path / "journal.jsonl").add(JournalEntry("volume", words))
    assert swept(tmp_path) == [] and open_entries(tmp_path) == []


def test_a_volume_that_stays_is_told_and_stays_in_the_journal(group: Path, disks: DataDisks, tmp_path: Path) -> None:
    make(disks)
    change(group, busy=True)
    said = r"cannot remove the volume vg0/vmlab\.test\.vm: Logical volume .* in use"
    with pytest.raises(CleanupIncomplete, match=said):
        swept(tmp_path)
    assert len(open_entries(tmp_path)) == 1


def test_a_volume_that_is_gone_is_no_error(group: Path, disks: DataDisks, tmp_path: Path) -> None:
    make(disks)
    group.write_text(json.dumps(FOREIGN))
    disks.release("vm")
    assert open_entries(tmp_path) == []
    assert look_at(LogicalVolume("vg0", "vmlab.test.vm")) == look_at(LogicalVolume("vg1", "home")) == {}


def test_a_volume_in_a_group_that_is_not_there_stays_in_the_journal(
    group: Path, disks: DataDisks, tmp_path: Path
) -> None:
    """Its devices may come back."""
    Journal(tmp_path / "journal.jsonl").add(JournalEntry("volume", "vg1/vmlab.test.vm"))
    said = r"the group of the volume vg1/vmlab\.test\.vm is not there: bring its devices back, or, if it is gone"
    with pytest.raises(CleanupIncomplete, match=said):
        swept(tmp_path)
    assert len(open_entries(tmp_path)) == 1


def test_a_volume_that_somebody_has_made_a_snapshot_of_stays(group: Path, disks: DataDisks, tmp_path: Path) -> None:
    """LVM would remove the snapshot, too."""
    make(disks)
    found = volumes(group)
    group.write_text(json.dumps(found | {"vg0/theirs": {"tags": [], "size": "1", "origin": "vmlab.test.vm"}}))
    said = r"the volume vg0/vmlab\.test\.vm stays: it is the origin of vg0/theirs; remove that first"
    with pytest.raises(CleanupIncomplete, match=said):
        swept(tmp_path)
    assert len(open_entries(tmp_path)) == 1 and "vg0/vmlab.test.vm" in volumes(group)
    group.write_text(json.dumps(found))
    assert swept(tmp_path) == ["vg0/vmlab.test.vm"]


def test_a_group_with_room_for_the_largest_cell_can_be_had(group: Path) -> None:
    require_group("vg0", [{}, {"a": GIB}, {"a": GIB // 2, "b": GIB // 2}])
    assert physical_volumes("vg0") == [Path("/dev/sdb1"), Path("/dev/sdc")]
    assert volumes(group) == FOREIGN


def refusal(group: str, *cells: dict[str, int]) -> str:
    with pytest.raises(RefusedError) as refused:
        require_group(group, cells)
    (line,) = str(refused.value).splitlines()
    return line


def test_what_a_group_lacks_refuses_the_run_in_one_line(group: Path) -> None:
    assert refusal("vg0", {"a": GIB, "b": 4 * MIB}).endswith("1 GiB are needed, and the group has 1 GiB free")
    odd = refusal("vg0", {"a": 65 * MIB})
    assert odd == (
        "guest a: a volume in group vg0 is a multiple of its extents of 4 MiB, and its data disk of 65 MiB is none"
    )
    assert refusal("vg1", {"a": GIB}) == "this host has no volume group vg1 (vgs lists them)"


def test_a_host_without_lvm_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logical_volumes, "_PATH", str(tmp_path))
    line = refusal("vg0", {"a": GIB})
    assert "needs LVM's commands, which are not installed" in line and "lvm2" in line


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exec sleep 600", "lvs vg0/a took longer than 0.1 s"),
        ("echo nonsense", "LVM reported what cannot be read: 'nonsense"),
        ("echo '  Cannot lock' >&2; exit 5", "cannot look at the volume vg0/a: Cannot lock"),
    ],
)
def test_a_command_that_hangs_or_fails_is_an_error_of_one_line(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lvs").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "lvs").chmod(0o755)
    monkeypatch.setattr(logical_volumes, "_PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(logical_volumes, "ANSWER_SECONDS", 0.1 if "sleep" in script else 60.0)
    with pytest.raises(HypervisorError) as error:
        look_at(LogicalVolume("vg0", "a"))
    (line,) = str(error.value).splitlines()
    assert words in line


def test_names_are_read_to_the_letter() -> None:
    assert named("vg-0/vmlab.test.t1-vm", "test") == LogicalVolume("vg-0", "vmlab.test.t1-vm")
    assert named("vg0/vmlab.test.vm", "tes") is None
