"""The controller: the process of a run of a fleet, which viewers watch and stop as they do any other run.

Started by `starting`, never by hand: ``python -m vmlab.fleet.controller RUN FOLDER``, with the run's lock inherited.
It measures nothing and makes nothing on its own host but the run's record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.fleet.asset_files import AssetFiles
from vmlab.fleet.fleet_host import Connect, FleetHost, HostRequest
from vmlab.fleet.fleet_run import FleetRun
from vmlab.fleet.hosts_file import FleetRequest, read_fleet_request
from vmlab.fleet.link import HostLink
from vmlab.fleet.placed_units import CellBook, groups_of, units_of
from vmlab.fleet.together import TogetherRun
from vmlab.lab.commands.coming_cells import ComingCells
from vmlab.lab.commands.command_server import ControlServer
from vmlab.lab.commands.verbs import Obeying
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.prepared import RunRequest, plan_of, write_beginning
from vmlab.lab.process.run_ending import Verdict, failure, with_leftovers, write_run_end
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.lab.process.signals import STOPPING, hold_back, released
from vmlab.model.cell_event import WorkloadProgressed
from vmlab.model.concurrency import run_with_alarm
from vmlab.model.errors import ExitCode, StoreError, UsageError, VmlabError, in_one_line
from vmlab.model.event import (
    CellWithdrawn,
    CommandReceived,
    Event,
    Notice,
)
from vmlab.model.jsonable import jsonable
from vmlab.model.run import Outcome
from vmlab.model.visible import visible_line
from vmlab.store.reader import RunReader
from vmlab.store.writer import FleetWriter, Source
from vmlab.system.held_folder import until_lost
from vmlab.system.terminal import say


class Controller(Obeying):
    """Begins the record, or goes on with that of a controller that was killed, and runs the fleet."""

    def __init__(self, folder: RunFolder, connect: Connect = HostLink.open) -> None:
        self._folder = folder
        self._connect = connect
        self._request: FleetRequest = read_fleet_request(folder)
        self._plan = plan_of(folder)
        self._work: asyncio.Task[Verdict] | None = None
        self._stopped: ExitCode | None = None

    async def run(self) -> Verdict:
        """Run to the end or to a stop."""
        writer = self._writer = FleetWriter(self._folder.store)
        self.coming = ComingCells(self._folder, (), writer.append)
        try:
            book, before, recorded = self._record()
            control = ControlServer(self._folder.control, self.obey)
            await control.open()
            try:
                fleet = self._fleet(book, before, recorded)
                self._work = asyncio.ensure_future(run_with_alarm(until_lost(), fleet.run()))
                if self._stopped is not None:
                    self._work.cancel()
                verdict = await self._work
            except asyncio.CancelledError:
                verdict = Verdict(Outcome.ABORTED, self._stopped or ExitCode.INTERRUPTED, "stopped")
            except (VmlabError, OSError) as error:
                verdict = failure(error)
            finally:
                await control.close()
            writer.append(verdict.finished())
            return verdict
        finally:
            writer.close()

    def _record(self) -> tuple[CellBook, dict[str, Source], list[Event]]:
        """What was recorded so far: cells, the hosts' runs, and events. Begins the record where there is none."""
        with RunReader(self._folder.store) as reader:
            events = [event for _, event in reader.events() if not isinstance(event, WorkloadProgressed)]
        if not events:
            asked, plan = self._request, self._plan
            seconds = plan.seconds if asked.in_turn else plan.seconds / len(asked.hosts)
            write_beginning(self._writer, self._folder, plan, seconds)
            if asked.in_turn:
                self._writer.append(Notice(level="info", text="hosts take turns: one cell at a time on all of them"))
            return CellBook(), {}, []
        self._writer.append(Notice(level="warning", text="the controller was gone, and goes on from what is recorded"))
        withdrawn = Counter(event.cell for event in events if isinstance(event, CellWithdrawn))
        book = CellBook.of(RunTimeline.of(events), withdrawn.elements())
        return book, {source.host: source for source in self._writer.sources()}, events

    def _fleet(self, book: CellBook, before: Mapping[str, Source], recorded: Sequence[Event]) -> FleetRun:
        request, cells, asked = RunRequest.of(self._folder), self._plan.cells, self._request
        wanted = HostRequest(
            source=request.source,
            text=self._folder.scenario.read_text(encoding="utf-8"),
            overrides=jsonable(request.overrides),
            cells=[(cell.index, dict(cell.axes), cell.repeat) for cell in cells],
            asked=asked,
            assets=AssetFiles(self._folder, self._plan.assets.values()),
        )
        fleet = (
            TogetherRun(groups_of(cells), self._writer, book, asked, before, self._plan, recorded)
            if asked.together
            else FleetRun(units_of(cells, spread=asked.spread), self._writer, book, asked, before)
        )
        for name, entry in asked.hosts.items():
            fleet.add_host(FleetHost(name, entry, wanted, self._writer, fleet.on_event, self._connect))
        return fleet

    def demand_changeable(self) -> None:
        raise UsageError("the cells of a fleet's run stay as they are planned")

    def stop(self, code: ExitCode, origin: str) -> None:
        """Stop, and leave the hosts clean; a second call changes nothing."""
        if self._stopped is None:
            self._stopped = code
            self._writer.append(CommandReceived(command="stop", origin=origin))
            if self._work is not None:
                self._work.cancel()


async def _run(folder: RunFolder) -> Verdict:
    controller = Controller(folder)
    loop = asyncio.get_running_loop()
    for number in STOPPING:
        loop.add_signal_handler(number, controller.stop, ExitCode.of_signal(number), signal.Signals(number).name)
    released()
    return await controller.run()


def carry_out(folder: RunFolder) -> None:
    """The whole run, to its last event. Always ends with RunEnded, unless killed or the store cannot be written."""
    # The store is made first, so that viewers and the record find it.
    FleetWriter(folder.store).close()
    try:
        with RuntimeFolder(folder.runtime).held():
            verdict = asyncio.run(_run(folder))
    except (VmlabError, OSError) as error:
        verdict = failure(error)
    write_run_end(folder, with_leftovers(verdict.ended(), sweep_run(folder)))


def main() -> None:
    """Entry point of the controller's process."""
    hold_back()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    folder = RunFolder(sys.argv[1], Path(sys.argv[2]))
    try:
        folder.hold()
        folder.note_processes(launcher_pid=os.getpid())
        with contextlib.suppress(KeyboardInterrupt):
            carry_out(folder)
    except (StoreError, OSError) as error:
        say(f"vmlab: {visible_line(in_one_line(error))}")
        sys.exit(ExitCode.FAILED)


if __name__ == "__main__":
    main()
