"""What a scenario says once and uses often: merge keys, what is kept under ``x-``, and values from outside."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.plan.bad_scenarios import GOOD
from vmlab.model.errors import ScenarioError, UsageError
from vmlab.plan.changes import assignments_of
from vmlab.plan.planning import HostFacts, Overrides, Plan, make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.scenario_file.problems import Position
from vmlab.plan.scenario_file.yaml_text import MOST_BYTES, parse

_HOST = HostFacts(2**36, 2**36, 2**42, 4, "tcg")
_MERGED = """\
x-usual: &usual {role: fileserver, memory: 512 MiB}
x-large: &large
  <<: *usual
  memory: 2 GiB
name: trial
guests:
  a: *usual
  b: {<<: [{vcpus: 2}, *large], cache: none}
workloads:
  copy: {kind: filecopy, from: a, to: b, files: 10, bytes: 1 MB}
"""


def planned(text: str, *sets: str, size: str = "full") -> Plan:
    return make_plan(read(Path("x.yaml"), text), Overrides(size=size, sets=sets), _HOST)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n", {"x": 1, "y": 3}),
        ("a: &a {x: 1, y: 2}\nb: {y: 3, <<: *a}\n", {"x": 1, "y": 3}),
        ("a: &a {x: 1}\nc: &c {x: 2, y: 2}\nb: {<<: [*a, *c]}\n", {"x": 1, "y": 2}),
        ("a: &a {x: 1}\nc: &c {<<: *a, y: 2}\nb: {<<: *c}\n", {"x": 1, "y": 2}),
        ("a: &a {x: {y: 1, z: 2}}\nb: {<<: *a, x: {y: 3}}\n", {"x": {"y": 3}}),
        ("b: {<<: {x: 1}, <<2: 2}\n", {"x": 1, "<<2": 2}),
        ("b: {<<: {}}\n", {}),
        ("b: {<<: [], x: 1}\n", {"x": 1}),
        ('b: {"<<": 1}\n', {"<<": 1}),
    ],
)
def test_a_merge_key_gives_what_a_mapping_does_not_say_itself(text: str, value: object) -> None:
    assert parse(text, "x").value["b"] == value


def test_what_is_merged_stands_where_it_is_written() -> None:
    tree = parse("a: &a\n  x: 1\nb:\n  <<: *a\n  y: 2\n", "x")
    assert (tree.keys["b", "x"], tree.values["b", "x"]) == (Position(2, 3), Position(2, 6))
    assert tree.values["b", "y"] == Position(5, 6)


def test_a_chain_of_merges_cannot_nest_or_grow_without_end() -> None:
    chain = "a0: &a0 {k0: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: 1}}\n" for n in range(1, 3000))
    with pytest.raises(ScenarioError, match="more than 10000 values, aliases counted in full"):
        parse(chain, "x")
    deep = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{k: {{<<: *a{n - 1}}}}}\n" for n in range(1, 30))
    with pytest.raises(ScenarioError, match="nested more than 16 deep, aliases followed"):
        parse(deep, "x")


def test_kept_values_are_no_part_of_the_scenario() -> None:
    (cell,) = planned(_MERGED).cells
    memory = {guest.guest: (guest.resources.memory_bytes, guest.resources.vcpus) for guest in cell.guests}
    assert memory == {"a": (512 * 2**20, 1), "b": (2**31, 2)}


@pytest.mark.parametrize("text", ["x-a: 1\n", "x-a: {name: trial}\n"])
def test_kept_values_alone_are_no_scenario(text: str) -> None:
    with pytest.raises(ScenarioError, match="the scenario needs 'workloads'"):
        read(Path("x.yaml"), text)


def assigned(folder: Path, text: str) -> list[str]:
    path = folder / "o.yaml"
    path.write_text(text, encoding="utf-8")
    return assignments_of(path)


def test_a_file_of_values_sets_them(tmp_path: Path) -> None:
    sets = assigned(
        tmp_path,
        "x-m: &m {memory: 600 MiB}\nguests: {a: *m}\n'guests.*.vcpus': 2\nworkloads:\n  copy:\n    files: 20\n"
        'repeats: 3\naxes: {cache: [none, writeback]}\nlimits: {start_skew: 2 s}\nsummary: "ünï 🙂 \\\\ \' \\x7f"\n',
    )
    path = tmp_path / "o.yaml"
    assert sets[0] == f'@{path}:1:10: guests.a.memory="600 MiB"'
    plan = planned(GOOD, *sets)
    guests = {guest.guest: guest.resources for guest in plan.cells[0].guests}
    assert [(one.memory_bytes, one.vcpus) for one in guests.values()] == [(600 * 2**20, 2), (512 * 2**20, 2)]
    assert (len(plan.cells), plan.scenario.summary) == (6, "ünï 🙂 \\ ' \x7f")


def test_of_a_file_and_an_assignment_the_later_holds(tmp_path: Path) -> None:
    (of_file,) = assigned(tmp_path, "repeats: 3\n")
    assert planned(GOOD, of_file, "repeats=2").repeats_at_least == 2
    assert planned(GOOD, "repeats=2", of_file).repeats_at_least == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\n", "o.yaml:1:1: needs a mapping, such as workloads: {web: {requests: 500}}"),
        ("5\n", "o.yaml:1:1: needs a mapping, such as "),
        ("a: [\n", "o.yaml:2:1: is not YAML"),
        ("'a=b': 1\n", "o.yaml:1:1: 'a=b' is no path"),
        ("a: *a\n", "o.yaml:1:4: the alias *a names no anchor"),
        (f"a: {'x' * MOST_BYTES}\n", "o.yaml: is larger than 256 KiB"),
        ("repeats: 1\ncolour: red\n", "o.yaml:2:1: 'colour' begins with nothing that can be set"),
        ("workloads: {copy: {file: 1}}\n", "o.yaml:1:20: workloads.copy has no 'file'; did you mean 'files'?"),
        ("workloads: {copy: {files: x}}\n", "o.yaml:1:20: workloads.copy.files: needs a whole number"),
        ("workloads: {copy: {files: {a: 1}}}\n", "o.yaml:1:20: workloads.copy.files: needs a whole number"),
        ("workloads: {}\n", "o.yaml:1:1: 'workloads' needs three parts"),
    ],
)
def test_a_wrong_file_of_values_is_one_line_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        planned(GOOD, *assigned(tmp_path, text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


class _Piped(io.TextIOWrapper):
    """Standard input with these bytes."""

    def __init__(self, content: bytes, *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content))
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def test_a_dash_stands_for_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Piped(GOOD.encode()))
    file = load("-")
    assert (file.text, file.scenario.name) == (GOOD, "trial")


@pytest.mark.parametrize(
    ("stdin", "words"),
    [
        (_Piped(b"", terminal=True), "standard input is a terminal; `-` reads a scenario from a pipe or a file"),
        (None, "standard input is closed; "),
        (_Piped(b""), "<standard input>:1:1: is empty"),
        (_Piped(b"name: [\n"), "<standard input>:2:1: is not YAML"),
        (_Piped(b"\xff\xfea"), "<standard input>:1:1: is UTF-16"),
        (_Piped(b"#" * (MOST_BYTES + 1)), "<standard input>: is larger than 256 KiB"),
    ],
)
def test_standard_input_that_is_no_scenario_is_one_line(
    stdin: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(UsageError) as caught:
        load("-")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
