"""Version 1 of what plugins may import stays as it is, and all that vmlab has of its own is found like a plugin's."""

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.conftest import ROOT
from tests.promises import hold, promised_of
from vmlab.report.exports.export_format import export_formats
from vmlab.system.entry_points import EXPORTS, HOST_FIGURES, WORKLOADS, entries
from vmlab.telemetry.host.host_figures import figure_sources
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import Workload

PROMISED = Path(__file__).with_name("promised_v1.txt")
MODULES = ("workload", "export", "host_figure")
NOT_PROMISED = {
    "export.Exported": {"reader", "cell", "labelled"},
    "export.ExportFormat": {"options"},
    "host_figure.FigureSource": {"place"},
    "host_figure.HostFigure": {"chart", "tone", "minor", "drawn", "idle", "added", "area", "of_stages"},
    "host_figure.Watched": {"scope", "apart", "ordered", "outside", "made", "find"},
    "workload.Workload": {"asset", "needs_windows"},
}
"""What is there for vmlab's own alone."""
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


def promised() -> Iterator[str]:
    """The lines of all modules that plugins may import."""
    for name in MODULES:
        module = importlib.import_module(f"vmlab.plugin.v1.{name}")
        for public in module.__all__:
            left_out = NOT_PROMISED.get(f"{name}.{public}", ())
            yield from promised_of(f"{name}.{public}", getattr(module, public), left_out)


def test_nothing_that_was_promised_has_changed() -> None:
    hold(list(promised()), PROMISED, 100, "this would break plugins: it belongs into version 2")


@pytest.mark.parametrize("group", [WORKLOADS, EXPORTS, HOST_FIGURES])
def test_the_installed_entry_points_are_those_of_the_checkout(group: str) -> None:
    assert {one.name: one.place for one in entries(group) if one.is_own} == POINTS[group], "make setup"


def test_every_kind_and_group_of_ours_is_registered() -> None:
    assert kinds().keys() >= POINTS[WORKLOADS].keys()
    assert export_formats().keys() >= POINTS[EXPORTS].keys()
    assert {entry.name for entry in figure_sources()} >= POINTS[HOST_FIGURES].keys()
    written = set()
    for folder in ("kinds", "suites"):
        for file in (ROOT / "vmlab" / "workloads" / folder).glob("[a-z]*.py"):
            module = importlib.import_module(f"vmlab.workloads.{folder}.{file.stem}")
            own = [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]
            written |= {one.kind for one in own if isinstance(one, type) and issubclass(one, Workload)}
    assert written == POINTS[WORKLOADS].keys()
    sources = [
        file for file in (ROOT / "vmlab" / "telemetry").rglob("*.py") if "\nSOURCE = FigureSource(" in file.read_text()
    ]
    assert len(sources) == len(POINTS[HOST_FIGURES])
