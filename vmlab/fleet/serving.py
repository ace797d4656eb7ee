"""The end of a fleet's line on the host: takes questions of the controller, one line of JSON each, and answers them.

It is `vmlab hosts serve`, which the controller starts over SSH and which ends with the line. All that it does could be
done by commands of vmlab; the runs that it starts are ordinary ones, and do not depend on it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from vmlab import __version__
from vmlab.fleet.host_answers import MOST_ROWS, PROTOCOL
from vmlab.guests import sent_assets
from vmlab.guests.image.catalog import find, unpack
from vmlab.guests.image.layers import lacking_packages
from vmlab.guests.snapshots import list_snapshots
from vmlab.hypervisor.checks import checks
from vmlab.lab.commands.forced_end import kill_run
from vmlab.lab.commands.stopping import is_over, stop_run
from vmlab.lab.commands.verbs import CallOff, Keep, NotListening, Release, StartAt, Verb
from vmlab.lab.process.dead_runs import clean, remove_run
from vmlab.lab.process.launch import check_ready, start_run
from vmlab.lab.process.measuring_runs import HostBusy, look_here
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.checked import made
from vmlab.model.errors import ExitCode, RefusedError, UsageError, VmlabError, in_one_line
from vmlab.model.event_json import to_json
from vmlab.plan.hosting import check_fit
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides
from vmlab.store.reader import NotBegunError, RunReader
from vmlab.store.writer import raw_row
from vmlab.system.scratch import scratch
from vmlab.system.terminal import say
from vmlab.workloads.registry import kinds


class HostRows:
    """Reads one store again and again; its state is in the questions, so that another process goes on after a cut."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._reader: RunReader | None = None

    def after(self, events: int, samples: int, layouts: int, most: int) -> dict[str, Any]:
        """Up to `most` events and samples after these rows, and the layouts beyond `layouts` that they need.

        Raises StoreError.
        """
        # Checked before the store is read, so that a last event written in between is still found.
        alive = self._folder.alive()
        reader = self._opened()
        if reader is None:
            return {"events": [], "seen": events, "layouts": [], "samples": [], "alive": alive}
        found = list(islice(reader.events(events), most))
        taken = list(islice(reader.sample_rows(after=samples), most))
        last = max((one.layout for one in taken), default=0)
        known = reader.sample_layouts() if last > layouts else {}
        new = [id for id in known if layouts < id <= last]
        return {
            "events": [{"row": row, "body": to_json(event)} for row, event in found],
            "seen": found[-1][0] if found else events,
            "layouts": [{"id": id, "names": known[id].names, "units": known[id].units} for id in new],
            "samples": [{"row": one.id, **asdict(one), "body": _as_text(one.body)} for one in taken],
            "alive": alive or len(found) == most or len(taken) == most,
        }

    def _opened(self) -> RunReader | None:
        if self._reader is None:
            try:
                self._reader = RunReader(self._folder.store)
            except NotBegunError:
                return None
        return self._reader

    def close(self) -> None:
        """Close the store."""
        if self._reader is not None:
            self._reader.close()


_LONGEST_QUESTION = 16 * 2**20
_LISTEN_SECONDS = 60.0
_POLL_SECONDS = 0.05
_CHUNK = 2**20

Answer = dict[str, Any]
_DONE: Answer = {"ok": True}
_OF_RAW = ("workload", "tile", "guest", "name")


class Serving:
    """Answers questions until standard input ends; several at once, each with the number of its question."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._rows: dict[str, HostRows] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Take questions until the stream ends."""
        while line := await reader.readline():
            task = asyncio.create_task(self._answered(line))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        for task in self._tasks:
            task.cancel()

    async def _answered(self, line: bytes) -> None:
        number = None
        try:
            question = json.loads(line)
            number = question["id"]
            answer = {"id": number, "ok": True, "answer": await self._answer(question.get("ask"), question)}
        except (VmlabError, OSError) as error:
            code = error.exit_code if isinstance(error, VmlabError) else ExitCode.FAILED
            answer = {"id": number, "ok": False, "error": in_one_line(error), "exit_code": int(code)}
        except (ValueError, KeyError, TypeError) as error:
            answer = {"id": number, "ok": False, "error": f"no question: {error}", "exit_code": int(ExitCode.USAGE)}
        self._write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")

    async def _answer(self, ask: object, question: Answer) -> Answer:
        """The answer. Raises VmlabError and OSError, and for no question ValueError, KeyError and TypeError."""
        if ask in _VERBS:
            return await _said(ask, question)
        if ask in _WORK:
            return await asyncio.to_thread(_WORK[ask], question)
        match ask:
            case "hello":
                return {"protocol": PROTOCOL, "vmlab": __version__, "root": os.geteuid() == 0}
            case "clock":
                return {"wall": time.time(), "mono": time.monotonic()}
            case "rows":
                return await self._more(question)
            case "forget":
                if (rows := self._rows.pop(str(question["run"]), None)) is not None:
                    rows.close()
                return await asyncio.to_thread(_forgotten, question)
            case _:
                raise UsageError(f"this version of vmlab answers no {str(ask)[:40]!r}")

    async def _more(self, question: Answer) -> Answer:
        run = str(question["run"])
        rows = self._rows.get(run) or self._rows.setdefault(run, HostRows(_folder(question)))
        end = time.monotonic() + min(float(question["wait"]), 10.0)
        while True:
            found = rows.after(int(question["events"]), int(question["samples"]), int(question["layouts"]), MOST_ROWS)
            if found["events"] or found["samples"] or not found["alive"] or time.monotonic() > end:
                return found
            await asyncio.sleep(_POLL_SECONDS)


async def _said(ask: object, question: Answer) -> Answer:
    """Say a verb to the runner, which listens some moments after the run was started."""
    folder, end = _folder(question), time.monotonic() + _LISTEN_SECONDS
    kind = _VERBS[ask]
    given = {one.name: question[one.name] for one in fields(kind) if one.name in question}
    verb = kind(**{**given, "origin": "fleet"})
    while True:
        try:
            await asyncio.to_thread(verb.send, folder.control)
            return _DONE
        except NotListening:
            if kind is Keep:
                # A runner that does not listen yet, or no more, needs none.
                return _DONE
            if kind is not Release or not folder.alive() or time.monotonic() > end:
                raise
        await asyncio.sleep(_POLL_SECONDS)


def _folder(question: Answer) -> RunFolder:
    run = str(question["run"])
    folder = RunFolder.of(run)
    if "/" in run or not folder.is_own():
        raise UsageError(f"there is no run {run[:64]} here")
    return folder


def _condition(question: Answer) -> Answer:
    image = find()
    return {
        "checks": [{key: asdict(one)[key] for key in ("name", "ok", "required", "detail")} for one in checks()],
        "image": None if image is None else image.id,
        "snapshots": len(list_snapshots()),
        "measuring": list(map(str, look_here().measuring)),
        "unknown_kinds": [str(kind) for kind in question.get("kinds", ()) if kind not in kinds()],
        "lacking_packages": lacking_packages([str(name) for name in question.get("packages", ())]),
    }


def _lacked(question: Answer) -> Answer:
    """The assets that are not here."""
    said = [(str(one["name"]), Path(str(one["path"])), str(one["sha256"])) for one in question["assets"]]
    return {"names": [name for name, path, sha256 in said if sent_assets.find(name, path, sha256) is None]}


def _own_copies(question: Answer) -> tuple[str, ...]:
    """The question's assets as the command line has them, each at its place here."""
    copies = []
    for one in question.get("assets", ()):
        name, path, sha256 = str(one["name"]), Path(str(one["path"])), str(one["sha256"])
        if (found := sent_assets.find(name, path, sha256)) is None:
            raise RefusedError(f"asset {name} is not here, or is another one")
        copies.append(f"{name}={found.path}")
    return tuple(copies)


def _started(question: Answer) -> Answer:
    """Start the run of the question's scenario, its cells held."""
    check_ready()
    overrides = replace(made(Overrides, dict(question["overrides"])), assets=_own_copies(question))
    source, text = Path(str(question["source"])), str(question["text"])
    file = read(source, text, overrides.variables, files=overrides.files or {})
    plan, host = prepare_run(file, overrides)
    check_fit(plan, host)
    try:
        folder = start_run(file, overrides, plan, host, held=float(question["patience"]))
    except HostBusy as busy:
        raise busy.remedied("start the fleet's run when no run measures or waits there") from busy
    cells = [{"index": cell.index, "axes": cell.axes, "repeat": cell.repeat} for cell in plan.cells]
    return {"run": folder.id, "cells": cells}


def _raw_of(question: Answer) -> Answer:
    folder, cell = _folder(question), int(question["cell"])
    with RunReader(folder.store) as reader:
        rows = (raw_row(None, one) for _, one in reader.raw_outputs(cell))
        return {"raw": [{**dict(zip(_OF_RAW, row[1:-1], strict=True)), "body": _as_text(row[-1])} for row in rows]}


def _as_text(blob: bytes) -> str:
    return base64.b64encode(blob).decode()


def _forgotten(question: Answer) -> Answer:
    remove_run(_folder(question))
    # Where its launcher was killed, what was sent for it is still there.
    sent_assets.clear_unused()
    return _DONE


def _stopped(question: Answer) -> Answer:
    """Stop the run, if it goes on, and return when it is over."""
    folder = _folder(question)
    if folder.alive() and not is_over(folder, stop_run(folder, origin="fleet")):
        kill_run(folder, ExitCode.INTERRUPTED, "it did not stop for the fleet")
    return _DONE


def _cleaned(question: Answer) -> Answer:
    swept = clean()
    removed = [f"run {one.run}: {what}" for one in swept for what in one.removed]
    return {"removed": removed, "left": [what for one in swept for what in one.left]}


_VERBS: dict[object, type[Verb]] = {"release": Release, "start-at": StartAt, "call-off": CallOff, "keep": Keep}
"""What is said to the runner of a run, by the question that asks for it."""
_WORK: dict[object, Callable[[Answer], Answer]] = {
    "condition": _condition,
    "lacking": _lacked,
    "start": _started,
    "raw": _raw_of,
    "stop": _stopped,
    "clean": _cleaned,
}
"""What takes a while, and is done in a thread."""


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


async def _serve() -> None:
    reader = asyncio.StreamReader(limit=_LONGEST_QUESTION)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await Serving(_write_all).serve(reader)


def serve() -> None:
    """Answer the controller on standard input and output, until the line ends."""
    asyncio.run(_serve())


def take_image(id: str) -> str:
    """Keep the image `id`, whose exported file comes on standard input; its id. Raises ImageError."""
    with scratch("image") as place:
        file = place / "image.vmi"
        with file.open("wb") as target:
            while data := sys.stdin.buffer.read(_CHUNK):
                target.write(data)
        kept = unpack(file, say).id
    if kept != id:
        raise UsageError(f"image {kept} came instead of {id}")
    return kept


def take_asset(id: str) -> str:
    """Keep the asset `id`, whose archive comes on standard input; its id. Raises what `sent_assets.take` raises."""
    return sent_assets.take(id, sys.stdin.buffer, say)
