"""A guest on the host, put together: its CPUs and cgroups, its copies of the image's files, its place, its servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from vmlab.guests.host_shell import BareShell, HostShell
from vmlab.hypervisor.bare_metal.bare_init import BareOrder
from vmlab.hypervisor.bare_metal.bare_place import bare_place, copy_image
from vmlab.hypervisor.disks.host_files import marked_folder
from vmlab.hypervisor.isolation.cgroups import prefix_of
from vmlab.hypervisor.isolation.host_cgroups import BareCgroups
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.libvirt.libvirt_root import root_folder
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.bare_guests import BareGuest
from vmlab.model.errors import RefusedError
from vmlab.model.names import bare_cable, guest_address
from vmlab.plan.terms import GuestPlan
from vmlab.system.cgroup_mounts import cpu_list
from vmlab.system.cpu_cores import Cores, choose_cpus, read_cores
from vmlab.workloads.contract import Shell


@asynccontextmanager
async def bare_guest(
    folder: RunFolder, host: Shell, guest: GuestPlan, position: tuple[int, int], taken: Collection[int], deadline: float
) -> AsyncIterator[BareGuest]:
    """See `OpenBare`; `host` has the image's root. Raises RefusedError where there are not so many CPUs."""
    assert isinstance(host, HostShell)
    journal, address = Journal(folder.journal), guest_address(*position)
    cgroups = BareCgroups(prefix_of(root_folder(folder.runtime)), journal)
    cgroups.hold()
    cores = read_cores(allowed=cgroups.cpus())
    resources = guest.resources
    try:
        cpus = choose_cpus(cores, resources.vcpus, smt=resources.smt, taken=taken)
    except ValueError as lack:
        raise RefusedError(f"guest {guest.guest} has on: host, and {lack}") from lack
    with (
        marked_folder(folder.disks / f"bare-{guest.key}", folder.id, journal) as files,
        cgroups.made(guest.key, cpus, resources.memory_bytes) as groups,
    ):
        await copy_image(host.root, files)
        order = BareOrder(str(host.root), str(folder.runtime / f"bare-{guest.key}"), str(files), guest.key)
        async with bare_place(order, bare_cable(*position), address, groups) as place:
            shell = BareShell(place.pid, address, place.groups)
            await shell.prepare(guest.roles, deadline)
            yield BareGuest(shell, files, tuple(cpus), cpu_words(cpus, cores, taken))


def cpu_words(cpus: Sequence[int], cores: Cores, taken: Collection[int] = ()) -> str:
    """CPUs for people, with their cores and what their cores' other hardware threads are left to."""
    used = [core for core in cores if {*core} & {*cpus}]
    idle = sorted(cpu for core in used for cpu in core if cpu not in cpus)
    words = [
        f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}",
        "1 core" if len(used) == 1 else f"{len(used)} cores",
    ]
    if any(len(core) > 1 for core in cores):
        words.append(
            "both hardware threads of each" if not idle else f"whose other threads, {cpu_list(idle)}, have no guest"
        )
    else:
        words.append("one hardware thread each")
    if shared := sorted({*cpus} & {*taken}):
        words.append(f"{cpu_list(shared)} shared with another guest on the host")
    return ", ".join(words)
