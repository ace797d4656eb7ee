"""Options that commands share: what of a scenario a run changes."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from vmlab.cli.diagnostics import Option, parsed, with_options
from vmlab.model.errors import UsageError
from vmlab.model.quantities import format_seconds, parse_seconds
from vmlab.model.run import CACHE_MODES, HIGHEST_SEED, MOST_CELLS, MOST_TILES
from vmlab.model.scenarios.image_name import check_package
from vmlab.model.scenarios.scenario import HYPERVISORS, SIZES
from vmlab.model.visible import visible_line
from vmlab.plan.changes import assignments_of
from vmlab.plan.ordering import LONGEST_LOOP, USUAL_LOOP
from vmlab.plan.scenario_file.variables import given
from vmlab.plan.terms import FOR_CLAIMS, Overrides

Command = TypeVar("Command", bound=Callable[..., object])


def tile_counts(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """``3``, ``1,3`` or ``1..3`` to tile counts in the order given. Raises BadParameter for anything else."""
    if value is None:
        return None
    counts: list[int] = []
    for part in value.split(","):
        first, dots, last = part.strip().partition("..")
        bounds = [first, last] if dots else [first]
        if not all(bound.isascii() and bound.isdigit() and len(bound) < 5 for bound in bounds):
            raise click.BadParameter(f"{value[:40]!r} is not a tile count; use 3, 1,3 or 1..3", ctx, param)
        low, high = int(bounds[0]), int(bounds[-1])
        if not 1 <= low <= high <= MOST_TILES:
            turned = f", as {high}..{low}" if 1 <= high < low <= MOST_TILES else ""
            words = f"{part.strip()!r} must be from 1 to {MOST_TILES}, smallest first{turned}"
            raise click.BadParameter(words, ctx, param)
        counts.extend(range(low, high + 1))
    if len(set(counts)) != len(counts):
        raise click.BadParameter(f"{value[:40]!r} names a tile count twice", ctx, param)
    return tuple(counts)


def cache_modes(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """``none,writeback`` to cache modes in the order given. Raises BadParameter for anything else."""
    if value is None:
        return None
    modes = names_in(value)
    for mode in modes:
        if mode not in CACHE_MODES:
            near = difflib.get_close_matches(mode[:40].lower(), CACHE_MODES, n=1)
            like = f"; did you mean {near[0]!r}?" if near else f"; use {', '.join(CACHE_MODES)}"
            raise click.BadParameter(f"{mode[:40]!r} is no cache mode{like}", ctx, param)
    if len(set(modes)) != len(modes):
        raise click.BadParameter(f"{value[:40]!r} names a cache mode twice", ctx, param)
    return modes


class _Repeats(click.IntRange):
    """A number of repeats, or a word that stands for those which the scenario's claims take."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value in FOR_CLAIMS else super().convert(value, param, ctx)


def _loop_seconds(text: str) -> float:
    """Raises ValueError."""
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise ValueError(f"{error}; put --loop after the scenario, or give it a time, as --loop=10min") from None
    if not 0 < seconds <= LONGEST_LOOP:
        raise ValueError(f"must be more than 0 and at most {format_seconds(LONGEST_LOOP)}")
    return seconds


def names_in(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(part.strip() for part in text.split(","))


def _variables(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Variables by their names. Raises BadParameter."""
    try:
        return given(values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def assignments(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Assignments as they are typed, with those of a file in the place of ``@FILE``. Raises UsageError."""
    if not any(value.startswith("@") for value in values):
        return values
    if "@" in values:
        raise click.BadParameter("@ needs the name of a file: @FILE", ctx, param)
    every = (assignments_of(Path(value[1:])) if value.startswith("@") else [value] for value in values)
    return tuple(chain.from_iterable(every))


def _packages(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Each once and in order, as a plan has them. Raises UsageError for what is no package's name."""
    found = {name for value in values for name in names_in(value)}
    for name in sorted(found):
        try:
            check_package(name)
        except ValueError as error:
            raise UsageError(f"--with {visible_line(name[:40]) or repr(name)} {error}") from error
    return tuple(sorted(found))


class Beside(NamedTuple):
    """What is done where another run measures on this host: `wait` for it, or measure beside it (`concurrent`)."""

    wait: bool = False
    concurrent: bool = False


def _one_way(*, wait: bool, concurrent: bool) -> Beside:
    # Imported late: most commands start no run.
    from vmlab.lab.process.waiting_runs import demand_one_way

    demand_one_way(wait=wait, concurrent=concurrent)
    return Beside(wait, concurrent)


def packages_option(help: str) -> Callable[[Command], Command]:
    """``--with``: packages of Debian's on top of vmlab's own image."""
    return click.option("--with", "packages", metavar="PACKAGES", multiple=True, callback=_packages, help=help)


variables_option = click.option(
    "--var",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_variables,
    help="Give the scenario's ${NAME} a value.",
)
verbose_option = click.option("--verbose", is_flag=True, help="Show each phase and workload of each cell, too.")
quiet_option = click.option("--quiet", is_flag=True, help="Print only the table, without progress.")
_BESIDE = (
    click.option("--wait", is_flag=True, help="Wait until no other run measures on this host."),
    click.option("--concurrent", is_flag=True, help="Run even while another run measures; both results say so."),
)
beside_options = with_options(_BESIDE, "beside", _one_way, Beside._fields)
"""A command is called with them as ``beside``. Raises UsageError for both."""
hosts_option = click.option(
    "--hosts", metavar="HOSTS", callback=parsed(names_in), help="Hosts of a fleet: hv1,hv2, or all of hosts.toml."
)


def _option(*names: str, **how: Any) -> tuple[str, Option]:
    return names[0], click.option(*names, **how)


_OPTIONS = (
    _option("--size", type=click.Choice(SIZES), default="demo", help="Workload size [default: demo]."),
    _option("--tiles", metavar="COUNTS", callback=tile_counts, help="Tile counts: 3, 1,3 or 1..3."),
    _option("--cache", metavar="MODES", callback=cache_modes, help="Cache modes, such as none,writeback."),
    _option(
        "--repeats",
        type=_Repeats(1, 1000),
        metavar="N|claims|claims-once",
        help="Repeats of every cell. claims: as many as the publication's claims need, only of cells they name. "
        "claims-once: one more than the claims' minimum.",
    ),
    _option(
        "--for",
        "for_seconds",
        metavar="TIME",
        callback=parsed(parse_seconds),
        help="Add repeats of every cell as long as they fit into TIME, such as 1h.",
    ),
    _option(
        "--again",
        type=click.IntRange(0, MOST_CELLS),
        metavar="N",
        help="Measure disturbed cells again, at most N times in all [default: a quarter of the cells, at least 2].",
    ),
    _option("--again-failed", is_flag=True, help="Measure failed cells again, too."),
    _option("--no-wait", is_flag=True, help="Start workloads at once, without waiting up to 30 s for a quiet host."),
    _option(
        "--set",
        "sets",
        multiple=True,
        metavar="PATH=VALUE",
        callback=assignments,
        help="Override a value, such as workloads.web.requests=500, or several with @FILE.",
    ),
    ("--var", variables_option),
    _option(
        "--asset",
        "assets",
        multiple=True,
        metavar="NAME=PATH",
        help="Your own copy of a suite, such as unixbench=PATH.",
    ),
    _option(
        "--seed",
        type=click.IntRange(0, HIGHEST_SEED),
        metavar="N",
        help="Seed for the random data and the order of cells.",
    ),
    _option("--allow-overcommit", is_flag=True, help="Start even if the guests need more memory than is free."),
    _option("--allow-unsafe", is_flag=True, help="Allow cache mode unsafe, which may lose guest data."),
    _option("--allow-noise", is_flag=True, help="Keep cells valid despite other load on the host; report it."),
    _option(
        "--allow-equal-weight",
        is_flag=True,
        help="Do not halve the run's CPU weight or reserve memory for the host's own guests.",
    ),
    _option("--control", is_flag=True, help="Measure one configuration as both sides to find the noise."),
    _option(
        "--loop",
        metavar="[TIME]",
        is_flag=False,
        flag_value=f"{USUAL_LOOP:.0f} s",
        callback=parsed(_loop_seconds),
        help="In each cell, restart workloads that end, for TIME (30min); for demonstrations, not measured.",
    ),
    _option(
        "--steady",
        metavar="TIME",
        callback=parsed(parse_seconds),
        help="Wait up to TIME before each cell for steady CPU speed.",
    ),
    _option(
        "--hypervisor",
        type=click.Choice(HYPERVISORS),
        help="Which libvirt starts the guests: the run's own, or the host's.",
    ),
    _option("--cold", is_flag=True, help="Boot all guests instead of restoring snapshots."),
)


def overrides_options(*left_out: str) -> Option:
    """Give a command the options that change a scenario; it is called with them as ``overrides``.

    It decides itself on those that are `left_out`, such as ``--tiles``.
    """

    kept = [option for name, option in _OPTIONS if name not in left_out]
    return with_options(kept, "overrides", Overrides, Overrides.__dataclass_fields__)
