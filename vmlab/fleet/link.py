"""The controller's end of a line to a host: one SSH connection, and over it questions to `vmlab hosts serve`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import shlex
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import asyncssh
from pydantic import BaseModel, ValidationError

from vmlab import __version__
from vmlab.fleet.clock import ROUNDS, ClockOffset, RoundTrip, offset_of
from vmlab.fleet.host_answers import LONGEST_LINE, PROTOCOL, Clocks, Hello
from vmlab.fleet.hosts_file import HostEntry
from vmlab.model.errors import CommandFailed, ExitCode, RefusedError, UsageError, VmlabError
from vmlab.model.visible import visible_line

_CONNECT_SECONDS = 20.0
# A dead line is noticed after three of these without an answer.
_KEEP_ALIVE_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_FAILURES: dict[int, type[VmlabError]] = {ExitCode.USAGE: UsageError, ExitCode.REFUSED: RefusedError}
_Answer = TypeVar("_Answer", bound=BaseModel)
Kind = Literal["image", "asset"]
"""What is sent to hosts as a file."""


class HostLost(VmlabError):
    """The line to a host is cut, or its vmlab answers no more."""


class HostLink:
    """A line to one host. Every question has a deadline; all of them raise HostLost once the line is cut."""

    def __init__(self, name: str, connection: asyncssh.SSHClientConnection, process: Any, command: str) -> None:
        self.name = name
        self._connection = connection
        self._process = process
        self._command = command
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._why = ""
        self._hearing = asyncio.create_task(self._hear())

    @classmethod
    async def open(cls, name: str, entry: HostEntry) -> HostLink:
        """Connect and greet. Raises HostLost where the host does not answer, RefusedError where it is not as it should
        be: another key than the pinned one, nobody let in, no vmlab or another version there.
        """
        connection = await _connected(name, entry)
        try:
            command = " ".join(map(shlex.quote, shlex.split(entry.vmlab)))
            process = await connection.create_process(f"{command} hosts serve", encoding=None)
            link = cls(name, connection, process, command)
            hello = await link.ask(Hello, "hello")
        except (OSError, asyncssh.Error) as error:
            connection.abort()
            raise HostLost(f"host {name}: {error}") from error
        except BaseException:
            connection.abort()
            raise
        if hello.vmlab != __version__ or hello.protocol != PROTOCOL:
            await link.close()
            raise RefusedError(
                f"host {name} has vmlab {hello.vmlab}, and here is {__version__}", remedy="the same version on all"
            )
        if not hello.root:
            await link.close()
            raise RefusedError(
                f"host {name}: {entry.vmlab} does not run as root there", remedy="vmlab = 'sudo -n vmlab'"
            )
        return link

    async def ask(
        self, answer: type[_Answer], ask: str, *, deadline: float = _ANSWER_SECONDS, **question: Any
    ) -> _Answer:
        """The checked answer to a question; also raises what the host raised, and CommandFailed for nonsense."""
        if self._why:
            raise HostLost(self._why)
        number = next(self._numbers)
        heard = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._process.stdin.write(json.dumps({"id": number, "ask": ask, **question}).encode() + b"\n")
            async with asyncio.timeout(deadline):
                body = await heard
        except TimeoutError:
            raise HostLost(f"host {self.name} did not answer within {deadline:.0f} s ({ask})") from None
        except (OSError, asyncssh.Error) as error:
            raise HostLost(f"host {self.name}: {error}") from error
        finally:
            self._waiting.pop(number, None)
        if not body.get("ok"):
            code = body.get("exit_code")
            failure = _FAILURES.get(code, CommandFailed) if isinstance(code, int) else CommandFailed
            raise failure(f"host {self.name}: {visible_line(str(body.get('error'))[:1000])}")
        try:
            return answer.model_validate(body.get("answer"))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise CommandFailed(f"host {self.name} answered nonsense to {ask}: {where}: {first['msg']}") from error

    async def offset(self, rounds: int = ROUNDS) -> ClockOffset:
        """How far its clocks are from those here."""
        taken = []
        for _ in range(rounds):
            sent = time.time(), time.monotonic()
            there = await self.ask(Clocks, "clock")
            taken.append(RoundTrip(sent, (there.wall, there.mono), (time.time(), time.monotonic())))
        return offset_of(taken)

    async def send(self, kind: Kind, id: str, file: Path, deadline: float = 3600.0) -> None:
        """Have it keep `id`, whose bytes are in `file`. Raises HostLost and CommandFailed."""
        try:
            async with asyncio.timeout(deadline):
                done = await self._connection.run(
                    f"{self._command} hosts take-{kind} {shlex.quote(id)}", stdin=str(file), encoding=None
                )
        except TimeoutError:
            raise HostLost(f"host {self.name} did not take the {kind} within {deadline:.0f} s") from None
        except (OSError, asyncssh.Error) as error:
            raise HostLost(f"host {self.name}: {error}") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace") if isinstance(done.stderr, bytes) else ""
            why = visible_line(said.strip()[-300:].strip())
            raise CommandFailed(f"host {self.name} did not keep the {kind}: {why}")
        if done.stdout is None or bytes(cast(bytes, done.stdout)).strip() != id.encode():
            raise CommandFailed(f"host {self.name} did not say that it kept {kind} {id}")

    async def _hear(self) -> None:
        why = f"host {self.name}: the line was cut"
        try:
            held = b""
            while piece := await self._process.stdout.read(2**16):
                *lines, held = (held + piece).split(b"\n")
                if len(held) > LONGEST_LINE:
                    raise ValueError("a line that is too long")
                for line in lines:
                    self._take(json.loads(line))
            said = (await self._process.stderr.read(4096)).decode("utf-8", "replace").strip()
            why = f"host {self.name}: {said.splitlines()[-1][:300]}" if said else why
        except (OSError, asyncssh.Error) as error:
            why = f"{why}: {error}" if str(error) else why
        except (ValueError, RecursionError) as error:
            why = f"host {self.name} answered nonsense: {error}"
        finally:
            self._cut(why)

    def _take(self, body: Any) -> None:
        number = body.get("id") if isinstance(body, dict) else None
        if not isinstance(number, int):
            raise ValueError("no answer")
        heard = self._waiting.get(number)
        if heard is not None and not heard.done():
            heard.set_result(body)

    def _cut(self, why: str) -> None:
        self._why = self._why or why
        for heard in self._waiting.values():
            if not heard.done():
                heard.set_exception(HostLost(self._why))
        self._connection.abort()

    async def close(self) -> None:
        """Hang up; runs on the host go on."""
        self._cut(f"host {self.name}: the line was closed")
        self._hearing.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError, asyncssh.Error):
            await self._hearing


@contextlib.asynccontextmanager
async def hung_up_after(link: HostLink) -> AsyncIterator[HostLink]:
    """A line, which is hung up after the block."""
    try:
        yield link
    finally:
        await link.close()


async def _connected(name: str, entry: HostEntry) -> asyncssh.SSHClientConnection:
    if not entry.known_hosts.is_file():
        raise RefusedError(
            f"host {name}: {entry.known_hosts} does not exist", remedy=f"log in once by ssh {entry.address}"
        )
    keys: dict[str, Any] = {} if entry.key is None else {"client_keys": [str(entry.key)], "agent_path": None}
    try:
        return await asyncssh.connect(
            entry.address,
            entry.port,
            username=entry.user,
            known_hosts=str(entry.known_hosts),
            config=None,
            preferred_auth=["publickey"],
            connect_timeout=_CONNECT_SECONDS,
            login_timeout=_CONNECT_SECONDS,
            keepalive_interval=_KEEP_ALIVE_SECONDS,
            keepalive_count_max=3,
            **keys,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise RefusedError(
            f"host {name}: its key is not the one in {entry.known_hosts}, or none is there",
            remedy="check the host, then add its key, as by ssh-keyscan",
        ) from error
    except asyncssh.PermissionDenied as error:
        raise RefusedError(f"host {name} does not let {entry.user} in: {error}") from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise RefusedError(f"host {name}: {entry.key}: {error}") from error
    except FileNotFoundError as error:
        raise RefusedError(f"host {name}: {entry.key}: no such key") from error
    except (OSError, asyncssh.Error, TimeoutError) as error:
        raise HostLost(f"host {name} ({entry.address} port {entry.port}) does not answer: {error}") from error
