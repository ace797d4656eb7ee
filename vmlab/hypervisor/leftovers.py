"""Removes what a dead run left behind: what its journal lists, if it is the lab's, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from vmlab.hypervisor import trace_instance
from vmlab.hypervisor.disks import loop_devices, user_folder
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.journal import Journal, JournalEntry, Kind
from vmlab.hypervisor.libvirt.libvirt_root import hosts_places
from vmlab.hypervisor.settings_keeper import Tell, is_back, put_back
from vmlab.model.errors import CleanupIncomplete, HypervisorError, StoreError
from vmlab.system.removal import opened, remove_empty_folder, remove_file_beneath, remove_tree
from vmlab.telemetry.source import THE_HOST, Roots


def sweep(
    journal_path: Path,
    disks: Path,
    owner: str,
    *,
    roots: Roots = THE_HOST,
    tell: Tell = lambda _line: None,
    done: Callable[[JournalEntry], object] = lambda _entry: None,
) -> list[str]:
    """Remove everything that is still open in the journal of a dead run, and restore the host's settings.

    Gives what was removed, as paths; `tell` takes a line for each setting that is not as it was before the run, `done`
    each entry of which something was removed or put back. An entry may be closed without: what it names may have gone
    before, or be none of the lab's.

    Files go if they lie directly in the folder `disks`, folders beside the record if `owner` has marked them, see
    `removal.mark`, files in folders of the user's that have its name, loop devices that carry its mark, logical volumes
    that have its name and its tag, images in Ceph pools whose names begin with it, the instance of tracing that has its
    name, and in the host's libvirt what carries it, with the logs of such domains. All else is not the lab's: it stays,
    and its entry is closed. Where a file's mount or a volume's group is not there, the entry stays open. Only for runs
    whose processes are gone.

    Raises CleanupIncomplete, naming what could not be removed, after everything else was.
    """
    removers = _removers(disks, owner, roots)
    journal = Journal(journal_path)
    removed: list[str] = []
    failed: list[str] = []
    # Guests are ended before their files go.
    entries = sorted(journal.open_entries(), key=lambda entry: entry.kind != "libvirt")
    for entry in entries:
        try:
            if entry.kind == "setting":
                found = _put_back(entry, entries, roots, tell, journal)
            else:
                found = removers[entry.kind](entry)
                removed += found
            if found:
                done(entry)
            journal.strike(entry)
        except (StoreError, HypervisorError, ImportError, ValueError) as error:
            failed.append(str(error))
        except OSError as error:
            where = f" ({error.filename})" if error.filename and error.filename != entry.what else ""
            failed.append(f"{entry.kind} {entry.what}: {error.strerror or error}{where}")
    if failed:
        raise CleanupIncomplete("left behind: " + "; ".join(failed))
    return removed


def _removers(disks: Path, owner: str, roots: Roots) -> dict[Kind, Callable[[JournalEntry], list[str]]]:
    """What removes what an entry of each kind but settings names, and gives it as paths."""
    mark = loop_devices.mark_of(owner)
    return {
        "cgroups": lambda one: cgroups.remove_everywhere(one.what),
        "partition": lambda one: _remove_partition(one.what),
        "folder": lambda one: _remove_folder(Path(one.what), owner, disks) if Path(one.what) != disks.parent else [],
        "file": lambda one: _remove_file(Path(one.what), disks),
        "outside": lambda one: [one.what] if user_folder.remove(one, owner) else [],
        "rbd": lambda one: _remove_image(one.what, owner),
        "volume": lambda one: _remove_volume(one.what, owner),
        "libvirt": lambda one: _undo_in_libvirt(one.what) if one.what == owner else [],
        "log": lambda one: hosts_places().forget(one.what) if _is_domain_of(owner, one.what) else [],
        "trace": lambda one: trace_instance.remove(one.what, owner, roots),
        "loop": lambda one: loop_devices.marked(one.what, clear=True) if one.what == mark else [],
    }


def _put_back(
    entry: JournalEntry, entries: Sequence[JournalEntry], roots: Roots, tell: Tell, journal: Journal
) -> list[str]:
    for line in put_back(entry, {other.ours for other in entries if other.what == entry.what}, roots, journal):
        tell(line)
    return [entry.what] if is_back(entry, roots) else []


def _remove_partition(path: str) -> list[str]:
    known = Path(path) in cgroups.partitions(cgroups.hierarchies(), ordered=True)
    return [path] if known and cgroups.remove_partition(Path(path)) else []


def _remove_image(words: str, owner: str) -> list[str]:
    from vmlab.hypervisor.ceph import rbd

    image = rbd.named(words, owner)
    return [str(image)] if image is not None and rbd.remove(image) else []


def _remove_volume(words: str, owner: str) -> list[str]:
    from vmlab.hypervisor.lvm import logical_volumes

    volume = logical_volumes.named(words, owner)
    return [str(volume)] if volume is not None and logical_volumes.remove(volume, owner) else []


def _undo_in_libvirt(lab: str) -> list[str]:
    from vmlab.hypervisor.libvirt.marked import undo

    return undo(lab)


def _is_domain_of(owner: str, domain: str) -> bool:
    from vmlab.hypervisor.libvirt.domain_xml import domain_name

    return domain.startswith(domain_name(owner, "")) and "/" not in domain


def _remove_folder(folder: Path, owner: str, disks: Path) -> list[str]:
    with opened(folder) as (_, found):
        ours = found == owner
    if ours:
        return [str(folder)] if remove_tree(folder) else []
    # One that its maker could not mark any more has nothing in it.
    return [str(folder)] if folder.parent == disks and remove_empty_folder(folder) else []


def _remove_file(file: Path, disks: Path) -> list[str]:
    return [str(file)] if file.parent == disks and remove_file_beneath(disks.parent, disks.name, file.name) else []
