"""How a figure of the host is shown, everywhere; each is declared beside the code that samples it."""

from __future__ import annotations

from typing import NamedTuple

from vmlab.model.sample import unit_of

Terms = tuple[tuple[str, int], ...]
"""Names of values, each with +1 or -1: the terms of a sum."""


class HostFigure(NamedTuple):
    """One value of a sample as people see it. Its unit is the ending of its `name`, see `model.sample.unit_of`.

    `label` is its name in a table, `short` its name where the group is named already. `group` is its line in `vmlab
    top`. A `headline` is in every document, report and comparison; one `of_stages` is also in the table of a cell's
    stages. `chart` is the chart of the console that shows it, None for none, in the colour `tone`; a `minor` one is
    left out where room is short; one that is not `drawn` is a number above the chart only, and an `idle` one is no
    work: an outline over the areas. `added` are other values that its chart adds; `area` is what is drawn where that is
    not the number itself: dirty pages are part of the cache.
    """

    name: str
    label: str
    short: str
    group: str
    headline: bool = False
    of_stages: bool = False
    chart: str | None = None
    tone: str = "one"
    minor: bool = False
    drawn: bool = True
    idle: bool = False
    added: tuple[str, ...] = ()
    area: Terms | None = None

    @property
    def unit(self) -> str:
        """As `unit_of` has it."""
        return unit_of(self.name)
