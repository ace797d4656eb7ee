"""The launcher: builds a missing image, runs the runner in its namespaces, clears up, and writes the last event.

Started by `launch`, never by hand, with the arguments ``RUN FOLDER LOCK_FD MEASURING_FD``. It holds the run's lock and
its place among this host's measuring runs together with init and runner; when it is killed the kernel takes both along.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vmlab.guests import sent_assets
from vmlab.guests.image import added
from vmlab.guests.image.added import AddedImage
from vmlab.guests.image.building import ensure
from vmlab.guests.image.catalog import Image
from vmlab.guests.image.layers import ensure_layer, layer_name
from vmlab.hypervisor.isolation.namespace import run_isolated
from vmlab.hypervisor.lab_network import require_dhcp
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.measuring_runs import leave, measuring_place, note_launcher
from vmlab.lab.process.prepared import boot_image, plan_of, write_beginning, write_image
from vmlab.lab.process.run_ending import Verdict, failure, verdict, with_leftovers, write_run_end
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.lab.process.signals import Stopped, heeded, hold_back
from vmlab.model.errors import ExitCode, RunInterrupted, StoreError, VmlabError, in_one_line
from vmlab.model.event import (
    Event,
    ImageReady,
    Notice,
    RunEnded,
)
from vmlab.model.run import Outcome
from vmlab.model.visible import visible_line
from vmlab.plan.terms import Plan
from vmlab.store.writer import RunWriter
from vmlab.system.descriptors import closed_after
from vmlab.system.held_folder import FolderLostError
from vmlab.system.processes import oom_kills
from vmlab.system.terminal import say
from vmlab.telemetry.source import THE_HOST, Roots

RUNNER = "vmlab.lab.run.runner"


@dataclass(frozen=True, slots=True)
class LauncherParts:
    """The parts that the launcher uses beyond the run's folder; tests may replace them."""

    ensure_image: Callable[[Callable[[str], None]], Image] = ensure
    ensure_layer: Callable[[Image, tuple[str, ...], Callable[[str], None]], Image] = ensure_layer
    isolated: Callable[..., int] = run_isolated
    open_store: Callable[[Path], RunWriter] = RunWriter
    patience: float = 5.0
    """For how many seconds removing or writing is tried again."""
    roots: Roots = THE_HOST
    """The folder of the host's settings."""


REAL = LauncherParts()
"""The parts of every run."""


def _append(folder: RunFolder, launcher_parts: LauncherParts, *events: Event) -> None:
    with contextlib.closing(launcher_parts.open_store(folder.store)) as writer:
        for event in events:
            writer.append(event)


def begin(folder: RunFolder, plan: Plan, launcher_parts: LauncherParts = REAL) -> None:
    """Write the beginning of the record: what will run, from which scenario and request, and what has to be known."""
    with contextlib.closing(launcher_parts.open_store(folder.store)) as writer:
        write_beginning(writer, folder, plan, plan.seconds)


def _image(folder: RunFolder, launcher_parts: LauncherParts) -> Image:
    image = _ready(folder, launcher_parts, launcher_parts.ensure_image)
    write_image(folder, boot_image(image))
    return image


def _layer(folder: RunFolder, launcher_parts: LauncherParts, image: Image, packages: tuple[str, ...]) -> Image:
    ensured = partial(launcher_parts.ensure_layer, image, packages)
    return _ready(folder, launcher_parts, ensured, layer_name(packages))


def _ready(
    folder: RunFolder,
    launcher_parts: LauncherParts,
    ensured: Callable[[Callable[[str], None]], Image],
    name: str = "",
) -> Image:
    """What `ensured` finds or builds, with its event."""
    began = time.monotonic()
    messages: list[str] = []

    def report(text: str) -> None:
        messages.append(text)
        _append(folder, launcher_parts, Notice(level="info", text=text))

    image = ensured(report)
    how, seconds = "built" if messages else "cached", time.monotonic() - began
    _append(folder, launcher_parts, ImageReady(image=image.id, how=how, seconds=seconds, name=name))
    return image


def _added_images(folder: RunFolder, plan: Plan, launcher_parts: LauncherParts) -> list[AddedImage]:
    """The images that users have added and the plan needs, each with its event. Raises RefusedError."""
    images = [added.require(name) for name in plan.added_images]
    if images:
        require_dhcp()
    for image in images:
        _append(folder, launcher_parts, ImageReady(image=image.id, how="added", seconds=0.0, name=image.name))
    return images


def _run_runner(folder: RunFolder, plan: Plan, locks: tuple[int, ...], launcher_parts: LauncherParts) -> str:
    """Run the runner; how it ended, in words for where it left none of its own."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with closed_after(measuring_place()) as place:
        argv = [sys.executable, "-m", RUNNER, folder.id, str(folder.path), str(place)]
        fds, own_network = (*locks, place), not plan.on_hosts_libvirt
        before = oom_kills(launcher_parts.roots.proc)
        status = launcher_parts.isolated(argv, env=environment, pass_fds=fds, own_network=own_network)
        return _end_words(status, oom_kills(launcher_parts.roots.proc) - before)


def _end_words(status: int, starved: int) -> str:
    """How a runner ended that did not say it. A lack of memory is named where the kernel counted a process for it."""
    if status != 128 + signal.SIGKILL:
        return "died unexpectedly"
    if starved <= 0:
        return "was killed by SIGKILL"
    many = "a process" if starved == 1 else f"{starved} processes"
    return f"was killed, probably by the kernel for lack of memory: it killed {many} for that while the run went on"


def launch(folder: RunFolder, lock: int, measuring: int, launcher_parts: LauncherParts = REAL) -> None:
    """Carry out a requested run from beginning to end, or the rest of one that goes on. Always ends with RunEnded,
    unless killed.

    The caller has blocked signals. They are handled here while an image is built; later `run_isolated` forwards them to
    the runner, and clearing up cannot be interrupted.
    """
    left: list[str] = []

    def swept() -> list[str]:
        return [*sweep_run(folder, launcher_parts.patience, roots=launcher_parts.roots), *left]

    try:
        with RuntimeFolder(folder.runtime).held() as second:
            plan = plan_of(folder)
            if not folder.store.exists():
                begin(folder, plan, launcher_parts)
            with contextlib.ExitStack() as holding:
                holding.callback(lambda: left.extend(sent_assets.drop(plan.assets.values())))
                holding.enter_context(sent_assets.held(plan.assets.values()))
                with heeded():
                    own_images = _added_images(folder, plan, launcher_parts)
                    image = _image(folder, launcher_parts)
                holding.enter_context(image.held())
                with heeded():
                    layers = [_layer(folder, launcher_parts, image, packages) for packages in plan.layers]
                for one in (*own_images, *layers):
                    holding.enter_context(one.held())
                with heeded():
                    for one in (image, *own_images, *layers):
                        one.require_whole()
                how = _run_runner(folder, plan, (lock, measuring, second), launcher_parts)
        died = f"the runner {how}; {folder.log} has its last output"
        last = verdict(folder, swept(), Verdict(Outcome.ABORTED, ExitCode.FAILED, died).ended())
    except (RunInterrupted, Stopped) as error:
        stopped = Verdict(Outcome.ABORTED, error.exit_code, "stopped before any guest")
        last = with_leftovers(stopped.ended(), swept())
    except (VmlabError, OSError) as error:
        last = with_leftovers(failure(error).ended(), swept())
    _say(folder, last, launcher_parts)


def _say(folder: RunFolder, last: RunEnded, launcher_parts: LauncherParts) -> None:
    """The last event is tried several times: a full disk may have room again when other programs end."""
    end = time.monotonic() + launcher_parts.patience
    while True:
        try:
            write_run_end(folder, last, launcher_parts.open_store)
            return
        except StoreError as error:
            if isinstance(error, FolderLostError) or time.monotonic() > end:
                # Readers show a run without a last event as aborted; the cause is in its log.
                say(f"vmlab: {visible_line(str(error))}")
                return
        time.sleep(0.1)


def main(launcher_parts: LauncherParts = REAL) -> None:
    """Entry point of the launcher's process."""
    hold_back()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    folder = RunFolder(sys.argv[1], Path(sys.argv[2]))
    lock, measuring = int(sys.argv[3]), int(sys.argv[4])
    try:
        folder.hold()
        folder.note_processes(launcher_pid=os.getpid())
        note_launcher(measuring)
        launch(folder, lock, measuring, launcher_parts)
    except (StoreError, OSError) as error:
        say(f"vmlab: {visible_line(in_one_line(error))}")
        sys.exit(ExitCode.FAILED)
    finally:
        leave(folder.id)


if __name__ == "__main__":
    main()
