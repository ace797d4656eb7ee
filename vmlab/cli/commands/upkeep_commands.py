"""`vmlab clean`, `rm`, `tag` and `note`: clear after dead runs, remove runs, name them, say what they were."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.options import hosts_option
from vmlab.cli.output import page_width, write_json, write_text
from vmlab.lab.process.dead_runs import clean as sweep_all
from vmlab.lab.process.dead_runs import clean_document, demand_sight
from vmlab.lab.process.removed_runs import demand_free, give_name, give_note, older_runs, removable, remove_for_good
from vmlab.model.errors import ExitCode, UsageError, VmlabError
from vmlab.model.quantities import format_bytes
from vmlab.model.visible import visible_line
from vmlab.report.listing import names_text
from vmlab.report.words import plural
from vmlab.store.life import note_of
from vmlab.store.run_list import bytes_of, tags_document
from vmlab.store.runs import all_tags, remove_tag, resolve_run, run_folders


@click.command()
@hosts_option
@click.option("--json", "as_json", is_flag=True, help="Print what was removed and what is left as JSON.")
def clean(hosts: tuple[str, ...] | None, as_json: bool) -> None:
    """Clean up after runs that crashed or were killed: disks, sockets, loop devices, cgroups, host settings.

    Their measurements are kept. With --hosts it cleans up on these hosts instead of this one.
    """
    if hosts is not None:
        sys.exit(_clean_hosts(hosts, as_json))
    demand_sight()
    swept = sweep_all()
    left = [place for one in swept for place in one.left]
    if as_json:
        write_json(clean_document(swept))
    elif not swept:
        say("nothing to clean")
    for one in swept:
        for note in one.notes:
            say(visible_line(note))
        left_over = f", could not remove {', '.join(one.left)}" if one.left else ""
        say(visible_line(f"run {one.run}: removed {_by_kind(one.removed)}{left_over}"))
    sys.exit(ExitCode.CLEANUP_INCOMPLETE if left else ExitCode.PASSED)


def _clean_hosts(names: Sequence[str], as_json: bool) -> ExitCode:
    """Clean up on hosts of a fleet. Without a line to one of them, nothing is known of it, and it may not be clean."""
    # Imported late: they load SSH.
    import asyncio

    from vmlab.fleet.host_answers import Cleaned
    from vmlab.fleet.host_checks import clean_hosts
    from vmlab.fleet.hosts_file import chosen_hosts

    done = asyncio.run(clean_hosts(chosen_hosts(names)))
    rows = []
    for name, one in done.items():
        cleaned = one if isinstance(one, Cleaned) else Cleaned(removed=[], left=[str(one)])
        rows.append({"host": name, "removed": cleaned.removed, "left": cleaned.left})
        words = [*(f"removed {what}" for what in cleaned.removed), *(f"left: {what}" for what in cleaned.left)]
        say(visible_line(f"{name}: {'; '.join(words) or 'nothing to clean'}"))
    if as_json:
        write_json({"schema": "vmlab.clean-hosts/1", "hosts": rows})
    return ExitCode.CLEANUP_INCOMPLETE if any(row["left"] for row in rows) else ExitCode.PASSED


_AGES = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_NOUNS = {"rbd": "Ceph image", "loop": "loop device", "setting": "host setting", "cgroups": "cgroup"}


def _by_kind(removed: Sequence[str]) -> str:
    """``3 files, 1 loop device``: what was removed, counted by its kind in the journal; a path alone is a folder."""
    kinds = Counter("folder" if one.startswith("/") else one.split(" ", 1)[0] for one in removed)
    return ", ".join(plural(count, _NOUNS.get(kind, kind)) for kind, count in kinds.items()) or "nothing"


@click.command()
@click.argument("runs", nargs=-1)
@click.option("--older", metavar="AGE", help="All runs that began longer ago than AGE, such as 30d, 12h or 4w.")
@click.option("--tagged", is_flag=True, help="Also delete tagged runs, with their tags.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def rm(runs: tuple[str, ...], older: str | None, tagged: bool, yes: bool) -> None:
    """Remove RUNS with their records, for good. A run that has a name (`vmlab tag`) stays unless --tagged is given."""
    if bool(runs) == (older is not None):
        raise UsageError("say which runs: `vmlab rm RUN…`, or `vmlab rm --older 30d`")
    chosen = removable(runs, named_too=tagged) if older is None else older_runs(_age(older), named_too=tagged)
    if not chosen:
        say("nothing to remove")
        return
    if not yes:
        _ask(chosen)
    for run in chosen:
        remove_for_good(run)
        say(f"removed run {run}")


def _age(text: str) -> float:
    """``30d`` in seconds. Raises UsageError."""
    match = re.fullmatch(r"([0-9]{1,5}) ?([hdw])", text, re.ASCII)
    if match is None:
        raise UsageError(f"--older: {text[:20]!r} is no age; say hours, days or weeks, such as 12h, 30d or 4w")
    return int(match[1]) * _AGES[match[2]]


def _ask(runs: Sequence[str]) -> None:
    """Ask on the terminal before runs are removed. Raises UsageError where there is none, or the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError("this removes runs for good; without a terminal to ask on, say --yes")
    for run in runs:
        say(f"{run}  {format_bytes(bytes_of(run))}")
    if not click.confirm(f"Remove {plural(len(runs), 'run')} for good?", err=True):
        raise UsageError("nothing was removed")


_GONE = "not here any more"
_DAMAGED = "its file is damaged"


@click.command()
@click.argument("run", required=False)
@click.argument("name", required=False)
@click.option("--rm", "removed", metavar="NAME", help="Remove a tag; the run stays.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def tag(run: str | None, name: str | None, removed: str | None, as_json: bool) -> None:
    """Give RUN a NAME, such as baseline, that all commands accept. Without arguments, list the names.

    If another run has the name, the name moves to RUN. A,B,C get one name together, which `vmlab compare`, `report` and
    `export` take as one side.
    """
    if removed is not None:
        if run is not None or as_json:
            raise UsageError("--rm takes one name and no other option")
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


@click.command()
@click.argument("run")
@click.argument("text", required=False)
@click.option("--rm", "removed", is_flag=True, help="Remove the note; the run stays.")
def note(run: str, text: str | None, removed: bool) -> None:
    """Describe RUN: TEXT replaces its note, an empty TEXT removes it. Without TEXT, print the note.

    Lists, reports and exports show the note, and an exported run keeps it.
    """
    if removed and text:
        raise UsageError("--rm removes the note, and no text goes with it")
    if text is not None or removed:
        give_text(run, text or "")
        return
    folder = resolve_run(run).parent
    if found := note_of(folder):
        write_text(visible_line(found))
    else:
        say(f"run {visible_line(folder.name)} has no note")


def give_text(run: str, text: str) -> None:
    """Note `text` of a run, and say so. Raises UsageError for one that it cannot have."""
    found, noted, before = give_note(run, text)
    now = f'the note "{noted}"' if noted else "no note"
    moved = f', and no longer "{before}"' if before not in ("", noted) else ""
    say(visible_line(f"run {found} has {now}{moved}"))


def label(run: str, name: str | None, note: str) -> None:
    """Name and note a run that has started, which goes on in any case."""
    for give_it, said, what in ((give, name, f"the name {name}"), (give_text, note, "its note")):
        if not said:
            continue
        try:
            give_it(run, said)
        except (VmlabError, OSError) as error:
            say(visible_line(f"run {run} goes on without {what}: {error}"))


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
