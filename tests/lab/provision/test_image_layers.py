"""Runs whose guests have packages: which disk they start from, frozen, covered, compared, held and said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes.image import small_image, small_layer
from tests.integrity.damage import flip
from tests.lab.runs import PASSED, MemoryRun, launched
from vmlab.guests.image.catalog import IMAGES, Image
from vmlab.guests.image.layers import layer_name
from vmlab.guests.snapshots import list_snapshots
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.protocols import GuestDisk
from vmlab.integrity.digests import seal
from vmlab.lab.process import launcher
from vmlab.lab.run.attempts import MeasuredBefore
from vmlab.model.cell_event import PhaseStarted, WorkloadStarted
from vmlab.model.errors import ExitCode, ImageError, RefusedError
from vmlab.model.event import Event, HostProbed, ImageReady, RunEnded
from vmlab.plan.terms import Overrides

pytestmark = pytest.mark.usefixtures("own_folders")
OVERRIDES = Overrides(size="full", sets=("order=as written", "guests.quick.packages=hello"))
"""Not cold: guests are frozen."""
Seen = dict[str, DomainSpec]


def begun(**parts: object) -> tuple[MemoryRun, Image, Seen]:
    """A run, its layer, and its guests' domains as they were while the workloads ran."""
    run = MemoryRun(overrides=OVERRIDES, parts=parts)
    seen: Seen = {}

    def look(event: Event, run: MemoryRun) -> None:
        if isinstance(event, WorkloadStarted):
            seen.update(run.hypervisor.running)

    run.on.append(look)
    return run, small_layer(run.image, "hello"), seen


async def test_a_guest_with_packages_is_frozen_on_its_layer_and_all_others_on_the_image() -> None:
    run, layer, seen = begun()
    assert (await run.run()).exit_code == ExitCode.PASSED and run.outcomes() == [PASSED]
    assert seen["t1-slow"].image is None and seen["t1-quick"].image is not None
    assert seen["t1-quick"].image.disk == layer.disk
    made = {str(one.manifest["base"]): one.manifest["recipe"]["image"] for one in list_snapshots() if one.manifest}
    assert made == {str(one.disk): one.files["root.raw"].sha256 for one in (run.image, layer)}
    assert "restore" in run.hypervisor.calls


async def test_a_byte_of_the_layer_that_changes_makes_the_cell_invalid_and_names_what_mends_it() -> None:
    run, layer, _ = begun()
    run.on.append(
        lambda event, _run: flip(layer.disk) if isinstance(event, PhaseStarted) and event.phase == "execute" else None
    )
    verdict = await run.run()
    ((outcome, reasons),) = run.outcomes()
    assert outcome == "invalid" and any(f"{layer.id} is damaged" in reason for reason in reasons)
    assert "vmlab image build --force --with hello" in verdict.reason


async def test_the_ordered_disk_has_the_image_and_the_layer() -> None:
    covered: list[Path] = []

    class Disk(GuestDisk):
        async def cover(self, file: Path) -> None:
            covered.append(file)

    run, layer, _ = begun(guest_disk=lambda _folder, _plan: Disk())
    await run.run()
    assert covered == [run.image.disk, layer.disk]


async def test_a_layer_that_has_gone_is_told_and_nothing_runs() -> None:
    run, layer, seen = begun()
    IMAGES.remove(layer.id)
    with pytest.raises(ImageError, match=r"no layer with hello was built \(vmlab image build --with hello\)"):
        await run.run()
    assert not seen


async def test_versions_of_packages_stand_in_the_record_and_other_ones_are_no_part_of_the_run() -> None:
    run, layer, _ = begun()
    base = IMAGES.read(run.image.folder)
    manifest = IMAGES.read(layer.folder)
    (run.image.folder / "manifest.json").write_text(seal({**base, "packages": {"libc6": "2.36", "adduser": "3"}}))
    packages = {"hello": "2.10-3", "libc6": "2.37", "adduser": "3"}
    (layer.folder / "manifest.json").write_text(seal({**manifest, "packages": packages}))
    await run.run()
    events = list(run.events)
    (probed,) = [event for event in events if isinstance(event, HostProbed)]
    assert probed.host["packages"] == {"hello": "2.10-3", "libc6": "2.37"}
    before = MeasuredBefore(events)
    before.demand_same(probed.accelerator, probed.host)
    other = {**probed.host, "packages": {"hello": "2.10-4", "libc6": "2.37"}}
    with pytest.raises(RefusedError, match=r"do not compare: package hello: then 2\.10-3, now 2\.10-4$"):
        before.demand_same(probed.accelerator, other)


@dataclass
class Isolated:
    """In the place of namespaces and a runner: notes which images are held from removal."""

    images: list[Image] = field(default_factory=list)
    held: list[list[bool]] = field(default_factory=list)

    def __call__(
        self, argv: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int], own_network: bool
    ) -> int:
        self.held.append([IMAGES.in_use(one.folder) for one in self.images])
        return 0


def _launched(isolated: Isolated, ensure: Callable[..., Image]) -> list[Event]:
    """With the image that `ensure` finds for packages."""
    parts = launcher.LauncherParts(
        ensure_image=lambda _tell: small_image(), ensure_layer=ensure, isolated=isolated, patience=0.0
    )
    return launched("20261129-150000-two-0003", OVERRIDES, parts)


def test_the_launcher_has_the_layer_built_on_an_image_that_is_held_and_holds_both() -> None:
    isolated = Isolated()

    def ensure(base: Image, packages: tuple[str, ...], tell: Callable[[str], None]) -> Image:
        assert IMAGES.in_use(base.folder)
        tell("building")
        layer = small_layer(base, *packages)
        isolated.images += [base, layer]
        return layer

    ready = [event for event in _launched(isolated, ensure) if isinstance(event, ImageReady)]
    base, layer = isolated.images
    assert [(one.name, one.image, one.how) for one in ready] == [
        ("", base.id, "cached"),
        (layer_name(["hello"]), layer.id, "built"),
    ]
    assert isolated.held == [[True, True]] and not IMAGES.in_use(layer.folder)


def test_a_layer_that_cannot_be_built_is_the_runs_reason_and_nothing_starts() -> None:
    isolated = Isolated()

    def ensure(*_asked: object) -> Image:
        raise ImageError("the configured sources of Debian have no package hello")

    last = _launched(isolated, ensure)[-1]
    assert isinstance(last, RunEnded) and last.exit_code == ExitCode.REFUSED and isolated.held == []
    assert last.reason == "the configured sources of Debian have no package hello"
