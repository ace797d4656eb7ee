"""Parts of the documentation that the program itself tells, for mkdocs (`hooks` in mkdocs.yml).

A page has a line such as ``<!-- generated: command-line -->``, in place of which stands what is generated. Links to
files outside of `docs/` lead to the repository, which the site does not have, and are made plain text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import manual

_PLACE = re.compile(r"<!-- generated: ([a-z-]+) -->")
_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+(?:vmlab|scenarios|screenshots|bench|tests|CONTRIBUTING|CHANGELOG|packaging)[^)]*\)"
)


def _keys() -> Iterator[str]:
    """The keys of each screen of the console, as its classes bind them."""
    before: set[tuple[str, str]] = set()
    for title, owner in _screens().items():
        rows: dict[tuple[str, str], list[str]] = {}
        for key, bindings in owner._merged_bindings.key_to_bindings.items():
            one = bindings[0]
            if one.description and not one.system:
                rows.setdefault((one.description, one.tooltip or ""), []).append(one.key_display or key)
        new = {what: keys for what, keys in rows.items() if what not in before}
        before |= new.keys()
        if not new:
            continue
        yield from (f"## {title}", "", "| keys | | |", "| --- | --- | --- |")
        for (description, tooltip), keys in new.items():
            shown = " ".join(f"`{key}`" for key in dict.fromkeys(keys))
            yield f"| {shown} | {description} | {tooltip} |"
        yield ""


def _screens() -> Mapping[str, Any]:
    from vmlab.tui.app import Console
    from vmlab.tui.screens.compare_screen import CompareScreen
    from vmlab.tui.screens.demo_screen import DemoScreen
    from vmlab.tui.screens.live_screen import LiveScreen
    from vmlab.tui.screens.replay_screen import ReplayScreen
    from vmlab.tui.screens.results_screen import ResultsScreen
    from vmlab.tui.screens.runs_screen import RunsScreen
    from vmlab.tui.screens.scenarios_screen import ScenariosScreen

    return {
        "Everywhere": Console,
        "Live": LiveScreen,
        "Scenarios": ScenariosScreen,
        "Runs": RunsScreen,
        "Results": ResultsScreen,
        "Compare": CompareScreen,
        "Replay": ReplayScreen,
        "Demo": DemoScreen,
    }


_GENERATED: Mapping[str, Callable[[], Iterator[str]]] = {
    "command-line": lambda: _without_head(manual.command_line()),
    "keys": _keys,
}


def _without_head(lines: Iterator[str]) -> Iterator[str]:
    """A manual page without its name and the pages that it points to."""
    whole = list(lines)
    body = whole[whole.index("# DESCRIPTION") + 1 : whole.index("# SEE ALSO")]
    return (re.sub(r"^(#+) ", lambda match: f"#{match[1]} ", line) for line in body)


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """What mkdocs calls for each page."""
    text = _PLACE.sub(lambda match: "\n".join(_GENERATED[match[1]]()), markdown)
    return _OUTSIDE.sub(lambda match: match[1], text)
