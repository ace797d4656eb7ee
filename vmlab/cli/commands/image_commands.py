"""`vmlab image` and `vmlab snapshot`: the disks of guests, our own and those of users, and the frozen guests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.options import packages_option
from vmlab.cli.output import write_json, write_text
from vmlab.cli.progress import shown_work
from vmlab.guests.image.added import System, list_added
from vmlab.guests.image.added import remove as remove_added
from vmlab.guests.image.adding import NewImage, add
from vmlab.guests.image.building import build as build_image
from vmlab.guests.image.catalog import Image, ImageSummary, find, list_images, pack, packages_of, unpack
from vmlab.guests.image.layers import build_layer, require_layer
from vmlab.guests.image.layers import remove as remove_image
from vmlab.guests.image.windows_answers import Answers, make_answers
from vmlab.guests.snapshots import SNAPSHOTS, list_snapshots, size_limit
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.jsonable import picked
from vmlab.model.quantities import format_bytes
from vmlab.model.visible import visible_line

_FILE = click.Path(path_type=Path)
Command = TypeVar("Command", bound=Callable[..., object])


@click.group()
def image() -> None:
    """The disks that guests start from: build vmlab's own image, carry it to another host, add your own."""


@image.command()
@packages_option("Build a layer with these Debian packages on top of it, if that is missing; repeatable.")
@click.option("--force", is_flag=True, help="Build again even if it exists; with --with only the layer.")
def build(packages: tuple[str, ...], force: bool) -> None:
    """Build the image from this machine's Debian sources, if it is missing."""
    with shown_work() as work:
        make = partial(build_layer, packages) if packages else build_image
        built = make(work.notice, force=force)
    write_text(built.id)


@image.command("add")
@click.argument("name")
@click.option("--disk", type=_FILE, help="Disk image, raw or qcow2; it is copied.")
@click.option("--domain", metavar="DOMAIN", help="Or the first disk of this libvirt domain, which must be shut off.")
@click.option("--connect", metavar="URI", help="libvirt to ask for DOMAIN [default: qemu:///system].")
@click.option("--user", required=True, help="SSH user: root, a user with sudo, or an administrator.")
@click.option("--key", type=_FILE, required=True, help="Private SSH key of that user; it is copied.")
@click.option("--kernel", type=_FILE, help="Kernel to boot [default: the disk's boot loader].")
@click.option("--initrd", type=_FILE, help="Initial RAM disk of that kernel.")
@click.option("--append", "command_line", metavar="WORDS", help="Kernel command line, such as root=/dev/vda2.")
@click.option("--system", type=click.Choice(get_args(System)), default="linux", show_default=True, help="What it runs.")
def add_command(name: str, disk: Path | None, domain: str | None, connect: str | None, **given: Any) -> None:
    """Add your own disk as the image NAME; guests in scenarios use it with `image: NAME`."""
    if (disk is None) is (domain is None) or (connect is not None and domain is None):
        raise UsageError("name the disk with --disk FILE, or with --domain DOMAIN, of which --connect says the libvirt")
    # Imported late: the other commands on images plan nothing.
    from vmlab.plan.copied_guest.guest_sources import disk_to_copy

    ask = partial(disk_to_copy, str(domain), connect, has_kernel=given["kernel"] is not None)
    new = NewImage(name, disk or ask(), **given, demand_unused=ask if disk is None else lambda: None)
    with shown_work() as work:
        added = add(new, work.notice)
    write_text(added.id)


@image.command("answers")
@click.option("-o", "--output", type=_FILE, required=True, help="CD image to write; an existing one is replaced.")
@click.option("--drivers", type=_FILE, required=True, help="ISO of virtio-win.")
@click.option("--release", required=True, help="Folder of virtio-win for this release of Windows, such as 2k22.")
@click.option("--key", type=_FILE, required=True, help="Private SSH key; its public half is put on the CD.")
@click.option("--edition", type=click.IntRange(1, 99), default=1, show_default=True, help="Index of the edition.")
@click.option("--msi", "installers", type=_FILE, multiple=True, help="Installer to run, such as fio's; repeatable.")
@click.option("--accept-licence", is_flag=True, help="You accept the licence terms of Windows.")
def answers_command(output: Path, accept_licence: bool, **given: Any) -> None:
    """Write a CD image that installs Windows Server unattended, on a disk for `image add`."""
    if not accept_licence:
        raise UsageError("the answer file accepts the licence terms of Windows; say with --accept-licence that you do")
    with shown_work():
        make_answers(Answers(**given), output)
    say(f"{output}: {format_bytes(output.stat().st_size)}; it has the administrator's password, which is a new one")


def _kept(packages: tuple[str, ...]) -> Image:
    """The image that runs start from, or the layer with `packages`. Raises RefusedError where there is none."""
    found = find()
    if found is None:
        raise RefusedError("no image was built yet", remedy="vmlab image build")
    return require_layer(found, packages) if packages else found


@image.command("export")
@click.option("-o", "--output", type=_FILE, required=True, help="File to write; an existing one is replaced.")
@packages_option("The layer with these packages instead of the image; repeatable.")
def export_command(output: Path, packages: tuple[str, ...]) -> None:
    """Write the image that guests start from to one file, for a host that cannot build it."""
    found = _kept(packages)
    with shown_work():
        pack(found, output)
    say(f"image {found.id}: {format_bytes(output.stat().st_size)} in {output}")


@image.command("import")
@click.argument("file", type=_FILE)
def import_command(file: Path) -> None:
    """Keep the image in FILE, which `vmlab image export` wrote on another host, after checking every byte."""
    with shown_work() as work:
        kept = unpack(file, work.notice)
    write_text(kept.id)


@image.command("licences")
@packages_option("The layer with these packages instead of the image; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the packages as JSON.")
def licences_command(packages: tuple[str, ...], as_json: bool) -> None:
    """List the packages in vmlab's own image, each with its version and licences, as Debian names them."""
    found = _kept(packages)
    every = packages_of(found)
    if as_json:
        rows = [picked(one, "name", "version", "licences") for one in every]
        write_json({"schema": "vmlab.image-licences/1", "image": found.id, "packages": rows})
        return
    name, version = (max((len(getattr(one, key)) for one in every), default=0) for key in ("name", "version"))
    for one in every:
        words = ", ".join(one.licences) or "not named"
        write_text(visible_line(f"{one.name:<{name}}  {one.version:<{version}}  {words}"))
    unnamed = sum(not one.licences for one in every)
    say(f"{len(every)} packages; the licences of {unnamed} have no name that programs read")


@image.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the images that are kept, vmlab's own first; the one that runs start from is marked current."""
    images, added = list_images(), list_added()
    if as_json:
        write_json({"schema": "vmlab.images/1", "images": [asdict(one) for one in (*images, *added)]})
        return
    for one in images:
        layer = [f"with {', '.join(one.packages)}"] if one.packages else []
        _show(one, [*layer, *["current"] * one.current])
    for own in added:
        _show(own, [f"added as {own.name}, {f'user {own.user}' if own.user else 'damaged'}"])
    if not images and not added:
        say("no image is kept; `vmlab image build` makes one")


def _show(one: ImageSummary, marks: list[str]) -> None:
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.created))
    words = ", ".join([*marks, *["in use"] * one.in_use])
    write_text(visible_line(f"{one.id}  {format_bytes(one.bytes):>9}  {made}  {words}".rstrip()))


@image.command("rm")
@click.argument("ids", metavar="IMAGE...", nargs=-1, required=True)
def rm(ids: tuple[str, ...]) -> None:
    """Remove images: vmlab's own by id, with the layers on top of it; added ones by name. An image that a run uses is
    refused.
    """
    gone: list[str] = []
    for one in (id for id in ids if id not in gone):
        went = [one] if remove_added(one) else remove_image(one)
        gone += went
        for name in went:
            say(f"removed {name}")


@click.group()
def snapshot() -> None:
    """Guests frozen by the first run that needs them: list what is kept, remove it."""


@snapshot.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls_snapshots(as_json: bool) -> None:
    """List the snapshots that are kept, most recently used first, and how much space they may take."""
    snapshots = list_snapshots()
    if as_json:
        rows = [picked(one, "id", "bytes", "created", "used", "in_use", "whole") for one in snapshots]
        write_json({"schema": "vmlab.snapshots/1", "limit_bytes": size_limit(), "snapshots": rows})
        return
    for one in snapshots:
        marks = " ".join(word for word, holds in (("in use", one.in_use), ("damaged", not one.whole)) if holds)
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.used))
        write_text(f"{one.id:<32}  {format_bytes(one.bytes):>9}  used {used}  {marks}".rstrip())
    taken = format_bytes(sum(one.bytes for one in snapshots))
    say(f"{taken} of {format_bytes(size_limit())}" if snapshots else "no snapshot is kept; a run makes what it needs")


@snapshot.command("rm")
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove all snapshots that no run uses.")
def rm_snapshots(ids: tuple[str, ...], everything: bool) -> None:
    """Remove snapshots; one that a run uses is refused. The next run that needs one makes it again."""
    if bool(ids) == everything:
        raise click.UsageError("name snapshots, or say --all")
    if everything:
        _remove_all()
    for one in ids:
        SNAPSHOTS.remove(one)
        say(f"removed {one}")


def _remove_all() -> None:
    """Remove all that no run uses, and report why the others were kept."""
    snapshots = list_snapshots()
    for one in snapshots:
        try:
            SNAPSHOTS.remove(one.id)
        except RefusedError as error:
            say(f"kept {one.id}: {visible_line(str(error))}")
        else:
            say(f"removed {one.id}")
    if not snapshots:
        say("no snapshot is kept")
