"""What a scenario says once and uses often: merge keys, what is kept under ``x-``, and values from outside."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from tests.plan.bad_scenarios import GOOD
from vmlab.analysis.figures.intent import written_of
from vmlab.analysis.shape import WrittenDocument
from vmlab.lab.process.prepared import RunRequest, kept_overrides, plan_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import ScenarioError, UsageError
from vmlab.plan.changes import assignments_of
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.scenario_file.problems import Position
from vmlab.plan.scenario_file.schema import scenario_schema
from vmlab.plan.scenario_file.variables import given
from vmlab.plan.scenario_file.yaml_text import MOST_BYTES, parse
from vmlab.plan.terms import HostFacts, Overrides, Plan

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


_VARIED = """\
name: trial
vars: {FILES: 10, MEM: 512 MiB}
x-usual: &usual {role: fileserver, memory: "${MEM}"}
guests: {a: *usual, b: {<<: *usual, vcpus: "${CPUS:-2}"}}
workloads:
  copy: {kind: filecopy, from: a, to: b, files: "${FILES}", bytes: 1 MB}
sizes: {smoke: {copy: {files: "${FEW:-3}"}}}
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${N}", 4),
        ('"${N}"', 4),
        ("'${F}'", 2.5),
        ("${N}0", 40),
        ('"${N}0"', "40"),
        ("${T}", True),
        ("${E}", ""),
        ("${E:-7}", 7),
        ("${NONE:-7}", 7),
        ("${NONE:-}", ""),
        ("${N} ${T}", "4 true"),
        ("${NULL}", "null"),
        ("${YAML}", "[1, {a: 2}]"),
        ("${ALIAS}", "*x"),
        ("${LINES}", "a\nb: c"),
        ("${SELF}", "${N}"),
        ("$${N}", "${N}"),
        ("$$${N}", "$${N}"),
        ("${LONG:-a b}", "a b"),
        ("${D}", "9" * 30 + " x"),
        ('"${SHA}"', "1" * 40),
        ("$N", "$N"),
        ("{{ N }}", None),
    ],
)
def test_a_variable_is_filled_in_as_one_value(text: str, value: object) -> None:
    given = {
        "N": "4",
        "F": "2.5",
        "T": "true",
        "E": "",
        "NULL": "null",
        "YAML": "[1, {a: 2}]",
        "ALIAS": "*x",
        "LINES": "a\nb: c",
        "SELF": "${N}",
        "D": "9" * 30 + " x",
        "SHA": "1" * 40,
    }
    if value is None:
        with pytest.raises(ScenarioError):
            parse(f"a: {text}\n", "x", given)
        return
    used = {name: one for name, one in given.items() if re.search(rf"(?<!\$)\$\{{{name}\b", text)}
    found = parse(f"a: {text}\n", "x", used).value["a"]
    assert (found, type(found)) == (value, type(value))


def test_values_come_from_the_command_line_the_environment_and_the_table_in_this_order() -> None:
    text = "vars: {A: 1, B: 2, C: 3, D: null}\nv: ['${A}', '${B}', '${C}', '${D}', '${E}', '${F:-no}']\n"
    tree = parse(text, "x", {"A": "10", "E": "e"}, {"A": "20", "B": "20", "D": "d", "F": "unlisted"})
    assert tree.value == {"v": [10, 20, 3, "d", "e", "no"]}
    assert tree.variables == {"A": "10", "B": "20", "C": "3", "D": "d", "E": "e"}


def test_the_values_used_give_the_same_scenario_without_environment_and_command_line() -> None:
    path, environment = Path("x.yaml"), {"MEM": "600 MiB", "CPUS": "9"}
    first = read(path, _VARIED, {"FEW": "4"}, environment)
    again = read(path, first.text, first.variables)
    assert first.variables == {"FILES": "10", "MEM": "600 MiB", "FEW": "4"}
    for size in ("full", "smoke"):
        overrides = Overrides(size=size, variables=first.variables)
        assert make_plan(again, overrides, _HOST) == make_plan(first, overrides, _HOST)
    (cell,) = make_plan(again, Overrides(size="smoke"), _HOST).cells
    assert [(guest.resources.memory_bytes, guest.resources.vcpus) for guest in cell.guests] == [
        (600 * 2**20, 1),
        (600 * 2**20, 2),
    ]
    assert cell.workloads[0].params.model_dump()["files"] == 4


def test_a_text_of_before_there_were_variables_holds_as_it_is_written() -> None:
    assert read(Path("x.yaml"), f"{GOOD}summary: ${{HOME}}\n").scenario.summary == "${HOME}"


def test_a_variable_that_is_given_in_vain_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--var FILS: x.yaml has no variable FILS; did you mean 'FILES'\?"):
        read(Path("x.yaml"), _VARIED, {"FILS": "1"})


def test_the_environment_is_bounded_as_all_is() -> None:
    for value in ("x" * 5000, "\udcff"):
        with pytest.raises(ScenarioError, match=r"x\.yaml:2:8: the variable FILES has a value"):
            read(Path("x.yaml"), _VARIED, {}, {"FILES": value})


def test_aliases_of_filled_values_cannot_grow_without_end() -> None:
    text = "a: &a '${A}'\nb: [" + ", ".join(["*a"] * 9000) + "]\n"
    with pytest.raises(ScenarioError, match=r"x:2:.*: is larger than 256 KiB with its variables"):
        parse(text, "x", {"A": "x" * 4096})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["N"], "'N' needs NAME=VALUE"),
        (["=1"], "'' is no name of a variable"),
        (["a-b=1"], "'a-b' is no name of a variable"),
        (["N=1", "N=1"], "N is given twice"),
        ([f"N={'x' * 4097}"], "N has a value of more than 4096 characters"),
        (["N=\udcff"], "N has a value that is not UTF-8 text"),
    ],
)
def test_a_wrong_variable_of_the_command_line_is_named(options: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        given(options)


def test_a_run_is_planned_again_with_the_values_that_it_was_asked_for_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = read(Path("x.yaml"), _VARIED, {"FEW": "4"}, {"MEM": "600 MiB"})
    plan = make_plan(file, Overrides(size="smoke"), _HOST)
    folder = RunFolder("r", tmp_path)
    kept = kept_overrides(file, Overrides(size="smoke"), plan)
    write_request(folder, RunRequest("r", "x.yaml", kept, plan.seed), file.text, _HOST)
    monkeypatch.setenv("MEM", "700 MiB")
    assert plan_of(folder).cells == plan.cells
    assert folder.scenario.read_text(encoding="utf-8") == _VARIED


def test_a_request_keeps_the_variables() -> None:
    overrides = Overrides(variables={"N": "1"})
    assert RunRequest.from_json(RunRequest("r", "-", overrides, 1).to_json()).overrides == overrides


@pytest.mark.parametrize(
    ("request_text", "variables"),
    [
        ('{"overrides": {"variables": {"A": "1"}}}', {"A": "1"}),
        ('{"overrides": {"variables": {}}}', {}),
        ('{"overrides": {}}', None),
        ('{"overrides": {"variables": {"A": 1}}}', None),
        ("[" * 100_000, None),
        ("[]", None),
    ],
)
def test_a_document_has_the_text_and_the_values(request_text: str, variables: dict[str, str] | None) -> None:
    written = written_of({"scenario.yaml": GOOD, "request": request_text})
    assert written == (None if variables is None else WrittenDocument(GOOD, variables))


@pytest.mark.xdist_group("schema")
@pytest.mark.parametrize("value", ["${N}", "${N:-4}", "a ${N}"])
def test_the_schema_takes_variables_for_values(value: str) -> None:
    # It takes seconds to load.
    import jsonschema

    schema = jsonschema.Draft202012Validator(scenario_schema())
    good = parse(GOOD, "x").value
    good["workloads"]["copy"]["files"] = good["guests"]["a"]["memory"] = good["repeats"] = value
    good |= {"vars": {"N": 4, "M": None}, "x-any": [1]}
    schema.validate(good)
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(good | {"repeats": "four"})
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(good | {"vars": {"a-b": 1}})
