"""The program ``vmlab`` with the real launcher, init and runner processes, and nothing real behind the runner."""

import os
import signal
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from vmlab import __main__
from vmlab.system.terminal import leave_at_once
from vmlab.telemetry.source import Roots

HOST = "FAKED_HOST"
"""Names the folder that stands for the host's /run."""
SIGNAL_IN = "FAKED_SIGNAL_IN"
"""A signal's number and the qualified name of a function: the process sends it to itself when that is called first,
once a command has begun to load."""


def signal_in(number: int, function: str) -> None:
    """Have it sent."""
    loading = False

    def called(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal loading
        name = frame.f_code.co_qualname
        loading = loading or name == "command_line"
        if event == "call" and loading and name == function:
            sys.setprofile(None)
            signal.raise_signal(number)

    sys.setprofile(called)


PATIENCE = "FAKED_PATIENCE"
"""For how many seconds `vmlab stop` waits for a run that hears nothing."""
LAST_WORD = "FAKED_LAST_WORD"
"""For how many seconds a command that follows a run waits for its last event, once the run's processes have ended."""
IMAGE = "FAKED_IMAGE"
"""Names the file that stands for the guests' disk, where a test has one."""
SYS = "FAKED_SYS"
"""Names the folder that stands for the host's /sys, where a test has one."""


MEMORY = "FAKED_MEMORY"
"""Bytes of memory that the host has free, where a test says so; its disk is then large."""


def read_host_facts(folder: Path) -> Any:
    """The host, with the memory that the test gives it."""
    # Imported late: tests of signals need a program that still has to load what it uses.
    hosting: Any = import_module("vmlab.plan.hosting")
    memory = {"memory_available_bytes": int(os.environ[MEMORY]), "memory_total_bytes": 2**34, "neighbours": ()}
    return replace(hosting.read_host_facts(folder), **memory, disk_free_bytes=2**40)


def roots() -> Roots:
    """Where the host's settings are."""
    return Roots(sys=Path(os.environ.get(SYS, "/sys")))


def import_into(module: str, **replaced: object) -> None:
    """Replace what a module has imported."""
    for name, what in replaced.items():
        setattr(import_module(module), name, what)


def main() -> None:
    """Put the fakes in, and run the program."""
    leave_at_once()
    measuring: Any = import_module("vmlab.lab.process.measuring_runs")
    launch: Any = import_module("vmlab.lab.process.launch")
    stopping: Any = import_module("vmlab.lab.commands.stopping")
    measuring.RUN_FOLDERS = (Path(os.environ[HOST]),)
    launch.LAUNCHER = "tests.lab.programs.faked_launcher"
    sweep: Any = import_module("vmlab.lab.process.dead_runs")
    if MEMORY in os.environ:
        import_into("vmlab.lab.provision.host_support", read_host_facts=read_host_facts)
    import_into("vmlab.lab.commands.forced_end", sweep_run=partial(sweep.sweep_run, roots=roots()))
    import_into("vmlab.cli.commands.upkeep_commands", sweep_all=partial(sweep.clean, roots()))
    stopping.ANSWER_SECONDS = stopping.SILENT_SECONDS = float(os.environ.get(PATIENCE, "120"))
    watch: Any = import_module("vmlab.lab.process.event_feed")
    watch._LAST_WORD_SECONDS = float(os.environ.get(LAST_WORD, "10"))
    if SIGNAL_IN in os.environ:
        number, _, function = os.environ[SIGNAL_IN].partition(" ")
        signal_in(int(number), function)
    __main__.main()


if __name__ == "__main__":
    main()
