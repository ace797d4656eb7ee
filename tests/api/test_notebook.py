"""The notebook of the docs, outside of the checkout: its code is run over the built wheel.

The types of it and of the API's page are checked over that, too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.store.stories import Story

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs/how-to/comparison.ipynb"
RUN = "20261121-143000-tile-aaaa"
pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("notebook")]


def _said(*command: str, folder: Path, **environment: str) -> str:
    """What a program printed that ended well."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with the wheel of this checkout, and what this one has beside vmlab."""
    folder = tmp_path_factory.mktemp("wheel")
    _said(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT), folder=folder)
    (wheel,) = folder.glob("vmlab-*.whl")
    _said(sys.executable, "-m", "venv", "--without-pip", "venv", folder=folder)
    inside = str(folder / "venv/bin/python")
    install = [sys.executable, "-m", "pip", "--python", inside, "install", "--quiet", "--no-deps", str(wheel)]
    _said(*install, folder=folder)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(_said(inside, "-c", ask, folder=folder).strip())
    # A path in such a file is searched, and its own such files are not: so the checkout is no part of it.
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    where = _said(inside, "-P", "-c", "import vmlab; print(vmlab.__file__)", folder=folder, PYTHONPATH="")
    assert Path(where.strip()).is_relative_to(site)
    return inside


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The code of the notebook as a program, in a folder of its own."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 2
    path = tmp_path / "notebook.py"
    path.write_text("\n".join(code) + "\n", encoding="utf-8")
    return path


def test_its_code_draws_a_comparison(python: str, program: Path, tmp_path: Path) -> None:
    story = Story(tmp_path / "state/vmlab/runs" / RUN / "run.sqlite", run=RUN)
    story.begin({"cache": ["none", "writeback"]}, cells=16)
    for repeat in range(1, 9):
        for cache, seconds in (("none", 10 + repeat / 10), ("writeback", 5 + repeat / 20)):
            story.cell({"cache": cache}, {"web": seconds}, wall=seconds + 1, repeat=repeat)
    story.end()
    state = str(tmp_path / "state")
    plain = {"PYTHONPATH": "", "MPLBACKEND": "svg", "MPLCONFIGDIR": state}
    program.write_text(f"import matplotlib\nmatplotlib.rcParams['svg.fonttype'] = 'none'\n{program.read_text()}")
    _said(python, "-P", str(program), folder=tmp_path, XDG_STATE_HOME=state, **plain)
    picture = (tmp_path / "comparison.svg").read_text(encoding="utf-8")
    assert "web, cache writeback" in picture
    assert "run time against cache none, in percent (tcg)" in picture


def _checked(python: str, program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What `mypy --strict` says of a program that has the built wheel."""
    check = ["mypy", "--strict", "--python-executable", python, "--cache-dir", str(folder / "cache")]
    return subprocess.run(
        [sys.executable, "-m", *check, str(program)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", "MYPYPATH": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_its_types_hold_from_outside(python: str, program: Path, tmp_path: Path) -> None:
    assert "no issues" in _checked(python, program, tmp_path).stdout
    program.write_text(f"{program.read_text()}wrong: int = run.scenario\n")
    assert 'expression has type "str", variable has type "int"' in _checked(python, program, tmp_path).stdout


def test_the_types_of_the_pages_examples_hold_from_outside(python: str, tmp_path: Path) -> None:
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    reading, following = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for name, example, wrong in (
        ("reading", reading, "comparison.differences[0].percent + 1"),
        ("following", following, "run.cell + 1"),
    ):
        program = tmp_path / f"{name}.py"
        program.write_text(example)
        done = _checked(python, program, tmp_path)
        assert "no issues" in done.stdout, done.stdout
        program.write_text(f"{example}{wrong}\n")
        assert 'Left operand is of type "' in _checked(python, program, tmp_path).stdout
