"""`vmlab scenario`: scenarios that are written for the user."""

from __future__ import annotations

import click

from vmlab.cli.output import write_text
from vmlab.lab.provision.host_support import host_for_plans
from vmlab.plan.copied_guest.copied_scenario import copied_scenario
from vmlab.plan.copied_guest.guest_sources import found_guest
from vmlab.plan.copied_guest.trial import Trial


@click.group()
def scenario() -> None:
    """Write a scenario that describes a guest of your own."""


@scenario.command("from")
@click.argument("source")
@click.option("--connect", metavar="URI", help="libvirt to ask for SOURCE, and nothing else [default: qemu:///system].")
def from_command(source: str, connect: str | None) -> None:
    """Print a scenario with a guest like SOURCE, and a change of its disk at each point of an axis.

    SOURCE is a domain of libvirt's by name or UUID, a QEMU process by its number, its guest's name or its number in
    Proxmox VE, a file with a domain's XML or the text of `qm config`, or `-` for such a text on standard input. Nothing
    of it is changed, and no monitor is written to. Each line says where it was read; what the lab or this host cannot
    copy is a comment.
    """
    guest = found_guest(source, connect)
    write_text(copied_scenario(guest, Trial(host_for_plans())))
