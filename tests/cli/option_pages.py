"""The options of each command and the keys of the console, in their pages of ``docs/reference``.

``python -m tests.cli.option_pages`` writes them into the pages again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from vmlab.cli.main import COMMANDS
from vmlab.tui.app import Console
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.demo_screen import DemoScreen
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.screens.results_screen import ResultsScreen
from vmlab.tui.screens.runs_screen import RunsScreen
from vmlab.tui.screens.scenarios_screen import ScenariosScreen

_REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
_SCREENS: Mapping[str, Any] = {
    "Everywhere": Console,
    "Live": LiveScreen,
    "Scenarios": ScenariosScreen,
    "Runs": RunsScreen,
    "Results": ResultsScreen,
    "Compare": CompareScreen,
    "Replay": ReplayScreen,
    "Demo": DemoScreen,
}


def options() -> Iterator[str]:
    """Each command's usage, help and options."""
    for name, entry in COMMANDS.items():
        yield from _command(f"vmlab {name}", entry.load())


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield from (f"### {name}", "", f"    {name} {' '.join(command.collect_usage_pieces(context))}", "")
    for paragraph in (command.help or "").replace("\b", "").split("\n\n"):
        yield from (" ".join(paragraph.split()).replace("<", r"\<"), "")
    rows = []
    for option in command.params:
        if isinstance(option, click.Option):
            names, what = option.get_help_record(context) or ("", "")
            rows.append(f"| {_code(names)} | {' '.join(what.split()).replace('<', '&lt;').replace('|', '&#124;')} |")
    yield from ("| option | |", "| --- | --- |", *rows, "") if rows else ()
    if isinstance(command, click.Group):
        for inner, one in command.commands.items():
            yield from _command(f"{name} {inner}", one)


def _code(text: str) -> str:
    """Code in a cell of a table, in which a bar would end the cell; the site shows a backslash before one in code."""
    bars = text.replace("|", "&#124;")
    return f"<code>{bars}</code>" if "|" in text else f"`{text}`"


def keys() -> Iterator[str]:
    """The keys of each screen, as its classes bind them; those of a screen above are not repeated."""
    before: set[tuple[str, str]] = set()
    for title, owner in _SCREENS.items():
        rows: dict[tuple[str, str], list[str]] = {}
        for key, bindings in owner._merged_bindings.key_to_bindings.items():
            one = bindings[0]
            if one.description and not one.system:
                rows.setdefault((one.description, one.tooltip or ""), []).append(one.key_display or key)
        new = {what: shown for what, shown in rows.items() if what not in before}
        before |= new.keys()
        if new:
            yield from (f"### {title}", "", "| keys | | |", "| --- | --- | --- |")
            for (description, tooltip), shown in new.items():
                yield f"| {' '.join(f'`{key}`' for key in dict.fromkeys(shown))} | {description} | {tooltip} |"
            yield ""


GENERATED: Mapping[Path, tuple[str, Callable[[], Iterator[str]]]] = {
    _REFERENCE / "command-line.md": ("options", options),
    _REFERENCE / "console.md": ("keys", keys),
}


def current(page: Path) -> str:
    """The page with what is generated as the program has it now."""
    name, rows = GENERATED[page]
    made = "\n".join(rows()).strip()
    place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return place.sub(lambda found: f"{found[1]}\n{made}\n\n{found[2]}", page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for each in GENERATED:
        each.write_text(current(each), encoding="utf-8")
