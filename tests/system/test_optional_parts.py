"""What few scenarios need stands in packages that can be left out: the rest works, and asking for them is one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import vmlab

PARTS = {
    "hypervisor/ceph": "guests: {a: {memory: 512 MiB, data: 1 GiB, backing: 'rbd:lab'}}",
    "hypervisor/lvm": "guests: {a: {memory: 512 MiB, data: 1 GiB, backing: 'lvm:vg0'}}",
    "hypervisor/overlay_network": "guests: {a: {memory: 512 MiB, bandwidth: 30 Mbit/s}}",
    "hypervisor/emulated_disk": "guests: {a: {memory: 512 MiB}}\nhost: {disk: hdd-7200}",
    "workloads/suites": "guests: {a: {memory: 512 MiB}}",
}
"""The packages, and what of a scenario needs each."""

IMPORT_ALL = """
import pkgutil, importlib, vmlab
for info in pkgutil.walk_packages(vmlab.__path__, "vmlab."):
    if ".payload." not in info.name and not info.name.endswith("__main__"):
        importlib.import_module(info.name)
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of vmlab without any of the packages."""
    copy = tmp_path_factory.mktemp("installed") / "vmlab"
    shutil.copytree(Path(vmlab.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for part in PARTS:
        shutil.rmtree(copy / part)
    return copy.parent


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)


def test_every_other_module_is_imported_without_them(without: Path) -> None:
    answer = python(without, "-c", IMPORT_ALL)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_scenario_that_needs_none_of_them_is_planned_without_them(without: Path) -> None:
    answer = python(
        without, "-m", "vmlab", "validate", str(Path(vmlab.__file__).parents[1] / "scenarios/cpu-overhead.yaml")
    )
    assert answer.returncode == 0, answer.stderr
    assert "cpu-overhead.yaml: valid" in answer.stderr


@pytest.mark.parametrize("part", PARTS)
def test_a_scenario_that_needs_one_is_refused_in_one_line(without: Path, part: str) -> None:
    kind = "unixbench" if part == "workloads/suites" else "cpu, threads: 1"
    (without / "mine.yaml").write_text(f"name: mine\n{PARTS[part]}\nworkloads: {{one: {{kind: {kind}, on: a}}}}\n")
    answer = python(without, "-m", "vmlab", "validate", "mine.yaml")
    assert (answer.returncode, answer.stdout, answer.stderr.count("\n")) == (2, "", 1), answer.stderr
    assert answer.stderr.startswith("mine.yaml:")
    package = f"vmlab.{part.replace('/', '.')}"
    lacks = (
        "there is no kind of workload 'unixbench'" if part == "workloads/suites" else f"lacks the package {package},"
    )
    assert lacks in answer.stderr
    whole = python(Path(vmlab.__file__).parents[1], "-m", "vmlab", "validate", str(without / "mine.yaml"))
    assert whole.returncode == 0, whole.stderr
