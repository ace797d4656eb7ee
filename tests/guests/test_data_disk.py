"""What a guest says of its data disk is compared with what it was to have."""

import pytest

from tests.fakes.shell import FakeShell, says
from vmlab.guests.guest_setup import set_up_data_disk
from vmlab.model.errors import GuestError
from vmlab.model.scenarios.guest import GuestResources

GIVEN = GuestResources(
    vcpus=2, memory_bytes=2**29, cache="none", data_bytes=2**30, data_queues=4, read_ahead_bytes=2**20
)
SAID = """\
device /dev/vdb
mounted /dev/vdb
block_bytes 4096
bytes 1073741824
queues 2
read_ahead_bytes 1048576
write_cache write back
cpus 2
"""


async def seen(said: str) -> dict[str, object]:
    return await set_up_data_disk(FakeShell("vm", "198.18.1.10", {"data_disk data /data 1048576": says(said)}), GIVEN)


async def test_a_disk_as_it_was_asked_for_is_told_as_it_was_seen() -> None:
    assert await seen(SAID) == {
        "device": "/dev/vdb",
        "bytes": 2**30,
        "queues": 2,
        "read_ahead_bytes": 2**20,
        "write_cache": True,
    }


@pytest.mark.parametrize(
    ("line", "instead", "why"),
    [
        ("mounted /dev/vdb", "mounted ", "/data is not mounted, not on /dev/vdb"),
        ("mounted /dev/vdb", "mounted /dev/vda", "/data is /dev/vda, not on /dev/vdb"),
        ("block_bytes 4096", "block_bytes 1024", "/data has blocks of 1024 bytes, not 4096"),
        ("\nbytes 1073741824", "\nbytes 512", "bytes 512, not 1073741824"),
        ("queues 2", "queues 1", "queues 1, not 2"),
        ("read_ahead_bytes 1048576", "read_ahead_bytes 131072", "read_ahead_bytes 131072, not 1048576"),
        ("write back", "write through", "write_cache no, not yes"),
        ("queues 2", "queues many", "not understood"),
        ("device /dev/vdb\n", "", "not understood"),
        ("read_ahead_bytes 1048576", "read_ahead_bytes 1180591620717411303424", "not understood"),
        ("\nbytes 1073741824", "\nbytes -1", "not understood"),
    ],
)
async def test_another_disk_is_refused(line: str, instead: str, why: str) -> None:
    with pytest.raises(GuestError, match=why):
        await seen(SAID.replace(line, instead))
