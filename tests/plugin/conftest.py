"""Packages that add to vmlab, in folders of their own, and the program with them on its path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import home

__all__ = ["home"]
ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "examples" / "plugin"


@dataclass
class Packages:
    """A folder with packages, and the program beside them."""

    folder: Path
    state: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which the program finds them."""
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{self.folder}",
            "XDG_STATE_HOME": str(self.state),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def add(self, package: str, points: Mapping[str, Mapping[str, str]], **modules: str) -> None:
        """Install a package of version 1.0 with these modules; `points` are its entry points, by group and name."""
        for name, text in modules.items():
            (self.folder / f"{name}.py").write_text(text)
        info = self.folder / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        groups = (
            f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in named.items())
            for group, named in points.items()
        )
        (info / "entry_points.txt").write_text("\n".join(groups))

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python to its end."""
        whole = {**self.environment, **environment}
        return subprocess.run([sys.executable, *arguments], env=whole, cwd=self.state, capture_output=True, text=True)

    def vmlab(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return self.python("-m", "vmlab", *arguments, **environment)


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    """An empty folder."""
    made = Packages(tmp_path / "packages", tmp_path / "home")
    made.folder.mkdir()
    made.state.mkdir()
    return made


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """The template of the documentation, built by its own build system and installed."""
    folder = tmp_path_factory.mktemp("template")
    made = Packages(folder / "packages", folder / "home")
    made.state.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*install, "--no-compile", "--target", str(made.folder), str(TEMPLATE)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return made
