"""Tries the mutants of one module; inside `sandbox.sh` alone, as its first process.

Each mutant is written to the module's file and tested in a process that is forked when all packages but vmlab's are
loaded. Tests that reach the changed line run first, then the others of the module, until one fails.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cosmic_ray.plugins
import coverage
import grimp
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator

from tests.mutants.found import Mutant

_OPTIONS = ["-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:warnings", "-m", "not exhaustive and not guests"]
_FOUND = Path("/tmp/found")


def require_sandbox() -> None:
    """Refuses to go on where a signal to all processes could reach one that is not of this sandbox."""
    own_users = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "1"]
    if os.getpid() != 1 or not own_users or os.access("/sys/fs/cgroup", os.W_OK):
        sys.exit("mutants are tested by tests/mutants/sandbox.sh alone")


class RemoveCall(Operator):  # type: ignore[misc]
    """A statement that is nothing but a call, or an await or a yield from one, is left out."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and self._is_call(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0] = get_ast(node.children[0].get_first_leaf().prefix + "pass")
        return node

    def _is_call(self, node: Any) -> bool:
        return bool(node.type == "atom_expr" and node.children[-1].get_first_leaf().value == "(")

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


def mutants_of(source: str, operators: str) -> Iterator[tuple[Mutant, str]]:
    """Each mutant of `source` with its code. `operators` is a regular expression of the names of cosmic-ray's.

    What leaves the code as it is but for its annotations, which nobody evaluates, is none.
    """
    names = [name for name in cosmic_ray.plugins.operator_names() if re.fullmatch(operators, name.split("/")[1])]
    chosen = {name.split("/")[1]: cosmic_ray.plugins.get_operator(name)() for name in names}
    original, tree = _meaning(source), get_ast(source)
    for name, operator in {**chosen, "RemoveCall": RemoveCall()}.items():
        positions = [place for node in ast_nodes(tree) for place in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(positions):
            code = mutate_code(source, operator, occurrence)
            if code is not None and _meaning(code) != original:
                was, now, line = _changed(source, code)
                yield Mutant(name, occurrence, line if was else start[0], was, now), code


def _meaning(source: str) -> str:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def _changed(source: str, code: str) -> tuple[str, str, int]:
    """The lines that differ, before and after, and the number of the first."""
    was, now = source.splitlines(), code.splitlines()
    first = _common(was, now)
    last = _common(was[first:][::-1], now[first:][::-1])
    lines = ["\n".join(line.strip() for line in text[first : len(text) - last]) for text in (was, now)]
    return lines[0], lines[1], first + 1


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )


@dataclass(frozen=True)
class Found:
    """What a run of all tests tells: those that pass, which of them reach each line, and its seconds."""

    passed: list[str]
    reach: dict[int, list[str]]
    seconds: float
    loaded: list[str]


class _Passed:
    """A plug-in of pytest that keeps the ids of the tests that pass."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.ids.append(report.nodeid)


def in_child(run: Callable[[], int], seconds: float) -> int | None:
    """The exit code of `run` in a process of its own; None where it takes longer. No process of it is left."""
    child = os.fork()
    if not child:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        code = 99
        try:
            code = run()
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    status = None
    while status is None and time.monotonic() < end:
        ended, given = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            status = os.waitstatus_to_exitcode(given)
        elif not ended:
            time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # All of this PID namespace but its first process, which this is.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return status


def look(module: Path, tests: Sequence[str]) -> Found:
    """Run the tests of a module that is as it should be. Exits where none passes."""

    def run() -> int:
        passed, start = _Passed(), time.monotonic()
        data = "/tmp/coverage"
        os.environ["COVERAGE_FILE"] = data
        # What is compiled now is there for all mutants.
        sys.dont_write_bytecode = False
        pytest.main([*_OPTIONS, f"--cov={module.parent}", "--cov-context=test", "--cov-report=", *tests], [passed])
        seconds = time.monotonic() - start
        read = coverage.CoverageData(data)
        read.read()
        by_line = read.contexts_by_lineno(str(module.resolve()))
        reach = {
            line: [test for test in passed.ids if any(c.startswith(f"{test}|") for c in contexts)]
            for line, contexts in by_line.items()
        }
        loaded = [name for name in sys.modules if not name.startswith(("tests", "pytest", "_pytest", "conftest", "__"))]
        _FOUND.write_text(json.dumps(asdict(Found(passed.ids, {}, seconds, loaded)) | {"reach": reach}))
        return 0

    if in_child(run, 600) != 0:
        sys.exit(f"the tests of {module} do not run")
    found = json.loads(_FOUND.read_text())
    if not found["passed"]:
        sys.exit(f"no test of {module} passes")
    reach = {int(line): tests for line, tests in found["reach"].items()}
    return Found(found["passed"], reach, found["seconds"], found["loaded"])


def load(module: Path, names: Sequence[str]) -> None:
    """Import `names`, so that no mutant's process has to, but nothing that imports `module`; forget how it compiles."""
    for compiled in (module.parent / "__pycache__").glob(f"{module.stem}.*"):
        compiled.unlink()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    mutated = ".".join(module.with_suffix("").parts)
    graph = grimp.build_graph("vmlab", cache_dir=None)
    anew = {mutated, *graph.find_downstream_modules(mutated)}
    # A package that imports one of them is loaded with each module in it.
    anew |= {name for name in names if any(name.startswith(f"{one}.") for one in anew)}
    for name in names:
        if name not in anew:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    if loaded := anew & set(sys.modules):
        sys.exit(f"loaded before they were changed: {', '.join(sorted(loaded))}")


def try_out(module: Path, code: str, first: Sequence[str], found: Found) -> str:
    """What becomes of a mutant: ``killed``, ``timeout`` (which counts as killed) or ``survived``."""
    before = module.read_text()
    rest = [test for test in found.passed if test not in set(first)]
    limit = 3 * found.seconds + 20
    module.write_text(code)
    try:
        for tests in (first, rest):
            if not tests:
                continue
            ended = in_child(lambda tests=tests: int(pytest.main([*_OPTIONS, "-x", *tests])), limit)  # type: ignore[misc]
            if ended != 0:
                return "timeout" if ended is None else "killed"
    finally:
        module.write_text(before)
    return "survived"


def main() -> None:
    """Reads what to try from standard input, and writes one line of JSON for each mutant."""
    require_sandbox()
    asked = json.load(sys.stdin)
    module = Path(asked["module"])
    found = look(module, asked["tests"])
    load(module, found.loaded)
    end = time.monotonic() + asked["seconds"]
    before = {tuple(key): outcome for key, outcome in asked["before"]}
    source = module.read_text()
    _write({"tests": len(found.passed), "seconds": round(found.seconds, 1)})
    mutants = sorted(mutants_of(source, asked["operators"]), key=lambda pair: by_chance(pair[0]))
    for place, (mutant, code) in enumerate(mutants):
        outcome = before.get((*mutant.key, mutant.occurrence))
        if asked["sample"] is not None and place >= asked["sample"]:
            outcome = "left out"
        if outcome is None:
            late = time.monotonic() > end
            outcome = "not tried" if late else try_out(module, code, found.reach.get(mutant.line, []), found)
        _write(asdict(mutant) | {"outcome": outcome})


def by_chance(mutant: Mutant) -> bytes:
    """Where a mutant stands in the order that samples are taken from: random, and the same each time."""
    return hashlib.sha256(repr((*mutant.key, mutant.occurrence)).encode()).digest()


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
