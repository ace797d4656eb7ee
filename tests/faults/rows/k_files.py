"""Long work on files that is stopped or killed, records that lie, slow clients, and a recorder that stands still."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from tests.faults.row import Rows
from tests.faults.world import PATIENCE, World
from vmlab.store.life import RECORDER
from vmlab.system.removal import make_marked

ROWS = Rows()
_LARGE_MIB = 160


def _adding(world: World) -> subprocess.Popen[str]:
    """`image add` of a sparse disk whose zeros take a minute to digest, once it has begun with that."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(world.folder / "key")], check=True)
    disk = world.folder / "disk.img"
    with disk.open("wb") as file:
        file.write(bytes(510) + b"\x55\xaa")
        file.truncate(60 * 2**30)
    given = ["--disk", str(disk), "--user", "root", "--key", str(world.folder / "key")]
    adding = world.command("image", "add", "own", *given)
    kept = world.cache / "added-images"
    # The key is copied when the disk is, and digests come next.
    world.until(lambda: list(kept.glob(".adding-*/key")), "the copy of the disk")
    return adding


@ROWS.add(
    "sigterm-image-add",
    "SIGTERM to `vmlab image add` while it digests a sparse disk of 60 GiB",
    "exit code 143 at once, nothing of the image is left",
    10,
    guests=False,
)
def sigterm_image_add(world: World) -> str:
    adding = _adding(world)
    world.strike(measured=False)
    adding.terminate()
    words = world.end_of(adding, 60)
    world.is_over()
    assert adding.returncode == signal.SIGTERM + 128, (adding.returncode, words)
    left = [one.name for one in (world.cache / "added-images").iterdir() if one.name != ".locks"]
    assert left == [], left
    return f"exit code 143: {words.strip().splitlines()[-1]}"


@ROWS.add(
    "kill-image-add",
    "kill -9 of `vmlab image add` while it digests a sparse disk of 60 GiB",
    "`vmlab clean` removes what the export left",
    20,
    guests=False,
)
def kill_image_add(world: World) -> str:
    adding = _adding(world)
    world.strike(measured=False)
    adding.kill()
    adding.communicate()
    return _cleaned(world, world.cache / "added-images", "own")


def _cleaned(world: World, place: Path, name: str) -> str:
    """What `vmlab clean` says; nothing with `name` in it may be left in `place`."""
    done = world.home.vmlab("clean", timeout=60)
    world.is_over()
    assert done.returncode == 0, done.stderr
    left = [one.name for one in place.iterdir() if name in one.name]
    assert left == [], left
    return f"exit code 0: {done.stderr.strip()}"


def _large_run(world: World) -> str:
    """The demo's run with so much text that packing it takes seconds; its id."""
    store = world.recorded()
    with closing(sqlite3.connect(store)) as opened, opened:
        opened.execute("CREATE TABLE more (body BLOB)")
        opened.executemany("INSERT INTO more VALUES (randomblob(?))", [(2**20,)] * _LARGE_MIB)
    return store.parent.name


@ROWS.add(
    "kill-export",
    "kill -9 of `vmlab export` while it packs a large run",
    "the target folder is empty; `vmlab clean` removes what it left",
    20,
    guests=False,
)
def kill_export(world: World) -> str:
    run, out = _large_run(world), world.folder / "out"
    out.mkdir()
    exporting = world.command("export", run, "-o", str(out / "x.vmlab"))
    scratch = world.cache / "scratch"
    world.until(lambda: list(scratch.glob("export-*/run.sqlite")), "the copy of the store")
    world.strike(measured=False)
    exporting.kill()
    exporting.communicate()
    assert list(out.iterdir()) == []
    return _cleaned(world, scratch, "export")


@ROWS.add(
    "kill-import",
    "kill -9 of `vmlab import` while it unpacks a large run",
    "`vmlab clean` removes what it left",
    20,
    guests=False,
)
def kill_import(world: World) -> str:
    run = _large_run(world)
    done = world.home.vmlab("export", run, "-o", str(world.folder / "x.vmlab"), timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    runs = world.home.state / "vmlab/runs"
    subprocess.run(["rm", "-r", str(runs / run)], check=True)
    importing = world.command("import", str(world.folder / "x.vmlab"))
    world.until(lambda: list(runs.glob("*/run.sqlite.new")), "the unpacked store")
    world.strike(measured=False)
    importing.kill()
    importing.communicate()
    return _cleaned(world, runs, run)


@ROWS.add(
    "hostile-journal",
    "`vmlab clean` of a dead run whose journal names files, a cgroup and a loop device that are not the lab's",
    "none of them is touched, or reported as removed",
    30,
    guests=False,
)
def hostile_journal(world: World) -> str:
    run = "20261121-143000-hostile-7f3a"
    folder = world.home.state / "vmlab/runs" / run
    make_marked(folder, run)
    (precious := world.folder / "precious").write_text("kept")
    named = [("file", str(precious)), ("file", "/etc/hostname"), ("loop", "/dev/loop0"), ("cgroups", "/sys/fs/cgroup")]
    lines = [json.dumps({"made": {"kind": kind, "what": what, "was": "", "ours": ""}}) for kind, what in named]
    (folder / "journal.jsonl").write_text("".join(f"{line}\n" for line in lines))
    world.strike(measured=False)
    done = world.home.vmlab("clean", timeout=60)
    world.is_over()
    subprocess.run(["rm", "-r", str(folder)], check=True)
    assert precious.read_text() == "kept" and Path("/etc/hostname").exists()
    assert "removed 1" not in done.stderr and "removed 2" not in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1]}"


@ROWS.add(
    "slow-scrapes",
    "20 connections to `vmlab top --serve` that send a byte a second and never end",
    "a scrape beside them is answered, and they are closed",
    30,
    guests=False,
)
def slow_scrapes(world: World) -> str:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serving = world.command("top", "--serve", f"127.0.0.1:{port}")
    with ExitStack() as stack:
        stack.callback(serving.kill)
        world.until(lambda: _answers(port), "the first scrape")
        world.strike(measured=False)
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(20)]
        for one in slow:
            one.sendall(b"G")
        began = time.monotonic()
        assert _answers(port), "no scrape was answered beside them"
        answered = time.monotonic() - began
        for one in slow:
            one.settimeout(20)
            while one.recv(4096):
                pass
    serving.communicate()
    world.is_over()
    return f"answered after {answered:.1f} s; all 20 were closed"


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return b"# EOF" in answer.read()
    except OSError:
        return False


@ROWS.add(
    "recorder-stopped",
    "SIGSTOP of the recorder of `vmlab record` for 5 s",
    "the recording names the gap and its length",
    60,
    guests=False,
)
def recorder_stopped(world: World) -> str:
    recording = world.command("record", "--for", "12s", "--interval", "200ms")
    recorder = world.runner[RECORDER]
    world.until(lambda: _samples(world) > 5, "samples")
    world.strike(measured=False)
    os.kill(recorder, signal.SIGSTOP)
    time.sleep(5)
    os.kill(recorder, signal.SIGCONT)
    world.end_of(recording, 60)
    world.is_over()
    gaps = [e["text"] for e in world.home.events() if e["kind"] == "Notice" and e["text"].startswith("gap: ")]
    assert gaps, "no gap is named"
    return str(gaps[0])


def _samples(world: World) -> int:
    stores = list(world.home.state.glob("vmlab/runs/2*/run.sqlite"))
    if not stores:
        return 0
    with closing(sqlite3.connect(f"file:{stores[0]}?mode=ro", uri=True)) as store, suppress(sqlite3.OperationalError):
        # Its recorder may be just making it.
        return int(store.execute("SELECT count(*) FROM samples").fetchone()[0])
    return 0
