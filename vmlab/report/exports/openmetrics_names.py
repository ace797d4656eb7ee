"""What figures are called in OpenMetrics text (version 1.0.0), in exports and for Prometheus to scrape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vmlab.model.sample import Sample, split_name, unit_of
from vmlab.model.visible import visible

END = "# EOF\n"
RUN_INFO = "vmlab_run_info"
"""The family whose labels say what a run was."""
PART = "part"
"""The label with the CPU, disk or guest that a figure of the host is of: Prometheus uses ``instance`` itself."""
_SUFFIXES = {
    "s": "seconds",
    "ms": "ms",
    "B": "bytes",
    "B/s": "bytes_per_second",
    "1/s": "per_second",
    "%": "percent",
    "W": "watts",
}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\\t"})


class FamilyNames:
    """Gives each metric in each unit a family of its own: of those that would be called alike, later ones are numbered.

    Users name metrics, too: ``latency`` in seconds and a plain ``latency_seconds``, say, or ``run_info``.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        self._taken = {RUN_INFO}
        self._numbers: dict[tuple[str, str], int] = {}
        """The last number of those that are called alike: a stranger's store may have thousands."""

    def of(self, metric: str, unit: str) -> tuple[str, str]:
        """Name and unit of a metric's family; its name ends with its unit, as the format demands."""
        if (metric, unit) not in self._known:
            suffix = _SUFFIXES.get(unit, "")
            alike = _safe(metric), suffix
            number = self._numbers.get(alike, 1)
            name = _family(metric if number == 1 else f"{metric}_{number}", suffix)
            while name in self._taken:
                number += 1
                name = _family(f"{metric}_{number}", suffix)
            self._numbers[alike] = number
            self._taken.add(name)
            self._known[metric, unit] = name, suffix
        return self._known[metric, unit]


def _family(metric: str, suffix: str) -> str:
    name = f"vmlab_{_safe(metric)}"
    return name if not suffix or name.endswith(f"_{suffix}") else f"{name}_{suffix}"


def head_of(family: str, unit: str) -> str:
    """The lines before the values of a family."""
    return f"# TYPE {family} gauge\n" + (f"# UNIT {family} {unit}\n" if unit else "")


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels in braces; nothing for none. Where two names are one after what Prometheus forbids, they are numbered."""
    pairs: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for name, value in labels.items():
        free, number = _safe(name), numbers.get(_safe(name), 1)
        while free in pairs:
            number += 1
            free = f"{_safe(name)}_{number}"
        numbers[_safe(name)] = number
        pairs[free] = visible(value).translate(_ESCAPES)
    return "{" + ",".join(f'{name}="{value}"' for name, value in pairs.items()) + "}" if labels else ""


def _safe(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def sample_text(sample: Sample) -> str:
    """A gauge for each value of a tick that could be read, without a time, as Prometheus scrapes it."""
    return "".join([*_gauges(sample), END])


def _gauges(sample: Sample) -> Iterator[str]:
    names = FamilyNames()
    families: dict[tuple[str, str], list[str]] = {}
    for name, value in zip(sample.layout.names, sample.values, strict=True):
        if value == value:
            metric, part = split_name(name)
            key = names.of(metric, unit_of(metric))
            labels = labels_text({} if part is None else {PART: part})
            families.setdefault(key, []).append(f"{key[0]}{labels} {float(value)!r}\n")
    for (family, unit), lines in families.items():
        yield head_of(family, unit)
        yield from lines
