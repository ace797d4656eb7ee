"""`vmlab image build|ls|rm`: the root disk that all guests start from."""

from __future__ import annotations

import time

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json, write_text
from vmlab.guests.image import build as build_image
from vmlab.guests.image import list_images, remove
from vmlab.model.units import format_bytes


@click.group()
def image() -> None:
    """The guests' root disk: build it, list what is kept, remove it."""


@image.command()
@click.option("--force", is_flag=True, help="Build it again although it is there, for one that was damaged.")
def build(force: bool) -> None:
    """Build the image from this machine's Debian packages, unless it is there."""
    built = build_image(say, force=force)
    write_text(built.id)


@image.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the images that are kept; the one that runs start from is marked current."""
    images = list_images()
    if as_json:
        rows = [
            {"id": i.id, "bytes": i.bytes, "created": i.created, "in_use": i.in_use, "current": i.current}
            for i in images
        ]
        write_json({"schema": "vmlab.images/1", "images": rows})
        return
    for one in images:
        marks = " ".join(word for word, holds in (("current", one.current), ("in use", one.in_use)) if holds)
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.created))
        write_text(f"{one.id}  {format_bytes(one.bytes):>9}  {made}  {marks}".rstrip())
    if not images:
        say("no image is kept; `vmlab image build` makes one")


@image.command("rm")
@click.argument("ids", nargs=-1, required=True)
def rm(ids: tuple[str, ...]) -> None:
    """Remove images; one that a run uses is refused."""
    for one in ids:
        remove(one)
        say(f"removed {one}")
