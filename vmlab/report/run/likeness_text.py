"""A run that copied a recorded load, in words: the advice beside the answer, and what a change of the VM would be."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from vmlab.analysis.advice.likeness import Answer, Copied, changes_of
from vmlab.model.run import CACHE_FLAGS, CACHE_MODES
from vmlab.model.scenarios.recorded import LOAD, Recorded
from vmlab.model.visible import visible_line
from vmlab.plan.copied_guest.copied_load import LATENCY
from vmlab.report.blocks import Block, Column, Notes, Table, Text
from vmlab.report.run.shown_tables import metric_words
from vmlab.report.verdicts import difference_words
from vmlab.report.writers.text import text_lines


def copied_text(found: Copied, width: int) -> str:
    """All of it."""
    return "\n".join(text_lines(list(_blocks(found)), width)) + "\n"


def _blocks(found: Copied) -> Iterator[Block]:
    recorded = found.recorded
    place = f"{recorded.domain} {recorded.disk}, recorded in {recorded.run}, copied in {found.run}"
    yield Text(visible_line(place))
    yield Text(visible_line(f"advice: {recorded.advice or 'none, the recording has too little evidence'}"))
    if found.why_none:
        yield Text(visible_line(f"answer: none, as {found.why_none}"))
        return
    yield _table(found)
    yield Notes([words for _, words in found.likeness_words()], tone="")
    answers = [one for one in found.answers if one.metric == LATENCY or one.difference.proven]
    yield Notes([f"answer: {_answer_words(found, one)}" for one in answers], tone="answer")
    yield Notes(list(_changes(found)), tone="")


def _table(found: Copied) -> Table:
    ways = found.ways
    return Table(
        "under the recorded settings",
        [_place(found, one.host, one.phase, one.access, one.way) for one in ways],
        [
            Column("recorded/s", [f"{one.recorded_rate:.4g}" for one in ways]),
            Column("copy/s", [f"{one.rate:.4g}" for one in ways]),
            Column("recorded ms", [_ms(one.recorded_latency) for one in ways]),
            Column("copy ms", [_ms(one.latency) for one in ways]),
            Column("alike", ["yes" if one.alike else "no" for one in ways]),
        ],
    )


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g}"


def _place(found: Copied, *words: str) -> str:
    return ", ".join(word for word in words if word and (word != LOAD or len(found.recorded.phases) > 1))


def _answer_words(found: Copied, one: Answer) -> str:
    place = _place(found, one.host, one.phase, one.access, one.setting, one.way)
    return f"{place}: {metric_words(one.metric)} {difference_words(one.difference)}"


def _of_libvirt(recorded: Recorded, driver: Mapping[str, str]) -> str:
    words = " ".join(f"{name}='{value}'" for name, value in driver.items())
    return f"virsh edit {shlex.quote(recorded.domain)}, and in the <driver> of disk {recorded.disk}: {words}"


def _of_process(recorded: Recorded, driver: Mapping[str, str]) -> str:
    """By QEMU's own options, of which a node has the flags of a mode; no libvirt has this guest."""
    aio = [f"aio={driver['io']}"] if "io" in driver else []
    drive = ",".join([f"cache={driver['cache']}", *aio] if "cache" in driver else aio)
    nodes = ",".join(aio)
    flags = next((CACHE_FLAGS[mode] for mode in CACHE_MODES if mode == driver.get("cache")), None)
    if flags is not None:
        of_node = [f"cache.direct={_switch(flags.direct)}", f"cache.no-flush={_switch(flags.no_flush)}", *aio]
        nodes = f"{','.join(of_node)} and its -device write-cache={_switch(flags.writeback)}"
    words = f"give the -drive of disk {recorded.disk} {drive}, or its -blockdev {nodes}"
    return f"{words}; with Proxmox VE, qm set gives the disk {drive}"


def _switch(is_on: bool) -> str:
    return "on" if is_on else "off"


def _changes(found: Copied) -> Iterator[str]:
    """What is missing, and what changes the VM, for each setting that answered better."""
    recorded = found.recorded
    if found.why_too_few:
        yield found.why_too_few
    if found.answers and found.why_no_change:
        yield f"no change follows from it: {found.why_no_change}"
    for change in changes_of(found):
        change_words = _of_process if recorded.seen_by == "process" else _of_libvirt
        yield visible_line(f"to change it: {change_words(recorded, change.driver)}")
        yield from (f"what is lost: {words}" for words in change.lost)
        if change.cold:
            yield "it counts on the VM reading the same blocks again, and on host memory for them; else: " + "; ".join(
                _answer_words(found, one) for one in change.cold
            )
