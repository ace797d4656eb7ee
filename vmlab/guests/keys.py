"""Fresh keys for each run: one to log in to the guests, and one host key for each guest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import asyncssh


@dataclass(frozen=True, slots=True)
class RunKeys:
    """The run's client key and the guests' host keys, by guest key. They are kept in memory only."""

    client: asyncssh.SSHKey
    hosts: dict[str, asyncssh.SSHKey]

    @classmethod
    def generate(cls, guests: Iterable[str]) -> RunKeys:
        """Ed25519 for all: quick to check under emulation."""
        return cls(
            client=asyncssh.generate_private_key("ssh-ed25519", comment="vmlab"),
            hosts={guest: asyncssh.generate_private_key("ssh-ed25519") for guest in guests},
        )

    def authorized_line(self) -> str:
        """The line for the guests' ``authorized_keys``."""
        return self.client.export_public_key("openssh").decode().strip()

    def host_private(self, guest: str) -> bytes:
        """The private host key of `guest`, in OpenSSH's format."""
        return self.hosts[guest].export_private_key("openssh")
