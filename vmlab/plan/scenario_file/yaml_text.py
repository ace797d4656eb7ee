"""YAML to plain values, with the position of every key and value, and with bounds on everything.

Events are read one by one and a tree is built from them here, so that nesting, aliases and duplicate keys are
stopped where they begin: no text can make it recurse or grow without end.
A plain scalar means what the core schema of YAML 1.2 says, without infinities; a merge key is that of YAML 1.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from vmlab.model.errors import ScenarioError, UsageError
from vmlab.plan.scenario_file import variables
from vmlab.plan.scenario_file.problems import Place, Position, meant, shorten
from vmlab.plan.scenario_file.wording import plainly
from vmlab.system.given_file import open_given

MOST_BYTES = 256 * 1024
MOST_NODES = 10_000
MOST_NESTING = 16
_DIRECTIVE = re.compile(r"%\S*")
_USUAL_DIRECTIVE = re.compile(r"%YAML\s+1\.2(\s.*)?", re.ASCII)
_MERGE = "<<"
_KEPT = "x-"
_VARIABLES = "vars"
_IN_QUOTES = "in quotation marks it is a word"


@dataclass(slots=True)
class Tree:
    """A document: `value` in plain Python, where each place's value and key stand in the text, and the values of its
    variables.
    """

    value: Any = None
    values: dict[Place, Position] = field(default_factory=dict)
    keys: dict[Place, Position] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value before places are known. `size` counts nodes and `height` levels, with aliases expanded.

    A scalar is `written` so; one of the kind ``text`` has variables, and its content is whether it is plain.
    """

    kind: str
    content: Any
    position: Position
    size: int
    height: int = 0
    written: str = ""


def read_text(path: Path) -> str:
    """The text of a scenario, or of values for one. Raises UsageError, and ScenarioError for what is no such text."""
    with open_given(path) as file:
        try:
            raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return decoded(raw, path)


def decoded(raw: bytes, path: Path) -> str:
    """Bytes as text. Raises ScenarioError for what is too large, or is no UTF-8."""
    if len(raw) > MOST_BYTES:
        raise ScenarioError(f"is larger than {MOST_BYTES // 1024} KiB; no scenario is", file=path)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in raw[:4]:
        # A byte order mark, or half of a character of ASCII.
        raise ScenarioError("is UTF-16, UTF-32 or no text; save it as UTF-8", file=path, line=1, column=1)
    return as_text(raw, path)


def as_text(raw: bytes, file: Path | str) -> str:
    """UTF-8 as text. Raises ScenarioError, with line and column, for what is none."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = raw.count(b"\n", 0, error.start) + 1, error.start - raw.rfind(b"\n", 0, error.start)
        raise ScenarioError("is not UTF-8 text", file=file, line=line, column=column) from None


def without_kept(value: Any) -> Any:
    """A file's mapping without what is kept in it under keys such as ``x-usual``, for aliases to name."""
    return {key: one for key, one in value.items() if not key.startswith(_KEPT)} if isinstance(value, dict) else value


def parse(
    text: str, file: Path | str, given: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Tree:
    """Parse one document. Raises ScenarioError with the position of the first thing that is wrong.

    With the variables that are `given`, and those of the `environment` that the document lists, values have theirs
    filled in; with None they are as written. Raises UsageError for a given one that the document does not use.
    """
    _check_directives(text, file)
    builder = _Builder(text, file, has_variables=given is not None)
    tree = Tree()
    try:
        root = builder.document()
        if given is None:
            tree.value = _place(root, (), tree, lambda node: node.content)
        else:
            filling = _Filling(file, root, given, environment or {})
            tree.value = _place(root, (), tree, filling.value)
            tree.variables = filling.used()
            if isinstance(tree.value, dict):
                tree.value.pop(_VARIABLES, None)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise ScenarioError(plainly(error, text), file=file, line=where[0], column=where[1]) from None
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        raise ScenarioError("a control character is not allowed", file=file, line=line, column=column) from None
    except YAMLError as error:
        raise ScenarioError(f"is not YAML: {shorten(error, 120)}", file=file) from None
    return tree


class _Filling:
    """The variables of one document, and what becomes of values that use them."""

    def __init__(self, file: Path | str, root: _Node, given: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._file, self._given, self._characters = file, given, 0
        self._named: dict[str, None] = {}
        self._listed = dict(self._of_table(root, environment))
        self._values: dict[str, str | None] = {**self._listed, **given}

    def _of_table(self, root: _Node, environment: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
        table = root.content.get(_VARIABLES) if root.kind == "mapping" else None
        if table is None or (table[1].kind == "scalar" and table[1].content is None):
            return
        if table[1].kind != "mapping":
            self._fail(f"{_VARIABLES} needs a mapping, such as {_VARIABLES}: {{SIZE: 4}}", table[1].position)
        for name, (key, node) in table[1].content.items():
            try:
                variables.check_name(name)
            except ValueError as error:
                self._fail(str(error), key.position)
            if node.kind != "scalar":
                what = "cannot use variables" if node.kind == "text" else "needs a word or a number"
                self._fail(f"the variable {name} {what}", node.position)
            value = None if node.content is None else node.written
            if name not in self._given:
                value = environment.get(name, value)
            try:
                variables.check_value(value or "")
            except ValueError as error:
                self._fail(f"the variable {name} {error}", key.position)
            yield name, value

    def value(self, node: _Node) -> Any:
        """The value of a scalar, with variables filled in."""
        is_plain = node.content
        try:
            self._count(node.written)
            if node.kind == "scalar":
                return node.content
            text = variables.filled(node.written, self._values, self._note)
        except ValueError as error:
            self._fail(str(error), node.position)
        if not is_plain and not variables.is_alone(node.written):
            return text
        try:
            found = scalar(text)
        except ValueError as error:
            if is_plain:
                self._fail(f"{shorten(text)} {error}", node.position)
            return text
        return text if found is None else found

    def _note(self, name: str, value: str) -> None:
        self._named[name] = None
        self._count(value)

    def _count(self, text: str) -> None:
        self._characters += len(text)
        if self._characters > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES // 1024} KiB with its variables and aliases; no scenario is")

    def used(self) -> dict[str, str]:
        """The values that the document's variables have. Raises UsageError for one that was given in vain."""
        for name in self._given:
            if name not in self._named and name not in self._listed:
                words = f"{self._file} has no variable {name}"
                raise UsageError(f"--var {name}: {words}; {meant(name, (self._named | self._listed))}")
        return {name: value for name, value in self._values.items() if value is not None}

    def _fail(self, message: str, position: Position) -> NoReturn:
        raise ScenarioError(message, file=self._file, line=position.line, column=position.column)


def _check_directives(text: str, file: Path | str) -> None:
    """Another version has other words for truth and other numbers, so that a scenario would mean something else."""
    for number, line in enumerate(text.splitlines(), start=1):
        if (found := _DIRECTIVE.match(line)) and not _USUAL_DIRECTIVE.fullmatch(line):
            what = "is read as YAML 1.2" if found[0] == "%YAML" else "has no such directives"
            raise ScenarioError(f"a scenario {what}; remove this line", file=file, line=number, column=1)
        if line.strip() and not line.lstrip().startswith("#") and not found:
            return


class _Builder:
    """Builds the tree of nodes from the parser's events."""

    def __init__(self, text: str, file: Path | str, *, has_variables: bool) -> None:
        self._has_variables = has_variables
        self._events: Iterator[Any] = iter(YAML(typ="safe", pure=True).parse(text))
        self._file = file
        self._anchors: dict[str, _Node | None] = {}

    def document(self) -> _Node:
        """The one document of the text."""
        self._next("StreamStart")
        event = next(self._events)
        if type(event).__name__ == "StreamEndEvent":
            self._fail("is empty; a scenario needs at least a name and workloads", Position(1, 1))
        node = self._node(next(self._events), 0)
        self._next("DocumentEnd")
        event = next(self._events)
        if type(event).__name__ != "StreamEndEvent":
            self._fail("holds a second document; a scenario is one", _position(event))
        return node

    def _next(self, kind: str) -> None:
        event = next(self._events)
        if type(event).__name__ != f"{kind}Event":
            raise YAMLError(f"{kind} expected")

    def _fail(self, message: str, position: Position) -> NoReturn:
        raise ScenarioError(message, file=self._file, line=position.line, column=position.column)

    def _node(self, event: Any, depth: int) -> _Node:
        position = _position(event)
        if depth > MOST_NESTING:
            self._fail(f"is nested more than {MOST_NESTING} deep", position)
        kind = type(event).__name__.removesuffix("Event")
        if kind == "Alias":
            return self._alias(event, position, depth)
        if event.tag not in (None, "!"):
            self._fail(f"the tag {shorten(event.tag)} is not allowed; remove it", position)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node = {"Scalar": self._scalar, "SequenceStart": self._sequence, "MappingStart": self._mapping}[kind](
            event, position, depth
        )
        self._bound(node.size, position)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, position: Position, depth: int) -> _Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            word = "contains itself" if event.anchor in self._anchors else "names no anchor"
            self._fail(f"the alias *{shorten(event.anchor)} {word}", position)
        if depth + node.height > MOST_NESTING:
            self._fail(f"is nested more than {MOST_NESTING} deep, aliases followed", position)
        return replace(node, position=position)

    def _scalar(self, event: Any, position: Position, depth: int) -> _Node:
        plain = event.style is None and event.tag is None
        if any("\ud800" <= sign <= "\udfff" for sign in event.value):
            self._fail("half of a surrogate pair is no character", position)
        if self._has_variables and variables.SIGN in event.value:
            return _Node("text", plain, position, 1, written=event.value)
        try:
            value = scalar(event.value) if plain else event.value
        except ValueError as error:
            self._fail(f"{shorten(event.value)} {error}", position)
        return _Node("scalar", value, position, 1, written=event.value)

    def _sequence(self, event: Any, position: Position, depth: int) -> _Node:
        items: list[_Node] = []
        size = 1
        while type(inner := next(self._events)).__name__ != "SequenceEndEvent":
            items.append(self._node(inner, depth + 1))
            size += items[-1].size
            self._bound(size, items[-1].position)
        return _Node("sequence", items, position, size, 1 + max((item.height for item in items), default=0))

    def _mapping(self, event: Any, position: Position, depth: int) -> _Node:
        entries: dict[str, tuple[_Node, _Node]] = {}
        merged: tuple[_Node, _Node] | None = None
        size = 1
        while type(inner := next(self._events)).__name__ != "MappingEndEvent":
            key = self._node(inner, depth + 1)
            name = self._key(key, str(getattr(inner, "value", "")))
            is_merge = name == _MERGE and getattr(inner, "style", None) is None
            if (found := merged if is_merge else entries.get(name)) is not None:
                first = found[0].position.line
                self._fail(f"the key {shorten(name)!r} is given twice; the first is on line {first}", key.position)
            entry = (key, self._node(next(self._events), depth + 1))
            if is_merge:
                merged = entry
            else:
                entries[name] = entry
            # What is merged counts in full, whichever of its keys are taken.
            size += 1 + entry[1].size
            self._bound(size, key.position)
        for mapping in self._merged(merged[1]) if merged else ():
            for name, entry in mapping.content.items():
                entries.setdefault(name, entry)
        return _Node("mapping", entries, position, size, 1 + max((v.height for _, v in entries.values()), default=0))

    def _merged(self, node: _Node) -> list[_Node]:
        """The mappings that a merge key names; the first that has a key gives its value."""
        mappings = node.content if node.kind == "sequence" else [node]
        for mapping in mappings:
            if mapping.kind != "mapping":
                words = f"{_MERGE} needs a mapping, most likely an alias such as *usual, or a list of mappings"
                self._fail(words, mapping.position)
        return list(mappings)

    def _key(self, key: _Node, written: str) -> str:
        if key.kind == "text":
            self._fail("a key cannot contain a variable", key.position)
        if key.kind != "scalar":
            self._fail("a key must be a word; templates such as {{ name }} are not filled in", key.position)
        if key.content is None and not written:
            self._fail("a key is missing before this colon", key.position)
        if key.content is None or isinstance(key.content, bool):
            self._fail(f"the key {written} is no word in YAML; {_IN_QUOTES}: '{written}'", key.position)
        return key.content if isinstance(key.content, str) else str(key.content)

    def _bound(self, size: int, position: Position) -> None:
        if size > MOST_NODES:
            self._fail(f"holds more than {MOST_NODES} values, aliases counted in full", position)


def _position(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _place(node: _Node, place: Place, tree: Tree, filled: Callable[[_Node], Any]) -> Any:
    """Plain values of a node, with positions noted in `tree`, of scalars as they are `filled`. The size of nodes is
    bounded already.
    """
    tree.values[place] = node.position
    if node.kind == "sequence":
        return [_place(item, (*place, index), tree, filled) for index, item in enumerate(node.content)]
    if node.kind == "mapping":
        for name, (key, _) in node.content.items():
            tree.keys[(*place, name)] = key.position
        return {name: _place(value, (*place, name), tree, filled) for name, (_, value) in node.content.items()}
    return filled(node)


Scalar = None | bool | int | float | str

_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"true", "True", "TRUE"}
_FALSE = {"false", "False", "FALSE"}
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_MOST_DIGITS = 18
_MOST_EXACT = 2**53
"""Up to here each whole number is a floating-point number of its own."""


def scalar(text: str) -> Scalar:
    """The value of a plain scalar. Raises ValueError for numbers that are not finite or have over 18 digits."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("needs a finite number")
    if _INTEGER.fullmatch(text) or _OTHER_BASE.fullmatch(text):
        return _integer(text)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError("is too large a number")
    return int(text, 0) if text.startswith(("0o", "0x")) else int(text)


def _float(text: str) -> int | float:
    value = float(text) if len(text) < 400 else math.inf
    if not math.isfinite(value):
        raise ValueError("is too large a number")
    return int(value) if value.is_integer() and abs(value) <= _MOST_EXACT else value
