"""The launcher: builds a missing image, runs the runner in its namespaces, clears up behind it, has the last word.

Started by `launch`, never by hand: ``python -m vmlab.lab.launcher RUN FOLDER LOCK_FD``. It holds the run's lock
together with init and runner; when it is killed the kernel takes both along.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from vmlab.guests.image import Image, ensure, hold
from vmlab.hypervisor.contract import BootImage
from vmlab.hypervisor.namespace import run_isolated
from vmlab.lab.folder import RunFolder, RunRequest
from vmlab.lab.prepared import plan_of, write_image
from vmlab.lab.sweep import sweep_run
from vmlab.model.errors import ExitCode, VmlabError
from vmlab.model.event import Event, ImageReady, Notice, RunEnded, RunnerFinished, RunStarted
from vmlab.model.run import Outcome
from vmlab.plan.planning import Plan
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter


class _Terminated(BaseException):
    """SIGTERM or SIGINT while no runner is there to stop."""

    def __init__(self, number: int) -> None:
        self.exit_code = ExitCode.TERMINATED if number == signal.SIGTERM else ExitCode.INTERRUPTED


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated(number)


def _append(folder: RunFolder, *events: Event) -> None:
    writer = RunWriter(folder.store)
    for event in events:
        writer.append(event)
    writer.close()


def _begin(folder: RunFolder, plan: Plan) -> None:
    request = RunRequest.from_json(folder.request.read_text())
    writer = RunWriter(folder.store)
    writer.append(
        RunStarted(
            run=folder.id,
            scenario=plan.scenario.name,
            size=plan.size,
            seed=plan.seed,
            cells=len(plan.cells),
            expected_seconds=plan.seconds,
        )
    )
    writer.document("scenario", plan.scenario.model_dump_json(by_alias=True))
    writer.document("scenario.yaml", folder.scenario.read_text(encoding="utf-8"))
    writer.document("request", request.to_json())
    for note in plan.notes:
        writer.append(Notice(level="warning", text=note))
    writer.close()


def _image(folder: RunFolder) -> Image:
    began = time.monotonic()
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        _append(folder, Notice(level="info", text=text))

    image = ensure(tell)
    how = "built" if said else "cached"
    _append(folder, ImageReady(image=image.id, how=how, seconds=time.monotonic() - began))
    write_image(
        folder,
        BootImage(disk=image.disk, kernel=image.kernel, initrd=image.initrd, command_line=image.command_line),
    )
    return image


def _run_runner(folder: RunFolder, lock: int) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    argv = [sys.executable, "-m", "vmlab.lab.runner", folder.id, str(folder.path)]
    run_isolated(argv, env=environment, pass_fds=(lock,))


def _last_word(folder: RunFolder, left: list[str]) -> RunEnded:
    finished = None
    for _, event in RunReader(folder.store).events():
        if isinstance(event, RunnerFinished):
            finished = event
    if finished is None:
        ended = RunEnded(
            outcome=Outcome.ABORTED,
            exit_code=int(ExitCode.FAILED),
            reason=f"the runner died before its end; {folder.log} has its last words",
        )
    else:
        ended = RunEnded(outcome=finished.outcome, exit_code=finished.exit_code, reason=finished.reason)
    if left:
        reason = "; ".join(filter(None, [ended.reason, "left behind: " + ", ".join(left)]))
        return RunEnded(outcome=ended.outcome, exit_code=int(ExitCode.CLEANUP_INCOMPLETE), reason=reason)
    return ended


def launch(folder: RunFolder, lock: int) -> None:
    """The whole life of a run, after it was asked for. Always ends with RunEnded, unless killed."""
    try:
        _begin(folder, plan_of(folder))
        image = _image(folder)
        with hold(image):
            # From here on signals are the runner's: run_isolated hands them on, and clearing up is not to be stopped.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            _run_runner(folder, lock)
        ended = _last_word(folder, sweep_run(folder))
    except VmlabError as error:
        sweep_run(folder)
        ended = RunEnded(outcome=Outcome.FAILED, exit_code=int(error.exit_code), reason=str(error))
    except _Terminated as error:
        sweep_run(folder)
        ended = RunEnded(outcome=Outcome.ABORTED, exit_code=int(error.exit_code), reason="stopped before any guest")
    _append(folder, ended)


def main() -> None:
    """Entry point of the launcher's process."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _terminate)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    folder = RunFolder(sys.argv[1], Path(sys.argv[2]))
    folder.note_processes(launcher_pid=os.getpid())
    launch(folder, int(sys.argv[3]))


if __name__ == "__main__":
    main()
