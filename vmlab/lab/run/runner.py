"""The runner: a process of its own, inside the lab's namespaces, that holds hypervisor, guests and recorder.

Started by `launcher`, never by hand: ``python -m vmlab.lab.run.runner RUN FOLDER MEASURING_PLACE_FD``.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from vmlab.guests.image.catalog import load as load_image
from vmlab.hypervisor.isolation.host_cgroups import OrderedHost
from vmlab.hypervisor.isolation.namespace import host_pids, host_proc
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.lab.cell.common_start import HostsStart
from vmlab.lab.cell.cpu_floor import CpuFloor
from vmlab.lab.cell.live_switch import HostKsm
from vmlab.lab.cell.surroundings import CellHost, CellSurroundings, GuestOrigins
from vmlab.lab.commands.coming_cells import ComingCells, widened
from vmlab.lab.commands.command_server import ControlServer
from vmlab.lab.commands.released_cells import ReleasedCells
from vmlab.lab.commands.verbs import Obeying, SharedStart
from vmlab.lab.process.measuring_runs import MeasuringRun, others_measuring
from vmlab.lab.process.prepared import PreparedRun, boot_image, read_prepared
from vmlab.lab.process.run_ending import CODES, Verdict, failure
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.signals import STOPPING, released
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.lab.run.attempts import Attempts, MeasuredBefore
from vmlab.lab.run.cell_run import CellRun
from vmlab.lab.run.host_facts import facts_of_run, unfixed_speed
from vmlab.lab.run.other_runs import noted_others
from vmlab.lab.run.parts import REAL, HostPlaces, RunnerParts, disk_places, lower_weight, ordered_host, standstills
from vmlab.lab.run.recording import HostRecording
from vmlab.lab.run.repeating import Repeating
from vmlab.model.cell_event import WorkloadProgressed
from vmlab.model.concurrency import run_with_alarm, shielded
from vmlab.model.errors import ExitCode, HypervisorError, StoreError, UsageError, VmlabError, in_one_line
from vmlab.model.event import (
    CommandReceived,
    Event,
    HostProbed,
    Notice,
)
from vmlab.model.run import Outcome
from vmlab.model.scenarios.host_settings import HostSettings
from vmlab.plan.terms import CellPlan
from vmlab.store.kept_file import CpuNeeds, needs_file
from vmlab.store.outbox import Outbox
from vmlab.store.reader import RunReader

_LOOK = 120.0


@dataclass(eq=False)
class Runner(Obeying):
    """Runs the cells of a plan in order, until the end or a stop, or until the store cannot be written any more."""

    _folder: RunFolder
    _prepared: PreparedRun
    _outbox: Outbox
    _hypervisor: Hypervisor
    _parts: RunnerParts = REAL
    _ordered: OrderedHost | None = None
    _others: Callable[[], Sequence[MeasuringRun]] = tuple
    """Gives the runs that measure on this host at the same time."""
    recorded: Sequence[Event] = ()
    """The record so far."""
    _work: asyncio.Task[None] | None = field(default=None, init=False)
    _interrupted: ExitCode | None = field(default=None, init=False)
    _ended_early: str = field(default="", init=False)
    _cpu_floor: CpuFloor | None = field(default=None, init=False)
    _cell: CellRun | None = field(default=None, init=False)
    _hosts_start: HostsStart | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        folder, plan, held = self._folder, self._prepared.plan, self._prepared.request.held
        self._places = HostPlaces(folder, self._prepared.image, self._parts)
        self._before = MeasuredBefore(self.recorded)
        # The cells of a held run are those that are released, and no others.
        self._attempts = Attempts(plan if held is None else replace(plan, again=0))
        due = self._attempts.take(self._before.timeline)
        self._begun = list(self._attempts.begun(plan.cells))
        to_come = [cell for cell in plan.cells if cell not in self._begun]
        self.coming = ComingCells(folder, to_come, self._outbox.append, self._before.timeline.cells)
        for further in due:
            self.coming.again(further.cell, at_end=further.at_end)
        self._repeating = Repeating(plan, folder.store)
        self._released = None if held is None else ReleasedCells(held)
        self._disk = self._parts.guest_disk(folder, plan)
        self._settings = self._parts.settings_keeper(folder, _notices(self._outbox, "info"), _notices(self._outbox))

    async def run(self) -> Verdict:
        """Run all cells, then close everything; the verdict names what could not be closed.

        The launcher checks whether something is left, after this process and its namespaces have ended.
        """
        verdict = await self._run()
        left = []
        for close in (self._places.close, self._put_back_settings, self._disk.close, self._hypervisor.close):
            try:
                await close()
            except (VmlabError, OSError) as error:
                left.append(in_one_line(error))
        return replace(verdict, reason="; ".join(filter(None, [verdict.reason, *left])))

    async def _put_back_settings(self) -> None:
        self._settings.put_back()

    async def _run(self) -> Verdict:
        control = ControlServer(self._folder.control, self.obey)
        try:
            await control.open()
            if self._interrupted is not None:
                return self._stopped()
            self._work = asyncio.ensure_future(self._until_overdue())
            await self._work
            outcome, lacking = self._attempts.verdict()
            if self._ended_early and outcome is Outcome.INCOMPLETE:
                outcome = Outcome.INVALID
            if self._repeating.short and outcome is Outcome.PASSED:
                outcome = Outcome.INCOMPLETE
            reasons = filter(None, [self._ended_early, lacking, self._repeating.short])
            return Verdict(outcome, CODES[outcome], "; ".join(reasons))
        except asyncio.CancelledError:
            return self._stopped()
        except (VmlabError, OSError) as error:
            return failure(error)
        finally:
            await control.close()

    def _stopped(self) -> Verdict:
        return Verdict(Outcome.ABORTED, self._interrupted or ExitCode.INTERRUPTED, "stopped")

    async def _until_overdue(self) -> None:
        await run_with_alarm(self._outbox.overdue(), self._open_and_run())

    async def _open_and_run(self) -> None:
        # Close only when opening has finished or failed, and no call for the hypervisor's facts is running.
        await shielded(self._hypervisor.open())
        layers = [layer.disk for layer in self._prepared.layers.values()]
        opening = shielded(self._disk.begin([self._prepared.image.disk, *layers], _notices(self._outbox, "info")))
        for done in await asyncio.gather(opening, self._ask_hypervisor(), return_exceptions=True):
            if isinstance(done, BaseException):
                raise done
        await self._probe()
        await self._run_cells()

    async def _ask_hypervisor(self) -> None:
        """Have it find out what it keeps, which may take seconds."""
        await self._hypervisor.accelerator()
        await shielded(self._hypervisor.facts())

    async def _probe(self) -> None:
        accelerator = await self._hypervisor.accelerator()
        host = facts_of_run(self._folder.disks, self._prepared.plan.scenario.host, self._prepared.layers.values())
        host |= await shielded(self._hypervisor.facts())
        beside = self._parts.neighbours()
        host["neighbours"] = [one._asdict() for one in beside]
        self._before.demand_same(accelerator, host)
        self._outbox.append(HostProbed(accelerator=accelerator, host=host))
        self._cpu_floor = CpuFloor(CpuNeeds(needs_file()), accelerator, host, _notices(self._outbox, "info"))
        if self._before.goes_on:
            self.coming.tell()
        plan = self._prepared.plan
        if beside and not plan.scenario.allow.equal_weight and not plan.on_hosts_libvirt:
            self._lower_weight()
        if (text := unfixed_speed(host)) is not None:
            self._outbox.append(Notice(level="warning", text=text))

    def _lower_weight(self) -> None:
        """Have less CPU weight than guests of the host's own, as the plan says; where that is not possible, say so."""
        try:
            why = "" if lower_weight(self._folder) else "no cgroup is the lab's alone"
        except OSError as error:
            why = in_one_line(error)
        if why:
            text = f"the lab keeps the CPU weight of the host's own guests: {why}"
            self._outbox.append(Notice(level="warning", text=text))

    async def _run_cells(self) -> None:
        if self._enough_before():
            return
        timing = self._parts.timing
        ordered = None if self._ordered is None else self._ordered.files()
        folders = await call("looking for the guests' disks", _LOOK, disk_places, self._folder, self._prepared.plan)
        recorded = self._parts.recording(self._outbox, self._hypervisor, folders, timing, self._disk.pid, ordered)
        async with recorded as recording:
            image = load_image(self._prepared.image.disk.parent)
            integrity = Integrity(image, self._outbox.append, self._prepared.more_images)
            around = self._surroundings(recording, integrity, folders)
            while (cell := await self._next_cell()) is not None:
                self._hosts_start = self._start_of(cell)
                self._cell = CellRun(cell, around, self._hosts_start)
                try:
                    outcome = await self._ran(cell.host, self._cell)
                    further = self._attempts.ended(cell, outcome, disturbed=self._cell.disturbed)
                finally:
                    self._cell = self._hosts_start = None
                if further is not None:
                    self.coming.again(further.cell, at_end=further.at_end)
                await self._outbox.settled()
                if self._disk.dead:
                    # It may have died after the figures were taken: then no cell has failed, but the run has.
                    await self._disk.until_dead()
                if self._released is None and self._enough(cell.repeat):
                    break
                if integrity.image_fault is not None:
                    self._ended_early = integrity.image_fault
                    break

    async def _ran(self, settings: HostSettings, cell: CellRun) -> Outcome:
        """The outcome of a cell, which has failed where the host does not take its settings."""
        try:
            self._settings.apply(settings)
        except HypervisorError as error:
            return cell.refused(in_one_line(error))
        return await cell.run()

    def _enough_before(self) -> bool:
        """Whether the cells that are recorded are enough."""
        for event in self._before.events:
            self._repeating.hear(event)
        return self._before.decided or (bool(self._begun) and self._enough(self._begun[-1].repeat))

    async def _next_cell(self) -> CellPlan | None:
        """The next cell; of a held run, once it is released."""
        if self._released is None:
            return self.coming.take()
        number = await self._released.next()
        self._ended_early = self._released.overdue
        return None if number is None else self.coming.take_numbered(number)

    def _start_of(self, cell: CellPlan) -> HostsStart | None:
        """That of a cell which starts when other hosts do."""
        if self._released is None or not self._released.is_together(cell.index):
            return None
        return HostsStart(cell.index, self._emit, self._released.patiently)

    def _emit(self, event: Event) -> None:
        self._outbox.append(event)
        self._repeating.hear(event)

    def _enough(self, repeat: int) -> bool:
        """Whether the run ends with this repeat, which is then recorded."""
        events = [] if self.coming.has(repeat) else self._repeating.ended_by(repeat)
        for event in events:
            self._outbox.append(event)
        return bool(events)

    def _surroundings(
        self, recording: HostRecording, integrity: Integrity, folders: Sequence[Path]
    ) -> CellSurroundings:
        ordered_memory = self._prepared.plan.scenario.host.memory_bytes is not None
        return CellSurroundings(
            run=self._folder.id,
            plan=self._prepared.plan,
            hypervisor=self._hypervisor,
            emit=self._emit,
            raw=self._outbox,
            host=CellHost(
                tiles=self._places.tiles,
                far=self._places.far,
                bare=self._places.bare,
                mean=recording.figures.mean,
                extremes=recording.figures.extremes,
                read_at=recording.read_at,
                settings=self._settings.in_force,
                counters=self._parts.host_counters,
                standstills=partial(standstills, folders, self._hypervisor),
                disk=self._disk,
                ksm=HostKsm(self._settings, self._others, ordered_memory),
            ),
            guests=GuestOrigins(
                image=self._prepared.image,
                connect=self._parts.connect,
                log_in=self._parts.log_in,
                added=self._prepared.added,
                layers={packages: boot_image(one) for packages, one in self._prepared.layers.items()},
                snapshot_provider=self._snapshot_provider(integrity),
                integrity=integrity,
            ),
            timing=self._parts.timing,
            cpu_floor=self._cpu_floor,
            why_called_off=self._why_called_off,
            widened=partial(widened, self._folder),
        )

    def _why_called_off(self) -> str:
        trouble = self._outbox.trouble()
        return "stopped" if self._interrupted is not None or trouble is None else in_one_line(trouble)

    def _snapshot_provider(self, integrity: Integrity) -> SnapshotProvider | None:
        if self._prepared.plan.cold:
            return None
        seed = self._prepared.plan.seed
        emit, timing = self._outbox.append, self._parts.timing
        helper = self._prepared.plan.scenario.helper
        return SnapshotProvider(self._hypervisor, self._prepared.image, seed, emit, integrity, timing, helper=helper)

    def demand_changeable(self) -> None:
        if self._prepared.plan.control:
            raise UsageError("a control run has one configuration on both sides, and keeps it")

    def held_cells(self) -> ReleasedCells:
        return super().held_cells() if self._released is None else self._released

    def shared_start(self) -> SharedStart:
        self.held_cells()
        return super().shared_start() if self._hosts_start is None else self._hosts_start

    async def change_now(self, what: str, value: str | int, origin: str) -> Mapping[str, Any]:
        if self._cell is None:
            return await super().change_now(what, value, origin)
        return await self._cell.change(what, value, origin)

    def stop(self, code: ExitCode, origin: str) -> None:
        """Stop, with clean-up; a second call changes nothing."""
        if self._interrupted is None:
            self._interrupted = code
            self._outbox.append(CommandReceived(command="stop", origin=origin))
            if self._work is not None:
                self._work.cancel()


def _notices(outbox: Outbox, level: str = "warning") -> Callable[[str], None]:
    def keep(text: str) -> None:
        outbox.append(Notice(level=level, text=text))

    return keep


async def run_in(folder: RunFolder, place: int, parts: RunnerParts = REAL) -> None:
    """Run what the launcher prepared in `folder`, and write the verdict to its store. Handles SIGTERM and SIGINT.

    `place` is from `measuring.measuring_place`. Raises StoreError where the verdict cannot be written.
    """
    writer = parts.open_store(folder.store)
    outbox = Outbox(writer, patience=parts.timing.store, hang=parts.timing.store_hang)
    try:
        verdict = await _ran(folder, place, parts, outbox)
    except (VmlabError, OSError) as error:
        verdict = failure(error)
    outbox.append(verdict.finished())
    try:
        await asyncio.to_thread(outbox.close, parts.timing.store)
    finally:
        writer.close()


async def _ran(folder: RunFolder, place: int, parts: RunnerParts, outbox: Outbox) -> Verdict:
    prepared = read_prepared(folder)
    ordered = ordered_host(folder, prepared.plan)
    hypervisor = parts.hypervisor(folder, prepared.plan, prepared.image, _notices(outbox), ordered)
    others = partial(others_measuring, place, folder.id)
    with RunReader(folder.store) as reader:
        recorded = [event for _, event in reader.events() if not isinstance(event, WorkloadProgressed)]
    runner = Runner(folder, prepared, outbox, hypervisor, parts, ordered, others, recorded)
    loop = asyncio.get_running_loop()
    for number in STOPPING:
        loop.add_signal_handler(number, runner.stop, ExitCode.of_signal(number), signal.Signals(number).name)
    released()
    async with noted_others(place, folder.id, outbox.append):
        return await runner.run()


def main(parts: RunnerParts = REAL) -> None:
    """Entry point of the runner's process."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    folder = RunFolder(sys.argv[1], Path(sys.argv[2]))
    try:
        # In mount namespaces of its own it would not see that the host has unmounted the file system.
        host = host_pids()
        folder.hold(runtime=True, root=Path("/") if host is None else host_proc() / str(host.launcher) / "root")
        if host is not None:
            folder.note_processes(runner_pid=host.runner)
        asyncio.run(run_in(folder, int(sys.argv[3]), parts))
    except StoreError as error:
        sys.exit(f"vmlab: {error}")


if __name__ == "__main__":
    main()
