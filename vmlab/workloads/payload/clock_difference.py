"""Runs inside a guest: how far the clock of another guest is ahead, by the quickest of several UDP packets.

One JSON argument: ``address`` and ``port`` of ``queue_watch.py``. Prints
``{"ahead": SECONDS, "uncertainty": SECONDS}``; the true difference lies within `uncertainty`,
half of the quickest round trip.
"""

import json
import socket
import sys
import time

ROUNDS = 20
SECONDS_TO_TRY = 60


def ask(client: socket.socket, question: bytes) -> tuple[float, float] | None:
    """The other clock less ours, and half of the round trip; None where no answer came."""
    before, mono = time.time(), time.monotonic()
    try:
        client.send(question)
        while not (reply := client.recv(64)).startswith(question + b" "):
            pass
    except OSError:
        return None
    half = (time.monotonic() - mono) / 2
    return float(reply.split()[-1]) - (before + half), half


def compare(client: socket.socket) -> list[tuple[float, float]]:
    """Several answers, then the packet that ends the exchange; none where no answer comes in time."""
    end = time.monotonic() + SECONDS_TO_TRY
    answers: list[tuple[float, float]] = []
    while len(answers) < ROUNDS and time.monotonic() < end:
        found = ask(client, f"clock {time.monotonic_ns()}".encode())
        if found is None:
            time.sleep(0.1)
        else:
            answers.append(found)
    # That packet, or its answer, may be lost like any other; after its answer the other side has ended.
    for _ in range(5 if answers else 0):
        if ask(client, b"bye") is not None:
            break
    return answers


def main() -> None:
    options = json.loads(sys.argv[1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((options["address"], options["port"]))
        client.settimeout(0.5)
        answers = compare(client)
    if not answers:
        sys.exit(f"no clock answered at {options['address']}:{options['port']}")
    ahead, uncertainty = min(answers, key=lambda found: found[1])
    sys.stdout.write(json.dumps({"ahead": ahead, "uncertainty": uncertainty}) + "\n")


if __name__ == "__main__":
    main()
