"""Makes the host's second network, has a program in it answer over the bridge, and tells what stays of it."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from vmlab.hypervisor.lab_network import far_host_network, make_bridge
from vmlab.model.names import FAR_HOST_ADDRESS

_ANSWERS = """
import json, socket, sys
listener = socket.create_server(("{address}", 7))
print("listens", flush=True)
connection, (peer, _) = listener.accept()
names = sorted(name for _, name in socket.if_nameindex())
connection.sendall(json.dumps({{"peer": peer, "links": names}}).encode())
"""


def links() -> list[str]:
    with IPRoute() as route:
        return sorted(link.get_attr("IFLA_IFNAME") for link in route.get_links())


def descriptors_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def asked(namespace: int) -> dict[str, Any]:
    """What a program in the second network says of itself and of who asks."""
    inside = ["/usr/bin/nsenter", f"--net=/proc/{os.getpid()}/fd/{namespace}", "--"]
    program = [sys.executable, "-c", _ANSWERS.format(address=FAR_HOST_ADDRESS)]
    with subprocess.Popen([*inside, *program], stdout=subprocess.PIPE, text=True) as answering:
        assert answering.stdout is not None
        answering.stdout.readline()
        with socket.create_connection((FAR_HOST_ADDRESS, 7), timeout=10) as connection:
            answer: dict[str, Any] = json.loads(connection.makefile().read())
    return answer


async def main() -> None:
    """As a lab does it: while an event loop runs."""
    named = Path("/run/netns")
    files = sorted(named.iterdir()) if named.is_dir() else []
    await asyncio.to_thread(make_bridge)
    descriptors = descriptors_open()
    with far_host_network() as namespace:
        answer = await asyncio.to_thread(asked, namespace)
        during = await asyncio.to_thread(links)
    # A second time, as nothing may be left that is in the way.
    with far_host_network():
        pass
    said = {
        "answer": answer,
        "during": during,
        "after": await asyncio.to_thread(links),
        "descriptors_left": descriptors_open() - descriptors,
        "named": (sorted(named.iterdir()) if named.is_dir() else []) != files,
    }
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main())
