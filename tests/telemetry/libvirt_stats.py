"""Statistics as libvirt's bulk call gives them for a guest with one vCPU, one disk and one NIC."""

from __future__ import annotations

import time

from vmlab.telemetry.guest_readings import GuestAnswer, GuestStats, Timed


def domain(scale: int = 0) -> dict[str, int]:
    """What a guest has used after `scale` steps of equal work."""
    return {
        "state.state": 1,
        "cpu.time": 1_000_000_000 + scale * 500_000_000,
        "cpu.user": 100,
        "cpu.system": 100,
        "balloon.current": 524288,
        "balloon.maximum": 524288,
        "balloon.rss": 300000 + scale * 1000,
        "vcpu.current": 1,
        "vcpu.maximum": 2,
        "vcpu.0.state": 1,
        "vcpu.0.time": 900_000_000,
        "vcpu.0.delay": 10_000_000 + scale * 100_000_000,
        "net.count": 1,
        "net.0.rx.bytes": 1000 + scale * 4000,
        "net.0.rx.pkts": 10 + scale * 40,
        "net.0.tx.bytes": 2000 + scale * 6000,
        "net.0.tx.pkts": 20 + scale * 60,
        "block.count": 1,
        "block.0.rd.reqs": 100 + scale * 50,
        "block.0.rd.bytes": 409600 + scale * 204800,
        "block.0.rd.times": 5_000_000 + scale * 100_000_000,
        "block.0.wr.reqs": 10 + scale * 10,
        "block.0.wr.bytes": 40960 + scale * 40960,
        "block.0.wr.times": 900_000 + scale * 30_000_000,
        "block.0.fl.reqs": 1,
        "block.0.fl.times": 1000,
    }


def answer(stats: GuestStats, asked: float | None = None, given: float | None = None) -> GuestAnswer[GuestStats]:
    """libvirt's answer with all of these figures, read now or between these moments."""
    begin = time.monotonic() if asked is None else asked
    timed = Timed(begin, begin if given is None else given, stats)
    return GuestAnswer(timed, timed)
