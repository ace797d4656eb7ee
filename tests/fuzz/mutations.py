"""Files that are nearly in order: one that is, changed in a few places."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

_ODD = (
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b"\x1b[2J",
        b"\r\n",
        b"\n\n",
        b" ",
        b"\t",
        b",",
        b":",
        b'"',
        b"'",
        b"{",
        b"}",
        b"[",
        b"]",
    ),
    *(
        b"-1",
        b"0",
        b"0.0",
        b"-0.0",
        b"1e999",
        b"-1e999",
        b"nan",
        b"inf",
        b"9" * 400,
        b"0x10",
        b"1_000",
        b"true",
        b"null",
    ),
    *("\u0661".encode(), "\u202e".encode(), "\U0001f600".encode(), b"&a", b"*a", b"<<", b"!!python/none", b"[" * 500),
    *(b"{" * 500, b"a: " * 300, b"%", b"1 PiB", b"1e40 s", b"-1 s", b"../../etc", b"$(id)", b"`id`"),
)


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of `seeds` with up to eight changes: bytes replaced, removed, put in or doubled, or the end cut off."""
    data = bytearray(draw(st.sampled_from(list(seeds))))
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.one_of(st.integers(0, 8), st.integers(0, 200)))
        match draw(st.sampled_from(("put", "replace", "remove", "double", "cut", "flip", "number"))):
            case "put":
                data[at:at] = draw(st.one_of(st.sampled_from(_ODD), st.binary(max_size=12)))
            case "replace":
                data[at : at + length] = draw(st.one_of(st.sampled_from(_ODD), st.binary(max_size=12)))
            case "remove":
                del data[at : at + length]
            case "double":
                data[at:at] = data[at : at + length]
            case "cut":
                del data[at:]
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case _:
                _replace_number(data, at, draw(st.sampled_from(_ODD)))
    return bytes(data)


def _replace_number(data: bytearray, at: int, odd: bytes) -> None:
    """Put `odd` in place of the next number."""
    digits = b"0123456789.-"
    begin = next((place for place in range(at, len(data)) if data[place] in b"0123456789"), len(data))
    end = begin
    while end < len(data) and data[end] in digits:
        end += 1
    data[begin:end] = odd
