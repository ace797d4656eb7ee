"""One real guest that writes while its cache mode is switched: tells what was open after each switch, and what its own
checks say.

``python -m … RUNTIME FOLDER SWITCHES``: at least so many, and on until the guest's work is done.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tests.hypervisor.conftest import spec
from tests.hypervisor.programs.made import made
from vmlab.guests.agent import AgentCall, AgentShell, wait_for_agent
from vmlab.guests.guest_setup import set_up_data_disk
from vmlab.guests.image.building import ensure
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.model.run import CacheMode

NUMBERS = 400_000
"""The known file has so many lines, each with its number; it is written anew again and again."""
KNOWN = """
for place in /var/tmp /data; do
  for again in 1 2 3; do seq 1 $((again * 1000)) > $place/known; seq 1 {numbers} > $place/known; sync; done
done
"""
LOAD = (
    *("fio", "--name=load", "--filename=/var/tmp/load:/data/load", "--size=16m", "--rw=randrw", "--bs=4k"),
    *("--ioengine=psync", "--fsync=16", "--verify=crc32c", "--verify_backlog=64", "--verify_fatal=1", "--loops=2"),
)


async def switch(hypervisor: Hypervisor, one: DomainSpec, mode: CacheMode) -> tuple[DomainSpec, dict[str, Any]]:
    """Switch the guest's disks; its description from now on, and what is to be told."""
    drained = await hypervisor.guest_disks.drain_disks([one], 60)
    pauses = await hypervisor.guest_disks.switch_cache([one], mode)
    now = spec(one.name, mode, data_bytes=one.resources.data_bytes, backing=one.resources.backing)
    proofs = await hypervisor.guest_disks.prove_cache([now])
    return now, {
        "mode": mode,
        "pause_ms": pauses[one.name] * 1e3,
        "drained": [drained.seconds, drained.written_bytes],
        "o_direct": [proof.o_direct for proof in proofs if proof.expected.startswith(mode)],
        "agrees": all(proof.agrees for proof in proofs),
    }


async def work(shell: AgentShell) -> dict[str, Any]:
    """Write known files and a load that verifies itself, side by side; what is read back past the guest's cache."""
    script = KNOWN.format(numbers=NUMBERS)
    known = shell.run(["sh", "-ec", script], deadline=240)
    load = shell.run(list(LOAD), deadline=240, check=False)
    _, fio = await asyncio.gather(known, load)
    return {"fio": fio.status, "said": fio.stdout[-300:] + fio.stderr[-300:]}


async def read_back(shell: AgentShell) -> list[str]:
    script = (
        "sync; echo 3 > /proc/sys/vm/drop_caches; sha256sum /var/tmp/known /data/known; dmesg | grep -ci 'i/o error'"
    )
    return (await shell.run(["sh", "-c", script], deadline=120, check=False)).stdout.split()


async def main(runtime: str, folder: str, at_least: int) -> None:
    """Print one line of JSON."""
    built = ensure(lambda _text: None)
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    hypervisor = made(Path(runtime), Path(folder) / "disks", image.kernel)
    await hypervisor.open()
    one = spec("web-1", "writeback", data_bytes=2**27, backing="block")
    await hypervisor.create(image, [one])
    call: AgentCall = partial(hypervisor.agent, one.name)
    await wait_for_agent(call, one.name, 400)
    shell = AgentShell(one.name, call)
    await hypervisor.plug_data_disks([one])
    await set_up_data_disk(shell, one.resources)
    working = asyncio.ensure_future(work(shell))
    switches: list[dict[str, Any]] = []
    while len(switches) < at_least or not working.done():
        mode: CacheMode = "writeback" if one.resources.cache == "none" else "none"
        one, told = await switch(hypervisor, one, mode)
        switches.append(told)
        await asyncio.sleep(0.2)
    said = {"switches": switches, **await working, "read": await read_back(shell), "wanted": wanted()}
    await hypervisor.close()
    sys.stdout.write(json.dumps(said) + "\n")


def wanted() -> str:
    """The digest of the known file."""
    return hashlib.sha256("".join(f"{number}\n" for number in range(1, NUMBERS + 1)).encode()).hexdigest()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
