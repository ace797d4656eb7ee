"""The workload over a shell in memory: its figures, and work that is not whole."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from vmlab.plugin.v1.workload import Completed, Finished, WorkloadContext, WorkloadError
from vmlab_compress.compress import Compress, CompressParams


@dataclass
class Place:
    """Answers what a guest would: the digest of what was made, and what was read back."""

    made: str
    read_back: str
    name: str = "packer"
    address: str = "198.18.0.11"

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = 300.0, check: bool = True
    ) -> Completed:
        """The second program reads the compressed file."""
        return Completed(0, self.read_back if argv[-1].endswith(".gz") else self.made, "")

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Nothing is written."""


def collected(read: dict[str, object]) -> dict[str, float]:
    """The figures of a client that ran for two seconds."""
    place = Place("abc\n", json.dumps(read))
    context = WorkloadContext(workload="pack", tile=1, cell=1, seed=7, source=place)
    workload = Compress(CompressParams(bytes=4_000_000, level=9))

    async def both() -> dict[str, float]:
        await workload.prepare(context)
        return dict((await workload.collect(context, Finished(0, 2.0, "", ""))).values)

    return asyncio.run(both())


def test_figures_of_a_file_that_was_read_back() -> None:
    assert collected({"sha256": "abc", "bytes": 4_000_000, "packed": 1_000_000}) == {
        "run_time": 2.0,
        "compressed_per_second": 2e6,
        "packed_share": 25.0,
        "bytes": 4_000_000,
    }


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ({"sha256": "abc", "bytes": 3_999_999, "packed": 1}, "bytes read back"),
        ({"sha256": "abd", "bytes": 4_000_000, "packed": 1}, "not what was compressed"),
        ({"sha256": "abc"}, "cannot be read"),
    ],
)
def test_a_file_that_is_not_whole_fails(read: dict[str, object], words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        collected(read)
