"""Replays queries against MariaDB twice over connections of its own, each in a process: to warm up, then measured.

Argument: a JSON object with ``address``, ``port``, ``socket`` (empty for none), ``user``, ``database``, ``queries`` (a
file with a JSON list of connections, each a list of queries) and ``threads`` (a file with their number).

Each process takes the next connection of the log when it is done with one, so that all end at nearly the same time.
Lines of JSON tell the progress; the last one is the account of both passes.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import select
import signal
import struct
import sys
import time
import zlib
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PASSES = ("warm", "measured")
TOKEN = struct.Struct("=H")
DONE, FAILED = b".", b"!"
_TOLD_SECONDS = 0.5
EARLY = "a process of the replay ended early"


class Refused(Exception):
    """What MariaDB, or its library, has to say."""


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def load_library() -> Any:
    library = ctypes.CDLL("libmariadb.so.3")
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint
    for name, result, arguments in (
        ("mysql_init", pointer, [pointer]),
        ("mysql_real_connect", pointer, [pointer, text, text, text, text, number, text, ctypes.c_ulong]),
        ("mysql_real_query", ctypes.c_int, [pointer, text, ctypes.c_ulong]),
        ("mysql_store_result", pointer, [pointer]),
        ("mysql_num_rows", ctypes.c_ulonglong, [pointer]),
        ("mysql_num_fields", number, [pointer]),
        ("mysql_fetch_row", ctypes.POINTER(ctypes.c_void_p), [pointer]),
        ("mysql_fetch_lengths", ctypes.POINTER(ctypes.c_ulong), [pointer]),
        ("mysql_free_result", None, [pointer]),
        ("mysql_error", text, [pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Connection:
    """One connection to the server."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.library = load_library()
        self.handle = self.library.mysql_init(None)
        host = order["address"].encode() or None
        socket = order["socket"].encode() or None
        words = (host, order["user"].encode(), None, order["database"].encode(), order["port"], socket, 0)
        if not self.library.mysql_real_connect(self.handle, *words):
            raise Refused(self.said())

    def said(self) -> str:
        return str(self.library.mysql_error(self.handle).decode("utf-8", "replace"))

    def ask(self, query: bytes, look: bool) -> tuple[int, int, bytes]:
        """The number of rows; with `look` also the sum of their CRC-32, and the last field."""
        library = self.library
        if library.mysql_real_query(self.handle, query, len(query)):
            raise Refused(f"{self.said()}: {query[:200].decode('utf-8', 'replace')}")
        result = library.mysql_store_result(self.handle)
        if not result:
            raise Refused(f"{self.said() or 'no result'}: {query[:200].decode('utf-8', 'replace')}")
        rows = library.mysql_num_rows(result)
        crc, last = self.looked(result) if look else (0, b"")
        library.mysql_free_result(result)
        return rows, crc, last

    def looked(self, result: Any) -> tuple[int, bytes]:
        total, last = 0, b""
        fields = range(self.library.mysql_num_fields(result))
        while row := self.library.mysql_fetch_row(result):
            lengths = self.library.mysql_fetch_lengths(result)
            crc = 0
            for field in fields:
                last = ctypes.string_at(row[field], lengths[field]) if row[field] else b""
                crc = zlib.crc32(last, zlib.crc32(b"%d;" % (lengths[field] if row[field] else -1), crc))
            # Rows that ORDER BY leaves equal come in any order.
            total = (total + crc) & 0xFFFFFFFF
        return total, last

    def bytes_sent(self) -> tuple[int, int]:
        """What the server has sent on this connection, and the length of this answer's own number."""
        text = self.ask(b"SHOW SESSION STATUS LIKE 'Bytes_sent'", True)[2]
        return int(text), len(text)


class Worker:
    """One process's part of one pass."""

    def __init__(self, connection: Connection, log: list[list[str]], look: bool) -> None:
        self.connection, self.log, self.look = connection, log, look
        self.rows = 0
        self.microseconds: list[int] = []
        self.counts: dict[int, str] = {}
        self.seen: dict[str, tuple[int, int]] = {}
        self.disagreed = 0

    def replay(self, number: int) -> None:
        """One connection of the log."""
        counts, before = [], b""
        for text in self.log[number]:
            query = text.encode()
            began = time.perf_counter()
            rows, crc, _ = self.connection.ask(query, self.look)
            self.microseconds.append(int((time.perf_counter() - began) * 1e6))
            counts.append(rows)
            self.rows += rows
            if self.look:
                self.compare(before, query, (rows, crc))
            before = query
        self.counts[number] = hashlib.sha256(repr(counts).encode()).hexdigest()

    def compare(self, before: bytes, query: bytes, found: tuple[int, int]) -> None:
        """The same query gives the same answer; FOUND_ROWS() depends on the query before it."""
        key = hashlib.blake2b(before + b"\0" + query, digest_size=8).hexdigest()
        if self.seen.setdefault(key, found) != found:
            self.disagreed += 1

    def account(self) -> dict[str, Any]:
        return {
            "queries": len(self.microseconds),
            "rows": self.rows,
            "microseconds": self.microseconds,
            "counts": self.counts,
            "seen": self.seen,
            "disagreed": self.disagreed,
        }


def work(order: dict[str, Any], log: list[list[str]], tokens: list[int], done: int, answer: int) -> None:
    """A process: connect, say so, and work through both passes."""
    with os.fdopen(answer, "w") as answers:
        try:
            connection = Connection(order)
            answers.write("{}\n")
            answers.flush()
            for name, queue in zip(PASSES, tokens, strict=True):
                worker = Worker(connection, log, look=name == "warm")
                sent, own = connection.bytes_sent()
                while token := os.read(queue, TOKEN.size):
                    worker.replay(TOKEN.unpack(token)[0])
                    os.write(done, DONE)
                account = worker.account()
                # The answer to the first question lies in between, and is as long as its number.
                account["bytes_sent"] = connection.bytes_sent()[0] - sent - own
                answers.write(json.dumps(account) + "\n")
                answers.flush()
        except (Refused, OSError) as error:
            answers.write(json.dumps({"error": str(error)}) + "\n")
            answers.flush()
            os.write(done, FAILED)


class Pool:
    """The processes, and their pipes: a queue of tokens for each pass, one for what is done, one answer each."""

    def __init__(self, order: dict[str, Any], log: list[list[str]], threads: int) -> None:
        self.log = log
        queues = [os.pipe() for _ in PASSES]
        self.writers = [write for _, write in queues]
        self.done, done = os.pipe()
        self.answers = []
        self.pids = []
        for _ in range(threads):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                for own in (*self.writers, self.done, read):
                    os.close(own)
                work(order, log, [reader for reader, _ in queues], done, write)
                os._exit(0)
            os.close(write)
            self.answers.append(os.fdopen(read))
            self.pids.append(pid)
        os.close(done)
        self.heard()

    def heard(self) -> list[dict[str, Any]]:
        """One line of each process. Exits with the first error."""
        return [self.account(answer.readline()) for answer in self.answers]

    def account(self, line: str) -> dict[str, Any]:
        account: dict[str, Any] = json.loads(line) if line else {"error": EARLY}
        if "error" in account:
            self.fail(account["error"])
        return account

    def fail(self, error: str) -> None:
        """End all processes, then this one."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        sys.exit(error)

    def taken(self) -> int:
        """How many connections were done since the last time; waits for one. Exits when a process fails."""
        while not select.select([self.done], [], [], 1.0)[0]:
            # Without this the connection of a process that died would be waited for.
            self.demand_alive()
        chunk = os.read(self.done, 4096)
        if not chunk:
            # No process is left that could write, and not all connections are done.
            self.fail(EARLY)
        if FAILED in chunk:
            for answer in select.select(self.answers, [], [])[0]:
                self.account(answer.readline())
        return len(chunk)

    def demand_alive(self) -> None:
        """Exits when a process has died. One that finds no more tokens ends well while others still work."""
        for pid in list(self.pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self.pids.remove(pid)
                if status:
                    self.fail(EARLY)

    def run(self, number: int) -> tuple[float, list[dict[str, Any]]]:
        """One pass: its seconds, from the first token to the last connection that was done, and the accounts."""
        total, told = len(self.log), 0.0
        began = time.monotonic()
        os.write(self.writers[number], b"".join(TOKEN.pack(one) for one in range(total)))
        os.close(self.writers[number])
        finished = 0
        while finished < total:
            finished += self.taken()
            if finished < total and time.monotonic() - told >= _TOLD_SECONDS:
                told = time.monotonic()
                say({"stage": PASSES[number], "done": finished, "total": total})
        return time.monotonic() - began, self.heard()


def summed(seconds: float, accounts: list[dict[str, Any]]) -> dict[str, Any]:
    counts = {int(number): digest for account in accounts for number, digest in account["counts"].items()}
    seen: dict[str, list[int]] = {}
    disagreed = sum(account["disagreed"] for account in accounts)
    for account in accounts:
        for key, found in account["seen"].items():
            disagreed += seen.setdefault(key, found) != found
    latencies = sorted(one for account in accounts for one in account["microseconds"])
    ordered = "".join(counts[number] for number in sorted(counts))
    return {
        "seconds": seconds,
        "disagreed": disagreed,
        "counts": hashlib.sha256(ordered.encode()).hexdigest(),
        "latency_p50": latencies[(len(latencies) - 1) // 2] / 1e6,
        "latency_p95": latencies[-(-len(latencies) * 95 // 100) - 1] / 1e6,
        "latency_max": latencies[-1] / 1e6,
        **{key: sum(account[key] for account in accounts) for key in ("queries", "rows", "bytes_sent")},
    }


def main() -> None:
    order = json.loads(sys.argv[1])
    log = json.loads(Path(order["queries"]).read_text(encoding="utf-8"))
    threads = int(Path(order["threads"]).read_text(encoding="ascii"))
    pool = Pool(order, log, threads)
    account: dict[str, Any] = {"threads": threads}
    for number, name in enumerate(PASSES):
        account[name] = summed(*pool.run(number))
    for pid in pool.pids:
        os.waitpid(pid, 0)
    times = os.times()
    account["client_cpu_seconds"] = times.user + times.system + times.children_user + times.children_system
    say(account)


if __name__ == "__main__":
    main()
