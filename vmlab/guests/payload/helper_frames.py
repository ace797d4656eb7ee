"""The frames between the lab and the helper in a guest, for both of them.

A frame is the byte 0x1e, the length of the body as eight hexadecimal digits, the body as JSON in ASCII, and a newline.
What is no frame is passed over up to the next 0x1e, which no body contains, so that bytes of an earlier connection do
no harm. In a guest nothing but the standard library is there.
"""

from __future__ import annotations

import binascii
import json

# Type checkers take this name for true. Importing typing would cost a guest a tenth of a second under emulation.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Body = dict[str, Any]

MARK = b"\x1e"
HEAD = 9
_DIGITS = b"0123456789abcdef"
MOST = 65536
"""Bytes of a body. A longer one is no frame."""
PIECE = 32768
"""Bytes of data in one frame."""


def packed(body: Body) -> bytes:
    text = json.dumps(body, separators=(",", ":")).encode("ascii")
    return b"%c%08x%b\n" % (MARK, len(text), text)


def take(buffer: bytearray) -> list[Body]:
    """The bodies of all whole frames, which are cut off; what is none goes."""
    found: list[Body] = []
    while True:
        begin = buffer.find(MARK)
        if begin < 0:
            buffer.clear()
            return found
        del buffer[:begin]
        another = buffer.find(MARK, 1)
        # Not all that int() reads is a length: with a sign it would be negative.
        is_length = not buffer[1:HEAD].strip(_DIGITS)
        size = int(buffer[1:HEAD], 16) if is_length and len(buffer) >= HEAD else 0
        end = HEAD + size + 1
        if not is_length or size > MOST or 0 < another < end:
            del buffer[:1]
        elif len(buffer) < end:
            return found
        else:
            body = parsed(bytes(buffer[HEAD:end]))
            del buffer[:end]
            if body is not None:
                found.append(body)


def parsed(text: bytes) -> Body | None:
    try:
        body = json.loads(text) if text.endswith(b"\n") else None
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def encoded(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def decoded(text: str) -> bytes:
    return binascii.a2b_base64(text)
