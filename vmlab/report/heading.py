"""The heading of a run's figures: what ran, where, under which accelerator, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.record.accelerators import accelerators_of
from vmlab.analysis.shape import (
    RunDocument,
    RunPart,
    SpeedDocument,
)
from vmlab.model.ordered import ordered_note, ordered_sentences, shown_word
from vmlab.model.run import EMULATED, OF_HOST, Outcome
from vmlab.report.words import listed, moment, plural


def heading(document: RunDocument) -> list[str]:
    """The sentences of the heading, of which the first says what ran."""
    run = document.run
    lines = [" · ".join(_what(document))]
    lines.append(" · ".join(filter(None, [f"run {run.id}", moment(run.started), *machine_parts(run)])))
    lines += [f"note: {run.note}"] if run.note else []
    lines += [f"tags: {', '.join(run.tags)}"] if run.tags else []
    if (speed := speed_words(run.speed)) is not None:
        lines.append(speed)
    lines += [*_emulation_notes(accelerators_of(document), "some of the cells"), *ordered_sentences(run.host)]
    if run.outcome != Outcome.PASSED:
        passed = sum(cell.outcome == Outcome.PASSED for cell in document.cells)
        outcome = f"{run.outcome}, {passed} of {plural(run.cells_planned, 'cell')} passed"
        lines.append(f"{outcome}: {run.reason}" if run.reason else outcome)
    return lines


def speed_words(speed: SpeedDocument | None) -> str | None:
    """``host speed: mean 71 % of its best (50 to 100 %), steal 0 %``; None where it was not traced."""
    if speed is None:
        return None
    steal = "" if speed.steal_percent is None else f", steal {speed.steal_percent:.0f} %"
    ends = f"{speed.lowest_percent:.0f} to {speed.highest_percent:.0f} %"
    return f"host speed: mean {speed.mean_percent:.0f} % of its best ({ends}){steal}"


def behind_notes(accelerators: Collection[str | None], ordered: Iterable[str], part: str) -> list[str]:
    """What stands behind figures, as sentences.

    `accelerators` has those of the guests, None where only the host worked, and `ordered` the words for parts of a host
    that were not its own. `part` says where guests were emulated, if not everywhere.
    """
    return [*_emulation_notes(accelerators, part), *(ordered_note(word) for word in ordered)]


def behind_words(accelerators: Collection[str | None], ordered: Iterable[str]) -> list[str]:
    """The same in few words, such as ``on an emulated disk``, for a title or before a sentence."""
    part = "partly " if len({*accelerators}) > 1 else ""
    emulated = [f"{part}under emulation (TCG)"] if EMULATED in accelerators else []
    return [*emulated, *(f"on {'an' if shown[0] in 'aeiou' else 'a'} {shown}" for shown in map(shown_word, ordered))]


def _emulation_notes(accelerators: Collection[str | None], part: str) -> list[str]:
    where = f" on {part}" if len({*accelerators}) > 1 else ""
    note = f"TCG{where}: these values describe emulation, not a hypervisor with hardware support"
    return [note] if EMULATED in accelerators else []


def _what(document: RunDocument) -> list[str]:
    run, cells = document.run, document.cells
    if run.size == OF_HOST:
        return ["a recording of the host and its own guests"]
    tiles = _tiles(cells)
    guests = sorted({cell.provision.guests or 0 for cell in cells} - {0})
    parts = [run.scenario or "a run without a name"]
    if run.control:
        parts.append("control run: one configuration as both sides")
    if tiles:
        parts.append(_counts(tiles, "tile"))
    if guests:
        parts.append(_counts(guests, "guest"))
    parts.append(f"size {run.size}")
    repeats = max((cell.repeat for cell in cells), default=1)
    if repeats > 1:
        parts.append(plural(repeats, "repeat"))
    if cells and not guests:
        parts.append("bare metal")
    else:
        parts.append(f"accelerator {run.accelerator or 'unknown'}")
    return parts


def _tiles(cells: Sequence[CellDocument]) -> list[int]:
    """How many tiles the cells have, where that is varied or more than one."""
    varied = {int(cell.axes["tiles"]) for cell in cells if "tiles" in cell.axes}
    hidden = {int(cell.settings["tiles"]) for cell in cells if "tiles" in cell.settings}
    return sorted(varied | hidden) if varied or hidden - {1} else []


def _counts(counts: list[int], noun: str) -> str:
    return listed([*map(str, counts[:-1]), plural(counts[-1], noun)])


def machine_parts(run: RunPart) -> list[str]:
    """The host of a run: its name, processor, kernel, QEMU and libvirt; a part that is not known may be empty."""
    host: dict[str, Any] = run.host
    cpu = host.get("cpu")
    versions = [f"{word} {host[key]}" for key, word in _VERSIONS if host.get(key)]
    return [str(host.get("hostname") or ""), f"{host.get('cpus', '?')} x {cpu}" if cpu else "", *versions]


_VERSIONS = (("kernel", "Linux"), ("qemu", "QEMU"), ("libvirt", "libvirt"))
