"""Runs one step of a build so that nothing of it outlives the build: no process, no mount."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import psutil

from vmlab.guests.cached.collection import Notice
from vmlab.guests.cached.locks import Lock, wait_for
from vmlab.integrity.long_work import LongWork, checked_by, current
from vmlab.model.errors import ExitCode, ImageError, RunInterrupted
from vmlab.system.processes import signal_process

_POLL = 0.1
_FULL = "E: full: "
"""Begins the line in which a step says what became full, where that is no file system of this host's."""
_CONTAINED = (
    # The kernel kills `unshare` when this process dies, and everything in the namespace when `unshare` does;
    # mounts of the step are of its own mount namespace and go with it.
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)
STEP_TOOLS = {"setpriv": "util-linux", "unshare": "util-linux"}
"""Debian's packages with the programs that every step takes."""


def wait_alone(lock: Path, busy: str, progress: Notice, work: LongWork) -> Lock:
    """Wait for a lock as long as it takes, unless the work is to end; `busy` is said where another has it."""
    return wait_for(lock, every=0.2, busy=lambda: progress(f"{busy}; waiting for it"), each=work.step)


class _Stop:
    """Whether `what`, such as "the image build", was asked to stop; signals are noted, and handled between steps."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.signal: int | None = None

    def note(self, number: int, _frame: FrameType | None) -> None:
        """A signal handler."""
        self.signal = number

    def check(self) -> None:
        """Raises RunInterrupted, with the signal's exit code, if a signal has come."""
        if self.signal is not None:
            error = RunInterrupted(f"{self.what} was interrupted; nothing of it is left")
            error.exit_code = ExitCode.of_signal(self.signal)
            raise error


@contextmanager
def stoppable(what: str) -> Iterator[LongWork]:
    """The current work, which Ctrl-C, SIGTERM and SIGHUP end with RunInterrupted while the context lasts, where it runs
    in the main thread; `what` is interrupted then. A signal that is ignored, as SIGHUP after `nohup`, stays so.
    """
    stop = _Stop(what)
    if threading.current_thread() is not threading.main_thread():
        yield current()
        return
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop.note) for number in heard}
    try:
        with checked_by(stop.check) as work:
            yield work
        late = stop.signal
    except BaseException:
        late = None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if late is not None:
        # The signal came when the image was finished already: raise it again for the next handler.
        signal.raise_signal(late)


def run_step(
    argv: list[str],
    log: Path,
    work: LongWork,
    *,
    said: Callable[[str], None] = lambda _line: None,
    each: Callable[[], object] = lambda: None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a program to its end, in namespaces of its own; its output is appended to `log` and given to `said` by line.

    `each` is called ten times a second meanwhile. Raises ImageError with its last output when it fails, and what `work`
    raises; in both cases none of its processes is left.
    """
    with log.open("ab") as writer, log.open("rb") as reader:
        reader.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            [*_CONTAINED, *argv],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        try:
            while process.poll() is None:
                work.step()
                each()
                _relay(reader.readlines(), said)
                time.sleep(_POLL)
        finally:
            _end(process)
        lines = reader.readlines()
        _relay(lines, said)
    work.step()
    if process.returncode != 0:
        program = argv[1] if argv[0] == "sh" else argv[0]
        raise ImageError(_failure(Path(program).name, process.returncode, log))


def _relay(lines: list[bytes], said: Callable[[str], None]) -> None:
    for line in lines:
        said(line.decode("utf-8", "replace").rstrip())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the namespace's first process; `unshare` ends when the kernel has reaped everything in there."""
    if process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children():
                signal_process(child.pid, signal.SIGKILL, partial(_is_child, child, process.pid))
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _is_child(child: psutil.Process, parent: int, _words: bytes) -> bool:
    """Checked with a pidfd open: the pid may belong to another process since it was listed."""
    try:
        return child.is_running() and child.ppid() == parent
    except psutil.NoSuchProcess:
        return False


def _failure(program: str, status: int, log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    full = next((line.removeprefix(_FULL) for line in lines if line.startswith(_FULL)), "")
    if not full and ("No space left on device" in text or "Disk quota exceeded" in text):
        full = f"this host's file system of {log.parent.parent}"
    if full:
        return f"{full[:300]} became full while the guest image was built"
    errors = [line for line in lines if line.startswith(("E: ", f"{program}: "))]
    last = (errors or lines or [f"exit status {status}"])[-1 if not errors else 0]
    return f"{program} failed: {last.removeprefix('E: ')[:300]}"
