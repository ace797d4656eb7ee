"""Whether the hosts of a fleet are ready: what `vmlab hosts check` shows, and what a run demands before it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vmlab.fleet.clock import ClockOffset
from vmlab.fleet.fleet_host import Connect, condition_of
from vmlab.fleet.host_answers import Cleaned, Condition
from vmlab.fleet.hosts_file import HostEntry
from vmlab.fleet.link import HostLink, hung_up_after
from vmlab.model.errors import RefusedError, VmlabError, in_one_line
from vmlab.system.entry_points import Entry
from vmlab.system.scratch import scratch

Notice = Callable[[str], object]
_CLEAN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Needs:
    """What a run needs of each host besides: workloads of other packages, and Debian's packages for its guests."""

    plugins: Sequence[Entry] = ()
    packages: Sequence[str] = ()


_NOTHING = Needs()


@dataclass(frozen=True, slots=True)
class HostCheck:
    """What was found of a host; `problem` is why nothing more could be."""

    name: str
    problem: str = ""
    condition: Condition | None = None
    offset: ClockOffset | None = None
    plugins: tuple[str, ...] = ()
    """What it lacks of other packages, each with its package."""

    @property
    def lacks(self) -> list[str]:
        """Why no run can start there; nothing where it is ready."""
        if self.condition is None:
            return [self.problem]
        wrong = [f"{one.name}: {one.detail}" for one in self.condition.checks if one.required and not one.ok]
        busy = [f"{run} measures there" for run in self.condition.measuring]
        lacking = "; ".join(dict.fromkeys(self.condition.lacking_packages.values()))
        plugins = [f"lacks {one}, which the scenario uses" for one in self.plugins]
        return [*plugins, *filter(None, [lacking]), *wrong, *busy]


async def check_hosts(
    hosts: Mapping[str, HostEntry], connect: Connect = HostLink.open, needs: Needs = _NOTHING
) -> list[HostCheck]:
    """Ask all hosts at once, also whether they have what is needed."""
    return list(await asyncio.gather(*(_checked(name, entry, connect, needs) for name, entry in hosts.items())))


async def _checked(name: str, entry: HostEntry, connect: Connect, needs: Needs) -> HostCheck:
    try:
        async with hung_up_after(await connect(name, entry)) as link:
            # The clocks first: the checks load the host.
            offset = await link.offset()
            condition = await condition_of(link, [one.name for one in needs.plugins], needs.packages)
            lacking = tuple(one.words for one in needs.plugins if one.name in condition.unknown_kinds)
            return HostCheck(name, "", condition, offset, lacking)
    except (VmlabError, OSError) as error:
        return HostCheck(name, in_one_line(error))


async def demand_ready(
    hosts: Mapping[str, HostEntry],
    image: str | None,
    notice: Notice,
    needs: Needs = _NOTHING,
    connect: Connect = HostLink.open,
) -> None:
    """Raise RefusedError unless every host can run now, and has what the run `needs`; send the image `image` of this
    host to those that lack it.
    """
    found = await check_hosts(hosts, connect, needs)
    wrong = [f"host {one.name}: {one.lacks[0]}" if one.condition else one.problem for one in found if one.lacks]
    if wrong:
        unready = [one for one in found if one.lacks]
        remedy = "vmlab hosts check"
        if all(one.plugins for one in unready):
            remedy = "install it there"
        elif all(one.condition is not None and one.condition.lacking_packages for one in unready):
            remedy = "apt-get update there reads the newest lists"
        raise RefusedError("; ".join(wrong), remedy=remedy)
    lacking = [one.name for one in found if one.condition is not None and one.condition.image != image]
    if image is not None and lacking:
        await send_image({name: hosts[name] for name in lacking}, image, notice, connect)


async def send_image(
    hosts: Mapping[str, HostEntry], image: str, notice: Notice, connect: Connect = HostLink.open
) -> None:
    """Send the image that runs start from here to hosts, one file for all of them. Raises RefusedError, HostLost."""
    from vmlab.guests.image.catalog import find, pack

    here = find()
    if here is None or here.id != image:
        raise RefusedError("no image was built yet", remedy="vmlab image build")
    with scratch("image") as place:
        file = place / "image"
        await asyncio.to_thread(pack, here, file)
        for name, entry in hosts.items():
            notice(f"image {image} is sent to host {name}")
            async with hung_up_after(await connect(name, entry)) as link:
                await link.send("image", image, file)


async def clean_hosts(hosts: Mapping[str, HostEntry]) -> dict[str, Cleaned | VmlabError | OSError]:
    """Clean up on all hosts; of each what was done, or why nothing could be."""

    async def cleaned(name: str, entry: HostEntry) -> Cleaned | VmlabError | OSError:
        try:
            async with hung_up_after(await HostLink.open(name, entry)) as link:
                return await link.ask(Cleaned, "clean", deadline=_CLEAN_SECONDS)
        except (VmlabError, OSError) as error:
            return error

    return dict(zip(hosts, await asyncio.gather(*(cleaned(*one) for one in hosts.items())), strict=True))
