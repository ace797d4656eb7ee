"""The program, as its user drives it in that host; what it says lands in the check's output."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STATE = Path("/var/lib/checks")
"""The state folder of all checks: XDG_STATE_HOME."""

_POLL_SECONDS = 3.0
"""A look at all processes takes a tenth of a second there, which the guests have to go without."""

_ENVIRONMENT = {**os.environ, "XDG_STATE_HOME": str(STATE), "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}


class Failed(Exception):
    """A check did not find what it looked for; the one line says what."""


def require(condition: object, words: str) -> None:
    """Raise Failed with `words` unless `condition` holds."""
    if not condition:
        raise Failed(words)


def tell(words: str) -> None:
    """A line of the check's output."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def completed(*argv: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Run a program of the host to its end, whatever that is."""
    tell(f"$ {' '.join(argv)}")
    done = subprocess.run(
        argv, env=_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=timeout
    )
    tell(done.stdout)
    return done


def command(*argv: str, timeout: float = 120.0) -> str:
    """Run a program of the host; its standard output. Raises Failed when it fails."""
    done = completed(*argv, timeout=timeout)
    require(done.returncode == 0, f"{' '.join(argv)} ended with {done.returncode}: {_first_line(done.stdout)}")
    return done.stdout


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def vmlab(*argv: str, timeout: float = 3600.0) -> str:
    """Run a command of vmlab to its end, which must be a good one; its standard output."""
    return command("vmlab", *argv, timeout=timeout)


def measured(*argv: str) -> dict[str, Any]:
    """`vmlab run` with these words to its end; the run's document, as `passed` wants it."""
    run = started(*argv)
    with stopped(run):
        wait_until(lambda: not processes(run), 3600, "the end of the run")
    return passed(run)


def passed(run: str) -> dict[str, Any]:
    """The document of a run that is over, which must say passed, under KVM."""
    document: dict[str, Any] = json.loads(vmlab("show", run, "--json"))
    told = document["run"]
    reasons = [told["reason"], *(reason for cell in document["cells"] for reason in cell["reasons"])]
    require(told["outcome"] == "passed", f"the run {told['outcome']}: {'; '.join(filter(None, reasons))}")
    require(told["accelerator"] == "kvm", f"accelerator {told['accelerator']}")
    return document


def started(*argv: str) -> str:
    """Start a run that lives on its own; its id."""
    return vmlab("run", *argv, "--allow-noise", "--detach").strip()


def run_folder(run: str) -> Path:
    """Where the run's record is."""
    return STATE / "vmlab" / "runs" / run


@contextlib.contextmanager
def stopped(run: str) -> Iterator[None]:
    """Whatever comes of the block, the run is over afterwards; its log is in the check's output."""
    try:
        yield
    finally:
        if processes(run):
            subprocess.run(["vmlab", "stop", run], env=_ENVIRONMENT, stdin=subprocess.DEVNULL, timeout=400, check=False)
        log = run_folder(run) / "launcher.log"
        tell(log.read_text(errors="replace") if log.exists() else "the run has no log")


def processes(*words: str) -> dict[int, str]:
    """Processes by their pid whose command lines contain all of `words`, which begin with a run or a folder of it."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if all(word in line for word in words):
                found[int(entry.name)] = line
    return found


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Poll until `condition` holds; raises Failed with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < end, f"{what} did not happen within {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
