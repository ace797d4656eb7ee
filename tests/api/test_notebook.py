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
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    _said(*wheel, str(ROOT), folder=folder)
    (built,) = folder.glob("vmlab-*.whl")
    _said(sys.executable, "-m", "venv", "--without-pip", "venv", folder=folder)
    inside = str(folder / "venv/bin/python")
    install = [sys.executable, "-m", "pip", "--python", inside, "install", "--quiet", "--no-deps", "--no-compile"]
    _said(*install, str(built), folder=folder)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(_said(inside, "-c", ask, folder=folder).strip())
    # A path in such a file is searched, and its own such files are not: so the checkout is no part of it.
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    where = _said(inside, "-P", "-c", "import vmlab; print(vmlab.__file__)", folder=folder, PYTHONPATH="")
    assert Path(where.strip()).is_relative_to(site)
    return inside


def _code() -> str:
    """The code of the notebook as a program."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 2
    return "\n".join(code) + "\n"


def test_its_code_draws_a_comparison(python: str, tmp_path: Path) -> None:
    story = Story(tmp_path / "state/vmlab/runs" / RUN / "run.sqlite", run=RUN)
    story.begin({"cache": ["none", "writeback"]}, cells=16)
    for repeat in range(1, 9):
        for cache, seconds in (("none", 10 + repeat / 10), ("writeback", 5 + repeat / 20)):
            story.cell({"cache": cache}, {"web": seconds}, wall=seconds + 1, repeat=repeat)
    story.end()
    state = str(tmp_path / "state")
    plain = {"PYTHONPATH": "", "MPLBACKEND": "svg", "MPLCONFIGDIR": state}
    program = tmp_path / "notebook.py"
    program.write_text(f"import matplotlib\nmatplotlib.rcParams['svg.fonttype'] = 'none'\n{_code()}", encoding="utf-8")
    _said(python, "-P", str(program), folder=tmp_path, XDG_STATE_HOME=state, **plain)
    picture = (tmp_path / "comparison.svg").read_text(encoding="utf-8")
    assert "web, cache writeback" in picture
    assert "run time against cache none, in percent (tcg)" in picture


@pytest.mark.nightly
def test_the_types_of_the_notebook_and_of_the_pages_examples_hold_from_outside(python: str, tmp_path: Path) -> None:
    """By one `mypy --strict` with the built wheel, which finds what is wrong on the last lines, and nothing else."""
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    reading, following = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    programs = []
    for name, right, wrong in (
        ("notebook", _code(), "wrong: int = run.scenario"),
        ("reading", reading, "comparison.differences[0].percent + 1"),
        ("following", following, "run.cell + 1"),
    ):
        for program, text in ((f"{name}.py", right), (f"{name}_wrong.py", f"{right}{wrong}\n")):
            (tmp_path / program).write_text(text, encoding="utf-8")
            programs.append(program)
    check = ["mypy", "--strict", "--python-executable", python, "--cache-dir", "cache", *programs]
    done = subprocess.run(
        [sys.executable, "-m", *check],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "", "MYPYPATH": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    found = dict(re.findall(r"^(\w+\.py:\d+): error: (.*)$", done.stdout, re.MULTILINE))
    last = {name: f"{name}:{len((tmp_path / name).read_text(encoding='utf-8').splitlines())}" for name in programs}
    assert sorted(found) == sorted(last[name] for name in programs if "wrong" in name), done.stdout + done.stderr
    assert 'expression has type "str", variable has type "int"' in found[last["notebook_wrong.py"]]
    for name in ("reading_wrong.py", "following_wrong.py"):
        assert f'{last[name]}: note: Left operand is of type "' in done.stdout
