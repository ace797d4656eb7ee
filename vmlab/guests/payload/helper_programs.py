"""How the helper in a guest starts programs: those of the lab by a fork of its interpreter, all others by an exec."""

from __future__ import annotations

import os
import signal
import sys
import types

INTERPRETERS = ("python3", "/usr/bin/python3")
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
MOST_FILES = 4096


class Codes:
    """Compiled programs by path, for as long as their files stay as they are."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[tuple[int, int], types.CodeType]] = {}

    def of(self, path: str) -> types.CodeType:
        found = os.stat(path)
        state = found.st_size, found.st_mtime_ns
        known = self.known.get(path)
        if known is None or known[0] != state:
            with open(path, "rb") as file:
                known = self.known[path] = state, compile(file.read(), path, "exec", dont_inherit=True)
        return known[1]


def run_code(code: types.CodeType, argv: list[str], stdin: int, stdout: int, stderr: int) -> None:
    """The forked child: never returns."""
    status = 1
    try:
        os.setsid()
        for target, source in enumerate((stdin, stdout, stderr)):
            os.dup2(source, target)
        os.closerange(3, MOST_FILES)
        sys.argv = argv
        module = types.ModuleType("__main__")
        module.__file__ = argv[0]
        sys.modules["__main__"] = module
        exec(code, module.__dict__)
        status = 0
    except SystemExit as ended:
        if isinstance(ended.code, int):
            status = ended.code & 255
        elif ended.code is None:
            status = 0
        else:
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001 - whatever it is, the helper itself must not go on here.
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                status = status or 1
        os._exit(status)


def spawned(codes: Codes, argv: list[str], stdin: int, stdout: int, stderr: int) -> int:
    if argv[0] in INTERPRETERS and argv[1:3] == ["-I", "-S"] and argv[3:] and argv[3].startswith("/"):
        code = codes.of(argv[3])
        pid = os.fork()
        if pid == 0:
            run_code(code, argv[3:], stdin, stdout, stderr)
        return pid
    streams = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate((stdin, stdout, stderr))]
    return os.posix_spawnp(argv[0], argv, os.environ, file_actions=streams, setsid=True, setsigdef=IGNORED_BY_PYTHON)
