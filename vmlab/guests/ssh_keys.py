"""Fresh keys for each run: one to log in to the guests, and one host key for each guest; and users' own keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from vmlab.model.errors import UsageError
from vmlab.system.given_file import read_given

_MOST_KEY = 2**16
"""Bytes of the largest private key that is read."""


@dataclass(frozen=True, slots=True)
class RunKeys:
    """The run's client key and the guests' host keys, by guest key. They are kept in memory only."""

    client: asyncssh.SSHKey
    hosts: dict[str, asyncssh.SSHKey]

    @classmethod
    def generate(cls, guests: Iterable[str]) -> RunKeys:
        """Ed25519 for all: quick to check under emulation."""
        keys = cls(client=asyncssh.generate_private_key("ssh-ed25519", comment="vmlab"), hosts={})
        keys.add(guests)
        return keys

    def add(self, guests: Iterable[str]) -> None:
        """Host keys for further guests."""
        self.hosts.update({guest: asyncssh.generate_private_key("ssh-ed25519") for guest in guests})

    def authorized_line(self) -> str:
        """The line for the guests' ``authorized_keys``."""
        return self.client.export_public_key("openssh").decode().strip()

    def host_private(self, guest: str) -> bytes:
        """The private host key of `guest`, in OpenSSH's format."""
        return self.hosts[guest].export_private_key("openssh")


def read_private_key(file: Path) -> bytes:
    """The private key in `file` as it is written there. Raises UsageError for anything else."""
    try:
        content = read_given(file, _MOST_KEY)
        asyncssh.import_private_key(content)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise UsageError(
            f"{file} is no private key without a passphrase: {str(error)[:120] or 'unknown form'}"
        ) from error
    return content
