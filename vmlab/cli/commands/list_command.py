"""`vmlab ls`, which loads nothing that a list of runs does not need: it is asked often, and of many runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import page_width, write_json, write_text
from vmlab.lab.process.measuring_runs import host_queue
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.stray_processes import stray_processes
from vmlab.model.places import runs_folder
from vmlab.model.run import RUNNING
from vmlab.model.visible import visible_line
from vmlab.report.listing import names_text, queue_lines, runs_text
from vmlab.store.run_list import runs_document, runs_with_sizes
from vmlab.store.runs import RunSummary


@click.command()
@click.option("--scenarios", is_flag=True, help="List shipped scenarios instead of runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(scenarios: bool, as_json: bool) -> None:
    """List the runs, the newest first, or the shipped scenarios."""
    if scenarios:
        entries = list(_scenarios())
        if as_json:
            write_json({"schema": "vmlab.scenarios/1", "scenarios": entries})
        else:
            write_text(names_text([(entry["name"], entry["summary"]) for entry in entries], page_width()))
        return
    (runs, sizes), queue = runs_with_sizes(), host_queue()
    strays = stray_processes()
    if as_json:
        lost = [{"run": one.run, "process": one.pid, "folder": str(one.folder)} for one in strays]
        document = runs_document(runs, sizes, queue.document())
        write_json({**document, **({"without_folder": lost} if lost else {})})
    else:
        write_text(runs_text(runs, page_width(), sizes))
        _say_what_is_left(runs)
        for line in queue_lines(queue):
            say(line)
        for stray in strays:
            say(visible_line(f"{stray}; `vmlab clean` ends it"))


def _say_what_is_left(runs: Sequence[RunSummary]) -> None:
    """Point to `vmlab clean` where runs that were killed left something on the host."""
    killed = [run.id for run in runs if run.outcome != RUNNING and run.ended is None]
    if not killed:
        return

    folders = [RunFolder(run, runs_folder() / run) for run in killed]
    leaving = [folder.id for folder in folders if folder.is_own() and folder.remains()]
    if leaving:
        say(f"killed, with something left on this host: {', '.join(leaving)}; `vmlab clean` removes it")


def _scenarios() -> Iterator[dict[str, Any]]:
    from vmlab.model.scenarios.scenario import SIZES
    from vmlab.plan.scenario_file.loading import load, shipped_names

    for name in shipped_names():
        file = load(name)
        scenario = file.scenario
        yield {
            "name": name,
            "summary": scenario.summary,
            "path": str(file.path),
            "source": scenario.reference.source if scenario.reference else None,
            "sizes": [size for size in SIZES if size == "full" or size in scenario.sizes],
        }
