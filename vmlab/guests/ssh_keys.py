"""Fresh keys for each run: one to log in to the guests, and one host key for each guest; and users' own keys."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from vmlab.model.errors import UsageError
from vmlab.system.given_file import read_given

_MOST_KEY = 2**16
"""Bytes of the largest private key that is read."""


@dataclass(frozen=True, slots=True)
class RunKeys:
    """The run's client key and the guests' host keys, by guest key. They are kept in memory only."""

    client: asyncssh.SSHKey
    hosts: dict[str, asyncssh.SSHKey]
    secret: bytes | None = None
    """Where two labs have guests of one cell: what both make the same keys of."""

    @classmethod
    def generate(cls, guests: Iterable[str]) -> RunKeys:
        """Ed25519 for all: quick to check under emulation."""
        keys = cls(client=asyncssh.generate_private_key("ssh-ed25519", comment="vmlab"), hosts={})
        keys.add(guests)
        return keys

    @classmethod
    def of_secret(cls, secret: bytes) -> RunKeys:
        """The same keys wherever the secret is known."""
        return cls(client=_key_of(secret, "client"), hosts={}, secret=secret)

    def add(self, guests: Iterable[str]) -> None:
        """Host keys for further guests."""
        self.hosts.update({guest: self._host_key(guest) for guest in guests})

    def _host_key(self, guest: str) -> asyncssh.SSHKey:
        if self.secret is None:
            return asyncssh.generate_private_key("ssh-ed25519")
        return _key_of(self.secret, f"guest {guest}")

    def authorized_line(self) -> str:
        """The line for the guests' ``authorized_keys``."""
        return self.client.export_public_key("openssh").decode().strip()

    def host_private(self, guest: str) -> bytes:
        """The private host key of `guest`, in OpenSSH's format."""
        return self.hosts[guest].export_private_key("openssh")


def _key_of(secret: bytes, name: str) -> asyncssh.SSHKey:
    """An Ed25519 key, whose seed is an HMAC (RFC 2104) of the name: none of them tells another one, or the secret."""
    seed = hmac.digest(secret, name.encode(), "sha256")
    private = Ed25519PrivateKey.from_private_bytes(seed)
    return asyncssh.import_private_key(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))


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
