"""Whether a run that copied a recorded load showed that load, and what it answers: what it proposes to change of the
VM, and what is lost with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vmlab.analysis.advice.seen_load import SeenLoad, seen_load
from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.comparison.result_table import ResultTable
from vmlab.analysis.figures.counted_cells import counts, is_final
from vmlab.analysis.figures.intent import sets_of
from vmlab.analysis.record.fleet_hosts import HOST_AXIS
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import RunDocument
from vmlab.model.cell_event import CellStarted, WorkloadEnded, WorkloadStarted
from vmlab.model.event import CellPlaced, CellWithdrawn, RunStarted
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import jsonable, picked
from vmlab.model.run import CACHE_FLAGS, CACHE_MODES, CacheMode, Outcome
from vmlab.model.scenarios.recorded import LATENCY_WITHIN, LOAD, RATE_WITHIN, Recorded
from vmlab.model.scenarios.scenario import Scenario
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.plan.changes import without_place
from vmlab.plan.copied_guest.copied_load import ACCESS, CACHED, LATENCY, PHASE, READS
from vmlab.plan.copied_guest.copied_scenario import AS_IT_IS, SETTING, VM
from vmlab.plan.scenario_file.loading import read
from vmlab.store.reader import RunReader
from vmlab.store.samples import HostReaders

_STANDARD_ERRORS = 3
_OF_A_CELL = ("guests.", "workloads.", "warm=", "warm ")
"""How assignments begin that change a guest, or what it does."""


@dataclass(frozen=True, slots=True)
class LikeWay:
    """The reads, or the writes, of a phase in one order of blocks: rates in a second and mean seconds, as they were
    recorded and as QEMU saw them in the cells of the copy. `host` is that of a fleet which ran these cells, empty else.
    """

    phase: str
    access: str
    way: str
    recorded_rate: float
    rate: float
    recorded_latency: float
    latency: float
    seconds: float
    """How long the copy was looked at; the rate of a few requests is no better than one of them."""
    rate_bound: float
    """By how much the rates may differ; see `rate_bound`."""
    host: str = ""

    @property
    def alike(self) -> bool:
        """Whether rate and latency are within the bounds."""
        near = abs(self.rate - self.recorded_rate) <= self.rate_bound
        low, high = sorted((self.latency, self.recorded_latency))
        return near and high <= LATENCY_WITHIN * low


@dataclass(frozen=True, slots=True)
class Answer:
    """The difference of one figure between a changed setting and the recorded one; on one `host` of a fleet, or on all
    of them where that is empty.
    """

    phase: str
    access: str
    setting: str
    way: str
    metric: str
    difference: Difference
    host: str = ""


@dataclass(frozen=True, slots=True)
class Copied:
    """A run that copied a load. `alike` are the phases with the orders of blocks in which the copy was like it.

    `changed` has for each setting the keys of the guest that it sets, and `answers` are those of copies that are alike.
    `mode` is the cache mode under the recorded settings; None where the scenario has no such guest. `others` are the
    assignments of the command line with which no cell has the recorded settings. `lost` cells have not passed.
    """

    run: str
    recorded: Recorded
    ways: tuple[LikeWay, ...]
    answers: tuple[Answer, ...]
    changed: Mapping[str, Mapping[str, Any]]
    mode: CacheMode | None = None
    others: tuple[str, ...] = ()
    lost: int = 0

    @property
    def hosts(self) -> list[str]:
        """The hosts of a fleet that ran the copy; [""] of any other run."""
        return list(dict.fromkeys(one.host for one in self.ways)) or [""]

    @property
    def alike(self) -> dict[str, list[str]]:
        """By phase the orders in which all ways are alike, on each host that ran it; a phase without one has no
        likeness.
        """
        return self.alike_on("")

    def alike_on(self, host: str) -> dict[str, list[str]]:
        """As `alike`, on one host of a fleet, or on all of them for ""."""
        found: dict[str, list[str]] = {}
        ways = [one for one in self.ways if host in ("", one.host)]
        for phase in self.recorded.phases:
            orders = dict.fromkeys(one.access for one in ways if one.phase == phase)
            own = [(order, [one for one in ways if (one.phase, one.access) == (phase, order)]) for order in orders]
            found[phase] = [order for order, of_order in own if all(one.alike for one in of_order)]
        return found

    @property
    def flushes_known(self) -> bool:
        """Whether the flushes of the recorded disk were counted, as libvirt alone does; older scenarios do not say."""
        return self.recorded.flushes_known and self.recorded.seen_by != "process"

    @property
    def why_no_change(self) -> str:
        """Why no change follows from any answer; empty where one may."""
        phases = self.recorded.phases.values()
        if any(phase.flushes for phase in phases):
            return "the load has flushes, whose time a cache mode changes too, and no metric has that time"
        if not self.flushes_known and any(phase.writes for phase in phases):
            return (
                "how often the guest flushes is not known, as libvirt alone counts that; the copy has no flushes, and "
                "a cache mode changes their time too"
            )
        return ""

    @property
    def why_too_few(self) -> str:
        """Why answers have too few readings, and what gives them more; empty where none has, or no cell was lost."""
        if not self.lost or all(one.difference.verdict is not Verdict.TOO_FEW for one in self.answers):
            return ""
        lost = "one cell" if self.lost == 1 else f"{self.lost} cells"
        return f"{lost} without a result: `vmlab resume {self.run} --invalid` measures again, for enough readings"

    @property
    def why_none(self) -> str:
        """Why there is nothing to hold against the recording; empty where there is."""
        if self.others:
            return f"the run has other settings (--set {' --set '.join(self.others)})"
        return "" if self.ways else "no cell under the recorded settings has passed"

    def likeness_words(self) -> Iterator[tuple[bool, str]]:
        """For each phase on each host whether a copy counts, in a sentence: alike is a rate within some percent and a
        latency within a factor.
        """
        bounds = f"rates within {RATE_WITHIN:g} % and mean latencies within a factor of {LATENCY_WITHIN:g}"
        for host in self.hosts:
            on = f" on {host}" if host else ""
            for phase, orders in self.alike_on(host).items():
                named = f"the copy{f' of {phase}' if len(self.recorded.phases) > 1 else ''}{on}"
                if orders:
                    yield True, f"{named} is like the recording ({bounds}): {' and '.join(orders)}"
                else:
                    yield False, f"{named} is no likeness of the recording ({bounds}), and answers nothing about it"

    @property
    def reasons(self) -> list[str]:
        """Why there is no answer, or no change that follows from one, each in words."""
        if self.why_none:
            return [self.why_none]
        unlike = [words for is_like, words in self.likeness_words() if not is_like]
        return [*unlike, *filter(None, [self.why_too_few, self.why_no_change if self.answers else ""])]

    @property
    def better(self) -> list[str]:
        """The settings that answered better and nowhere worse; none where `why_no_change` says so.

        A rate counts where the disk set it. Reads with a cold page cache decide nothing where those with a warm one are
        answered, as in a guest that has run for long.
        """
        if self.why_no_change:
            return []
        told = grouped((one.setting, one.difference.better) for one in self._deciding() if not self._is_set_aside(one))
        return [setting for setting, answers in told.items() if True in answers and False not in answers]

    def cold(self, setting: str) -> tuple[Answer, ...]:
        """What holds instead of a `setting`'s answers with a warm page cache while the host's is cold."""
        return tuple(one for one in self._deciding() if one.setting == setting and self._is_set_aside(one))

    def _deciding(self) -> Iterator[Answer]:
        for one in self.answers:
            if one.metric == LATENCY or self.recorded.phases[one.phase].ways[one.way].in_flight is not None:
                yield one

    def _is_set_aside(self, one: Answer) -> bool:
        if one.way != READS or one.access == CACHED:
            return False
        same = (one.phase, one.host, one.setting, one.way, one.metric)
        warm = (other for other in self.answers if other.access == CACHED)
        return any((other.phase, other.host, other.setting, other.way, other.metric) == same for other in warm)

    @property
    def is_likeness(self) -> bool:
        """Whether each phase is alike in some order."""
        return all(self.alike.values())


def copied_of(reader: RunReader, document: RunDocument) -> Copied | None:
    """What a run says of the load that it copied; None where its scenario copies none. Raises StoreError."""
    written = document.run.written
    if written is None or "recorded:" not in written.text:
        return None
    file = read(Path(f"<{document.run.id}>"), written.text, written.variables, files={})
    recorded, axis = file.scenario.recorded, file.scenario.axes.get(SETTING)
    if recorded is None or axis is None:
        return None
    start, guest = f"guests.{VM}.", file.scenario.guests.get(VM)
    changed = {
        name: {path.removeprefix(start): value for path, value in point.sets.items()}
        for name, point in axis.points.items()
        if name != AS_IT_IS
    }
    assigned = map(without_place, sets_of(reader.documents()))
    others = tuple(one for one in assigned if one.strip().startswith(_OF_A_CELL))
    ways = () if others else tuple(_ways(reader, document, recorded, file.scenario))
    mode = None if guest is None else guest.data_cache or guest.cache
    lost = sum(is_final(cell) and cell.outcome != Outcome.PASSED for cell in document.cells)
    bare = Copied(document.run.id, recorded, ways, (), changed, mode, others, lost)
    return replace(bare, answers=tuple(one for one in _answers(document.tables) if _is_of_likeness(bare, one)))


def _is_of_likeness(found: Copied, answer: Answer) -> bool:
    """Whether it is of a recorded way, whose copy is alike on each host that the answer is of."""
    measured = any((one.phase, one.access, one.way) == (answer.phase, answer.access, answer.way) for one in found.ways)
    return measured and answer.access in found.alike_on(answer.host)[answer.phase]


def _answers(tables: Iterable[ResultTable]) -> Iterator[Answer]:
    for table in tables:
        for row, column, entry in table.each():
            place = {**table.axes, **table.fixed, **dict(row), **dict(column)}
            if entry.difference is not None and {ACCESS, SETTING, WORKLOADS, METRICS} <= place.keys():
                yield Answer(
                    phase=str(place.get(PHASE, LOAD)),
                    access=str(place[ACCESS]),
                    setting=str(place[SETTING]),
                    way=str(place[WORKLOADS]),
                    metric=str(place[METRICS]),
                    difference=entry.difference,
                    host=str(place.get(HOST_AXIS, "")),
                )


def rate_bound(rate: float, seconds: float, *, at_random: bool) -> float:
    """By how much the rate of a copy may be off in so many seconds: a part of it, one request, and where they came at
    random (Poisson) as many standard errors of their number.
    """
    by_chance = _STANDARD_ERRORS * math.sqrt(rate / seconds) if at_random else 0.0
    return max(rate * RATE_WITHIN / 100, 1 / seconds, by_chance)


def _is_random(scenario: Scenario, phase: str, way: str) -> bool:
    """Whether the requests of a way come at random in the copy of a phase."""
    axis, entry = scenario.axes.get(PHASE), scenario.workloads.get(way)
    sets = axis.points[phase].sets if axis is not None and phase in axis.points else {}
    own = entry.params.get("rate_process") if entry is not None else None
    return bool(sets.get(f"workloads.{way}.rate_process", own) == "poisson")


def _ways(reader: RunReader, document: RunDocument, recorded: Recorded, scenario: Scenario) -> Iterator[LikeWay]:
    """Those of the cells under the recorded settings, the mean over all of one host, phase and order."""
    kinds = (RunStarted, CellPlaced, CellStarted, WorkloadStarted, WorkloadEnded, CellWithdrawn)
    timeline = RunTimeline.read(reader, kinds)
    seen: dict[tuple[str, str, str], list[SeenLoad]] = {}
    with HostReaders(reader) as readers:
        for cell in document.cells:
            # Another axis was asked for on the command line: what it sets was not recorded.
            is_own = cell.axes.keys() <= {PHASE, ACCESS, SETTING, HOST_AXIS} and cell.axes.get(SETTING) == AS_IT_IS
            if counts(cell) and cell.outcome == Outcome.PASSED and is_own:
                known = timeline.cells[cell.cell]
                phase = str(cell.axes.get(PHASE, next(iter(recorded.phases))))
                if (found := seen_load(readers.of(known.host), cell, known)) is not None:
                    seen.setdefault((known.host, phase, str(cell.axes.get(ACCESS))), []).append(found)
    for (host, phase, access), cells in sorted(seen.items()):
        seconds = sum(one.seconds for one in cells)
        for way, said in recorded.phases[phase].ways.items() if phase in recorded.phases else ():
            requests = sum(one.requests[way] for one in cells)
            yield LikeWay(
                phase=phase,
                access=access,
                way=way,
                recorded_rate=said.rate,
                rate=requests / seconds,
                recorded_latency=said.latency,
                latency=sum(one.waited[way] for one in cells) / requests if requests else 0.0,
                seconds=seconds,
                rate_bound=rate_bound(said.rate, seconds, at_random=_is_random(scenario, phase, way)),
                host=host,
            )


_LOST = {
    "cached": "the host's page cache no longer keeps what the guest reads again, and gives that memory back",
    "safe": "a write is on the disk only once the guest has flushed it; before, each was there when it was answered",
    "direct": "data that the guest has not flushed are lost if the host crashes, as with a disk's own cache; with a "
    "QEMU from before 4.0 libvirt refuses to migrate the running guest unless it is told --unsafe, and newer ones drop "
    "the host's cache of the disk at the end of a migration",
}
"""By what the mode of before had and the new one has not."""


@dataclass(frozen=True, slots=True)
class Change:
    """A `setting` that answered better: the attributes of the disk's ``<driver>``, what is `lost`, in sentences, and
    with a `cold` page cache the answers about reads, where those with a warm one decided.
    """

    setting: str
    driver: Mapping[str, str]
    lost: tuple[str, ...]
    cold: tuple[Answer, ...] = ()


def changes_of(found: Copied) -> list[Change]:
    """One for each setting that is `better`."""
    return [_change(found, setting, found.changed.get(setting, {})) for setting in found.better]


def _change(found: Copied, setting: str, keys: Mapping[str, Any]) -> Change:
    driver = {name: str(keys[f"data_{name}"]) for name in ("cache", "io") if keys.get(f"data_{name}") is not None}
    after = next((mode for mode in CACHE_MODES if mode == driver.get("cache")), None)
    lost = () if found.mode is None or after is None else tuple(lost_words(found.mode, after))
    return Change(setting, driver, lost, found.cold(setting))


def lost_words(before: CacheMode, after: CacheMode) -> Iterator[str]:
    """What is lost where a disk has another cache mode than before."""
    was, is_now = CACHE_FLAGS[before], CACHE_FLAGS[after]
    lost = {
        "cached": is_now.direct and not was.direct,
        "safe": is_now.writeback and not was.writeback,
        "direct": was.direct and not is_now.direct,
    }
    yield from (words for name, words in _LOST.items() if lost[name])


def copied_document(found: Copied) -> dict[str, Any]:
    """The document ``vmlab.advice/1`` of a run that copied a load."""
    recorded = found.recorded
    ways = [{**asdict(one), "alike": one.alike} for one in found.ways]
    return {
        "schema": "vmlab.advice/1",
        "run": found.run,
        "copied": {
            "recording": recorded.run,
            **picked(recorded, "domain", "disk", "advice"),
            "flushes_known": found.flushes_known,
            "is_likeness": found.is_likeness,
            "reasons": found.reasons,
            "ways": ways,
            "answers": [jsonable(one) for one in found.answers],
            "changes": [jsonable(one) for one in changes_of(found)],
        },
    }
