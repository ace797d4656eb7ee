"""Commands to QEMU's own monitor, through libvirt."""

from __future__ import annotations

import json
from typing import Any

import libvirt_qemu

from vmlab.model.errors import HypervisorError


def qmp(domain: Any, command: str, arguments: dict[str, Any] | None = None, *, file: int | None = None) -> Any:
    """One command's ``return`` value; blocks. `file` is a descriptor to send along.

    Raises HypervisorError when QEMU refuses, libvirtError when it is gone.
    """
    request = {"execute": command} if arguments is None else {"execute": command, "arguments": arguments}
    text = json.dumps(request)
    if file is None:
        reply = libvirt_qemu.qemuMonitorCommand(domain, text, 0)
    else:
        reply, _ = libvirt_qemu.qemuMonitorCommandWithFiles(domain, text, [file], 0)
    answer = json.loads(reply)
    if "error" in answer:
        raise HypervisorError(f"{command}: {answer['error'].get('desc', answer['error'])}")
    return answer["return"]
