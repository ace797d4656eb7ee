"""The versions of Python packages, and the digests of their files, say the same."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HASHED = (ROOT / "constraints-hashed.txt").read_text()
PROGRAM = ROOT / "packaging/hashed.py"


def _program() -> Any:
    spec = importlib.util.spec_from_file_location("hashed", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _printed(*extras: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PROGRAM), *extras], capture_output=True, text=True, check=False)


def _names(text: str) -> set[str]:
    return set(_versions(text))


def _versions(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[a-z,-]+\])?==(\S+)", text, re.MULTILINE))


def test_both_files_have_the_same_versions() -> None:
    normal = _program().normal
    plain = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    versions = {normal(name): version for name, version in (line.split("==") for line in plain)}
    assert versions == _versions(HASHED), "run `make hashes`"


def test_every_package_has_a_digest_and_no_line_has_an_address() -> None:
    found = _program().entries(HASHED)
    assert set(found) == _names(HASHED)
    for name, (lines, _) in found.items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", lines), name
    assert "://" not in HASHED and not re.search(r"^-", HASHED, re.MULTILINE)


def test_what_an_installation_needs_is_printed_and_nothing_else() -> None:
    plain, more = _printed(), _printed("lab", "report")
    assert (plain.returncode, more.returncode) == (0, 0), plain.stderr + more.stderr
    assert {"asyncssh", "cryptography", "textual", "hatchling"} <= _names(plain.stdout)
    assert {"libvirt-python", "matplotlib", "numpy"} <= _names(more.stdout) - _names(plain.stdout)
    assert not {"pytest", "mypy", "uv", "distributed"} & _names(more.stdout)
    assert "via" not in plain.stdout


def test_an_unknown_extra_is_one_line() -> None:
    done = _printed("labb")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hashed: no extra 'labb'; there are disk, ") and done.stderr.count("\n") == 1


def test_what_the_file_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match="unheard-of"):
        _program().needed(_program().entries(HASHED), ["unheard-of"])
