"""Stores that are locked, truncated, newer or damaged, and files that are not what they say."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.faults.row import Act, Rows
from tests.faults.world import STRUCK, World

ROWS = Rows()


def _locked(seconds: float | None) -> Act:
    def act(world: World) -> str:
        running = world.run()
        world.wait_for("WorkloadStarted", cell=STRUCK)
        with closing(sqlite3.connect(world.store, isolation_level=None, timeout=30)) as other:
            world.strike()
            other.execute("BEGIN IMMEDIATE")
            if seconds is not None:
                time.sleep(seconds)
                other.execute("ROLLBACK")
            words = world.end_of(running, 200)
        world.is_over()
        if seconds is not None:
            end = world.ended()
            assert (end["outcome"], running.returncode) == ("passed", 0), (end, words)
            return "exit code 0, cell 2 passed"
        assert running.returncode not in (0, 130), words
        log = world.store.with_name("launcher.log").read_text()
        assert "locked" in log or "locked" in words, (log, words)
        told = next(line for line in [*words.splitlines(), *log.splitlines()] if "locked" in line)
        return f"exit code {running.returncode}: {told}"

    return act


ROWS.add(
    "store-locked-5-s",
    "another process holds the write lock of the run's store for 5 s",
    "the run waits for it, and passes",
    90,
)(_locked(5.0))
ROWS.add(
    "store-locked",
    "another process holds the write lock of the run's store for good",
    "the run ends after a timeout, names the store",
    150,
)(_locked(None))


def _unreadable(spoil: Callable[[Path], object], told: str) -> Act:
    """A recorded run whose store is spoilt is refused by each command that reads it, and `ls` lists it all the same."""

    def act(world: World) -> str:
        store = world.recorded()
        world.strike(measured=False)
        spoil(store)
        said = [
            world.home.vmlab(*command)
            for command in (("show", "last"), ("report", "last", "-o", str(world.folder / "r.html")))
        ]
        listed = world.home.vmlab("ls")
        store.unlink()
        world.is_over()
        for one in said:
            assert one.returncode in (1, 2, 3), (one.returncode, one.stderr)
            assert "Traceback" not in one.stderr and len(one.stderr.strip().splitlines()) == 1, one.stderr
            assert told in one.stderr, one.stderr
        assert listed.returncode == 0, listed.stderr
        return f"exit code {said[0].returncode}: {said[0].stderr.strip()}"

    return act


def _truncate(store: Path) -> None:
    with store.open("r+b") as file:
        file.truncate(store.stat().st_size // 2)


def _newer(store: Path) -> None:
    with closing(sqlite3.connect(store)) as opened, opened:
        (version,) = opened.execute("PRAGMA user_version").fetchone()
        opened.execute(f"PRAGMA user_version = {version + 1}")


def _zeroed(store: Path) -> None:
    with store.open("r+b") as file:
        file.write(bytes(100))


def _damaged(store: Path) -> None:
    with store.open("r+b") as file:
        file.seek(store.stat().st_size // 4 // 4096 * 4096)
        file.write(b"\xa5" * (store.stat().st_size // 2))


ROWS.add(
    "store-damaged",
    "the middle half of a store is overwritten",
    "one line, no traceback; `ls` lists the others",
    guests=False,
)(_unreadable(_damaged, "run.sqlite"))
ROWS.add(
    "store-truncated",
    "the store of a recorded run is cut in half",
    "one line, no traceback; `ls` lists the others",
    guests=False,
)(_unreadable(_truncate, "run.sqlite"))
ROWS.add(
    "store-newer",
    "the store of a recorded run has a newer version",
    "one line that says so; `ls` lists it",
    guests=False,
)(_unreadable(_newer, "newer"))
ROWS.add(
    "store-zeroed",
    "the first 100 bytes of a store are zero",
    "one line, no traceback; `ls` lists the others",
    guests=False,
)(_unreadable(_zeroed, "run.sqlite"))


def _refused(*command: str) -> Act:
    def act(world: World) -> str:
        world.strike()
        done = world.home.vmlab(*command, timeout=60)
        world.is_over()
        assert done.returncode == 2, (done.returncode, done.stderr)
        assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) <= 2, done.stderr
        return f"exit code {done.returncode}: {done.stderr.strip()}"

    return act


ROWS.add("import-endless", "`vmlab import /dev/zero`", "refused in one line, before it is read", guests=False)(
    _refused("import", "/dev/zero")
)
ROWS.add("import-noise", "`vmlab import` of a program", "refused in one line", guests=False)(
    _refused("import", "/bin/sh")
)
