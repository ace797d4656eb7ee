"""Each CPU's relative speed, from how long the same work took on it: `speed_probe.c` does it again and again."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from vmlab.model.errors import RefusedError, in_one_line
from vmlab.model.places import cache_folder
from vmlab.system.scratch import scratch
from vmlab.telemetry.cpu_speed import BEST, LABEL, NO_TRACE, SPEED
from vmlab.telemetry.source import NAN
from vmlab.telemetry.told_once import once

_SOURCE = Path(__file__).with_name("speed_probe.c")
_FLAGS = ("-std=gnu11", "-O2", "-pthread")
_SLOT = struct.Struct("@5Q24x")
_MOST_BYTES = 1024 * _SLOT.size
"""A slot for each CPU of a cpu_set_t."""
PERIOD = 0.1
"""Seconds between two probes of a CPU in what is recorded."""
_LONGEST_PERIOD = 0.5
_ATTEMPTS = 5
_COMPILE_SECONDS, _END_SECONDS = 60.0, 5.0
_NORMAL = "the speed trace has no real-time priority here: on busy CPUs it includes waits for them"
_SCALE = 1e12
"""The probe adds up this over the nanoseconds that its work took."""


def speed_probe(folder: Path | None = None) -> Path:
    """The compiled probe, in `folder` (the cache if None); compiled if it is not there, in some 0.2 s.

    Raises OSError with the reason where it cannot be compiled.
    """
    source = _SOURCE.read_bytes()
    flags = " ".join((*_FLAGS, os.uname().machine)).encode()
    program = (folder or cache_folder()).resolve() / f"speed-probe-{hashlib.sha256(source + flags).hexdigest()[:16]}"
    if os.access(program, os.X_OK):
        return program
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("no C compiler is installed, and it takes one once")
    program.parent.mkdir(parents=True, exist_ok=True)
    try:
        with scratch("compiler", program.parent) as place:
            _compile(compiler, place)
            (place / "probe").replace(program)
    except RefusedError as error:
        raise OSError(str(error)) from error
    return program


def _compile(compiler: str, place: Path) -> None:
    """Compile the probe into a folder, where the compiler has its own files, too. Raises OSError."""
    command = [compiler, *_FLAGS, "-o", str(place / "probe"), str(_SOURCE)]
    environment = {**os.environ, "TMPDIR": str(place)}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_COMPILE_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{compiler} took longer than {_COMPILE_SECONDS:g} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        said = next((line for line in lines if "error" in line), lines[0] if lines else f"exit code {done.returncode}")
        raise OSError(f"{compiler} failed: {said}")


def period_to_watch(interval: float) -> float:
    """Seconds between two probes where samples are only shown: two in each of `interval` seconds, or as few as that."""
    return min(_LONGEST_PERIOD, max(PERIOD, interval / 2))


def speed_now(seconds: float) -> tuple[float, float, float]:
    """The CPUs' mean speed in `seconds` from now, in percent of each one's best in that time, and the lowest and
    highest of them; NaN where no probe ended in that time.

    Raises OSError with the reason where there is none.
    """
    told: list[str] = []
    group = CpuSpeed(told.append)
    group.start()
    try:
        time.sleep(seconds)
        values = group.read(seconds, seconds)
    finally:
        group.close()
    if not values:
        raise OSError(told[0].removeprefix(f"{NO_TRACE}: ") if told else "the probe gave no values")
    of_cpus = values[1 : len(values) // 2]
    known = [speed for speed in of_cpus if math.isfinite(speed)]
    return values[0], min(known, default=math.nan), max(known, default=math.nan)


class CpuSpeed:
    """Relative speed of each CPU and their mean, in percent; 100 is the best that CPU had since `start`.
    Each is probed every `period` seconds.

    The speed of CPU c over a tick is the mean of best(c) / t over the probes in it. t is the duration of a probe,
    best(c) the shortest one on c so far, which is a figure too (`BEST`, ms; of the host, the shortest of all), so that
    ticks before a better best can be made relative to it. NaN for a tick without a probe. No figures before `start`,
    nor where the probe cannot be started; then `notify` gets one line, as it does where the probe has no real-time
    priority.
    """

    title = LABEL

    def __init__(
        self, notify: Callable[[str], None], probe: Callable[[], Path] = speed_probe, period: float = PERIOD
    ) -> None:
        self.names: tuple[str, ...] = ()
        self._notify = notify
        self._find = probe
        self._period_ms = round(1000 * period)
        self._process: subprocess.Popen[bytes] | None = None
        self._slots = -1
        self._before: dict[int, tuple[int, int]] = {}
        self._cpus: tuple[int, ...] = ()
        self._tell_once = once(notify)

    def start(self) -> None:
        """Start the probe. It ends with `close`, with the thread that calls this, and with this process."""
        try:
            program = self._find()
            self._slots = os.memfd_create("speed", os.MFD_CLOEXEC)
            self._process = subprocess.Popen(
                [program, str(self._period_ms)],
                stdin=subprocess.PIPE,
                stdout=self._slots,
                stderr=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C on the terminal is for this process alone
            )
        except OSError as error:
            self.close()
            self._notify(f"{NO_TRACE}: {in_one_line(error)}")

    def close(self) -> None:
        """End the probe; a second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_END_SECONDS)
        if self._slots >= 0:
            os.close(self._slots)
            self._slots = -1

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        if self._process is None:
            return [NAN] * len(self.names)
        if (code := self._process.poll()) is not None:
            raise OSError(f"the probe ended with code {code}")
        found: dict[int, float] = {}
        bests: list[float] = []
        for cpu, (_, probes, inverse, best, fifo) in enumerate(self._consistent()):
            if not probes:
                continue
            probes_before, inverse_before = self._before.get(cpu, (0, 0))
            self._before[cpu] = (probes, inverse)
            more = probes - probes_before
            found[cpu] = min(100.0, 100 * best * (inverse - inverse_before) / _SCALE / more) if more > 0 else NAN
            bests.append(best / 1e6)
            if not fifo:
                self._tell_once("priority", _NORMAL)
        if (cpus := tuple(found)) != self._cpus:
            self._cpus = cpus
            self.names = tuple(name + place for name in (SPEED, BEST) for place in ("", *(f"[{cpu}]" for cpu in cpus)))
        if not found:
            return []
        known = [speed for speed in found.values() if speed == speed]
        return [sum(known) / len(known) if known else NAN, *found.values(), min(bests), *bests]

    def _consistent(self) -> list[tuple[int, ...]]:
        """All slots, read again where one was being written."""
        slots: list[tuple[int, ...]] = []
        for _ in range(_ATTEMPTS):
            text = os.pread(self._slots, _MOST_BYTES, 0)
            slots = list(_SLOT.iter_unpack(text[: len(text) // _SLOT.size * _SLOT.size]))
            if all(slot[0] == 2 * slot[1] for slot in slots):
                break
        return slots
