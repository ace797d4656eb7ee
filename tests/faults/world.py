"""Where one row happens: folders, mounts and processes of its own, decoys, and what is held against them afterwards.

Made inside mount and PID namespaces that end with the row; see `inside`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.conftest import Home
from tests.processes import processes
from vmlab.guests.image import catalog
from vmlab.lab.process.dead_runs import THE_CACHE
from vmlab.model.places import cache_folder
from vmlab.system import kernel
from vmlab.telemetry.setting_files import KSM, THP

CHECKOUT = Path(__file__).parents[2]
TWO_CELLS = """\
repeats: 2
again: 0
limits: {start_skew: 1 h, clock_drift_percent: 100}
allow: {noise: true}
"""
"""The end of each scenario: two cells that are valid on a busy machine."""
_GUEST = "name: struck\nguests: {vm: {vcpus: 1, memory: 256 MiB}}\n"
_CPU = "{kind: cpu, on: vm, threads: 1, max_prime: 10000, events: 2500}"
SCENARIO = f"{_GUEST}workloads:\n  cpu: {_CPU}\n{TWO_CELLS}"
"""One tiny guest and two cells of some seconds; the fault comes in the second."""
STRUCK = 2
PATIENCE = 300.0
"""Seconds until a run has come to the moment of the fault; the first one also freezes its guest."""
_KEPT = ("kvm-probe.json", "libvirt")
_SETTINGS = [Path("/sys") / KSM / "run", Path("/sys") / KSM / "pages_to_scan", Path("/sys") / THP]
_PRECIOUS = "precious"
_DECOY = "0-notes"
"""Sorts before the runs, so that `last` is one of these."""


def beside(do: str, *, when: str = "execute", deadline: str = "60 s", work: str = _CPU) -> str:
    """A scenario whose guest works, and does `do` to itself in the second cell."""
    bad = f"{{kind: misdeed, on: vm, from_cell: 2, when: {when}, deadline: {deadline}, do: '{do}'}}"
    return f"{_GUEST}workloads:\n  work: {work}\n  bad: {bad}\n{TWO_CELLS}"


def on_a_disk(how: str) -> str:
    """A scenario whose guest reads or writes a data disk of its own, as `how` says in words of fio."""
    guest = "{vcpus: 1, memory: 256 MiB, data: 64 MiB, cache: none}"
    fio = f"{{kind: fio, on: vm, {how}, block: 4 KiB, engine: psync, direct: true}}"
    return f"name: struck\nguests: {{vm: {guest}}}\nworkloads:\n  blocks: {fio}\n{TWO_CELLS}"


READING_EMULATED = on_a_disk("rw: randread, size: 16 MiB, time: 4 s") + "host: {disk: hdd-7200}\n"


class World:
    """The folders of one row, and its user, whose commands run in them."""

    def __init__(self, folder: Path, snapshots: Path) -> None:
        self.folder = folder
        self.home = Home(folder / "state", folder / "run")
        self.cache = folder / "cache" / "vmlab"
        self.struck_at: float | None = None
        self.over_at: float | None = None
        self._measured: list[dict[str, Any]] = []
        self._make_cache(snapshots)
        kernel.mount("tmpfs", "/run", "tmpfs")
        places = {"XDG_CACHE_HOME": folder / "cache", "XDG_STATE_HOME": self.home.state}
        os.environ.update(
            {name: str(place) for name, place in places.items()} | {"VMLAB_RUNTIME_DIR": str(folder / "run")}
        )
        self._decoys = self._make_decoys()
        self._settings = _settings()

    def _make_cache(self, snapshots: Path) -> None:
        """A cache with the user's image, seen through a mount, and snapshots that rows have in common."""
        for name in ("images", "snapshots"):
            (self.cache / name).mkdir(parents=True)
        current = catalog.find()
        if current is not None:
            kernel.mount(str(current.folder.parent), str(self.cache / "images"), flags=kernel.MS_BIND)
        kernel.mount(str(snapshots), str(self.cache / "snapshots"), flags=kernel.MS_BIND)
        for name in _KEPT:
            kept = cache_folder() / name
            if kept.is_dir():
                shutil.copytree(kept, self.cache / name)
            elif kept.exists():
                shutil.copy2(kept, self.cache / name)

    def _make_decoys(self) -> dict[str, Any]:
        """What looks like a run's own: a folder of disks, a file system inside the runs, a process."""
        notes = self.home.state / "vmlab/runs" / _DECOY
        (notes / "disks").mkdir(parents=True)
        self.home.runtime.mkdir(exist_ok=True)
        files = [notes / "disks/vm.qcow2", notes / "journal.jsonl"]
        files[0].write_text(_PRECIOUS)
        files[1].write_text(json.dumps({"made": {"kind": "file", "what": str(files[0]), "was": "", "ours": ""}}) + "\n")
        mounted = notes / "mounted"
        mounted.mkdir()
        kernel.mount("tmpfs", str(mounted), "tmpfs")
        (mounted / "run.sqlite").write_text(_PRECIOUS)
        sleeper = subprocess.Popen(["qemu-system-x86_64", "3600"], executable=shutil.which("sleep"))
        return {"files": {file: file.read_text() for file in [*files, mounted / "run.sqlite"]}, "process": sleeper}

    def write_scenario(self, text: str = SCENARIO, name: str = "struck.yaml") -> Path:
        """A scenario's file in the row's folder."""
        file = self.folder / name
        file.write_text(text)
        return file

    def run(self, text: str = SCENARIO, *options: str) -> subprocess.Popen[str]:
        """Start a run of this scenario and leave it running."""
        return self.command("run", str(self.write_scenario(text)), "--size", "full", *options)

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command exactly as a user writes it."""
        return subprocess.Popen(
            [sys.executable, "-m", "vmlab", *arguments],
            env=self.home.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, kind: str, seconds: float = PATIENCE, **fields: Any) -> dict[str, Any]:
        """The first event of a kind with these fields, as soon as it is there. Raises TimeoutError."""
        found: dict[str, Any] = self.until(
            lambda: next((e for e in self.home.events() if e["kind"] == kind and fields.items() <= e.items()), None),
            f"{kind} {fields}",
            seconds,
        )
        return found

    def until(self, holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """The first answer that is true. Raises TimeoutError with `what` after `seconds`."""
        end = time.monotonic() + seconds
        while not (answer := holds()):
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not happen within {seconds:.0f} s")
            time.sleep(0.05)
        return answer

    def strike(self, *, measured: bool = True) -> None:
        """Note that the fault begins now, and what was `measured` before."""
        self._measured = self._measurements(1) if measured else []
        self.struck_at = time.monotonic()

    def recorded(self) -> Path:
        """The store of the recording of `vmlab demo`, as that of a run of this user."""
        recording = CHECKOUT / "vmlab/report/demo/run.sqlite"
        with closing(sqlite3.connect(f"file:{recording}?mode=ro&immutable=1", uri=True)) as store:
            (first,) = store.execute("SELECT body FROM events WHERE kind = 'RunStarted'").fetchone()
        folder = self.home.state / "vmlab/runs" / str(json.loads(first)["run"])
        folder.mkdir(parents=True)
        shutil.copy(recording, folder / "run.sqlite")
        return folder / "run.sqlite"

    def end_of(self, running: subprocess.Popen[str], seconds: float) -> str:
        """Wait for a command's end; its messages. Raises TimeoutError."""
        try:
            _, words = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise TimeoutError(f"it went on for more than {seconds:.0f} s") from late
        return words

    def is_over(self, seconds: float = 120.0) -> None:
        """Wait until no process of the run is left."""
        self.until(lambda: not self.home.processes(), "the end of all processes", seconds)
        self.over_at = time.monotonic()

    @property
    def runner(self) -> dict[str, int]:
        """The process ids of the only run."""
        (file,) = self.until(lambda: list(self.home.state.glob("vmlab/runs/*/runner.json")), "the runner")
        noted: dict[str, int] = self.until(lambda: _json(file), "its process ids")
        return noted

    @property
    def qemu(self) -> int:
        """The process id of the only QEMU."""
        found: list[int] = self.until(lambda: processes("qemu-system", self.home.state), "QEMU")
        return found[0]

    def holding(self, text: bytes) -> list[str]:
        """The names of the run's files with `text` in them; guests' disks are left out."""
        found = []
        for file in (one for place in (self.home.state, self.home.runtime) for one in place.rglob("*")):
            with contextlib.suppress(FileNotFoundError):
                if file.is_file() and "disks" not in file.parts and text in file.read_bytes():
                    found.append(file.name)
        return found

    @property
    def store(self) -> Path:
        """The store of the only run."""
        (found,) = self.home.state.glob("vmlab/runs/*/run.sqlite")
        return found

    def runs(self) -> list[dict[str, Any]]:
        """What `vmlab ls` says of each run, without the decoy."""
        return [run for run in self.home.runs() if run["id"] != _DECOY]

    def ended(self, cell: int = STRUCK) -> dict[str, Any]:
        """The last event of a cell, which must be there."""
        found = [e for e in self.home.events() if e["kind"] == "CellEnded" and e["cell"] == cell]
        assert found, f"cell {cell} has no end"
        return found[-1]

    def reason(self, cell: int = STRUCK) -> str:
        """What a cell is, with its reasons; it must not have passed."""
        end = self.ended(cell)
        assert end["outcome"] in ("failed", "invalid", "aborted"), f"cell {cell} is {end['outcome']}"
        assert end["reasons"], f"cell {cell} is {end['outcome']} without a reason"
        return f"cell {cell} {end['outcome']}: {'; '.join(end['reasons'])}"

    def small_disk(self, place: Path, mib: int) -> None:
        """A file system of its own at `place`, on a loop device that goes with the mount."""
        place.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"disk-{place.name}"
        with file.open("wb") as made:
            made.truncate(mib * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(file)], check=True, stdin=subprocess.DEVNULL)
        subprocess.run(["mount", "-o", "loop", str(file), str(place)], check=True)
        if place == self.home.state:
            self._decoys["process"].kill()
            self._decoys = self._make_decoys()

    @contextlib.contextmanager
    def filled(self, place: Path) -> Iterator[None]:
        """The file system of `place` is full meanwhile."""
        file = place / "filling"
        with file.open("wb") as filling:
            for size in (2**26, 2**20, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(filling.fileno(), file.stat().st_size, size)
        try:
            yield
        finally:
            file.unlink()

    def _measurements(self, cell: int) -> list[dict[str, Any]]:
        return [e for e in self.home.events() if e["kind"] == "MeasurementTaken" and e["cell"] == cell]

    def check(self) -> Iterator[str]:
        """What is not as it is to be after every fault, in words."""
        left = self.home.processes()
        if left:
            yield f"processes are left: {left}"
        yield from self._check_stores()
        yield from self._check_clean()
        for file, text in self._decoys["files"].items():
            if not file.exists() or file.read_text() != text:
                yield f"the decoy {file.name} was touched"
        if self._decoys["process"].poll() is not None:
            yield "the decoy process was ended"
        after = _settings()
        yield from (f"{name} is {after[name]}, was {was}" for name, was in self._settings.items() if after[name] != was)

    def _check_stores(self) -> Iterator[str]:
        for store in self.home.state.glob("vmlab/runs/2*/run.sqlite"):
            with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
                try:
                    (verdict,) = opened.execute("PRAGMA integrity_check").fetchone()
                except sqlite3.DatabaseError as error:
                    verdict = str(error)
            if verdict != "ok":
                yield f"{store}: {verdict}"
        if self._measured and self._measurements(1) != self._measured:
            yield "what was measured before the fault is not what it was"

    def _check_clean(self) -> Iterator[str]:
        first, again = (self.home.vmlab("clean", timeout=180) for _ in range(2))
        if first.returncode != 0:
            yield f"vmlab clean exits with {first.returncode}: {first.stderr.strip()[-300:]}"
        # Rows have frozen guests in common: one that another row has just given up is no fault of this one.
        said = again.stderr.splitlines()
        if not said or any(THE_CACHE not in line and line != "nothing to clean" for line in said):
            yield f"the second vmlab clean finds something: {again.stderr.strip()[-300:]}"
        decoy = str(self.home.state / "vmlab/runs" / _DECOY)
        if left := [one for one in self.home.leftovers() if not one.startswith(decoy)]:
            yield f"left over: {left}"

    def close(self) -> None:
        """End what is left, whatever came of the row."""
        if self.home.processes():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.home.vmlab("stop", timeout=120)
        for process in psutil.process_iter():
            if process.pid not in (os.getpid(), os.getppid()):
                with contextlib.suppress(psutil.Error):
                    process.kill()


def _settings() -> dict[str, str]:
    return {path.name: path.read_text() for path in _SETTINGS if path.exists()}


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None
