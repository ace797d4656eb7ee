"""Runs inside a guest with Postfix: waits until the mail queue is empty, and prints since when it has been.

One JSON argument: ``port`` and ``deadline`` (seconds). Removing a message's file stamps its queue's folder, so the
moment is exact however seldom this program looks. Meanwhile it answers every UDP packet at ``port`` with this
machine's clock, by which another machine learns the difference of the two clocks; a packet ``bye`` ends that.
Prints ``{"left": N, "empty": CLOCK or null}``. It does without pathlib, whose import would be a fifth of all
that its start takes.
"""

import json
import os
import socket
import sys
import time

SPOOL = "/var/spool/postfix"
# In the order in which a message goes through them, so that one on its way is not missed between two looks.
QUEUES = ("maildrop", "incoming", "active", "deferred")
SECONDS_BETWEEN_LOOKS = 0.25


def waiting() -> int:
    """Messages in the queue."""
    return sum(len(names) for queue in QUEUES for _, _, names in os.walk(f"{SPOOL}/{queue}"))


def last_change() -> float:
    """Wall clock, in seconds, at which a message last left or changed its queue."""
    return max(os.stat(f"{SPOOL}/{queue}").st_mtime for queue in ("incoming", "active", "deferred"))


def answer(server: socket.socket) -> bool:
    """Answer one packet, if there is one before the next look; True when it was the last."""
    try:
        question, origin = server.recvfrom(64)
    except TimeoutError:
        return False
    server.sendto(question + f" {time.time():.6f}".encode(), origin)
    return question == b"bye"


def watch(server: socket.socket, deadline: float) -> tuple[int, float | None]:
    """Messages left in the queue, and since when there is none; None where the deadline was first."""
    end = time.monotonic() + deadline
    looked, empty_looks, left, asked = 0.0, 0, 0, False
    while time.monotonic() < end and (empty_looks < 2 or not asked):
        asked = answer(server) or asked
        if time.monotonic() - looked >= SECONDS_BETWEEN_LOOKS:
            looked = time.monotonic()
            left = waiting()
            # A deferred message that is tried again moves against the order, so one look is not enough.
            empty_looks = 0 if left else empty_looks + 1
    return left, last_change() if empty_looks >= 2 else None


def main() -> None:
    options = json.loads(sys.argv[1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", options["port"]))
        server.settimeout(SECONDS_BETWEEN_LOOKS)
        left, empty = watch(server, options["deadline"])
    sys.stdout.write(json.dumps({"left": left, "empty": empty}) + "\n")


if __name__ == "__main__":
    main()
