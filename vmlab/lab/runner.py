"""The runner: a process of its own, inside the lab's namespaces, that holds hypervisor, guests and recorder.

Started by `launcher`, never by hand: ``python -m vmlab.lab.runner RUN``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.guests.channel import START_LINE
from vmlab.guests.held_client import start_line_program
from vmlab.guests.host_shell import HostShell
from vmlab.hypervisor.contract import Hypervisor
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.root_mount import mounted_root
from vmlab.lab.addresses import HOST_ADDRESS
from vmlab.lab.cell import CellRun, CellSurroundings
from vmlab.lab.control import ControlServer
from vmlab.lab.folder import RunFolder
from vmlab.lab.freezer import Freezer
from vmlab.lab.host_facts import host_facts
from vmlab.lab.prepared import PreparedRun, read_prepared
from vmlab.lab.recording import Recording
from vmlab.lab.replan import replanned
from vmlab.model.errors import ExitCode, UsageError, VmlabError
from vmlab.model.event import CellsReplanned, CommandReceived, HostProbed, Notice, RunnerFinished
from vmlab.model.run import Outcome, worst
from vmlab.plan.terms import CellPlan
from vmlab.store.writer import RunWriter
from vmlab.workloads.contract import Shell

_CODES = {
    Outcome.PASSED: ExitCode.PASSED,
    Outcome.INVALID: ExitCode.INVALID,
    Outcome.FAILED: ExitCode.FAILED,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the run ended, and what its caller is told."""

    outcome: Outcome
    exit_code: ExitCode
    reason: str = ""


class Runner:
    """Runs the cells of a plan in order, until the end or a stop."""

    def __init__(self, folder: RunFolder, prepared: PreparedRun, writer: RunWriter, hypervisor: Hypervisor) -> None:
        self._folder = folder
        self._prepared = prepared
        self._writer = writer
        self._hypervisor = hypervisor
        self._cells: asyncio.Task[Outcome] | None = None
        self._interrupted: ExitCode | None = None
        self._closing = contextlib.ExitStack()
        self._host: HostShell | None = None
        self._coming: list[CellPlan] = []
        self._done = 0

    async def run(self) -> Verdict:
        """Run all cells, then close everything; what could not be closed is part of the verdict."""
        verdict = await self._run()
        try:
            self._closing.close()
            await self._hypervisor.close()
        except VmlabError as error:
            reason = "; ".join(filter(None, [verdict.reason, str(error)]))
            return Verdict(verdict.outcome, ExitCode.CLEANUP_INCOMPLETE, reason)
        return verdict

    async def _run(self) -> Verdict:
        control = ControlServer(self._folder.control, self._obey)
        try:
            await control.open()
            await self._hypervisor.open()
            await self._probe()
            self._cells = asyncio.ensure_future(self._run_cells())
            if self._interrupted is not None:
                self._cells.cancel()
            outcome = await self._cells
            return Verdict(outcome, _CODES[outcome])
        except asyncio.CancelledError:
            return Verdict(Outcome.ABORTED, self._interrupted or ExitCode.INTERRUPTED, "stopped")
        except VmlabError as error:
            return Verdict(Outcome.FAILED, error.exit_code, str(error))
        finally:
            await control.close()

    async def _probe(self) -> None:
        accelerator = await self._hypervisor.accelerator()
        host = {**host_facts(self._folder.disks), **await self._hypervisor.facts()}
        self._writer.append(HostProbed(accelerator=accelerator, host=host))

    async def _run_cells(self) -> Outcome:
        outcomes = []
        async with Recording(self._writer, self._hypervisor, self._folder.disks) as recording:
            around = self._surroundings(recording)
            self._coming = list(self._prepared.plan.cells)
            while self._coming:
                cell = self._coming.pop(0)
                self._done = cell.index
                outcomes.append(await CellRun(cell, around).run())
                self._writer.checkpoint()
        return worst(outcomes)

    def _surroundings(self, recording: Recording) -> CellSurroundings:
        return CellSurroundings(
            run=self._folder.id,
            plan=self._prepared.plan,
            hypervisor=self._hypervisor,
            image=self._prepared.image,
            emit=self._writer.append,
            raw=self._writer,
            host_shell=self._host_shell,
            host_mean=recording.figures.mean,
            freezer=self._freezer(),
        )

    def _freezer(self) -> Freezer | None:
        if self._prepared.request.overrides.cold:
            return None
        return Freezer(self._hypervisor, self._prepared.image, self._prepared.plan.seed, self._writer.append)

    def _host_shell(self) -> Shell:
        if self._host is None:
            root = self._closing.enter_context(
                mounted_root(
                    self._prepared.image.disk, self._folder.runtime, self._folder.id, Journal(self._folder.journal)
                )
            )
            self._host = HostShell(root, HOST_ADDRESS)
            self._host.put(START_LINE, start_line_program())
        return self._host

    def _obey(self, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if command == "set":
            return self._set(arguments)
        if command != "stop":
            raise UsageError(f"this runner does not know the command {command!r}")
        code = ExitCode.TERMINATED if arguments.get("signal") == "SIGTERM" else ExitCode.INTERRUPTED
        self.stop(code, str(arguments.get("origin", "vmlab stop")))
        return {}

    def _set(self, arguments: dict[str, Any]) -> dict[str, Any]:
        change: dict[str, Any] = {name: arguments[name] for name in ("cache", "tiles") if name in arguments}
        self._coming = replanned(self._folder, self._coming, change)
        self._writer.append(CommandReceived(command=f"set {change}", origin=str(arguments.get("origin", "vmlab"))))
        self._writer.append(
            CellsReplanned(
                cells=self._done + len(self._coming),
                next_axes=dict(self._coming[0].axes),
                expected_seconds=sum(cell.seconds for cell in self._coming),
            )
        )
        return {"cells": [{"index": cell.index, "axes": cell.axes, "repeat": cell.repeat} for cell in self._coming]}

    def stop(self, code: ExitCode, origin: str) -> None:
        """Stop after clean-up; the second time changes nothing."""
        if self._interrupted is None:
            self._interrupted = code
            self._writer.append(CommandReceived(command="stop", origin=origin))
            if self._cells is not None:
                self._cells.cancel()


def _notices(writer: RunWriter) -> Callable[[str], None]:
    def keep(text: str) -> None:
        writer.append(Notice(level="warning", text=text))

    return keep


async def _main(folder: RunFolder) -> None:
    prepared = read_prepared(folder)
    writer = RunWriter(folder.store)
    hypervisor = EmbeddedHypervisor(
        folder.runtime,
        folder.disks,
        folder.id,
        _notices(writer),
        kernel=prepared.image.kernel,
        journal=Journal(folder.journal),
    )
    runner = Runner(folder, prepared, writer, hypervisor)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, runner.stop, ExitCode.TERMINATED, "SIGTERM")
    loop.add_signal_handler(signal.SIGINT, runner.stop, ExitCode.INTERRUPTED, "SIGINT")
    verdict = await runner.run()
    writer.append(RunnerFinished(outcome=verdict.outcome, exit_code=int(verdict.exit_code), reason=verdict.reason))
    writer.close()


def main() -> None:
    """Entry point of the runner's process."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    folder = RunFolder(sys.argv[1], Path(sys.argv[2]))
    if (pid := os.environ.get("VMLAB_HOST_PID")) is not None:
        folder.note_processes(runner_pid=int(pid))
    asyncio.run(_main(folder))


if __name__ == "__main__":
    main()
