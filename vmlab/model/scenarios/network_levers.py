"""What of a guest's network card does not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vmlab.model.scenarios.guest import GuestAttributes


def mtu_conflict(guest: GuestAttributes) -> str | None:
    """Why the guest cannot have its MTU."""
    if guest.mtu is None or guest.network == "plain":
        return None
    return f"mtu is of the lab's bridge, and the guest is behind {guest.network}; leave one of them out"
