"""Without the Python packages that are compiled at install, all works but what boots guests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.model.places import runs_folder

WITHOUT = """
import sys
for name in ("libvirt", "libvirtmod", "libvirt_qemu", "pyfuse3"):
    sys.modules[name] = None
from vmlab.__main__ import main
main()
"""
RUN = "20261121-143000-tile-0001"
WORKING: list[tuple[str, ...]] = [
    ("ls",),
    ("show", "last"),
    ("plan", "tile"),
    ("validate", "tile"),
    ("compare", "last:1", "last:2"),
    ("report", "last", "-o", "run.html"),
    ("export", "last", "-o", "run.csv"),
    ("top", "--json", "--count", "1"),
    ("clean",),
    ("image", "ls"),
]


def without(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A command of a program that has none of these packages."""
    program = [sys.executable, "-c", WITHOUT, *words]
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(program, cwd=folder, env=os.environ | path, capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True)
def run() -> None:
    """One run that is over."""
    story = Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    story.cell({"cache": "writeback"}, {"web": 4.0}, wall=5.0)
    story.end()


@pytest.mark.parametrize("words", WORKING, ids=" ".join)
def test_what_boots_no_guest_works(words: tuple[str, ...], tmp_path: Path) -> None:
    done = without(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_console_and_commands_are_loaded(tmp_path: Path) -> None:
    loads = """
import importlib, pkgutil, vmlab
for layer in ("analysis", "cli", "plan", "report", "store", "telemetry", "tui", "workloads"):
    for module in pkgutil.walk_packages([f"{vmlab.__path__[0]}/{layer}"], f"vmlab.{layer}."):
        if "payload" not in module.name:
            importlib.import_module(module.name)
"""
    program = [sys.executable, "-c", WITHOUT.partition("from vmlab")[0] + loads]
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(program, cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_is_refused_with_what_installs_it(tmp_path: Path) -> None:
    done = without("run", "tile", "--size", "smoke", folder=tmp_path)
    assert done.returncode == 3
    asked = "needs root" if os.geteuid() else "needs the Python package libvirt-python (vmlab doctor --fix)"
    assert asked in done.stderr
