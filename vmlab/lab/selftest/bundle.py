"""The file that goes with a bug report: what was tried, this host's checks, versions and the run's log. No secrets."""

from __future__ import annotations

import getpass
import io
import json
import platform
import re
import socket
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from vmlab import __version__
from vmlab.hypervisor.checks import Check
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.selftest.trials import Result
from vmlab.model.errors import VmlabError
from vmlab.model.event_json import to_json
from vmlab.store.reader import RunReader
from vmlab.system.given_file import new_file

_MOST_LOG = 2**20
"""Bytes of the end of a log that are kept."""
_STAMP = (2020, 1, 1, 0, 0, 0)


def contents(
    results: Sequence[Result], checks: Sequence[Check], run: RunFolder | None, *, host_names: bool
) -> dict[str, str]:
    """The texts of a bundle by file name. Names of this host and of its user are left out unless `host_names`."""
    texts = {
        "selftest.json": _as_json({"schema": "vmlab.selftest/1", "trials": [asdict(one) for one in results]}),
        "doctor.json": _as_json({"schema": "vmlab.doctor/1", "checks": [asdict(one) for one in checks]}),
        "versions.json": _as_json(_versions()),
    }
    if run is not None:
        texts["launcher.log"] = _end_of(run.log)
        texts["events.jsonl"] = _events(run)
    return texts if host_names else {name: without_names(text, _own_names()) for name, text in texts.items()}


def write(path: Path, texts: Mapping[str, str]) -> None:
    """Write the bundle. Raises OSError, which names the file."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name, _STAMP), text, zipfile.ZIP_DEFLATED)
    with new_file(path) as file:
        file.write(memory.getvalue())


def without_names(text: str, names: Mapping[str, str]) -> str:
    """`text` with each of `names`, where it stands as a word of its own, replaced by what it maps to."""
    for name, instead in sorted(names.items(), key=lambda one: -len(one[0])):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", instead, text)
    return text


def _own_names() -> dict[str, str]:
    names = {socket.gethostname(): "HOST", socket.getfqdn(): "HOST", platform.node(): "HOST", str(Path.home()): "HOME"}
    user = _quiet(getpass.getuser)
    if user not in (None, "root"):
        names[str(user)] = "USER"
    return {name: instead for name, instead in names.items() if name not in ("", "localhost", "/")}


def _quiet(ask: Callable[[], str]) -> str | None:
    try:
        return ask()
    except (OSError, KeyError):
        return None


def _versions() -> dict[str, Any]:
    packages = {one.name: one.version for one in metadata.distributions() if one.name}
    return {
        "vmlab": __version__,
        "python": sys.version,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "system": _quiet(lambda: platform.freedesktop_os_release()["PRETTY_NAME"]),
        "packages": dict(sorted(packages.items())),
    }


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _MOST_LOG))
            return file.read().decode(errors="replace")
    except OSError as error:
        return f"{error}\n"


def _events(run: RunFolder) -> str:
    try:
        with RunReader(run.store) as reader:
            return "".join(f"{to_json(event)}\n" for _, event in reader.events())
    except VmlabError as error:
        return f"{error}\n"


def _as_json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
