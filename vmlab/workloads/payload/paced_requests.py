"""Runs inside a guest behind the start line: asks for a page at a fixed pace, a connection for each request.

One JSON argument: ``address``, ``port``, ``path``, ``agent``, ``requests``, ``concurrency`` and ``pace`` (requests a
second). Request k is due k / pace seconds after the start, however long the others take; where all connections are
busy it waits for one, and its latency counts from when it was due. Prints ``{"done": N}`` at most once a second, at the
end ``{"latencies": [S, ...]}`` in lines of 500, and ``{"ended": "all", "requests": N, "bytes": N, "seconds": S,
"last_began": S}``; bytes are with headers. The first answer that is not whole, or has no status 200, ends it.
"""

import json
import os
import re
import socket
import sys
import threading
import time
from typing import Any

_PATIENCE = 300.0
_LINE = 500


class Load:
    """Hands out the requests in their order, and keeps what became of them."""

    def __init__(self, requests: int, pace: float) -> None:
        self.requests, self.pace = requests, pace
        self.taken = self.done = self.bytes = 0
        self.last_began = 0.0
        self.latencies: list[float] = []
        self.lock = threading.Lock()
        self.began = self.told = time.monotonic()

    def take(self) -> float | None:
        """Wait until the next request is due; when that was, in seconds after the start. None after the last."""
        with self.lock:
            number, self.taken = self.taken, self.taken + 1
        if number >= self.requests:
            return None
        due = number / self.pace
        time.sleep(max(0.0, due - self.now()))
        with self.lock:
            self.last_began = max(self.last_began, self.now())
        return due

    def now(self) -> float:
        return time.monotonic() - self.began

    def answered(self, due: float, length: int) -> None:
        with self.lock:
            self.latencies.append(round(self.now() - due, 6))
            self.done += 1
            self.bytes += length
            if time.monotonic() - self.told >= 1:
                self.told = time.monotonic()
                say(done=self.done)


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def ask(options: dict[str, Any], request: bytes) -> int:
    """One request; how many bytes came back. Ends the program where they are not a whole answer with status 200."""
    head, length = b"", 0
    with socket.create_connection((options["address"], options["port"]), timeout=_PATIENCE) as connection:
        connection.sendall(request)
        while piece := connection.recv(65536):
            head = head + piece if b"\r\n\r\n" not in head else head
            length += len(piece)
    start, separator, _ = head.partition(b"\r\n\r\n")
    if not separator or not re.match(rb"HTTP/1\.[01] 200 ", start):
        raise ValueError(f"an answer began with {head[:60]!r}")
    promised = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", start)
    if promised and length != len(start) + 4 + int(promised[1]):
        raise ValueError(f"an answer of {length} bytes was cut")
    return length


def work(load: Load, options: dict[str, Any], request: bytes) -> None:
    try:
        while (due := load.take()) is not None:
            load.answered(due, ask(options, request))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"request failed: {error}\n")
        sys.stderr.flush()
        # Other threads may sleep until a request of theirs is due.
        os._exit(1)


def main() -> None:
    options = json.loads(sys.argv[1])
    lines = (f"GET {options['path']} HTTP/1.0", f"Host: {options['address']}", f"User-Agent: {options['agent']}")
    request = "\r\n".join((*lines, "Accept: */*", "", "")).encode("ascii")
    load = Load(options["requests"], options["pace"])
    threads = [threading.Thread(target=work, args=(load, options, request)) for _ in range(options["concurrency"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = load.now()
    for place in range(0, len(load.latencies), _LINE):
        say(latencies=load.latencies[place : place + _LINE])
    say(ended="all", requests=load.done, bytes=load.bytes, seconds=seconds, last_began=load.last_began)


if __name__ == "__main__":
    main()
