"""How a figure of the host is shown, everywhere; each is declared beside the code that samples it."""

from __future__ import annotations

from typing import NamedTuple

from vmlab.model.sample import unit_of

Terms = tuple[tuple[str, int], ...]
"""Names of values, each with +1 or -1: the terms of a sum."""


class HostChart(NamedTuple):
    """Figures that share one scale, in console and report alike; each is declared beside the code that samples them.

    `stacked` figures add up, others are lines. `top` is the end of the scale: a number, the name of a value such as the
    total of memory, or None for the largest value in sight. The console shows charts in the order of `panel`, with
    `title` where that is not the `name`; one without a panel stands in the place of another. A report has the chart
    where `page` says its unit there, and a timeline has it with the label `track`, if that says something. What is not
    `whole` has on a page its headlines alone, up to the largest value.
    """

    name: str
    panel: int | None = None
    stacked: bool = True
    top: float | str | None = None
    title: str = ""
    page: str = ""
    track: str = ""
    whole: bool = True


class HostFigure(NamedTuple):
    """One value of a sample as people see it. Its unit is the ending of its `name`, see `model.sample.unit_of`.

    `label` is its name in a table, `short` its name where the group is named already. `group` is its line in `vmlab
    top`, empty for none. A `headline` is in every document, report and comparison; one `of_stages` is also in the table
    of a cell's stages. `chart` is the chart that shows it, None for none, in the colour `tone`; a `minor` one is left
    out where room is short; one that is not `drawn` is a number above the chart only, and an `idle` one is no work: an
    outline over the areas. `added` are other values that its chart adds; `area` is what is drawn where that is not the
    number itself: dirty pages are part of the cache.
    """

    name: str
    label: str
    short: str
    group: str
    headline: bool = False
    of_stages: bool = False
    chart: HostChart | None = None
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
