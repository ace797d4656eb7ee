"""The program in processes that begin as copies of one that has loaded it: each would take up to a second of CPU time.

It is for tests of what a command says, does and leaves; those of how the program starts and ends start Python.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import resource
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess

import vmlab.cli

PROGRAM = "vmlab.__main__"
_DEADLINE_SECONDS = 240.0
_COPIES = multiprocessing.get_context("forkserver")
_LOADED_LATE = (
    "tests.lab.programs.faked_vmlab",
    "vmlab.lab.process.launch",
    "vmlab.plan.planning",
    "vmlab.workloads.registry",
)
"""What commands load beside their own modules when it is used, and what tests put in their place."""


def ended(
    *words: str, env: Mapping[str, str], cwd: Path, limits: Mapping[int, int] | None = None, program: str = PROGRAM
) -> CompletedProcess[bytes]:
    """A command's exit code, output and words, once it has ended; `limits` are those of its process, by their kind.

    `program` is the module whose `main` it is.

    Raises TimeoutError four minutes later.
    """
    _COPIES.set_forkserver_preload(_loaded())
    with tempfile.TemporaryDirectory(prefix="vmt-") as folder:
        streams = [str(Path(folder, name)) for name in ("output", "errors")]
        command = _COPIES.Process(
            target=_begin, args=(program, words, dict(env), str(cwd), dict(limits or {}), *streams)
        )
        command.start()
        command.join(_DEADLINE_SECONDS)
        if command.is_alive():
            command.kill()
            raise TimeoutError(" ".join(words))
        output, errors = (Path(stream).read_bytes() for stream in streams)
        assert command.exitcode is not None
        return CompletedProcess(words, command.exitcode, output, errors)


@cache
def _loaded() -> list[str]:
    """The modules that the process has which is copied."""
    found = pkgutil.walk_packages(vmlab.cli.__path__, f"{vmlab.cli.__name__}.")
    return [PROGRAM, *(one.name for one in found), *_LOADED_LATE]


def _begin(
    program: str,
    words: tuple[str, ...],
    env: Mapping[str, str],
    cwd: str,
    limits: Mapping[int, int],
    output: str,
    errors: str,
) -> None:
    """Become the program, in a process that has been copied."""
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, output, os.O_WRONLY | os.O_CREAT),
        (2, errors, os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))
    sys.path[:0] = [one for one in env.get("PYTHONPATH", "").split(os.pathsep) if one and one not in sys.path]
    sys.argv = ["vmlab", *words]
    importlib.import_module(program).main()
