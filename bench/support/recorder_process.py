"""The recorder as a process of its own: ``python -m bench.support.recorder_process INTERVAL STORE GUESTS``.

Its guests are synthetic: figures of the form that libvirt's bulk call gives, and idle processes of QEMU's name and as
many threads. The watch of what carries a figure runs beside it, as while workloads run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.telemetry.guest_readings import GuestAnswer, Timed
from vmlab.telemetry.guests import Deliver
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.standstill import StandstillWatch

_THREADS = 6
"""Of a QEMU with two virtual CPUs and an iothread."""
_IDLE = (
    f"import threading as t, time; [t.Thread(target=time.sleep, args=(1e6,)).start() for _ in range({_THREADS - 1})]"
)


class SyntheticGuests:
    """Grows counters by as much each time as a guest at half load might."""

    def __init__(self, count: int, names: Sequence[str] | None = None) -> None:
        self.names = names or [f"guest-{number}" for number in range(count)]
        self._count = count
        self._asked = 0

    def __call__(self) -> dict[str, dict[str, int]]:
        """Fresh dictionaries of 52 entries each, as libvirt-python makes them."""
        self._asked += 1
        return {f"guest-{number}": self._one(number, self._asked) for number in range(self._count)}

    def tell(self, deliver: Deliver, whole: bool) -> None:
        """Answer as the hypervisor does."""
        asked, found = time.monotonic(), dict(zip(self.names, self().values(), strict=True))
        timed = Timed(asked, time.monotonic(), found)
        deliver(GuestAnswer(timed, timed))

    @staticmethod
    def _one(number: int, asked: int) -> dict[str, int]:
        grown = asked * (1_000_003 + number)
        vcpu = {f"vcpu.0.{key}": grown for key in ("state", "time", "wait", "delay", "halted", "exits")}
        net = {f"net.0.{way}.{key}": grown + 17 for way in ("rx", "tx") for key in ("bytes", "pkts", "errs", "drop")}
        block = {f"block.0.{way}.{key}": grown + 23 for way in ("rd", "wr", "fl") for key in ("reqs", "bytes", "times")}
        return {
            "state.state": 1,
            "state.reason": 1,
            "cpu.time": grown,
            "cpu.user": grown,
            "cpu.system": grown,
            "cpu.cache.monitor.count": 0,
            **{f"balloon.{key}": 524288 for key in ("current", "maximum", "available", "usable", "unused", "rss")},
            "vcpu.current": 1,
            "vcpu.maximum": 1,
            **vcpu,
            "net.count": 1,
            **net,
            "block.count": 1,
            **block,
            **{f"block.0.{key}": 32 << 30 for key in ("allocation", "capacity", "physical")},
        }


def _refuse(*arguments: object) -> None:
    raise PermissionError(1, "ordinary priority was asked for")


def _until_told() -> None:
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def main(
    interval: float,
    store: Path,
    guests: int,
    *,
    make: Callable[..., Recorder] = Recorder,
    wait: Callable[[], None] = _until_told,
) -> None:
    """Record into `store` until `wait` returns, by default at SIGTERM; `make` makes the recorder."""
    named = store.parent / "qemu-system-x86_64"
    named.unlink(missing_ok=True)
    named.symlink_to(sys.executable)
    stand_ins = [subprocess.Popen([named, "-ISc", _IDLE]) for _ in range(guests)]
    writer = RunWriter(store)
    inside = Path("/proc/self").readlink().name == "1"
    made_up = SyntheticGuests(guests)
    watched = Watched(lab_folders=[store.parent], scope="namespace" if inside else "process")
    recorder = make(interval, SampleWriter(writer), watched, made_up.tell)
    watch = StandstillWatch(inside=inside)
    recorder.start()
    watch.start()
    wait()
    watch.stop()
    recorder.stop()
    writer.close()
    for stand_in in stand_ins:
        stand_in.kill()
        stand_in.wait()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    if "--no-realtime" in sys.argv:
        os.sched_setscheduler = _refuse
    main(float(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
