"""The scenario that a command of the command line makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.called import ended
from tests.plan.test_planning import HOST
from vmlab.model.errors import ScenarioError
from vmlab.plan.command_scenario import USUAL_GUEST, GuestSize, command_scenario, guest_size
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.scenario_file.yaml_text import parse
from vmlab.plan.terms import Overrides

EXAMPLES = Path(__file__).parents[2] / "examples/command"


def test_it_compares_what_the_options_vary() -> None:
    overrides = Overrides(cache=("none", "writeback"))
    file = command_scenario("sysbench cpu run", GuestSize(2, 2**30), (), overrides, 6)
    assert file.text == (
        "name: command\n"
        "guests:\n  vm: {vcpus: 2, memory: 1024 MiB}\n"
        "workloads:\n  command: {kind: command, on: vm, run: sysbench cpu run}\n"
        "axes:\n  cache: [none, writeback]\n"
        "repeats: 6\n"
    )
    plan = make_plan(file, overrides, HOST)
    assert len(plan.cells) == 12
    (guest,) = plan.cells[0].guests
    assert (guest.resources.vcpus, guest.resources.memory_bytes) == (2, 2**30)


def test_what_varies_nothing_runs_once_and_a_number_of_repeats_holds() -> None:
    assert command_scenario("make", USUAL_GUEST, (), Overrides(), 6).scenario.repeats == 1
    assert command_scenario("make", USUAL_GUEST, (), Overrides(repeats=3), 6).scenario.repeats == 3
    assert command_scenario("make", USUAL_GUEST, (), Overrides(tiles=(1, 2), repeats=9), 6).scenario.repeats == 9


@pytest.mark.parametrize("text", ["a 'b' \"c\" # d: e", "echo ${HOME} $HOME $${x}", "é\n\tx\\n", "[1, 2]", "on", "7"])
def test_any_text_of_a_shell_comes_back_as_it_is(text: str) -> None:
    file = command_scenario(text, USUAL_GUEST, (), Overrides(), 6)
    assert file.scenario.workloads["command"].params["run"] == text
    assert parse(file.text, "x", {}).value["workloads"]["command"]["run"] == text


def test_no_text_is_no_command() -> None:
    with pytest.raises(ScenarioError, match=r"workloads\.command\.run: needs a command for a shell"):
        make_plan(command_scenario(" ", USUAL_GUEST, (), Overrides(), 6), Overrides(), HOST)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = ended("run", "--command", "make", "--print-scenario", *words)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_printed_scenario_has_what_the_options_change(capsys: pytest.CaptureFixture[str]) -> None:
    changes = ("--set", "workloads.command.timeout=90 s", "--set", "guests.vm.data=1 GiB")
    axes = ("--cache", "none,writeback", "--repeats", "3")
    code, out, _ = printed(capsys, *changes, *axes, "--seed", "7", "--cold", "--allow-noise")
    found = parse(out, "x", {}).value
    assert (code, found["axes"], found["guests"]["vm"]["data"]) == (0, {"cache": ["none", "writeback"]}, "1 GiB")
    assert found["workloads"]["command"] == {"kind": "command", "on": "vm", "run": "make", "timeout": "90 s"}
    assert (found["repeats"], found["seed"], found["provision"], found["allow"]) == (3, 7, "cold", {"noise": True})


def test_its_guest_has_the_packages_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, "--with", "redis-tools,redis-server", "--with", "redis-tools")
    file = read(Path("x"), out, {})
    assert (code, file.scenario.workloads["command"].params["packages"]) == (0, ["redis-server", "redis-tools"])
    (guest,) = make_plan(file, Overrides(), HOST).cells[0].guests
    assert guest.resources.packages == ("redis-server", "redis-tools")
    assert "packages" not in printed(capsys)[1]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("cache-modes", "--with", "zip"), "--guest, --with and --print-scenario are for --command"),
        (("--command", "make", "--with", "Zip"), "--with Zip needs the name of a package of Debian's"),
        (("--command", "make", "--with", "zip,"), "--with '' needs the name of a package of Debian's"),
        (
            ("--command", "make", "--print-scenario", "--with", ",".join(f"p{n}" for n in range(10, 75))),
            "<vmlab run --command>:8:15: workloads.command.packages: needs at most 64 entries",
        ),
    ],
)
def test_packages_that_make_no_scenario_are_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    assert ended("run", *words) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1) and line in said.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--loop=30s",), "--print-scenario starts nothing, and a scenario does not say --loop"),
        (("--size", "full"), "--print-scenario starts nothing, and a scenario does not say --size"),
        (("--detach",), "--print-scenario starts nothing, and a scenario does not say --detach"),
        (("--set", "workloads.command.no=1"), "workloads.command.no"),
        (("--var", "N=1"), "<vmlab run --command> has no variable N"),
    ],
)
def test_what_a_printed_scenario_cannot_say_is_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    code, out, err = printed(capsys, *words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert line in err


def test_a_guest_has_cpus_and_memory() -> None:
    assert guest_size("1x512MiB") == USUAL_GUEST
    assert guest_size("16x1.5 GiB") == GuestSize(16, 3 * 2**29)
    for text in ("512MiB", "0x1GiB", "2x", "2x1", "ax1GiB"):
        with pytest.raises(ValueError, match=r"needs CPUs and memory|needs a number and a unit"):
            guest_size(text)


@pytest.mark.parametrize("name", ["pgbench", "redis", "script"])
def test_the_examples_are_in_order(name: str) -> None:
    file = load(f"{EXAMPLES}/{name}.yaml")
    plan = make_plan(file, Overrides(), HOST)
    assert {cell.axes["cache"] for cell in plan.cells} == {"none", "writeback"} and len(plan.cells) == 14
    page = (EXAMPLES.parents[1] / "docs/how-to/own-command.md").read_text(encoding="utf-8")
    assert name != "pgbench" or f"```yaml\n{file.text}```" in page
