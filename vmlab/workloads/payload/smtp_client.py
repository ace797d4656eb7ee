"""Runs inside a guest behind the start line: sends batches of mail with pauses between, then a burst.

One JSON argument: ``server`` (ADDRESS:PORT), ``sender``, ``recipient``, ``subject``, ``size`` (bytes of each body),
``batches``, ``messages`` (in each batch), ``pause`` (seconds), ``burst``. Every batch is one call of ``smtp-source``,
which ends with an error unless Postfix took each message. Prints ``{"stage": S, "done": N, "total": N}`` at most once
a second, and at the end ``{"ended": "all", "accepted": N, "seconds": S, "sending": S, "burst": S, "clock": S}``; the
clock is this machine's at the last accepted message.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any


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
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        accepted = follow(process, stage, teller)
    seconds = time.monotonic() - began
    if process.returncode != 0 or accepted != messages:
        sys.exit(f"{stage}: smtp-source exited with {process.returncode}, {accepted} of {messages} messages accepted")
    teller.done += messages
    return seconds


def follow(process: "subprocess.Popen[bytes]", stage: str, teller: ProgressPrinter) -> int:
    """The last count that ``smtp-source -c`` shows: messages that the server has accepted."""
    assert process.stdout is not None
    accepted, rest = 0, b""
    while chunk := os.read(process.stdout.fileno(), 4096):
        *counts, rest = (rest + chunk).replace(b"\n", b"\r").split(b"\r")
        latest = max((int(count) for count in counts if count), default=0)
        if latest > accepted:
            accepted = latest
            teller.tell(stage, accepted)
    return accepted


def main() -> None:
    options = json.loads(sys.argv[1])
    batches, messages, burst = options["batches"], options["messages"], options["burst"]
    teller = ProgressPrinter(batches * messages + burst)
    began = time.monotonic()
    sending = burst_seconds = 0.0
    for number in range(batches):
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
        clock=teller.accepted_at,
    )


if __name__ == "__main__":
    main()
