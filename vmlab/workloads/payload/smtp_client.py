"""Runs inside a guest behind the start line: sends batches of mail with pauses between, then a burst.

One JSON argument: ``server`` (ADDRESS:PORT), ``sender``, ``recipient``, ``subject``, ``size`` (bytes of each body),
``batches``, ``messages`` (in each batch), ``pause`` (seconds), ``burst``, ``pace`` (messages a second, or null). Every
batch is one call of ``smtp-source``, which ends with an error unless Postfix took each message. With a pace, batch k is
due k * messages / pace seconds after the start, and begins late where the one before is not over. Prints ``{"stage": S,
"done": N, "total": N}`` at most once a second, with a pace at the end ``{"latencies": [S, ...]}`` of the batches, from
when each was due, in lines of 500; and ``{"ended": "all", "accepted": N, "seconds": S, "sending": S, "burst": S,
"last_began": S, "clock": S}``: when the last batch began, and this machine's clock at the last accepted message.
"""

from __future__ import annotations

import json
import os
import sys
import time

# Type checkers take this name for true. Importing typing and subprocess costs an emulated guest most of a second.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
_LINE = 500


class ProgressPrinter:
    """Prints how far the client is, at most once a second. `accepted_at` is the clock at the last accepted message."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.told = total, 0, time.monotonic()
        self.accepted_at = time.time()

    def tell(self, stage: str, accepted: int) -> None:
        """`accepted` counts messages of this call of smtp-source."""
        self.accepted_at = time.time()
        done = self.done + accepted
        if time.monotonic() - self.told >= 1:
            self.told = time.monotonic()
            say(stage=stage, done=done, total=self.total)


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def send(options: dict[str, Any], stage: str, messages: int, teller: ProgressPrinter) -> float:
    """One call of smtp-source; the seconds it took. Ends the program where a message was not taken."""
    argv = ["smtp-source", "-c", "-l", str(options["size"]), "-m", str(messages), "-S", options["subject"]]
    argv += ["-f", options["sender"], "-t", options["recipient"], options["server"]]
    began = time.monotonic()
    shown, end = os.pipe()
    process = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, end, 1)])
    os.close(end)
    accepted = follow(shown, stage, teller)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(shown)
    seconds = time.monotonic() - began
    if status != 0 or accepted != messages:
        sys.exit(f"{stage}: smtp-source exited with {status}, {accepted} of {messages} messages accepted")
    teller.done += messages
    return seconds


def follow(shown: int, stage: str, teller: ProgressPrinter) -> int:
    """The last count that ``smtp-source -c`` shows: messages that the server has accepted."""
    accepted, rest = 0, b""
    while chunk := os.read(shown, 4096):
        *counts, rest = (rest + chunk).replace(b"\n", b"\r").split(b"\r")
        latest = max((int(count) for count in counts if count), default=0)
        if latest > accepted:
            accepted = latest
            teller.tell(stage, accepted)
    return accepted


def send_at_pace(options: dict[str, Any], teller: ProgressPrinter, interval: float) -> tuple[float, float]:
    """All batches, one due each `interval` seconds; seconds of sending, and when the last one began."""
    start = time.monotonic()
    latencies, sending, last_began = [], 0.0, 0.0
    for number in range(options["batches"]):
        due = number * interval
        time.sleep(max(0.0, start + due - time.monotonic()))
        last_began = time.monotonic() - start
        sending += send(options, "batches", options["messages"], teller)
        latencies.append(round(time.monotonic() - start - due, 6))
    for place in range(0, len(latencies), _LINE):
        say(latencies=latencies[place : place + _LINE])
    return sending, last_began


def main() -> None:
    options = json.loads(sys.argv[1])
    batches, messages, burst = options["batches"], options["messages"], options["burst"]
    teller = ProgressPrinter(batches * messages + burst)
    began = time.monotonic()
    sending = burst_seconds = last_began = 0.0
    pace = options.get("pace")
    if pace:
        sending, last_began = send_at_pace(options, teller, messages / pace)
    for number in range(0 if pace else batches):
        if number:
            time.sleep(options["pause"])
        sending += send(options, "batches", messages, teller)
    if burst:
        if batches:
            time.sleep(options["pause"])
        burst_seconds = send(options, "burst", burst, teller)
    say(
        ended="all",
        accepted=teller.done,
        seconds=time.monotonic() - began,
        sending=sending + burst_seconds,
        burst=burst_seconds,
        last_began=last_began,
        clock=teller.accepted_at,
    )


if __name__ == "__main__":
    main()
