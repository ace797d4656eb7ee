"""Ethernet frames on a stream: two bytes with the length, big-endian, then the frame. A length of 0 is a heartbeat."""

from __future__ import annotations

from collections.abc import Collection, Iterable

LEAST, MOST = 14, 1518
"""Bytes of a frame: its header, and 1,500 of payload with a tag of a VLAN."""
HEARTBEAT = b"\0\0"
HEARTBEAT_SECONDS = 1.0
SILENT_SECONDS = 15.0
"""An end that nothing was heard of for so long is gone."""
_GROUP = 0x01
"""Of the first byte of a MAC address: broadcast or multicast."""


class Frames:
    """Takes pieces of a stream; keeps what is not whole yet, which is less than one frame."""

    def __init__(self) -> None:
        self._held = b""

    def take(self, piece: bytes) -> list[bytes]:
        """The frames that are whole now, without heartbeats. Raises ValueError for what is no such stream."""
        held, at, found = self._held + piece, 0, []
        while len(held) - at >= 2:
            length = int.from_bytes(held[at : at + 2])
            if length and not LEAST <= length <= MOST:
                raise ValueError(f"a frame of {length} bytes")
            if len(held) - at - 2 < length:
                break
            if length:
                found.append(held[at + 2 : at + 2 + length])
            at += 2 + length
        self._held = held[at:]
        return found


def packed(frames: Iterable[bytes]) -> bytes:
    """Frames as they are on the stream."""
    return b"".join(len(frame).to_bytes(2) + frame for frame in frames)


def address(mac: str) -> bytes:
    """A MAC address as a frame has it. Raises ValueError for what is none."""
    found = bytes.fromhex(mac.replace(":", ""))
    if len(found) != 6 or found[0] & _GROUP:
        raise ValueError(f"{mac} is no MAC address of a card")
    return found


class Border:
    """Which frames pass: those from a card of one lab to a card of the other, or to all."""

    def __init__(self, own: Collection[bytes], far: Collection[bytes]) -> None:
        """`own` are the addresses of the cards here, `far` those of the cards there."""
        self._own, self._far = frozenset(own), frozenset(far)

    def leaves(self, frame: bytes) -> bool:
        """Whether a frame that a TAP gave goes on to the other lab."""
        return LEAST <= len(frame) <= MOST and frame[6:12] in self._own and _is_to(frame, self._far)

    def enters(self, frame: bytes) -> bool:
        """Whether a frame that came from the other lab goes to the bridge here."""
        return frame[6:12] in self._far and _is_to(frame, self._own)


def _is_to(frame: bytes, cards: frozenset[bytes]) -> bool:
    return bool(frame[0] & _GROUP) or frame[:6] in cards
