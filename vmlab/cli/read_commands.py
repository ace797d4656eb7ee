"""`vmlab ls`, `show` and `compare`: they read stores and start nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from vmlab.analysis import compare as comparing
from vmlab.analysis.document import run_document, time_of_day
from vmlab.analysis.shape import RunDocument
from vmlab.cli.output import write_json, write_text
from vmlab.model.errors import UsageError
from vmlab.plan.loading import load, shipped_names
from vmlab.report.cell import cell_text, raw_text
from vmlab.report.comparison import comparison_table
from vmlab.report.listing import names_text, runs_text
from vmlab.report.tables import run_table
from vmlab.store.reader import RunReader
from vmlab.store.runs import RunSummary, list_runs, resolve_run

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_cell_option = click.option("--cell", "cell", type=click.IntRange(min=1), help="One cell only, by its number.")


@click.command()
@click.option("--scenarios", is_flag=True, help="List the shipped scenarios instead of the runs.")
@_json_option
def ls(scenarios: bool, as_json: bool) -> None:
    """List the runs, the newest first, or the shipped scenarios."""
    if scenarios:
        entries = list(_scenarios())
        if as_json:
            write_json({"schema": "vmlab.scenarios/1", "scenarios": entries})
        else:
            write_text(names_text([(entry["name"], entry["summary"]) for entry in entries]))
        return
    runs = list_runs()
    if as_json:
        write_json({"schema": "vmlab.runs/1", "runs": [_run_json(run) for run in runs]})
    else:
        write_text(runs_text(runs))


def _scenarios() -> Iterator[dict[str, str]]:
    for name in shipped_names():
        file = load(name)
        yield {"name": name, "summary": file.scenario.summary, "path": str(file.path)}


def _run_json(run: RunSummary) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": run.id,
        "scenario": run.scenario,
        "size": run.size,
        "outcome": run.outcome,
        "started": time_of_day(run.started),
        "ended": time_of_day(run.ended),
        "cells_done": run.cells_done,
        "cells_planned": run.cells_planned,
    }
    if run.runner_pid is not None:
        body["runner_pid"] = run.runner_pid
    if run.problem is not None:
        body["problem"] = run.problem
    return body


@click.command()
@click.argument("run", default="last")
@_cell_option
@click.option("--raw", is_flag=True, help="Print what the tools behind the figures printed.")
@_json_option
def show(run: str, cell: int | None, raw: bool, as_json: bool) -> None:
    """Show what RUN measured: an id, the beginning of one, `last`, or a path; RUN:2 is its second cell."""
    reference, named = _split(run)
    cell = named if cell is None else cell
    with RunReader(resolve_run(reference)) as reader:
        if raw:
            _show_raw(reader, cell, as_json)
            return
        document = run_document(reader)
    chosen = document if cell is None else _only(document, cell)
    if as_json:
        write_json(chosen)
    elif cell is None:
        write_text(run_table(document))
    else:
        write_text(cell_text(document, chosen["cells"][0]))


def _show_raw(reader: RunReader, cell: int | None, as_json: bool) -> None:
    outputs = reader.raw_outputs(cell)
    if not as_json:
        write_text(raw_text(outputs))
        return
    bodies = [
        {
            "cell": number,
            "workload": output.workload,
            "tile": output.tile,
            "guest": output.guest,
            "name": output.name,
            "text": output.text.encode("utf-8", "replace").decode(),
        }
        for number, output in outputs
    ]
    write_json({"schema": "vmlab.raw/1", "outputs": bodies})


def _only(document: RunDocument, cell: int) -> RunDocument:
    chosen = [one for one in document["cells"] if one["cell"] == cell]
    if not chosen:
        raise UsageError(f"run {document['run']['id']} has no cell {cell}; it has {len(document['cells'])}")
    return {**document, "cells": chosen}


@click.command()
@click.argument("runs", nargs=-1, required=True)
@_cell_option
@_json_option
def compare(runs: tuple[str, ...], cell: int | None, as_json: bool) -> None:
    """Set RUNS side by side, the first as the baseline; last:1 last:2 sets two cells of one run side by side."""
    comparison = comparing.compare([_side(reference, cell) for reference in runs])
    if as_json:
        write_json(comparison.to_json())
    else:
        write_text(comparison_table(comparison))


def _side(reference: str, cell: int | None) -> comparing.Side:
    run, named = _split(reference)
    with RunReader(resolve_run(run)) as reader:
        document = run_document(reader)
    return comparing.Side.of(reference, document, named if named is not None else cell)


def _split(reference: str) -> tuple[str, int | None]:
    """``last:2`` to ``("last", 2)``."""
    run, colon, cell = reference.rpartition(":")
    return (run, int(cell)) if colon and cell.isascii() and cell.isdigit() else (reference, None)
