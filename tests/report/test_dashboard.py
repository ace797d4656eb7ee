"""The dashboard for Grafana: it is what its program prints, and exports have every series that it asks for."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vmlab.report.exports import openmetrics
from vmlab.report.exports.tidy import Exported
from vmlab.store.reader import RunReader

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "vmlab/report/demo/run.sqlite"
"""Its host was ordered, so that it has every chart."""
FILE = ROOT / "examples" / "grafana" / "vmlab.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
VARIABLES = [one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]

Series = set[tuple[str, tuple[tuple[str, str], ...]]]


@pytest.fixture(scope="module")
def exported() -> Series:
    """Name and labels of every series of both exports of the demo's run."""
    found: Series = set()
    for write in (openmetrics.write_measurements, openmetrics.write_samples):
        file = io.BytesIO()
        write([Exported(RunReader(RECORDING))], file)
        starts = {line.partition("} ")[0] for line in file.getvalue().decode().splitlines() if not line.startswith("#")}
        for start in starts:
            name, _, labels = start.partition("{")
            found.add((name, tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))))
    return found


def selected(selector: str, exported: Series) -> Series:
    """The series that a selector of PromQL takes, with every variable of the dashboard at All."""
    whole = re.fullmatch(r"(\w+)(?:\{(.*)\})?", selector)
    assert whole is not None, selector
    matchers = re.findall(r'(\w+)(=~|=)"([^"]*)"(?:,|$)', whole[2] or "")
    assert ",".join(f'{label}{operator}"{value}"' for label, operator, value in matchers) == (whole[2] or "")
    tests = [(label, re.compile(value if sign == "=~" else re.escape(value))) for label, sign, value in matchers]
    return {
        (name, labels)
        for name, labels in exported
        if name == whole[1] and all(test.fullmatch(dict(labels).get(label, "")) for label, test in tests)
    }


def with_all(text: str) -> str:
    """A text with `allValue` in place of each variable."""
    for variable in VARIABLES:
        text = text.replace(f"${variable['name']}", variable["allValue"])
    return text


def test_it_is_what_its_program_prints() -> None:
    program = [sys.executable, str(ROOT / "packaging" / "dashboard.py")]
    done = subprocess.run(program, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert done.stdout == FILE.read_text(), "figures have changed: make schema"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_export_has_the_series_that_a_panel_draws(exported: Series, expression: str) -> None:
    found = selected(with_all(expression), exported)
    assert found
    assert "$" not in with_all(expression)
    if 'part=""' in expression:
        # One line for each cell, and one for what is between them; none for a CPU, disk or guest.
        assert len(found) == 1 + len({dict(labels)["cell"] for _, labels in found if "cell" in dict(labels)})


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda one: str(one["name"]))
def test_an_export_has_the_labels_that_a_variable_lists(exported: Series, variable: dict[str, Any]) -> None:
    asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
    assert asked is not None and asked[2] == variable["name"]
    values = {dict(labels).get(asked[2]) for _, labels in selected(with_all(asked[1]), exported)} - {None}
    assert values


def test_no_two_panels_overlap() -> None:
    places = [tuple(panel["gridPos"].values()) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in DASHBOARD["panels"]})
