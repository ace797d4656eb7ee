"""A tree of many small files, copied from one guest to another over SMB, and back after a while."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field, model_validator

from vmlab.model.concurrency import run_all
from vmlab.model.errors import WorkloadError
from vmlab.model.names import WORKLOADS_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes, Seconds
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.programs import Contents, ask, command, install, own_seed, told_progress
from vmlab.workloads.services import LAB_PASSWORD, LAB_USER, SHARE, SHARE_FOLDER
from vmlab.workloads.shell import Shell
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import is_amount, last_object, objects
from vmlab.workloads.workload_steps import (
    Client,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    Stored,
    WorkloadContext,
    WorkloadParams,
)

_BLOCK = 4096
_ROUNDED = 0.001
_FILE_OVERHEAD = 1_500
"""Inode, folder entry and journal; like all such constants below, what the guests' disks really counted."""
_FILE_SECONDS = {"kvm": 0.0015, "tcg": 0.011}
_BYTES_PER_SECOND = {"kvm": 200e6, "tcg": 20e6}
"""Of one way. Measured on two idle cores under TCG; its figure for KVM is a guess."""


class FilecopyParams(WorkloadParams):
    """Amounts of the ``filecopy`` workload."""

    files: int = Field(ge=1, le=1_000_000)
    """Files in the tree, in folders of 250."""
    bytes: Bytes = Field(ge=1, le=2**38)
    """Size of all files together; each has 0.5 to 1.5 times the mean size."""
    idle: Seconds = Field(default=0.0, ge=0, le=3600)
    """Pause between copying there and back; not part of ``run_time``."""
    back: bool = True
    """Whether the tree is copied back."""
    contents: Contents = "identical"
    """What the files hold: the same in all tiles (``identical``), or different in each (``unique``)."""

    @model_validator(mode="after")
    def _enough_bytes(self) -> FilecopyParams:
        if self.bytes < 16 * self.files:
            raise ValueError(f"bytes must be at least 16 for each file, {16 * self.files} B here")
        return self


@dataclass(frozen=True, slots=True)
class _Places:
    """Folders of one workload; `there` is the far side's folder as the near side sees it."""

    root: str
    mount: str
    far: str

    @classmethod
    def of(cls, workload: str) -> _Places:
        return cls(f"/srv/{workload}", f"/mnt/{workload}", f"{SHARE_FOLDER}/{workload}")


class Filecopy(ToolWorkload[FilecopyParams]):
    """``cp -r`` to a Samba share that is mounted with SMB 3.1.1, and ``cp -r`` back."""

    kind = "filecopy"
    sides = 2
    roles = ("fileserver", "fileserver")
    Params = FilecopyParams
    tools = (("mount.cifs",), ())
    packages: ClassVar = {"mount.cifs": "cifs-utils"}
    texts = ("client",)
    tool = "the file copy"
    around: ClassVar = {"kvm": 0.3, "tcg": 2.2}
    summary = "A tree of small files is copied over SMB to another guest and back."
    metrics = with_run_time(
        copy_there_time=Metric("s", "less", "time there"),
        copy_back_time=Metric("s", "less", "time back"),
        elapsed=Metric("s", "less", "time with the idle time"),
        files=Metric("1", None, "files"),
        bytes=Metric("B", None, "bytes"),
        throughput_bytes_per_second=Metric("B/s", "more", "throughput"),
    )
    throughput = "throughput_bytes_per_second"
    loops = True

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The time back, where nothing is copied back."""
        return frozenset() if params.get("back", True) else frozenset({"copy_back_time"})

    def footprint(self, accelerator: str) -> Footprint:
        """The tree, its copy and its copy back, each file rounded up to blocks of 4 KiB."""
        params = self.params
        once = params.bytes + params.files * (_BLOCK // 2 + _FILE_OVERHEAD)
        ways = 2 if params.back else 1
        moved = params.files * _FILE_SECONDS[accelerator] + params.bytes / _BYTES_PER_SECOND[accelerator]
        idle = params.idle if params.back else 0.0
        return Footprint(
            disk_bytes=once * (1 + ways),
            seconds=3 + ways * moved + idle,
            idle_seconds=idle,
            staging_seconds=0.2 * moved,
        )

    def stored(self) -> tuple[Stored, ...]:
        """The tree and, where it is copied back, its copy; and the copy on the other side."""
        params = self.params
        return (
            Stored("source", params.bytes * (2 if params.back else 1), "bytes"),
            Stored("target", params.bytes, "bytes"),
        )

    def staged_by(self) -> dict[str, Any]:
        """Size and number of the tree's files; a tree that each tile has of its own is not staged."""
        if self.params.contents == "unique":
            return {"contents": "unique"}
        return {"files": self.params.files, "bytes": self.params.bytes}

    async def stage(self, context: StagingContext) -> None:
        """Make the tree on the near side, and an empty folder on the far one."""
        places = _Places.of(context.workload)
        if context.side == "target":
            await install(context.shell, "tree_digest")
            await context.shell.run(["rm", "-rf", places.far], deadline=600)
            await context.shell.run(["install", "-d", "-o", LAB_USER, "-g", LAB_USER, places.far])
            return
        await install(context.shell, "tree_make", "tree_digest", "filecopy_client")
        await context.shell.run(["rm", "-rf", places.root], deadline=600)
        await context.shell.run(["mkdir", "-p", places.root, places.mount])
        if self.params.contents == "identical":
            await self._make_tree(context.shell, places, f"{context.seed}-{context.workload}")

    async def _make_tree(self, shell: Shell, places: _Places, seed: str) -> None:
        options = {
            "folder": f"{places.root}/tree",
            "manifest": f"{places.root}/manifest",
            "files": self.params.files,
            "bytes": self.params.bytes,
            "seed": seed,
        }
        made = await ask(shell, "tree_make", options, deadline=self.patience)
        await shell.write(f"{places.root}/made", json.dumps(made).encode())

    async def rehearse(self, context: StagingContext) -> None:
        """Mount the near side's own share and let go of it, so that the kernel's modules are loaded."""
        if context.side == "source":
            places = _Places.of(context.workload)
            await _mount(context.shell, context.shell.address, places)
            await context.shell.run(["umount", places.mount])

    async def prepare(self, context: WorkloadContext) -> None:
        """Mount the far side's share, and make a tree that this tile alone has."""
        places = _Places.of(context.workload)
        if self.params.contents == "unique":
            await self._make_tree(context.source, places, own_seed(context))
        await _mount(context.source, context.peer_address, places)

    async def renew(self, context: WorkloadContext) -> None:
        """Remove both copies, the far one over the share: what the near side has cached of it goes with it."""
        places = _Places.of(context.workload)
        copies = [f"{places.mount}/{context.workload}/tree", f"{places.root}/back"]
        await context.source.run(["rm", "-rf", *copies], deadline=self.patience)

    @property
    def patience(self) -> float:
        """Deadline in seconds of a step over all files, enough for the slowest machine that is useful."""
        return 300 + self.params.files * 0.25 + self.params.bytes / 200e3

    def client(self, context: WorkloadContext) -> Client:
        """The copying program."""
        places = _Places.of(context.workload)
        options = {
            "tree": f"{places.root}/tree",
            "there": f"{places.mount}/{context.workload}/tree",
            "back": f"{places.root}/back" if self.params.back else "",
            "idle": self.params.idle,
            "files": self.params.files,
        }
        return Client(command("filecopy_client", options), deadline=2 * self.patience + self.params.idle)

    def progress(self, line: str) -> Progress | None:
        """Files in the stages ``there`` and ``back``, seconds in ``idle``."""
        found = told_progress(line, "files")
        return replace(found, unit="s") if found is not None and found.stage == "idle" else found

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """Both copies hold what the manifest says."""
        places = _Places.of(context.workload)
        far, near = f"{places.far}/tree", f"{places.root}/back"
        there, back = await run_all([self._digest(context, context.peer, far), self._look_near(context, places, near)])
        made = back.pop("made")
        if not isinstance(made, dict):
            raise WorkloadError(f"{places.root}/made on {context.source.name} holds no JSON object")
        await self._demand_same(context, context.peer, far, there, made)
        if self.params.back:
            await self._demand_same(context, context.source, near, back, made)
        return {}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From what the client said of each stage; that both copies are whole is known from the guests alone."""
        stages = stage_ends(texts["client"], ("there", "back", "all") if self.params.back else ("there", "all"))
        self._demand_traffic(stages)
        self._demand_times(stages)
        times = {stage: end["seconds"] for stage, end in stages.items()}
        ways = [stage for stage in ("there", "back") if stage in times]
        run_time = sum(times[way] for way in ways)
        moved = self.params.bytes * len(ways)
        return {
            RUN_TIME: run_time,
            **{f"copy_{way}_time": times[way] for way in ways},
            "elapsed": times["all"],
            "files": self.params.files * len(ways),
            "bytes": moved,
            "throughput_bytes_per_second": moved / run_time,
        }

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """The client's, with its pause; it starts before."""
        return ToolTime(values["elapsed"], self.around[accelerator])

    def _demand_times(self, stages: Mapping[str, Mapping[str, float]]) -> None:
        """The whole took as long as its ways and the pause between them."""
        least = sum(end["seconds"] for stage, end in stages.items() if stage != "all")
        least += self.params.idle if self.params.back else 0.0
        if stages["all"]["seconds"] < least - _ROUNDED:
            raise WorkloadError(
                f"the file copy took {stages['all']['seconds']:.3f} s; its ways and its pause take {least:.3f} s"
            )

    def _demand_traffic(self, stages: dict[str, dict[str, float]]) -> None:
        for stage, direction in (("there", "sent"), ("back", "received")):
            if stage in stages and stages[stage][direction] < self.params.bytes:
                raise WorkloadError(
                    f"the way {stage} {direction} only {stages[stage][direction]:.0f} bytes over the network; "
                    f"the tree has {self.params.bytes}"
                )

    async def _look_near(self, context: WorkloadContext, places: _Places, back: str) -> dict[str, Any]:
        """What came back, and in the same program what was `made`."""
        made = f"{places.root}/made"
        if self.params.back:
            return {"made": None, **await self._digest(context, context.source, back, made)}
        text = (await context.source.run(["cat", made])).stdout
        return {"made": last_object(text, f"{made} on {context.source.name}")}

    async def _digest(self, context: WorkloadContext, where: Shell, folder: str, made: str = "") -> dict[str, Any]:
        options = {"folder": folder, "listing": _listing(context), "made": made}
        found = await ask(where, "tree_digest", options, deadline=self.patience)
        if not made:
            found.pop("made", None)
        return found

    async def _demand_same(
        self, context: WorkloadContext, where: Shell, folder: str, found: dict[str, Any], made: dict[str, Any]
    ) -> None:
        if found == made:
            return
        manifest = (await context.source.run(["cat", f"{_Places.of(context.workload).root}/manifest"])).stdout
        differences = first_differences(manifest, (await where.run(["cat", _listing(context)])).stdout)
        raise WorkloadError(
            f"{folder} on {where.name} has {found.get('files')} files and {found.get('bytes')} bytes, "
            f"the tree {made.get('files')} and {made.get('bytes')}: {differences}"
        )


def stage_ends(text: str, wanted: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """What the client printed at the end of each stage: seconds, and bytes sent and received.

    Raises WorkloadError where a stage is missing or a value is not a number.
    """
    ends: dict[str, dict[str, float]] = {}
    for said in objects(text):
        if "ended" in said:
            numbers = {key: value for key, value in said.items() if key != "ended"}
            if not all(is_amount(value) for value in numbers.values()) or "seconds" not in numbers:
                raise WorkloadError(f"the file copy printed a line that cannot be read: {str(said)[:200]!r}")
            ends[str(said["ended"])] = {key: float(value) for key, value in numbers.items()}
    for stage in wanted:
        if stage not in ends:
            raise WorkloadError(f"the file copy did not say that its stage {stage!r} ended")
        if stage != "all" and not {"sent", "received"} <= ends[stage].keys():
            raise WorkloadError(f"the file copy did not say what its stage {stage!r} sent and received")
    return ends


def _listing(context: WorkloadContext) -> str:
    return f"{WORKLOADS_FOLDER}/{context.workload}.listing"


async def _mount(client: Shell, server: str, places: _Places) -> None:
    options = f"username={LAB_USER},password={LAB_PASSWORD},vers=3.1.1"
    await client.run(["mount", "-t", "cifs", f"//{server}/{SHARE}", places.mount, "-o", options])


_SHOWN = 3


def first_differences(wanted: str, found: str) -> str:
    """The first paths, in order, that are missing, too many or different, with what is wrong with each."""
    expected, actual = _by_path(wanted), _by_path(found)
    wrong = [
        f"{path} {word}" for path in sorted(expected.keys() | actual.keys()) if (word := _word(path, expected, actual))
    ]
    if not wrong:
        return "the listings agree, but their digests do not"
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return ", ".join(wrong[:_SHOWN]) + more


def _word(path: str, expected: dict[str, tuple[str, str]], actual: dict[str, tuple[str, str]]) -> str:
    if path not in actual:
        return "is missing"
    if path not in expected:
        return "does not belong there"
    if expected[path][0] != actual[path][0]:
        return f"has {actual[path][0]} bytes instead of {expected[path][0]}"
    return "" if expected[path] == actual[path] else "has other content"


def _by_path(listing: str) -> dict[str, tuple[str, str]]:
    entries = (line.split("\t") for line in listing.splitlines())
    return {path: (size, digest) for path, size, digest in entries}
