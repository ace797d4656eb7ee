"""A guest agent whose guest is this host: programs really run, in the agent's own protocol."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from vmlab.model.errors import HypervisorError


class LocalAgent:
    """``await agent(command, arguments, deadline=…)``; `largest` is the most bytes that came as one message's input."""

    def __init__(self) -> None:
        self.largest = 0
        self.asked: list[str] = []
        self._programs: dict[int, asyncio.Task[dict[str, Any]]] = {}

    async def __call__(self, command: str, arguments: dict[str, Any] | None, *, deadline: float) -> Any:
        """Answer as qemu-ga does."""
        self.asked.append(command)
        if command == "guest-exec":
            return await self._start(arguments or {})
        if command == "guest-exec-status":
            program = self._programs[(arguments or {})["pid"]]
            return program.result() if program.done() else {"exited": False}
        return {}

    async def _start(self, wanted: dict[str, Any]) -> dict[str, int]:
        given = base64.b64decode(wanted.get("input-data", ""))
        self.largest = max(self.largest, len(given))
        environment = dict(one.split("=", 1) for one in wanted.get("env", []))
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                wanted["path"], *wanted.get("arg", []), stdin=pipe, stdout=pipe, stderr=pipe, env=environment or None
            )
        except FileNotFoundError:
            raise HypervisorError(f"Failed to execute child process “{wanted['path']}” (No such file)") from None
        self._programs[process.pid] = asyncio.ensure_future(self._run(process, given))
        return {"pid": process.pid}

    async def _run(self, process: asyncio.subprocess.Process, given: bytes) -> dict[str, Any]:
        out, err = await process.communicate(given)
        status = process.returncode or 0
        ended: dict[str, Any] = {"exited": True, "out-data": base64.b64encode(out).decode()}
        ended["err-data"] = base64.b64encode(err).decode()
        return {**ended, "signal": -status} if status < 0 else {**ended, "exitcode": status}

    async def close(self) -> None:
        """Wait for every program's end."""
        await asyncio.gather(*self._programs.values())
