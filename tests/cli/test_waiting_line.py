"""What a command that waits for its turn says, and how often."""

from __future__ import annotations

import io
import re

from vmlab.cli.progress import WaitingLine
from vmlab.lab.process.measuring_runs import HostQueue, MeasuringRun, WaitingRun
from vmlab.lab.process.waiting_runs import Standing

RUN = MeasuringRun("20261124-101010-tile-0abc", "ann", 0, "/home/ann/runs/x")
WAITING = tuple(WaitingRun(number, "disk", "bert", 0) for number in (3, 4, 5))
SECOND, FIRST = Standing(HostQueue((RUN,), WAITING), 2), Standing(HostQueue((RUN,), WAITING[1:]), 1)
ALL_GONE = Standing(HostQueue((), WAITING), 2)


class Terminal(io.StringIO):
    """Text that a terminal would show."""

    def isatty(self) -> bool:
        return True


def said(stream: io.StringIO, *standings: Standing) -> str:
    with WaitingLine(stream) as line:
        for standing in standings:
            line.show(standing)
    return stream.getvalue()


def test_without_a_terminal_there_is_a_line_for_each_change_and_none_for_time_that_passes() -> None:
    lines = said(io.StringIO(), SECOND, SECOND, SECOND, FIRST, FIRST).splitlines()
    assert lines == [
        "waiting: place 2 of 3, begins at an unknown time; run 20261124-101010-tile-0abc of ann (process 0), in "
        "/home/ann/runs/x, measures now; disk of bert (process 0) is before it; nothing of this run is started, and "
        "Ctrl-C gives up",
        "waiting: place 1 of 2, begins at an unknown time; run 20261124-101010-tile-0abc of ann (process 0), in "
        "/home/ann/runs/x, measures now",
    ]


def test_whoever_holds_the_host_up_is_named() -> None:
    """Also where nothing measures: the one before it may be frozen."""
    line = said(io.StringIO(), ALL_GONE)
    assert "disk of bert (process 0) is before it" in line
    over = HostQueue((RUN,), WAITING[1:], WAITING[:1])
    assert "disk of bert (process 0) does not run, and is passed over" in said(io.StringIO(), Standing(over, 1))


def test_on_a_terminal_the_last_line_moves_and_is_gone_at_the_end() -> None:
    text = said(Terminal(), SECOND, SECOND, FIRST)
    shown: list[str] = []
    for part in re.split(r"(\x1b\[A\r\x1b\[2K)", text):
        if part.startswith("\x1b"):
            shown.pop()
        else:
            shown += part.splitlines()
    assert [line[:22] for line in shown] == ["waiting: place 2 of 3,", "waiting: place 1 of 2,"]
    assert text.count("\n  place") == 2, "one for each change"
