"""`vmlab plan`, `scenario`, `validate`, `schema` and `plugins`: they explain, write and check runs, and start none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from vmlab.analysis.comparison.gate import Condition
from vmlab.analysis.comparison.repeats_needed import Detectable, detectable_by, gate_needed
from vmlab.analysis.document import stored_document
from vmlab.cli.diagnostics import say
from vmlab.cli.gate_options import conditions_option
from vmlab.cli.options import overrides_options, variables_option
from vmlab.cli.output import page_width, write_json, write_text
from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.guests.image.added import lacked_programs, windows_images
from vmlab.guests.image.layers import states
from vmlab.lab.provision.host_support import host_for_plans, prepare_run, with_repeats_here
from vmlab.model.errors import ExitCode, VmlabError
from vmlab.model.jsonable import picked
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import Outcome
from vmlab.plan.hosting import misfit
from vmlab.plan.planning import load_valid, validate_all
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.scenario_file.schema import scenario_schema
from vmlab.plan.terms import Overrides, Plan
from vmlab.report.exports.export_format import export_formats
from vmlab.report.listing import names_text
from vmlab.report.words import plural
from vmlab.store.run_list import list_runs
from vmlab.store.runs import store_of
from vmlab.system.entry_points import EXPORTS, GROUPS, HOST_FIGURES, WORKLOADS, Entry, broken, entries
from vmlab.telemetry.host.host_figures import figure_sources
from vmlab.workloads.registry import kinds

_MOST_RUNS = 5
"""Earlier runs that are read for what they can detect."""


@click.command()
@click.argument("scenario")
@overrides_options()
@conditions_option
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(scenario: str, overrides: Overrides, conditions: tuple[Condition, ...], as_json: bool) -> None:
    """Show what SCENARIO would run: guests, RAM, disk, order of cells, and about how long. Starts nothing.

    Exit code 3 means that the host does not have the resources.
    """
    file = load_valid(scenario, overrides.variables)
    on_fleet = overrides.hosts is not None or HOST_PLACE in file.scenario.axes
    planned, host = prepare_run(file, with_repeats_here(file, overrides), elsewhere=on_fleet)
    gate = gate_needed(planned, conditions)
    finds = _detectable(planned)
    layers = states(planned.layers)
    refusal = misfit(planned, host)
    if as_json:
        write_json(plan_document(planned, host, str(refusal) if refusal else None, gate, finds, layers))
    else:
        write_text(plan_text(planned, host, gate, finds, layers))
    if refusal is not None:
        raise refusal


@click.group()
def scenario() -> None:
    """Write a scenario that describes a guest of your own."""


@scenario.command("from")
@click.argument("source")
@click.option("--connect", metavar="URI", help="Look for SOURCE in this libvirt only [default: qemu:///system].")
def from_command(source: str, connect: str | None) -> None:
    """Print a scenario with a guest like SOURCE, and an axis that changes one setting of its disk at a time.

    SOURCE is a libvirt domain by name or UUID, a QEMU process by its id, its guest's name or its number in Proxmox VE,
    a file with a domain's XML or the output of `qm config`, or `-` for such a text on standard input. SOURCE is only
    read, without QEMU's monitor. Each line says where it comes from; what the lab or this host cannot copy becomes a
    comment.
    """
    # Imported late: the other commands on scenarios copy no guest.
    from vmlab.plan.copied_guest.copied_scenario import copied_scenario
    from vmlab.plan.copied_guest.guest_sources import found_guest
    from vmlab.plan.copied_guest.trial import Trial

    guest = found_guest(source, connect)
    write_text(copied_scenario(guest, Trial(host_for_plans())))


def _detectable(planned: Plan) -> Detectable | None:
    """What the newest run of the same scenario and size that compares something says of the planned repeats."""
    asked = (planned.scenario.name, planned.size)
    same = [run for run in list_runs() if (run.scenario, run.size) == asked and run.outcome == Outcome.PASSED]
    for run in same[:_MOST_RUNS]:
        try:
            document = stored_document(store_of(run.id))
            found = detectable_by(document, planned.repeats_expected, planned.scenario.table_looks)
        except VmlabError:
            continue  # `vmlab ls` names a damaged store.
        if found is not None:
            return found
    return None


@click.command()
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True)
@variables_option
@click.option("--json", "as_json", is_flag=True, help="Print what is valid as JSON.")
def validate(scenarios: tuple[str, ...], variables: dict[str, str], as_json: bool) -> None:
    """Check every cell of every size of each SCENARIO and start nothing; each problem is one line."""
    known = lacked_programs(), windows_images()
    found = [validate_all(load(scenario, variables), *known) for scenario in dict.fromkeys(scenarios)]
    for one in found:
        counts = ", ".join(f"{plural(count, 'cell')} at {size}" for size, count in one.cells.items())
        say(f"{one.path}: valid; {counts}")
    if as_json:
        rows = [{"path": str(one.path), "scenario": one.name, "cells": one.cells} for one in found]
        write_json({"schema": "vmlab.validate/1", "scenarios": rows})


@click.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, with which editors complete and check them."""
    write_json(scenario_schema())


SCHEMA = "vmlab.plugins/1"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plugins(as_json: bool) -> None:
    """List kinds of workload, export formats and host metrics, vmlab's own and other packages'.

    Exits with 3 if another package's entry is left out; the last lines say which.
    """
    found = list(_found())
    if as_json:
        write_json({"schema": SCHEMA, "plugins": found})
    else:
        for group, what in GROUPS.items():
            rows = [(one["name"], _words(one)) for one in found if one["group"] == group and one["left_out"] is None]
            write_text(f"{what}:\n{names_text(rows, page_width())}")
    sys.exit(ExitCode.REFUSED if broken() else ExitCode.PASSED)


def _found() -> Iterator[dict[str, Any]]:
    """Every entry point, with one line on what it is, or why it is left out."""
    known = {
        **{(WORKLOADS, name): kind.summary for name, kind in kinds().items()},
        **{(EXPORTS, name): ", ".join(one.endings) or "a folder" for name, one in export_formats().items()},
        **{
            (HOST_FIGURES, entry.name): ", ".join(
                [group.title for group in source.groups] or [figure.label for figure in source.figures]
            )
            for entry, source in figure_sources().items()
        },
    }
    why = {one.entry: one.why for one in broken()}
    for entry in (entry for group in GROUPS for entry in entries(group)):
        if entry in why or (entry.group, entry.name) in known:
            yield _document(entry, known.get((entry.group, entry.name), ""), why.get(entry))


def _document(entry: Entry, summary: str, why: str | None) -> dict[str, Any]:
    of_entry = picked(entry, "group", "name", "package", "version")
    return {**of_entry, "summary": summary if why is None else None, "left_out": why}


def _words(one: dict[str, Any]) -> str:
    return one["summary"] if one["package"] == "vmlab" else f"{one['summary']} ({one['package']} {one['version']})"
