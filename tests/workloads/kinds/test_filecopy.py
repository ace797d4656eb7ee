"""The file copy's steps against scripted guests."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.fakes.shell import FakeShell, says
from tests.fakes.staging import stage_both
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.filecopy import Filecopy, FilecopyParams
from vmlab.workloads.shell import Completed
from vmlab.workloads.workload_steps import Finished, Progress, WorkloadContext

TREE = {"files": 2, "bytes": 1000, "digest": "abc"}
MANIFEST = "d0000/f000000.bin\t400\t11\nd0000/f000001.bin\t600\t22\n"


def finished(*, there: int = 1100, back: int = 1100, status: int = 0, last: bool = True) -> Finished:
    lines: list[dict[str, Any]] = [
        {"stage": "there", "done": 2, "total": 2},
        {"ended": "there", "seconds": 4.0, "sent": there, "received": 9, "clock": 1.0},
        {"ended": "back", "seconds": 6.0, "sent": 9, "received": back, "clock": 2.0},
    ]
    if last:
        lines.append({"ended": "all", "seconds": 41.0, "clock": 3.0})
    return Finished(status, 41.5, "".join(json.dumps(line) + "\n" for line in lines), "cp: no space left")


@pytest.fixture
def load() -> Filecopy:
    return Filecopy(FilecopyParams.model_validate({"files": 2, "bytes": "1 kB", "idle": "30 s"}))


def look(argv: Sequence[str], found: dict[str, Any] = TREE) -> Completed:
    """What tree_digest.py says of a folder, and of what was made where it is asked for that."""
    made = TREE if json.loads(argv[-1])["made"] else None
    return says(json.dumps({**found, "made": made}) + "\n")


@pytest.fixture
async def prepared(load: Filecopy, context: WorkloadContext, source: FakeShell, target: FakeShell) -> Filecopy:
    """Its tree is made; both sides' digests agree with it until a test says otherwise."""
    source.answers["tree_make.py"] = says(json.dumps(TREE) + "\n")
    source.answers["tree_digest.py"] = target.answers["tree_digest.py"] = look
    source.answers["/manifest"] = says(MANIFEST)
    await stage_both(load, context)
    await load.prepare(context)
    return load


async def test_the_tree_is_made_alone_and_the_peers_share_is_mounted_after(
    prepared: Filecopy, source: FakeShell
) -> None:
    options = json.loads(next(words for words in source.commands if "tree_make.py" in words).split(".py ")[1])
    assert (options["files"], options["bytes"], options["seed"]) == (2, 1000, "7-load")
    assert any(words.startswith("mount -t cifs //198.18.0.12/tree /mnt/load") for words in source.commands)


async def test_a_tree_of_its_own_is_made_in_each_tile_and_in_no_snapshot(
    load: Filecopy, context: WorkloadContext, source: FakeShell
) -> None:
    own = Filecopy(load.params.model_copy(update={"contents": "unique"}))
    source.answers["tree_make.py"] = says(json.dumps(TREE) + "\n")
    await stage_both(own, context)
    assert not any("tree_make.py {" in words for words in source.commands)
    for tile in (1, 2, 2):
        await own.prepare(replace(context, tile=tile))
    made = [json.loads(words.split(".py ")[1]) for words in source.commands if "tree_make.py {" in words]
    assert [one["seed"] for one in made] == ["7-1-load", "7-2-load", "7-2-load"]
    assert {one["bytes"] for one in made} == {1000}
    assert own.staged_by() != load.staged_by()


async def test_verified_copies_give_figures_without_the_idle_time(prepared: Filecopy, context: WorkloadContext) -> None:
    collected = await prepared.collect(context, finished())
    figures = {reading.metric: (reading.value, reading.unit) for reading in prepared.readings(collected)}
    assert figures == {
        "run_time": (10.0, "s"),
        "copy_there_time": (4.0, "s"),
        "copy_back_time": (6.0, "s"),
        "elapsed": (41.0, "s"),
        "files": (4, "1"),
        "bytes": (2000, "B"),
        "throughput_bytes_per_second": (200.0, "B/s"),
    }
    assert "there" in collected.raw["client"]


async def test_a_pause_that_was_not_made_fails(prepared: Filecopy, context: WorkloadContext) -> None:
    quick = finished().stdout.replace("41.0", "12.0")
    with pytest.raises(WorkloadError, match=r"took 12\.000 s; its ways and its pause take 40\.000 s"):
        await prepared.collect(context, Finished(0, 41.5, quick, ""))


@pytest.mark.parametrize("side", ["near", "far"])
async def test_a_copy_that_differs_fails_and_names_the_file(
    prepared: Filecopy, context: WorkloadContext, side: str
) -> None:
    shell = context.source if side == "near" else context.peer
    assert isinstance(shell, FakeShell)
    shell.answers["tree_digest.py"] = partial(look, found={**TREE, "digest": "abd"})
    shell.answers[".listing"] = says(MANIFEST.replace("22", "23"))
    with pytest.raises(WorkloadError, match=rf"on {side} .*d0000/f000001.bin has other content"):
        await prepared.collect(context, finished())


async def test_what_was_made_is_held_against_the_copy_there_where_nothing_comes_back(
    context: WorkloadContext, source: FakeShell, target: FakeShell
) -> None:
    load = Filecopy(FilecopyParams.model_validate({"files": 2, "bytes": "1 kB", "back": False}))
    source.answers["tree_make.py"] = says(json.dumps(TREE) + "\n")
    target.answers["tree_digest.py"] = look
    await stage_both(load, context)
    await load.collect(context, finished())
    source.files["/srv/load/made"] = json.dumps({**TREE, "digest": "other"}).encode()
    with pytest.raises(WorkloadError, match="on far"):
        await load.collect(context, finished())


async def test_a_copy_with_a_file_less_fails(prepared: Filecopy, context: WorkloadContext, target: FakeShell) -> None:
    target.answers["tree_digest.py"] = partial(look, found={"files": 1, "bytes": 400, "digest": "x"})
    target.answers[".listing"] = says(MANIFEST.splitlines()[0] + "\n")
    with pytest.raises(WorkloadError, match=r"has 1 files and 400 bytes.*f000001.bin is missing"):
        await prepared.collect(context, finished())


@pytest.mark.parametrize(("amounts", "word"), [({"there": 999}, "there sent"), ({"back": 10}, "back received")])
async def test_a_way_that_did_not_cross_the_network_fails(
    prepared: Filecopy, context: WorkloadContext, amounts: dict[str, Any], word: str
) -> None:
    with pytest.raises(WorkloadError, match=f"the way {word} only"):
        await prepared.collect(context, finished(**amounts))


async def test_a_client_that_failed_or_stopped_early_fails(prepared: Filecopy, context: WorkloadContext) -> None:
    with pytest.raises(WorkloadError, match="exited with 1: cp: no space left"):
        await prepared.collect(context, finished(status=1))
    with pytest.raises(WorkloadError, match="did not say that its stage 'all' ended"):
        await prepared.collect(context, finished(last=False))


def test_progress_tells_the_stage(load: Filecopy) -> None:
    assert load.progress('{"stage": "back", "done": 1, "total": 2}') == Progress(1, 2, "files", "back")
    assert load.progress('{"stage": "idle", "done": 3, "total": 30}') == Progress(3, 30, "s", "idle")
    assert load.progress('{"ended": "back", "seconds": 1}') is None
    assert load.progress("cp: a word") is None


def test_the_tree_needs_room_for_its_files() -> None:
    with pytest.raises(ValueError, match="at least 16 for each file"):
        FilecopyParams.model_validate({"files": 100, "bytes": "1 kB"})


def test_the_footprint_counts_every_copy() -> None:
    amounts = {"files": 44_500, "bytes": "670 MB", "idle": "30 s"}
    both = Filecopy(FilecopyParams.model_validate(amounts)).footprint("tcg")
    one = Filecopy(FilecopyParams.model_validate({**amounts, "back": False})).footprint("tcg")
    assert both.disk_bytes == one.disk_bytes * 3 // 2
    assert 3 * 670e6 < both.disk_bytes < 4 * 670e6
    assert both.seconds > one.seconds + 30
