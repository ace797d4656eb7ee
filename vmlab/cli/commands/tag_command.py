"""`vmlab tag`: names for runs."""

from __future__ import annotations

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import page_width, write_json, write_text
from vmlab.lab.process.removed_runs import demand_free, give_name
from vmlab.model.errors import UsageError
from vmlab.report.listing import names_text
from vmlab.store.run_list import tags_document
from vmlab.store.runs import all_tags, remove_tag, run_folders

_GONE = "not here any more"
_DAMAGED = "its file is damaged"


@click.command()
@click.argument("run", required=False)
@click.argument("name", required=False)
@click.option("--rm", "removed", metavar="NAME", help="Remove a tag; the run stays.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def tag(run: str | None, name: str | None, removed: str | None, as_json: bool) -> None:
    """Give RUN a NAME, such as baseline, which every command takes for it. Without arguments, list the names.

    A name that another run has moves to this one. A,B,C have one name together, which `vmlab compare`, `report` and
    `export` take as one side.
    """
    if removed is not None:
        if run is not None or as_json:
            raise UsageError("--rm takes one name, and nothing else goes with it")
        if not remove_tag(removed):
            raise UsageError(f"there is no name {removed[:64]!r}; `vmlab tag` lists them")
        say(f"removed the name {removed}")
    elif run is None:
        _list(as_json)
    elif name is None or as_json:
        raise UsageError("say `vmlab tag RUN NAME`; --json goes with the list alone")
    else:
        demand_free(name)
        give(run, name)


def give(run: str, name: str) -> None:
    """Give `name` to a run, and say so. Raises UsageError for one that it cannot have."""
    found, before = give_name(run, name)
    moved = f", and no longer {', '.join(before)}" if before and before != found else ""
    say(f"{name} is {'run' if len(found) == 1 else 'runs'} {', '.join(found)}{moved}")


def _list(as_json: bool) -> None:
    tags, here = all_tags(), {folder.name for folder in run_folders()}
    if as_json:
        write_json(tags_document())
    elif not tags:
        say("no run has a name; `vmlab tag RUN NAME` gives one")
    else:
        lines = {
            name: f"{', '.join(runs)}  {'' if here.issuperset(runs) else _GONE}".strip() if runs else _DAMAGED
            for name, runs in tags.items()
        }
        write_text(names_text(list(lines.items()), page_width()))
