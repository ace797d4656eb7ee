"""Ethernet frames on a stream, and which of them pass between two labs."""

from __future__ import annotations

import pytest

from vmlab.hypervisor.frame_link.frames import HEARTBEAT, LEAST, MOST, Border, Frames, address, packed

HERE, THERE, STRANGER = (address(f"52:54:00:12:01:{last}") for last in ("0a", "0b", "0c"))
ALL = b"\xff" * 6


def _frame(to: bytes, of: bytes, size: int = 60) -> bytes:
    return (to + of + b"\x08\x00").ljust(size, b".")


def test_frames_come_whole_from_pieces_of_any_size() -> None:
    """Heartbeats among them are none."""
    sent = [_frame(THERE, HERE, size) for size in (LEAST, 60, MOST)]
    stream = HEARTBEAT + packed(sent[:1]) + HEARTBEAT * 2 + packed(sent[1:])
    for size in (1, 7, 1000, len(stream)):
        frames = Frames()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [one for piece in pieces for one in frames.take(piece)] == sent


@pytest.mark.parametrize("length", [1, LEAST - 1, MOST + 1, 65535])
def test_what_is_no_frame_is_refused_by_its_length_alone(length: int) -> None:
    """Nothing of it needs to have come, so that nothing of it is kept."""
    with pytest.raises(ValueError, match=f"a frame of {length} bytes"):
        Frames().take(length.to_bytes(2))


@pytest.mark.parametrize(
    ("frame", "leaves", "enters"),
    [
        (_frame(THERE, HERE), True, False),
        (_frame(ALL, HERE), True, False),
        (_frame(HERE, THERE), False, True),
        (_frame(ALL, THERE), False, True),
        (_frame(STRANGER, HERE), False, False),
        (_frame(THERE, STRANGER), False, False),
        (_frame(ALL, STRANGER), False, False),
        (_frame(THERE, HERE, MOST + 1), False, False),
    ],
)
def test_only_cards_of_both_labs_meet(frame: bytes, *, leaves: bool, enters: bool) -> None:
    """From a card of one to a card of the other, or to all."""
    border = Border([HERE], [THERE])
    assert (border.leaves(frame), border.enters(frame)) == (leaves, enters)


@pytest.mark.parametrize("mac", ["", "52:54:00:12:01", "ff:ff:ff:ff:ff:ff", "52:54:00:12:01:zz"])
def test_an_address_that_no_card_has_is_refused(mac: str) -> None:
    """Else a broadcast would count as a card."""
    with pytest.raises(ValueError, match=r"."):
        address(mac)
