"""Lines for people that would come with every tick, and are told once."""

from __future__ import annotations

from collections.abc import Callable


def once(notify: Callable[[str], None]) -> Callable[[str, str], None]:
    """A function of a thing and a line about it, which passes the first line about each thing on to `notify`."""
    told: set[str] = set()

    def tell(thing: str, line: str) -> None:
        if thing not in told:
            told.add(thing)
            notify(line)

    return tell
