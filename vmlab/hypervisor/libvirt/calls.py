"""Calls that may hang: each runs in a thread of its own, with a deadline, outside the event loop.

A call to libvirt can wait for ever on a stuck guest. A pool would run out of threads then, and Python waits for a
pool's threads at its exit; a daemon thread for each call costs 0.1 ms, and a stuck one blocks no other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import libvirt

from vmlab.model.errors import DeadlineExceeded, HypervisorError

P = ParamSpec("P")
T = TypeVar("T")


async def call(what: str, deadline: float, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in a thread and return what it returns.

    Raises DeadlineExceeded, naming `what`, after `deadline` seconds (the thread is abandoned), and HypervisorError for
    libvirt's own errors; other exceptions pass through.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(error: BaseException | None, result: T | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # T may itself be None

    def work() -> None:
        error: BaseException | None = None
        result: T | None = None
        try:
            result = function(*args, **kwargs)
        except BaseException as raised:  # noqa: BLE001 - it is raised again where the call is awaited
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, error, result)

    threading.Thread(target=work, name=what, daemon=True).start()
    try:
        async with asyncio.timeout(deadline):
            return await answer
    except TimeoutError as late:
        raise DeadlineExceeded(f"{what} took longer than {deadline:g} s") from late
    except libvirt.libvirtError as refused:
        raise HypervisorError(f"{what}: {refused.get_error_message()}") from refused
