"""Calls that may hang: each runs in a thread of its own, with a deadline, outside the event loop. Commands to QEMU's
own monitor, through libvirt, are such calls.

A call to libvirt can wait for ever on a stuck guest. A pool would run out of threads then, and Python waits for a
pool's threads at its exit; a daemon thread for each call costs 0.1 ms, and a stuck one blocks no other.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

import libvirt
import libvirt_qemu

from vmlab.integrity.long_work import fill
from vmlab.model.concurrency import within
from vmlab.model.errors import HypervisorError

ASK, OPEN, STOP = 10.0, 60.0, 40.0
"""How many seconds a question to libvirt may take, making ready what is asked later, and ending or counting guests."""

P = ParamSpec("P")
T = TypeVar("T")


async def call(what: str, deadline: float, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in a thread and return what it returns.

    Raises DeadlineExceeded, naming `what`, after `deadline` seconds (the thread is abandoned), and HypervisorError for
    libvirt's own errors; other exceptions pass through.
    """
    answer: Future[T] = Future()
    work = partial(fill, answer, partial(function, *args, **kwargs))
    threading.Thread(target=work, name=what, daemon=True).start()
    try:
        async with within(deadline, f"{what} took longer than {deadline:g} s"):
            return await asyncio.wrap_future(answer)
    except libvirt.libvirtError as refused:
        raise HypervisorError(f"{what}: {refused.get_error_message()}") from refused


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


MERGE_SECONDS = 60.0
"""A page that is unmerged is copied, under a lock that the guest's page faults need too."""


def set_mergeable(domain: Any, mergeable: bool) -> float:
    """Set QEMU's property ``merge`` of all memory of `domain`; blocks. Returns the seconds that it took.

    QEMU passes it on as MADV_MERGEABLE or MADV_UNMERGEABLE, which copies what is merged (backends/hostmem.c, and
    madvise(2)). Raises HypervisorError.
    """
    devices = [device["id"] for device in qmp(domain, "query-memdev") if "id" in device]
    if not devices:
        raise HypervisorError("QEMU names no memory of the guest")
    began = time.monotonic()
    for device in devices:
        qmp(domain, "qom-set", {"path": f"/objects/{device}", "property": "merge", "value": mergeable})
    return time.monotonic() - began
