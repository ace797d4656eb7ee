"""What can be changed of a scenario before it starts: its size, the values of its axes, its repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vmlab.model.axes import axis_yaml
from vmlab.model.run import CACHE_MODES, AxisValue
from vmlab.model.scenarios.scenario import SIZES, Scenario
from vmlab.plan.terms import Overrides

_MOST_OFFERED_TILES = 4
_SAFE_MODES = tuple(mode for mode in CACHE_MODES if mode != "unsafe")
_REPEATS = (1, 2, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to choose. `several` values may hold together, as on an axis, or just one, as of sizes.

    `touched` is False while the choice is the scenario's own.
    """

    name: str
    values: tuple[AxisValue, ...]
    chosen: tuple[AxisValue, ...]
    several: bool
    touched: bool = False

    def toggled(self, value: AxisValue) -> Choice:
        """With `value` chosen, or not chosen any more; one value always stays, and they keep their order."""
        if not self.several:
            return replace(self, chosen=(value,), touched=True)
        wanted = set(map(str, self.chosen)) ^ {str(value)}
        chosen = tuple(each for each in self.values if str(each) in wanted)
        return replace(self, chosen=chosen, touched=True) if chosen else self


def choices_of(written: Scenario, sized: Scenario, size: str) -> tuple[Choice, ...]:
    """The choices for a scenario as it is `written`, standing as it is at `size`."""
    sizes = tuple(each for each in SIZES if each == "full" or each in written.sizes)
    choices = [Choice("size", sizes, (size,), several=False)]
    for name, axis in sized.axes.items():
        own = tuple(axis.points) or (written.axes[name].values if name in written.axes else axis.values)
        choices.append(Choice(name, _offered(name, own, axis.values), axis.values, several=True))
    offered = tuple(sorted({*_REPEATS, sized.repeats}))
    return (*choices, Choice("repeats", offered, (sized.repeats,), several=False))


def proposed(
    choices: tuple[Choice, ...], repeats: int | None, axes: Mapping[str, Sequence[AxisValue]]
) -> tuple[Choice, ...]:
    """`choices` with so many repeats, and with the values of `axes`."""
    wanted = {name: tuple(values) for name, values in axes.items() if values}
    if repeats is not None:
        wanted["repeats"] = (repeats,)
    return tuple(_with(choice, wanted.get(choice.name, choice.chosen)) for choice in choices)


def _with(choice: Choice, chosen: tuple[AxisValue, ...]) -> Choice:
    if chosen == choice.chosen:
        return choice
    return replace(choice, values=tuple(dict.fromkeys((*choice.values, *chosen))), chosen=chosen, touched=True)


def _offered(name: str, *own: tuple[AxisValue, ...]) -> tuple[AxisValue, ...]:
    more: tuple[AxisValue, ...] = ()
    if name == "tiles":
        more = tuple(range(1, _MOST_OFFERED_TILES + 1))
    elif name == "cache":
        more = _SAFE_MODES
    values = dict.fromkeys(value for each in (*own, more) for value in each)
    return tuple(sorted(values, key=int)) if name == "tiles" else tuple(values)


def overrides_of(choices: tuple[Choice, ...]) -> Overrides:
    """The overrides that the same choices give on the command line."""
    size, repeats, sets = "demo", None, []
    tiles: tuple[int, ...] | None = None
    cache: tuple[str, ...] | None = None
    for choice in choices:
        if choice.name == "size":
            size = str(choice.chosen[0])
        elif not choice.touched:
            continue
        elif choice.name == "repeats":
            repeats = int(choice.chosen[0])
        elif choice.name == "tiles":
            tiles = tuple(int(value) for value in choice.chosen)
        elif choice.name == "cache":
            cache = tuple(str(value) for value in choice.chosen)
        else:
            sets.append(f"axes.{choice.name}={axis_yaml(choice.chosen)}")
    return Overrides(size=size, tiles=tiles, cache=cache, repeats=repeats, sets=tuple(sets))  # type: ignore[arg-type]
