"""The commands plan, validate and schema, and the skeleton around them, as a user meets them."""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vmlab
from tests.plan.bad_scenarios import BAD, GOOD, Bad
from tests.store.stories import Story
from vmlab.cli.main import COMMANDS, command_line
from vmlab.model.errors import VmlabError
from vmlab.model.places import runs_folder, shipped_scenarios
from vmlab.plan.scenario_file.loading import shipped_names
from vmlab.plan.terms import HostFacts

Captured = pytest.CaptureFixture[str]
ROOMY = HostFacts(2**36, 2**36, 2**42, 4, "tcg")


def ended(argument: list[str], capture: Captured) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command line in this process."""
    code = command_line(argument)
    out, err = capture.readouterr()
    return code, out, err


_BOMB_CPU_SECONDS = 30
"""The kernel ends what takes more processor time; an alias bomb that is expanded takes minutes."""


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_scenario_is_one_line_with_its_position(bad: Bad, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(bad.text, encoding="utf-8")
    code, out, err = ended(["validate", str(path)], capsys)
    assert (code, out, err) == (2, "", f"{path}{bad.line}\n")


def test_every_problem_has_a_line_in_the_order_of_the_file(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(GOOD.replace("512 MiB", "lots") + "colour: red\n")
    code, _, err = ended(["validate", str(path)], capsys)
    assert code == 2
    assert [line.split(": ")[0] for line in err.splitlines()] == [f"{path}:{at}" for at in ("3:33", "4:33", "7:1")]


def test_a_wrong_structure_hides_no_wrong_parameter(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(GOOD.replace("files: 10", "fils: 10") + "colour: red\naxes: {guests.a.memory: [1 GiB]}\n")
    code, _, err = ended(["validate", str(path)], capsys)
    assert code == 2
    assert [line.split(": ")[0] for line in err.splitlines()] == [f"{path}:{at}" for at in ("6:42", "7:1", "8:8")]


def test_a_wrong_structure_hides_no_wrong_kind_or_place(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(GOOD.replace("to: b", "to: bb") + "  disk: {kind: foi, on: a}\nrepeats: -1\n")
    code, _, err = ended(["validate", str(path)], capsys)
    assert code == 2
    assert [line.split(": ", 1)[1] for line in err.splitlines()] == [
        "there is no guest 'bb'; did you mean 'b'?",
        "there is no kind of workload 'foi'; did you mean 'fio'?",
        "repeats: must be at least 1, not -1",
    ]


def test_a_wrong_size_hides_no_wrong_table_and_no_wrong_cell(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    wrong = "axes: {cache: [none]}\ntable: {columns: cash}\nsizes: {demo: {cpoy: {files: 1}}}\n"
    path.write_text(GOOD.replace("to: b", "to: bb") + wrong)
    code, _, err = ended(["validate", str(path)], capsys)
    assert code == 2
    assert [line.split(": ", 1)[1] for line in err.splitlines()] == [
        "there is no guest 'bb'; did you mean 'b'?",
        "there is no axis 'cash'; did you mean 'cache'?",
        "there is no workload 'cpoy'; did you mean 'copy'?",
    ]


def test_limits_in_percent_take_the_sign(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(GOOD + "limits: {host_other_percent: 10 %, clock_drift_percent: 2}\n")
    assert ended(["validate", str(path)], capsys)[0] == 0


def test_an_alias_bomb_costs_a_fresh_process_little(tmp_path: Path) -> None:
    bomb = next(bad for bad in BAD if bad.name == "alias bomb")
    path = tmp_path / "x.yaml"
    path.write_text(bomb.text)
    done = subprocess.run(
        ["prlimit", f"--cpu={_BOMB_CPU_SECONDS}", sys.executable, "-m", "vmlab", "plan", str(path)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"name: \xff\n", ":1:7: is not UTF-8 text"),
        (b"#" * 300_000, ": is larger than 256 KiB; no scenario is"),
        (GOOD.encode("utf-16"), ":1:1: is UTF-16, UTF-32 or no text; save it as UTF-8"),
        (GOOD.encode("utf-16-be"), ":1:1: is UTF-16, UTF-32 or no text; save it as UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_refused(content: bytes, line: str, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    assert ended(["plan", str(path)], capsys) == (2, "", f"{path}{line}\n")


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("tlie", "vmlab: there is no scenario 'tlie'; did you mean 'tile'?"),
        ("/nowhere/x.yaml", "vmlab: there is no file /nowhere/x.yaml"),
        ("/", "vmlab: / is a folder, not a scenario"),
    ],
)
def test_a_scenario_that_is_not_there(argument: str, line: str, capsys: Captured) -> None:
    assert ended(["plan", argument], capsys) == (2, "", f"{line}\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "workloads.web.requests=many"], "workloads.web.requests: needs a whole number, not 'many'"),
        (["--set", "workloads.wbe.requests=1"], "there is no workload 'wbe'; did you mean 'web'?"),
        (["--set", "workloads.web.request=1"], "workloads.web has no 'request'; did you mean 'requests'?"),
        (["--set", "workloads.web.requests"], "needs PATH=VALUE, such as workloads.web.requests=500"),
        (["--set", "workloads.web.requests=[1"], "the value is not YAML"),
        (["--set", "@"], "@ needs the name of a file: @FILE"),
        (["--set", "colour=1"], "'colour' begins with nothing that can be set"),
        (["--tiles", "0"], "'0' must be from 1 to 64, smallest first"),
        (["--tiles", "3..1"], "'3..1' must be from 1 to 64, smallest first, as 1..3"),
        (["--tiles", "1..1000000000"], "is not a tile count; use 3, 1,3 or 1..3"),
        (["--tiles", "1,1"], "names a tile count twice"),
        (["--cache", "fast"], "'fast' is no cache mode; use none, writeback, writethrough, directsync, unsafe"),
        (["--cache", "writebak"], "'writebak' is no cache mode; did you mean 'writeback'?"),
        (
            ["--set", "requests=5"],
            "'requests' begins with nothing that can be set; did you mean workloads.web.requests?",
        ),
        (["--set", "memory=1 GiB"], "did you mean guests.*.memory?"),
        (["--set", "web.requests=5"], "did you mean workloads.web.requests?"),
        (["--set", "tiles=2"], "tiles are an axis: axes.tiles=[1, 2], or --tiles 1,2"),
        (["--set", "host=1"], "'host' means nothing; host is set as host.thp; known are "),
        (
            ["--set", "workloads.web=1"],
            "needs three parts, such as workloads.web.KEY; keys are kind, from, to, on, requests",
        ),
        (
            ["--set", "workloads.*.request=1"],
            "hits nothing: no workload here has a 'request'; did you mean 'requests'?",
        ),
        (["--set", "guests.front.memory=${MEM}"], "environment variables and templates are not expanded"),
        (["--set", "repeats=2.5"], "repeats: needs a whole number, not 2.5"),
        (["--cache", "unsafe"], "--cache unsafe: cache mode unsafe may lose guests' data"),
        (["--set", "axes.queues=[900]"], "axes.queues=[900]: guests.file-a.queues: must be at most 64, not 900"),
        (["--size", "big"], "'big' is not one of"),
        (["--repeats", "0"], "0 is not in the range"),
        (["--repeats", "x"], "'x' is not a whole number"),
        (["--nonsense"], "No such option '--nonsense'"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: list[str], words: str, capsys: Captured) -> None:
    code, out, err = ended(["plan", "tile", *options], capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert options[0] in err


NOT_SCENARIOS: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "an empty file": Path.touch,
    "a dangling link": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a named pipe": os.mkfifo,
}


@pytest.mark.parametrize("word", ["tile", "tile.yaml"])
@pytest.mark.parametrize("kind", NOT_SCENARIOS)
def test_what_cannot_be_a_scenario_hides_no_shipped_one(
    kind: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """A word without a slash that names a shipped scenario is that one, unless a file that can be one stands there;
    with ``./`` it is always the file."""
    monkeypatch.chdir(tmp_path)
    NOT_SCENARIOS[kind](tmp_path / word)
    code, _, err = ended(["validate", word], capsys)
    assert (code, err.startswith(f"{shipped_scenarios() / 'tile.yaml'}: valid; ")) == (0, True), err
    code, out, err = ended(["validate", f"./{word}"], capsys)
    assert (code, out, err.count("\n"), word in err) == (2, "", 1, True), err


def test_a_file_that_stands_for_a_shipped_scenario_is_read_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tile").write_text(GOOD)
    assert ended(["validate", "tile"], capsys) == (0, "", "tile: valid; 1 cell at full\n")
    (tmp_path / "tile").write_text("run,cell\n")
    code, _, err = ended(["validate", "tile"], capsys)
    assert (code, err.splitlines()[1]) == (
        2,
        "tile is a file in this folder, which was read instead of the shipped scenario of that name",
    )


@pytest.mark.parametrize(("written", "cells"), [("2.0", 2), ("2e0", 2), ("20e-1", 2), ("1e1", 10)])
def test_a_whole_number_may_be_written_as_a_fraction_or_with_an_exponent(
    written: str, cells: int, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{GOOD}repeats: {written}\n")
    assert ended(["validate", str(path)], capsys) == (0, "", f"{path}: valid; {cells} cells at full\n")


def test_an_estimate_is_for_emulation_where_there_are_guests(tmp_path: Path, capsys: Captured) -> None:
    work = "{kind: cpu, %s, threads: 1, events: 200, max_prime: 2000}"
    alone, guests = tmp_path / "alone.yaml", tmp_path / "guests.yaml"
    alone.write_text(f"name: trial\nworkloads:\n  primes: {work % 'on: host'}\n", encoding="utf-8")
    guest = "guests:\n  a: {role: web, memory: 512 MiB}\n"
    guests.write_text(f"name: trial\n{guest}workloads:\n  primes: {work % 'on: a'}\n", encoding="utf-8")
    of_alone, of_guests = (ended(["plan", str(path)], capsys)[1] for path in (alone, guests))
    assert "an estimate\n" in of_alone
    assert "an estimate for " in of_guests


def test_the_shipped_scenarios_are_valid(capsys: Captured) -> None:
    code, out, err = ended(["validate", "tile", "cpu-overhead", "cpu-priority.yaml", "--json"], capsys)
    assert (code, err.count("valid")) == (0, 3)
    rows = json.loads(out)["scenarios"]
    assert rows[0]["cells"] == {"published": 18, "full": 18, "demo": 2, "smoke": 2}


def test_a_scenario_that_is_named_twice_is_read_once(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    code, out, err = ended(["validate", "-", "tile", "-", "tile.yaml"], capsys)
    assert (code, out, err.count("valid")) == (0, "", 3)


def test_plan_tells_guests_memory_disk_order_and_time(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is free on this machine just now is another matter.
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda _folder: ROOMY)
    code, out, err = ended(["plan", "tile", "--tiles", "2"], capsys)
    assert (code, err) == (0, "")
    assert "guests   8 at most" in out
    assert "at most, 6 GiB of it for guests and the rest for QEMU" in out
    assert out.index("tiles 2, cache none") < out.index("tiles 2, cache writeback")
    assert "an estimate" in out


def test_plan_as_json_is_versioned(capsys: Captured) -> None:
    _, out, _ = ended(["plan", "tile", "--size", "smoke", "--json", "--seed", "7"], capsys)
    document = json.loads(out)
    assert document["schema"] == "vmlab.plan/1"
    assert document["plan"]["seed"] == 7
    assert [cell["axes"] for cell in document["plan"]["cells"]] == [
        {"tiles": 1, "cache": "none"},
        {"tiles": 1, "cache": "writeback"},
    ]
    assert document["plan"]["cells"][0]["workloads"][0]["source"] == "t1-file-a"


def test_what_cannot_fit_is_refused_unless_asked_for(capsys: Captured) -> None:
    options = ["plan", "tile", "--tiles", "3", "--set", "guests.*.memory=1 TiB"]
    code, out, err = ended(options, capsys)
    assert (code, err.count("\n")) == (3, 1)
    assert "12 guests need 12 TiB of memory" in err
    assert "guests   12 at most" in out
    code, out, err = ended([*options, "--allow-overcommit"], capsys)
    assert (code, err) == (0, "")
    assert "note: memory is overcommitted on purpose" in out


def test_the_schema_that_ships_is_current(capsys: Captured) -> None:
    code, out, _ = ended(["schema"], capsys)
    assert code == 0
    shipped = (shipped_scenarios() / "schema.json").read_text()
    assert out == shipped, "run `vmlab schema > scenarios/schema.json`"


SCHEMA = pytest.mark.xdist_group("schema")
"""One process loads jsonschema, which takes seconds, and none while tests are collected."""


def _plain(name: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load((shipped_scenarios() / f"{name}.yaml").read_text())


@SCHEMA
@pytest.mark.parametrize("name", shipped_names())
def test_the_schema_accepts_what_ships(name: str) -> None:
    import jsonschema

    schema = json.loads((shipped_scenarios() / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(_plain(name))


@SCHEMA
def test_the_schema_refuses_a_parameter_of_another_kind() -> None:
    import jsonschema

    schema = json.loads((shipped_scenarios() / "schema.json").read_text())
    scenario = _plain("tile")
    scenario["workloads"]["web"]["files"] = 3
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(scenario)


def test_help_lists_every_command_and_loads_none() -> None:
    script = (
        "import sys; from vmlab.cli.main import command_line; command_line(['--help']);"
        "sys.stderr.write(' '.join(m for m in ('pydantic', 'ruamel.yaml', 'libvirt', 'asyncssh', 'textual', 'psutil')"
        " if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240)
    assert done.stderr == ""
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_the_one_that_is_loaded(name: str) -> None:
    assert COMMANDS[name].load().name == name


def test_no_module_is_named_in_a_string_alone() -> None:
    """mypy and import-linter see an import, and nothing in a string. The package itself is below all others, and loads
    its API for programs alone; `__init__.pyi` tells mypy of it.
    """
    root = Path(vmlab.__file__).parent
    named = [str(path.relative_to(root)) for path in root.rglob("*.py") if 'import_module("' in path.read_text()]
    assert named == ["__init__.py"]


def test_the_console_without_a_terminal_is_one_clear_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vmlab"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "vmlab: the console needs a terminal; `vmlab --help` lists the commands\n"


def test_a_command_that_is_misspelt(capsys: Captured) -> None:
    code, _, err = ended(["plna"], capsys)
    assert (code, err) == (2, "vmlab: there is no command 'plna'; did you mean 'plan'? (see `vmlab --help`)\n")


def test_a_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    # The reader is gone before the first byte, however large the pipe is.
    os.close(reader)
    line = f"{sys.executable} -m vmlab schema; echo $? >&2"
    done = subprocess.run(["sh", "-c", line], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=240)
    os.close(writer)
    assert done.stderr == "141\n"


def test_an_interrupt_is_its_own_exit_code(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vmlab.cli.commands.plan_commands.load", interrupted)
    assert ended(["validate", "tile"], capsys) == (130, "", "vmlab: interrupted\n")


def test_every_error_of_ours_is_one_line_and_a_code(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_: object) -> None:
        raise VmlabError("the guest did not answer")

    monkeypatch.setattr("vmlab.cli.commands.plan_commands.load", failed)
    assert ended(["validate", "tile"], capsys) == (1, "", "vmlab: the guest did not answer\n")


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_mistake_that_the_chosen_size_covers_up_is_refused_before_anything_starts(
    command: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "tile.yaml"
    path.write_text((shipped_scenarios() / "tile.yaml").read_text().replace("670 MB", "670 MQ"))
    code, out, err = ended([command, str(path), "--size", "smoke"], capsys)
    assert (code, out) == (2, "")
    assert err.startswith(f"{path}:12:77: workloads.filecopy.bytes: unknown unit 'MQ'")
    assert list(tmp_path.glob("state/vmlab/runs/*")) == []


def test_a_control_run_is_planned_and_a_bad_combination_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{GOOD}axes: {{cache: [none, writeback]}}\n")
    code, out, _ = ended(["plan", str(path), "--control", "--json", "--allow-overcommit"], capsys)
    made = json.loads(out)["plan"]
    assert (code, made["control"], made["repeats"], len(made["cells"])) == (0, True, 7, 14)
    code, out, err = ended(["plan", str(path), "--control", "--cache", "none,writeback"], capsys)
    assert (code, out) == (2, "")
    assert err == (
        "vmlab: --cache none,writeback: a control run has one configuration on both sides; name one value of cache\n"
    )


def test_a_plan_says_what_its_repeats_would_find_by_an_earlier_run(capsys: Captured) -> None:
    name = "20261121-143000-tile-aaaa"
    story = Story(runs_folder() / name / "run.sqlite", run=name).begin({"cache": ["none", "writeback"]}, cells=20)
    for repeat in range(1, 11):
        for cache in ("none", "writeback"):
            noise = 0.1 * ((repeat * 5 + len(cache) * 3) % 7)
            story.cell({"cache": cache}, {"web": 10.0 + noise}, 11.0 + noise, repeat)
    story.end()
    words = ["plan", "tile", "--size", "smoke", "--json", "--repeats"]
    many, few = (json.loads(ended([*words, repeats], capsys)[1])["plan"]["detectable"] for repeats in ("20", "10"))
    assert (many["run"], many["repeats"], few["repeats"]) == (name, 20, 10)
    assert many["at_best_speed_percent"] is None, "no speed was traced"
    compared = json.loads(ended(["compare", name, "--json"], capsys)[1])
    sizes = [row["candidates"][0]["difference"]["detectable_percent"] for row in compared["rows"]]
    assert few["percent"] == pytest.approx(statistics.median(sizes))
    assert 0 < many["percent"] < few["percent"]
    text = ended(["plan", "tile", "--size", "smoke", "--repeats", "10"], capsys)[1]
    assert f"likely to prove a difference of {few['percent']:.2g} % as measured, by the spread in run {name}" in text
    assert json.loads(ended(["plan", "tile", "--json"], capsys)[1])["plan"]["detectable"] is None, "another size"
