"""What is read of files that come from anywhere: a target takes bytes, and raises the program's own errors alone."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.plan.copied_guest.guests import ROOMY, VM100, WEB01, with_disk
from tests.store.stories import Story
from vmlab.analysis.document import run_document
from vmlab.model.errors import VmlabError
from vmlab.model.event_json import from_json
from vmlab.plan.copied_guest.copied_scenario import copied_scenario
from vmlab.plan.copied_guest.guest_sources import guest_of_text
from vmlab.plan.copied_guest.trial import Trial
from vmlab.plan.planning import validate_all
from vmlab.plan.scenario_file.loading import read
from vmlab.store.archive import SCHEMA, unpack
from vmlab.store.reader import RunReader
from vmlab.system.removal import remove_tree
from vmlab.workloads.kinds.bonnie import parse_bonnie
from vmlab.workloads.kinds.http import parse_paced
from vmlab.workloads.kinds.memcpy import parse_mbw
from vmlab.workloads.reports.ab_report import parse_ab, parse_percentiles
from vmlab.workloads.reports.fio_report import parse_fio
from vmlab.workloads.reports.iperf3_report import parse_iperf3
from vmlab.workloads.reports.sysbench_report import DatabaseReport, MemoryReport, Report, parse_sysbench
from vmlab.workloads.suites.specjvm import parse_specjvm
from vmlab.workloads.suites.unixbench import parse_unixbench
from vmlab.workloads.verification import read_from_a_guest

ROOT = Path(__file__).parents[2]
CAPTURED = ROOT / "tests/workloads/captured"
CRASHERS = Path(__file__).with_name("crashers")
_FIGURES = 4
_RUN = "20261121-143015-tile-7f3a"
Target = Callable[[bytes], object]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _scenario(data: bytes) -> None:
    validate_all(read(Path("fuzzed.yaml"), _text(data), {}))


def _guest(data: bytes) -> None:
    """The description of a guest, and the scenario that is made of it, which is valid."""
    guest = guest_of_text(data, "fuzzed.xml")
    if guest.disks:
        host = _AnyHost(ROOMY)
        text = copied_scenario(guest, host)
        assert (why := host.why_not(text)) is None, f"{why}\n{text}"


class _AnyHost(Trial):
    """Takes whatever is valid, without a plan for it."""

    def why_not(self, text: str) -> str | None:
        try:
            read(Path("copied.yaml"), text, {})
        except VmlabError as error:
            return str(error)
        return None


def _event(data: bytes) -> None:
    with suppress(ValueError):
        from_json(data)


def _store(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        path.write_bytes(data)
        with RunReader(path) as reader:
            run_document(reader)
            list(reader.sample_rows())
            list(reader.raw_outputs())


def _archive(data: bytes) -> None:
    """Import it into a state folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = folder
        path = Path(folder) / "run.vmlab"
        path.write_bytes(data)
        try:
            unpack(path)
        except VmlabError:
            assert not list((Path(folder) / "vmlab/runs").glob("*")), "what was refused has left something"
            raise
        finally:
            remove_tree(Path(folder) / "vmlab")
            os.environ.pop("XDG_STATE_HOME") if before is None else os.environ.update(XDG_STATE_HOME=before)


def _imported_store(data: bytes) -> None:
    """Import an archive that has these bytes for its store, under the right digest."""
    _archive(archive_of(data))


def _captured(parse: Callable[[str], object], data: bytes) -> None:
    with read_from_a_guest("it"):
        parse(_text(data))


_PARSERS: dict[str, Callable[[str], object]] = {
    "ab": parse_ab,
    "ab-percentiles": partial(parse_percentiles, requests=50),
    "bonnie": parse_bonnie,
    "fio": parse_fio,
    "iperf3": partial(parse_iperf3, side="client"),
    "mbw": parse_mbw,
    "paced": partial(parse_paced, requests=100, pace=10.0),
    "specjvm": parse_specjvm,
    "sysbench": partial(parse_sysbench, Report),
    "sysbench-database": partial(parse_sysbench, DatabaseReport),
    "sysbench-memory": partial(parse_sysbench, MemoryReport),
    "unixbench": parse_unixbench,
}
TARGETS: dict[str, Target] = {
    "scenario": _scenario,
    "guest": _guest,
    "event": _event,
    "store": _store,
    "archive": _archive,
    "imported-store": _imported_store,
    **{name: partial(_captured, parse) for name, parse in _PARSERS.items()},
}
_FILES = {
    "ab": "ab-m*.txt",
    "ab-percentiles": "ab-percentiles*.csv",
    "bonnie": "bonnie*.txt",
    "fio": "fio-*.json",
    "iperf3": "iperf3-*.json",
    "mbw": "mbw*.txt",
    "paced": "oltp-paced.txt",
    "specjvm": "jvm.txt",
    "sysbench": "sysbench-cpu.txt",
    "sysbench-database": "oltp-*.txt",
    "sysbench-memory": "sysbench-memory.txt",
    "unixbench": "system.txt",
}


def harm(target: str, data: bytes) -> None:
    """Give `data` to a target. Raises what is no error of the program's, and nothing for one that is."""
    with suppress(VmlabError):
        TARGETS[target](data)


def seeds(target: str) -> list[bytes]:
    """Files that are in order, to begin from."""
    if target == "scenario":
        return [_short(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "scenarios").glob("*.yaml"))]
    if target == "guest":
        return [WEB01.encode(), VM100.encode(), with_disk().encode()]
    if target in _FILES:
        return [file.read_bytes() for file in sorted(CAPTURED.glob(_FILES[target]))]
    store = _small_store()
    if target == "event":
        return _events_in(store)
    return [archive_of(store) if target == "archive" else store]


def _short(scenario: str) -> bytes:
    """A scenario with its first published figures alone: they are alike, and nearly half of all that is shipped."""
    before, head, after = scenario.partition("\n  figures:\n")
    figures = re.findall(r"    - .*\n(?:      .*\n)*", after)[:_FIGURES]
    return "".join((before, head, *figures, re.sub(r"\A(?:    .*\n)*", "", after))).encode()


def archive_of(store: bytes) -> bytes:
    """An archive with this store, and a list that agrees with it."""
    listed = {"run.sqlite": {"bytes": len(store), "sha256": hashlib.sha256(store).hexdigest()}}
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.sqlite", store)
        archive.writestr("manifest.json", json.dumps({"schema": SCHEMA, "run": _RUN, "files": listed}))
    return memory.getvalue()


def _small_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        story = Story(path, run=_RUN).begin({"cache": ["none", "writeback"]})
        for cache in ("none", "writeback"):
            story.start_cell({"cache": cache})
            story.execute(3.0, [{"cpu_user_percent": 4.0}, {"cpu_user_percent": 5.0}])
            story.measure("web", 3.0)
            story.end_cell(wall=3.0)
        story.end()
        return path.read_bytes()


def _events_in(store: bytes) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        path.write_bytes(store)
        opened = sqlite3.connect(path)
        found = [str(body).encode() for (body,) in opened.execute("SELECT body FROM events")]
        opened.close()
        return found
