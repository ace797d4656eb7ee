"""Whatever else differs between the sides of a comparison stands beside it, and what was asked about does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.published import departures_of
from vmlab.analysis.shape import RunDocument
from vmlab.lab.run.host_facts import host_facts
from vmlab.model.event import ImageReady
from vmlab.model.jsonable import jsonable
from vmlab.store.reader import RunReader

WEB = {"cache": "none", "boot": "lab", "memory_bytes": 2**30, "cpu_shares": None}


def settings(**changed: Any) -> dict[str, Any]:
    """What a cell of one guest is configured as, as `plan.planning` and the host's keeper write it."""
    guest = {**WEB, **changed.pop("guest", {})}
    job = {"kind": "fio", "on": "vm", "params": {"rw": "read", "bytes": None, **changed.pop("params", {})}}
    return {
        "tiles": 1,
        **guest,
        "guests": {"vm": guest},
        "workloads": {"job": job},
        "host": {"ksm": "off", "thp": "madvise", "read_ahead_bytes": 131072},
        **changed,
    }


def told(
    folder: Path,
    *cells: dict[str, Any],
    axis: str = "cache",
    image: str = "vmlab-1",
    added: str = "own-1",
    asset: str = "5" * 64,
) -> RunDocument:
    """A run with a cell for each of `cells`, which are their settings; each has its own value of `axis`."""
    values = [cell.get(axis, number) for number, cell in enumerate(cells)]
    story = Story(folder / "run.sqlite", run=folder.name).begin({axis: values}, assets={"unixbench": asset})
    now = story.now()
    ready = ImageReady(mono=now["mono"], wall=now["wall"], image=image, how="cached", seconds=0.1)
    story.writer.append(ready)
    story.writer.append(replace(ready, image=added, how="added", name="own"))
    for value, cell in zip(values, cells, strict=True):
        story.start_cell({axis: value}, settings=cell)
        story.measure("job", 2.0)
        story.end_cell(wall=3.0)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def compared(*documents: RunDocument, cells: tuple[int, ...] = ()) -> Comparison:
    chosen: tuple[int | None, ...] = cells or (None,) * len(documents)
    sides = [Side.of(document.run.id, document, cell) for document, cell in zip(documents, chosen, strict=True)]
    return compare(sides)


def test_runs_of_equal_conditions_have_no_warning(tmp_path: Path) -> None:
    comparison = compared(told(tmp_path / "a", settings()), told(tmp_path / "b", settings()))
    assert (comparison.warnings, comparison.differs) == ((), ())


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"guest": {"boot": "rescue"}}, "setting boot differs: a lab, b rescue"),
        ({"guest": {"cpu_shares": 512}}, "setting guests.vm.cpu_shares differs: a not set, b 512"),
        ({"params": {"rw": "write"}}, "setting workloads.job.params.rw differs: a read, b write"),
        ({"params": {"bytes": 4096}}, "setting workloads.job.params.bytes differs: a not set, b 4096"),
        ({"host": {"ksm": "on", "thp": "madvise"}}, "setting host.ksm differs: a off, b on"),
        ({"guests": {}}, "setting guests differs: a vm, b none"),
    ],
)
def test_a_setting_of_cells_that_meet_stands_there(tmp_path: Path, changed: dict[str, Any], line: str) -> None:
    assert compared(told(tmp_path / "a", settings()), told(tmp_path / "b", settings(**changed))).warnings == (line,)


def test_runs_that_agree_stand_in_the_line_as_one(tmp_path: Path) -> None:
    lab = [told(tmp_path / name, settings()) for name in "abc"]
    rescue = [told(tmp_path / name, settings(guest={"boot": "rescue"})) for name in "de"]
    groups = [[Side.of(one.run.id, one) for one in side] for side in (lab, rescue)]
    sides = [Side.of_runs(",".join(part.label for part in parts), parts) for parts in groups]
    assert compare(sides).warnings == ("setting boot differs: a and 2 more lab, d and 1 more rescue",)


def test_one_difference_of_several_cells_is_one_line(tmp_path: Path) -> None:
    modes = [{"cache": mode} for mode in ("none", "writeback")]
    lab = told(tmp_path / "a", *(settings(guest=mode) for mode in modes))
    rescue = told(tmp_path / "b", *(settings(guest={**mode, "boot": "rescue"}) for mode in modes))
    half = told(tmp_path / "c", settings(guest=modes[0]), settings(guest={**modes[1], "boot": "rescue"}))
    assert compared(lab, rescue).warnings == ("setting boot differs: a lab, b rescue",)
    assert compared(lab, half).warnings == ("setting boot differs (cache writeback): a lab, c rescue",)
    assert jsonable(compared(lab, half))["differs"] == [
        {"what": "setting boot", "values": ["lab", "rescue"], "at": [{"cache": "writeback"}]}
    ]


def test_what_was_asked_about_is_no_warning(tmp_path: Path) -> None:
    before = told(tmp_path / "a", settings(), settings(guest={"cache": "writeback"}))
    after = told(tmp_path / "b", settings(), settings(guest={"cache": "writeback", "memory_bytes": 2**31}))
    assert compared(before, before, cells=(1, 2)).warnings == ()
    assert compared(before, after, cells=(1, 2)).warnings == (
        "setting memory_bytes differs: a 1073741824, b 2147483648",
    )


def test_a_record_without_settings_says_so(tmp_path: Path) -> None:
    comparison = compared(told(tmp_path / "a", {}), told(tmp_path / "b", settings(), axis="cache"), cells=(1, 1))
    assert comparison.warnings == ("record of settings differs: a unknown, b recorded",)


def test_an_added_image_of_one_name_may_be_another_disk(tmp_path: Path) -> None:
    before, after = told(tmp_path / "a", settings()), told(tmp_path / "b", settings(), added="own-2")
    assert before.run.image == "vmlab-1" and before.run.added_images == {"own": "own-1"}
    assert compared(before, after).warnings == ("added image own differs: a own-1, b own-2",)


def test_an_asset_of_one_name_may_be_another_copy(tmp_path: Path) -> None:
    before, after = told(tmp_path / "a", settings()), told(tmp_path / "b", settings(), asset="6" * 64)
    assert before.run.assets == {"unixbench": "5" * 64}
    (line,) = compared(before, after).warnings
    assert line.startswith("asset unixbench differs: a 5555") and ", b 6666" in line


def test_image_snapshots_and_facts_of_the_host_stand_there(tmp_path: Path) -> None:
    before, after = told(tmp_path / "a", settings()), told(tmp_path / "b", settings(), image="vmlab-2")
    for document, digit in ((before, "1"), (after, "2")):
        document.cells[0].provision.snapshots.update({"t1-vm": digit * 64, "t2-vm": digit * 64})
        document.run.host.update({"microcode": f"0x{digit}", "load_before": [float(digit)], "ksm": {"run": digit}})
        document.run.host["disk"] = {"scheduler": "none" if digit == "1" else "bfq"}
    assert compared(before, after).warnings == (
        "image differs: a vmlab-1, b vmlab-2",
        "host microcode differs: a 0x1, b 0x2",
        "host disk scheduler differs: a none, b bfq",
        "snapshot differs: a 111111111111, b 222222222222",
    )


def test_long_values_are_cut_but_never_before_they_are_compared(tmp_path: Path) -> None:
    before, after = (told(tmp_path / name, settings()) for name in "ab")
    for document, last in ((before, "avx"), (after, "avx2")):
        document.run.host["host_cpu_flags"] = ["sse"] * 30 + [last]
    (warning,) = compared(before, after).warnings
    assert warning.startswith('host host_cpu_flags differs: a ["sse", "sse",')
    assert len(warning) < 200


def test_the_host_tells_its_microcode(tmp_path: Path) -> None:
    facts = host_facts(tmp_path)
    assert "microcode" in facts
    assert facts["cpu"]


def test_what_departs_from_the_published_text_has_no_words_of_python() -> None:
    text = "name: x\nguests: {vm: {memory: 1 GiB}}\nworkloads: {w: {kind: fio, on: vm, rw: read, size: 1 MiB}}\n"
    asked = {"guests": {"vm": {"cpu_quota": 40.0, "queues": 2}}}
    texts = {"scenario.yaml": text, "scenario": json.dumps(asked)}
    assert departures_of(texts, "full") == [
        "guests.vm.cpu_quota is 40.0, and not set at size full",
        "guests.vm.queues is 2, and 1 at size full",
    ]
