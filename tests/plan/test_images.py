"""Images of guests in a plan: known by name on this host, as large as fits, and what they mean for their cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.errors import ScenarioError, UsageError
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan

GIB = 2**30
HOST = HostFacts(16 * GIB, 16 * GIB, 100 * GIB, 2, "tcg", images={"debian": 3 * GIB, "mine": 10 * GIB, "small": GIB})
SCENARIO = """\
name: trial
guests:
  a: {role: fileserver, memory: 512 MiB, disk: 20 GiB}
  b: {role: fileserver, memory: 512 MiB, image: mine, disk: 10 GiB}
workloads:
  copy: {kind: filecopy, from: a, to: b, files: 10, bytes: 1 MB}
"""


def planned(text: str = SCENARIO, host: HostFacts = HOST, **overrides: object) -> Plan:
    given = replace(Overrides(size="full"), **overrides)  # type: ignore[arg-type]
    return make_plan(read(Path("x.yaml"), text), given, host)


def test_each_guest_has_the_image_that_it_names() -> None:
    plan = planned()
    (cell,) = plan.cells
    assert {guest.guest: guest.resources.image for guest in cell.guests} == {"a": "debian", "b": "mine"}
    assert cell.added_images == plan.added_images == ("mine",)
    document = plan_document(plan, HOST, None)["plan"]
    assert document["image"] == "debian"
    assert [guest["image"] for guest in document["cells"][0]["guests"]] == ["debian", "mine"]


def test_a_cell_with_an_added_image_boots_and_the_plan_says_so() -> None:
    plan = planned()
    assert plan.seconds == planned(SCENARIO.replace("image: mine, ", ""), cold=True).seconds
    assert plan.seconds > planned(SCENARIO.replace("image: mine, ", "")).seconds
    text = plan_text(plan, HOST)
    assert "all of them booted (cold)" in text and "frozen first" not in text
    assert "  b  1 vCPU  512 MiB  fileserver  image mine" in text.splitlines()
    assert "note: guests of an added image (mine) are not frozen" in text
    assert "frozen first" in plan_text(planned(SCENARIO.replace("image: mine, ", "")), HOST)


def test_the_image_is_an_axis_by_its_name() -> None:
    plan = planned(SCENARIO.replace(", image: mine", "") + "axes: {image: [debian, mine]}\norder: as written\n")
    assert [cell.added_images for cell in plan.cells] == [(), ("mine",)]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("mine", "mnie", "x.yaml:4:49: there is no image 'mnie'; did you mean 'mine'?"),
        ("mine", "other", "x.yaml:4:49: there is no image 'other'; known are debian, mine, small"),
        (", disk: 10 GiB", "", "x.yaml:4:49: image mine needs a disk of 10 GiB or more"),
        ("10 GiB", "9 GiB", "x.yaml:4:61: image mine needs a disk of 10 GiB or more"),
        ("20 GiB", "2 GiB", "x.yaml:3:48: image debian needs a disk of 3 GiB or more"),
    ],
)
def test_an_image_that_cannot_be_is_named_with_its_place(old: str, new: str, line: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        planned(SCENARIO.replace(old, new))
    assert str(caught.value).startswith(line) and caught.value.exit_code == 2


def test_programs_that_an_image_is_known_to_lack_are_refused_for_those_who_need_them() -> None:
    host = replace(HOST, lacked_programs={"mine": ["smbd", "mkfs.ext4", "fio"], "small": ["mount.cifs"]})
    needs = "guest b needs what its image mine lacks: "
    with pytest.raises(ScenarioError) as caught:
        planned(host=host)
    assert str(caught.value) == f"x.yaml:4:49: {needs}smbd (samba) for role fileserver"
    with pytest.raises(ScenarioError, match=r"mkfs\.ext4 \(e2fsprogs\) for a data disk, smbd"):
        planned(SCENARIO.replace("image: mine,", "image: mine, data: 1 GiB,"), host)
    with pytest.raises(
        UsageError, match=r"guests\.a\.image=small: guest a needs .*: mount\.cifs .* for workload copy$"
    ):
        planned(host=replace(host, lacked_programs={"small": ["mount.cifs"]}), sets=("guests.a.image=small",))
    assert planned(host=replace(host, lacked_programs={"mine": ["mount.cifs"]})).added_images == ("mine",)


WINDOWS = """\
name: trial
guests:
  win: {memory: 4 GiB, disk: 10 GiB, image: mine}
  lin: {memory: 512 MiB}
workloads:
  disk: {kind: fio, on: win, rw: read, size: 1 MiB, engine: windowsaio}
"""
OF_WINDOWS = replace(HOST, windows_images=("mine",))


def test_fio_for_windows_runs_on_windows_and_no_other_workload_does() -> None:
    assert planned(WINDOWS, OF_WINDOWS).added_images == ("mine",)
    assert planned(WINDOWS, replace(HOST, windows_images=None)).added_images == ("mine",), "what it has is not known"


def test_one_guest_has_linux_and_windows_in_turn() -> None:
    points = """\
axes:
  system:
    points:
      linux:   {guests.win.image: debian, workloads.disk.engine: libaio}
      windows: {guests.win.image: mine, workloads.disk.engine: windowsaio}
order: as written
"""
    assert [cell.added_images for cell in planned(WINDOWS + points, OF_WINDOWS).cells] == [(), ("mine",)]
    with pytest.raises(ScenarioError, match=r"x\.yaml:[0-9]+:[0-9]+: .*win has Linux"):
        planned(
            WINDOWS + points.replace("windows: {guests.win.image: mine", "windows: {guests.win.image: small"),
            OF_WINDOWS,
        )


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (", engine: windowsaio", "", "x.yaml:6:25: guest win has Windows (image mine), where fio with engine"),
        ("on: win", "on: lin", "x.yaml:6:25: workloads.disk needs a guest with Windows, of an image"),
        ("on: win", "on: host", "x.yaml:6:25: workloads.disk needs a guest with Windows, of an"),
        ("memory: 4 GiB", "data: 1 GiB, memory: 4 GiB", "x.yaml:3:15: guest win has Windows (image mine), where vmlab"),
        ("memory: 4 GiB", "role: fileserver, memory: 4 GiB", "x.yaml:3:15: guest win has Windows (image mine), where"),
        ("size: 1 MiB", "size: 1 MiB, direct: false", "x.yaml:6:9: workloads.disk: direct must be true with"),
        ("size: 1 MiB", "size: 1 MiB, folder: /srv", "x.yaml:6:9: workloads.disk: folder does not go with windowsaio"),
    ],
)  # fmt: skip
def test_what_windows_cannot_have_is_refused_at_its_place(old: str, new: str, line: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        planned(WINDOWS.replace(old, new), OF_WINDOWS)
    assert str(caught.value).startswith(line)


def test_an_image_that_is_known_to_have_linux_runs_no_workload_of_windows() -> None:
    with pytest.raises(ScenarioError, match="win has Linux"):
        planned(WINDOWS, replace(HOST, windows_images=()))
    with pytest.raises(ScenarioError, match=r"x\.yaml:6:38: guest win has Windows"):
        planned(WINDOWS[: WINDOWS.index("  disk")] + "  net: {kind: iperf3, from: lin, to: win}\n", OF_WINDOWS)


def test_an_option_that_names_none_is_named() -> None:
    with pytest.raises(UsageError, match=r"guests\.a\.image=none: there is no image 'none'"):
        planned(sets=("guests.a.image=none",))


def test_without_a_host_every_name_passes() -> None:
    assert planned(SCENARIO.replace("mine", "any"), replace(HOST, images=None)).added_images == ("any",)
