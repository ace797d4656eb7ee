"""From a path, or the name of a shipped scenario, to a scenario file that was read and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.errors import ScenarioError, UsageError
from vmlab.model.places import shipped_scenarios
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.changes import check_sizes
from vmlab.plan.checking import read_cell, read_scenario
from vmlab.plan.placed_axes import points
from vmlab.plan.placing import place_axes
from vmlab.plan.scenario_file.layout_check import check_layout
from vmlab.plan.scenario_file.problems import ScenarioErrors, meant, raise_all, shorten
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.plan.scenario_file.yaml_text import MOST_BYTES, parse
from vmlab.system.given_file import open_given


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario as it was found: `path` and `text`, its values with their positions, and its checked structure."""

    path: Path
    text: str
    document: Document
    scenario: Scenario


def load(reference: str) -> ScenarioFile:
    """Read and check a scenario by path, or by the name of a shipped one (``tile``, ``tile.yaml``).

    Raises UsageError when there is no such file, and ScenarioError with file, line and column for what is wrong in it.
    """
    path = find(reference)
    try:
        return read(path, _text(path))
    except ScenarioError as error:
        if path != Path(reference) or _shipped(reference) is None:
            raise
        problems = error.problems if isinstance(error, ScenarioErrors) else (error,)
        words = f"{reference} is a file in this folder, which was read in place of the shipped scenario of that name"
        raise ScenarioErrors([*problems, UsageError(words)]) from None


def read(path: Path, text: str) -> ScenarioFile:
    """Check a scenario's text as if it had been read from `path`. Raises ScenarioError."""
    tree = parse(text, path)
    document = Document(path, tree, tree.value)
    scenario = read_scenario(document)
    wrong = [*_found(lambda: check_sizes(document)), *_found(lambda: check_layout(document, scenario))]
    if wrong:
        # The cells are checked later where all else is in order; here their mistakes join the others.
        raise_all([*wrong, *_found(lambda: _first_cell(document, scenario))])
    return ScenarioFile(path, text, document, scenario)


def _found(check: Callable[[], object]) -> list[UsageError]:
    """What `check` raises for a scenario, one error for each problem."""
    try:
        check()
    except ScenarioErrors as several:
        return [one for one in several.problems if isinstance(one, UsageError)]
    except UsageError as error:
        return [error]
    return []


def _first_cell(document: Document, scenario: Scenario) -> None:
    """Check the axes, and the cell of their first values. Raises ScenarioError."""
    for point in points(document, place_axes(document, scenario)):
        read_cell(point.document)
        return


def find(reference: str) -> Path:
    """The file that is meant. Raises UsageError.

    A word without a slash that names a shipped scenario is that one, unless a file that can be one stands here under
    that word: not a folder, an empty file, a dangling link or the like, which `./WORD` names.
    """
    path = Path(reference)
    if "\0" in reference or not reference:
        raise UsageError(f"{shorten(reference)!r} is not a scenario")
    shipped = _shipped(reference)
    try:
        if shipped is not None and not (path.is_file() and path.stat().st_size):
            return shipped
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as error:
        if shipped is not None:
            return shipped
        raise UsageError(f"cannot read {shorten(reference, 200)}: {error.strerror}") from error
    if is_folder:
        raise UsageError(f"{reference} is a folder, not a scenario")
    if is_there:
        return path
    if path.is_symlink():
        raise UsageError(f"{shorten(reference, 200)} is a link to a file that is not there")
    if path.name == reference:
        raise UsageError(f"there is no scenario {shorten(reference)!r}; {meant(path.stem, shipped_names())}")
    raise UsageError(f"there is no file {shorten(reference, 200)}")


def _shipped(word: str) -> Path | None:
    """The shipped scenario of that name, with or without its ending; None where there is none, or for a path."""
    name = word.removesuffix(".yaml")
    return shipped_scenarios() / f"{name}.yaml" if name in shipped_names() else None


def shipped_names() -> list[str]:
    """Names of the scenarios that come with the program, in alphabetical order."""
    return sorted(path.stem for path in shipped_scenarios().glob("*.yaml"))


def _text(path: Path) -> str:
    with open_given(path) as file:
        try:
            raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if len(raw) > MOST_BYTES:
        raise ScenarioError(f"is larger than {MOST_BYTES // 1024} KiB; no scenario is", file=path)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in raw[:4]:
        # A byte order mark, or half of a character of ASCII.
        raise ScenarioError("is UTF-16, UTF-32 or no text; save it as UTF-8", file=path, line=1, column=1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise ScenarioError("is not UTF-8 text", file=path, line=before.count(b"\n") + 1, column=column) from None
