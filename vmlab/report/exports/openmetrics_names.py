"""What figures are called in OpenMetrics text (version 1.0.0), in exports and for Prometheus to scrape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vmlab.model.sample import Sample, split_name, unit_of
from vmlab.model.visible import visible

END = "# EOF\n"
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


def family_of(metric: str, unit: str) -> tuple[str, str]:
    """Name and unit of a metric family; its name ends with its unit, as the format demands."""
    suffix = _SUFFIXES.get(unit, "")
    name = f"vmlab_{_safe(metric)}"
    return (name if not suffix or name.endswith(f"_{suffix}") else f"{name}_{suffix}"), suffix


def head_of(family: str, unit: str) -> str:
    """The lines before the values of a family."""
    return f"# TYPE {family} gauge\n" + (f"# UNIT {family} {unit}\n" if unit else "")


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels in braces; nothing for none. Where two names are one after what Prometheus forbids, they are numbered."""
    pairs: dict[str, str] = {}
    for name, value in labels.items():
        free, number = _safe(name), 1
        while free in pairs:
            number += 1
            free = f"{_safe(name)}_{number}"
        pairs[free] = visible(value).translate(_ESCAPES)
    return "{" + ",".join(f'{name}="{value}"' for name, value in pairs.items()) + "}" if labels else ""


def _safe(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def sample_text(sample: Sample) -> str:
    """A gauge for each value of a tick that could be read, without a time, as Prometheus scrapes it."""
    return "".join([*_gauges(sample), END])


def _gauges(sample: Sample) -> Iterator[str]:
    families: dict[tuple[str, str], list[str]] = {}
    for name, value in zip(sample.layout.names, sample.values, strict=True):
        if value == value:
            metric, part = split_name(name)
            key = family_of(metric, unit_of(metric))
            labels = labels_text({} if part is None else {PART: part})
            families.setdefault(key, []).append(f"{key[0]}{labels} {float(value)!r}\n")
    for (family, unit), lines in families.items():
        yield head_of(family, unit)
        yield from lines
