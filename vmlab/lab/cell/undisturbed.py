"""What of the lab stood still, was held back or was changed while the workloads of a cell ran.

The rule: everything that carries a figure is watched, each thread by itself. Clocks go on while something stands still,
in a guest perhaps not, so its figures do not show it. What the scenario or a viewer asked for is no fault. The limits
are in docs/explanation/validity.md.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from vmlab.lab.cell.disturbance import Finding
from vmlab.lab.cell.surroundings import CellSurroundings
from vmlab.lab.cell.workload_instance import Instances
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.errors import HypervisorError, in_one_line
from vmlab.model.names import HOST_PLACE
from vmlab.model.ordered import EMULATED_DISK
from vmlab.model.scenarios.scenario import Limits
from vmlab.telemetry.process_states import Standstill
from vmlab.telemetry.setting_files import KSM
from vmlab.telemetry.standstill import Seen, StandstillWatch
from vmlab.telemetry.steady_values import Changed, Throttled

LONGEST_STOP = 0.5
"""Seconds for which something may have stood still in all."""
STOPPED_SHARE = 0.02
"""The same as a share of the time in which it was watched."""
_MOST_TOLD = 3
_WHILE = "while the workloads ran"
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Stood:
    """What takes part in the measurement and stood still: `who` was `how`, a participle, for `seconds`.

    With `exact` its length is known however short it was, and none is forgiven.
    """

    who: str
    how: str
    seconds: float
    exact: bool = False

    def finding(self, watched: float) -> Finding:
        """What it means for a cell that was watched for so many seconds."""
        long = self.seconds >= LONGEST_STOP or self.seconds > STOPPED_SHARE * watched
        return Finding(f"{self.who} was {self.how} for {self.seconds:.3g} s {_WHILE}", breaks=self.exact or long)


def longest(found: Iterable[Standstill], known: Mapping[int, str]) -> Iterator[tuple[str, str, float]]:
    """Who stood still, how, and for how many seconds in all, one of each name.

    `known` names processes of the lab; every other one is a program on the host. Of several with one name, as the
    processes of one client are, the longest counts.
    """
    sums: dict[tuple[int, str, str], float] = {}
    for one in found:
        name = known.get(one.pid) or f"{one.name} on the host"
        key = (one.pid, f"{name} (thread {one.thread})" if one.thread else name, one.how)
        sums[key] = sums.get(key, 0.0) + one.seconds
    most: dict[tuple[str, str], float] = {}
    for (_, name, how), seconds in sums.items():
        most[name, how] = max(seconds, most.get((name, how), 0.0))
    for (name, how), seconds in most.items():
        yield name, how, seconds


class Undisturbed:
    """Watches one execute phase, from `start` until `end`; then `findings` has what came of it.

    What was changed from outside between `prepare` and `start`, and stays so, is found as well.
    """

    def __init__(self, around: CellSurroundings, guests: GuestSet) -> None:
        self._around = around
        self._guests = guests
        self._before: dict[str, float] = {}
        self._watch = StandstillWatch(inside=False)
        self._seen = Seen()
        self._stood: list[Stood] = []
        self._names: dict[int, str] = {}
        self._limited = set[int]()
        self._early: list[tuple[str, object, object]] = []
        self._given: Mapping[str, Mapping[str, str]] = {}
        self._tuned: Mapping[str, list[str]] = {}
        self._given_else: list[Finding] = []

    async def prepare(self, *, links: bool) -> None:
        """Take all values as they are, with the guests up and their settings made; the `links` as well, if they are."""
        self._watch = self._around.host.standstills()
        await asyncio.to_thread(partial(self._watch.begin, links=links))

    async def begin(self, recorded: Mapping[str, object]) -> None:
        """Get ready, before the common start is announced. The cell has `recorded` these settings of the host."""
        self._before = await self._stopped_qemus()
        self._keep_limited()
        self._given = await self._around.hypervisor.live_settings(self._guests.names)
        self._tuned = self._around.hypervisor.watch.tuned(self._guests.names)
        now = await asyncio.to_thread(self._around.host.settings)
        known = ((name, was, now.get(name)) for name, was in recorded.items())
        self._early = [one for one in known if None not in one and one[1] != one[2]]

    def start(self) -> None:
        """Watch from now on."""
        self._watch.start()

    def leave(self, names: Iterable[str]) -> None:
        """These guests are about to be ended. One of such a name that comes later is another guest."""
        self._keep_limited()
        for name in names:
            self._before.pop(name, None)

    def _keep_limited(self) -> None:
        """Remember the processes of guests that were given a quota, as long as they are known."""
        pids = self._pids()
        asked = {spec.name for spec in self._guests.specs if spec.resources.cpu_quota is not None}
        self._limited |= {pids[name] for name in asked & pids.keys()}

    def _pids(self) -> dict[str, int]:
        """The process of each guest, as `Throttled` and `Standstill` number it."""
        watch, names = self._around.hypervisor.watch, self._guests.names
        return {**watch.pids(names), **{name: -pid for name, pid in watch.pids_outside(names).items()}}

    async def _stopped_qemus(self) -> dict[str, float]:
        return await self._around.hypervisor.watch.standstill(self._guests.names)

    async def end(self) -> None:
        """Take what was seen until now: of QEMUs that were stopped by a signal the init knows the times."""
        now = await self._stopped_qemus()
        pids = self._pids()
        # Guests that were added since were stopped while they were restored.
        added = {pid for guest, pid in pids.items() if guest not in self._before}
        self._names = {
            **{pid: f"{guest}: its QEMU" for guest, pid in pids.items() if pid not in added},
            os.getpid(): "the lab's runner",
            self._around.host.disk.pid or 0: f"the {EMULATED_DISK}'s process",
        }
        self._keep_limited()
        by_signal = {name: now[name] - then for name, then in self._before.items() if now.get(name, then) > then}
        self._stood = [
            Stood(f"{name}: its QEMU", "stopped", seconds, exact=True) for name, seconds in by_signal.items()
        ]
        try:
            self._seen = await asyncio.to_thread(self._watch.stop)
        except (ValueError, LookupError, TypeError) as error:
            raise HypervisorError(f"the watch of what stands still failed: {in_one_line(error)}") from error
        known = [one for one in self._guests.names if one in self._before]
        given = await self._around.hypervisor.live_settings([one for one in known if one in self._given])
        tuned = self._around.hypervisor.watch.tuned(known)
        self._given_else = [*given_else(self._given, given, self._tuned, tuned)]
        told = {one.who for one in self._stood}
        seen = longest((one for one in self._seen.stood if one.pid not in added), self._names)
        self._stood += [Stood(*one) for one in seen if one[0] not in told]

    @property
    def lost_seconds(self) -> float:
        """For how long at most what takes part in the measurement could not go on: clocks did meanwhile."""
        # A guest with a quota that was asked for has waited for it, as for any CPU.
        held = [one.seconds for one in self._seen.throttled if not self._asked_for(one)]
        return sum(one.seconds for one in self._stood) + max(held, default=0.0)

    async def stop(self) -> None:
        """End the watch, whatever has failed."""
        with suppress(Exception):
            await asyncio.to_thread(self._watch.stop)

    def findings(self, limits: Limits, instances: Instances, switched: Collection[str]) -> Iterator[Finding]:
        """One for each thing that stood still, was held back, or was changed; `switched` is what viewers switched."""
        for one in (*self._stood, *clients_stopped(instances)):
            yield one.finding(self._seen.seconds)
        yield from self._held_back(limits)
        for name, was, became in self._early:
            if name not in switched:
                text = f"host.{name} was changed from {was} to {became} before the workloads started"
                yield Finding(text, breaks=True)
        yield from self._given_else
        # A viewer's switch makes the cell invalid by itself.
        changed = [one for one in self._seen.changed if not ("ksm" in switched and KSM in one.what)]
        yield from told_of(changed, self._names)

    def _held_back(self, limits: Limits) -> Iterator[Finding]:
        """The worst quota on each set of processes that none was asked for."""
        worst: dict[frozenset[int], Throttled] = {}
        for one in self._seen.throttled:
            if self._asked_for(one):
                continue
            known = worst.get(one.pids)
            if known is None or one.seconds > known.seconds:
                worst[one.pids] = one
        for one in worst.values():
            share = one.seconds / self._seen.seconds * 100
            who = ", ".join(sorted(self._names[pid] for pid in one.pids if pid in self._names)) or "the lab's programs"
            text = f"a CPU quota on {one.group} held back {who} for {share:.1f} % of the time"
            if share > limits.held_back_percent:
                yield Finding(f"{text}; the limit is {limits.held_back_percent:g} %", breaks=True)
            else:
                yield Finding(f"{text} {_WHILE}", breaks=False)

    def _asked_for(self, one: Throttled) -> bool:
        """Whether a group is that of one guest with a quota, or below it: libvirt and machined name it after QEMU.

        Guests on the host are given none.
        """
        return one.pids <= self._limited and any("qemu" in part for part in one.group.parts)


def clients_stopped(instances: Instances) -> Iterator[Stood]:
    """Clients that were stopped inside their guests; those on the host are seen from there."""
    for instance, seconds in instances.stopped():
        if instance.context.source.name != HOST_PLACE:
            yield Stood(f"{instance.label}: its client", "stopped inside its guest", seconds)


def given_else(
    before: Mapping[str, Mapping[str, str]],
    after: Mapping[str, Mapping[str, str]],
    asked_before: Mapping[str, list[str]],
    asked: Mapping[str, list[str]],
) -> Iterator[Finding]:
    """One finding for each guest of which libvirt has given something else: what differs, or was put back meanwhile;
    and for each that libvirt has not described.

    See `Hypervisor.live_settings` and `GuestWatch.tuned`, which has all guests that are there.
    """
    for guest, all_asked in asked.items():
        then, now = before.get(guest), after.get(guest)
        if then is None or now is None:
            yield Finding(f"{guest}: what libvirt gives it could not be compared", breaks=False)
            then = now = {}
        changed = [
            f"{path} was changed from {then.get(path, _NONE)} to {now.get(path, _NONE)}"
            for path in {**then, **now}
            if then.get(path) != now.get(path)
        ]
        meanwhile = all_asked[len(asked_before.get(guest, [])) :]
        if changed or meanwhile:
            what = changed[0] if changed else f"libvirt reported a change ({meanwhile[0]})"
            more = max(len(changed), len(meanwhile)) - 1
            also = f", and {more} more" if more else ""
            yield Finding(f"{guest}: {what}{also} {_WHILE}", breaks=True)


def told_of(changed: Sequence[Changed], known: Mapping[int, str]) -> Iterator[Finding]:
    """One finding for each value that was changed, of the threads of a process one alone, and a few in all."""
    first: dict[object, Changed] = {}
    for one in changed:
        if one.pid is None or one.pid in known:
            first.setdefault(one.what if one.pid is None else one.pid, one)
    for one in list(first.values())[:_MOST_TOLD]:
        what = one.what if one.pid is None else f"{known[one.pid]}: {one.what}"
        yield Finding(
            f"{what} was changed from {one.was} to {one.became} for {one.seconds:.3g} s {_WHILE}", breaks=True
        )
    if len(first) > _MOST_TOLD:
        yield Finding(f"{len(first) - _MOST_TOLD} further settings were changed {_WHILE}", breaks=True)
