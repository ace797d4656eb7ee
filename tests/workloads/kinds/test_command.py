"""A user's command against scripted guests: what it is told, which figures follow, and each fault in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell, says
from vmlab.lab.process.reparse import _workload
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.command import MOST_KEPT, Command, CommandParams
from vmlab.workloads.metrics import Reading
from vmlab.workloads.sent_file import GivenFile
from vmlab.workloads.workload_steps import Finished, StagingContext, WorkloadContext

GET = {"get_rate": {"find": '"GET","([0-9.]+)"', "unit": "1/s", "better": "higher"}}
OUT = '"SET","99000.00"\n"GET","101000.00"\n'


class Beside:
    """The files of a scenario's folder."""

    def read(self, path: str) -> GivenFile:
        if path == "./bench.sh":
            return GivenFile(b"#!/bin/sh\necho 1\n", is_executable=True)
        if path.endswith("data.csv"):
            return GivenFile(b"1,2\n", is_executable=False)
        raise ValueError(f"there is no {path}")


def params(**said: Any) -> CommandParams:
    text = json.dumps({"run": "redis-benchmark --csv", **said})
    return CommandParams.model_validate_json(text, strict=True, context={"files": Beside()})


def account(**changed: Any) -> str:
    said = {"seconds": 2.0, "rounds": [[len(OUT), 0]], "status": 0, "over": False, "late": False}
    return json.dumps({**said, "left": [], "last": [], **changed}) + "\n"


def texts(out: str = OUT, err: str = "", **changed: Any) -> dict[str, str]:
    return {"account": account(**changed), "output": out, "errors": err}


@pytest.fixture
def alone(context: WorkloadContext) -> WorkloadContext:
    return replace(context, target=None)


def test_figures_are_the_commands_time_and_what_its_output_has() -> None:
    work = Command(params(metrics=GET, expect='^"SET"'))
    assert work.figures(texts(), 2.4) == {"run_time": 2.0, "rounds_per_second": 0.5, "get_rate": 101000.0}


def test_figures_of_rounds_are_means_and_each_is_held_against_what_is_expected() -> None:
    second = OUT.replace("101000", "103000") + "more\n"
    lengths = [[len(OUT), 2], [len(second), 0]]
    both = texts(OUT + second, "e\n", rounds=lengths)
    assert Command(params(metrics=GET, rounds=2)).figures(both, 2.4)["get_rate"] == 102000.0
    assert Command(params(metrics=GET, rounds=2)).figures(both, 2.4)["rounds_per_second"] == 1.0
    with pytest.raises(WorkloadError, match=r"^the output has nothing that 'more' matches"):
        Command(params(expect="more", rounds=2)).figures(both, 2.4)
    with pytest.raises(WorkloadError, match=r"^the command ran 2 times, and 3 were asked for"):
        Command(params(rounds=3)).figures(both, 2.4)
    with pytest.raises(WorkloadError, match=r"^the command ran for 2\.000 s, and 5\.000 s were asked for"):
        Command(params(time="5 s")).figures(both, 2.4)
    with pytest.raises(WorkloadError, match="cannot be read: the output is not as long as it says"):
        Command(params(rounds=2)).figures(both | {"output": OUT}, 2.4)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"status": 3, "last": ["a", "no room"]}, "the command exited with 3; its last output: a | no room"),
        ({"status": 127}, "the command exited with 127"),
        (
            {"over": True, "status": 137},
            "the command printed more than 4 MiB, and was ended; write what is no result to a file",
        ),
        (
            {"late": True, "status": 137, "last": ["begun"]},
            "the command took longer than its timeout of 10 min 00 s, and was ended; its last output: begun",
        ),
        (
            {"left": ["sleep", "sh"]},
            "the command left processes running (sleep, sh), which were ended; servers are started in prepare, and all "
            "else is waited for",
        ),
        (
            {"units": ["redis-server.service"]},
            "the command left a service running (redis-server.service); servers are started in prepare",
        ),
        ({"seconds": 0.0}, "the client of the command reports 0.0 s of work"),
        ({"seconds": -1}, "the client of the command reports -1 s of work"),
    ],
)
async def test_each_fault_has_its_line(
    alone: WorkloadContext, source: FakeShell, changed: dict[str, Any], words: str
) -> None:
    source.answers = {"cat /run/vmlab/command/load.out": says(OUT)}
    with pytest.raises(WorkloadError) as error:
        await Command(params()).collect(alone, Finished(0, 2.4, account(**changed), ""))
    assert str(error.value) == words
    assert error.value.texts == {"account": account(**changed), "output": OUT, "errors": ""}


async def test_output_that_lacks_what_is_looked_for_is_kept(alone: WorkloadContext, source: FakeShell) -> None:
    source.answers = {"cat /run/vmlab/command/load.out": says(OUT)}
    with pytest.raises(WorkloadError, match="nothing that 'more' matches") as error:
        await Command(params(expect="more")).collect(alone, Finished(0, 2.4, account(), ""))
    assert error.value.texts["output"] == OUT


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"seconds": "x"}', account(rounds=[[1]]), account(last=None)])
def test_an_account_that_cannot_be_read_is_a_fault_of_the_workload(text: str) -> None:
    with pytest.raises(WorkloadError):
        Command(params()).figures(texts() | {"account": text}, 2.4)


async def test_output_is_kept_and_gives_the_same_figures_again(alone: WorkloadContext, source: FakeShell) -> None:
    source.answers = {f"cat /run/vmlab/command/load.{end}": says(text) for end, text in (("out", OUT), ("err", ""))}
    given = params(metrics=GET)
    collected = await Command(given).collect(alone, Finished(0, 2.4, account(), "noise\n"))
    assert {"account", "output", "errors"} <= collected.raw.keys() and collected.raw["output"] == OUT
    kept = json.loads(json.dumps(given.model_dump(mode="json", by_alias=True)))
    again = _workload({"kind": "command", "params": kept})
    assert again.figures(collected.raw, 2.4) == collected.values
    assert again.readings(collected) == (
        Reading("run_time", 2.0, "s", "less"),
        Reading("rounds_per_second", 0.5, "1/s", "more"),
        Reading("get_rate", 101000.0, "1/s", "more"),
    )


def test_a_text_is_one_argument_and_the_address_of_the_other_guest_stands_in_it(context: WorkloadContext) -> None:
    text = "echo {to} '$HOME' \"`id`\"; exit"
    *program, argument = Command(params(run=text, rounds=7, timeout="90 s")).client(context).argv
    assert program[-1].endswith("/command_client.py")
    told = json.loads(argument)
    assert told["text"] == text.replace("{to}", "198.18.0.12")
    assert (told["rounds"], told["time"], told["timeout"], told["most"]) == (7, None, 90.0, MOST_KEPT)
    assert (told["user"], told["stays"], told["group"], told["units"]) == ("root", False, "load", True)
    assert json.loads(Command(params(run=text)).client(replace(context, target=None)).argv[-1])["text"] == text


async def test_files_are_sent_and_both_guests_are_made_ready(
    context: WorkloadContext, source: FakeShell, target: FakeShell
) -> None:
    for shell in (source, target):
        shell.answers = {"command_client": says(account())}
    given = params(files=["./bench.sh", "in/data.csv"], prepare="warm {to}", prepare_to="serve", user="nobody")
    await Command(given).prepare(context)
    for shell, text in ((target, "serve"), (source, "warm 198.18.0.12")):
        assert shell.files == {
            "/var/lib/vmlab/command/load/bench.sh": b"#!/bin/sh\necho 1\n",
            "/var/lib/vmlab/command/load/data.csv": b"1,2\n",
        }
        assert "install -d -o nobody /var/lib/vmlab/command/load" in shell.commands
        (asked,) = (words for words in shell.commands if "command_client" in words)
        told = json.loads(asked[asked.index("{") :])
        assert (told["text"], told["stays"], told["user"], told["units"]) == (text, True, "nobody", False)
        assert told["group"] == f"load.{'prepare' if shell is source else 'prepare_to'}"
    records = given.model_dump(mode="json", by_alias=True)["files"]
    assert [one["path"] for one in records] == ["./bench.sh", "in/data.csv"]
    assert all(len(one["sha256"]) == 64 and "content" not in one for one in records)


async def test_a_prepare_that_fails_says_so(alone: WorkloadContext, source: FakeShell) -> None:
    source.answers = {
        "command_client": says(account(status=5, last=["Unit redis not found."])),
        "cat /run/vmlab/command/load.prepare.err": says("all\nthat it printed\n"),
    }
    words = r"^prepare exited with 5; its last output: Unit redis not found\.$"
    with pytest.raises(WorkloadError, match=words) as error:
        await Command(params(prepare="systemctl start redis")).prepare(alone)
    assert error.value.texts == {"output of prepare": "", "errors of prepare": "all\nthat it printed\n"}
    (asked,) = (words for words in source.commands if "command_client" in words)
    assert json.loads(asked[asked.index("{") :])["kept"] == "/run/vmlab/command/load.prepare"


async def test_a_user_that_the_guest_does_not_have_is_named(alone: WorkloadContext, source: FakeShell) -> None:
    source.answers = {"id -u redis": says("", status=1)}
    with pytest.raises(WorkloadError, match=r"^guest near has no user redis$"):
        await Command(params(user="redis")).prepare(alone)


async def test_it_is_staged_and_rehearsed_by_the_client_alone(source: FakeShell) -> None:
    source.answers = {"command_client": says(account())}
    context = StagingContext("load", "source", 1, source)
    await Command(params()).stage(context)
    assert list(source.files) == ["/run/vmlab/workloads/command_client.py"]
    await Command(params(prepare="no")).rehearse(context)
    assert '"text":"true"' in source.commands[-1]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"run": " "}, "needs a command"),
        ({"run": "x" * 20_000}, "is longer than 16384 characters; `files` sends a script"),
        ({"run": "a\0b"}, "needs a command"),
        ({"metrics": {"run_time": {"find": "(a)"}}}, "is taken"),
        ({"metrics": {"Rate": {"find": "(a)"}}}, "needs small letters"),
        ({"time": "5 s", "rounds": 2}, "time and rounds exclude each other"),
        ({"time": "20 min"}, "time must be less than timeout"),
        ({"user": "$(id)"}, "needs the name of a user"),
        ({"files": ["a/data.csv", "b/data.csv"]}, "two files are called data.csv"),
        ({"files": ["none.sh"]}, "there is no none.sh"),
        ({"files": [7]}, "needs the path of a file"),
    ],
)
def test_what_cannot_be_run_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        params(**said)


def test_with_a_time_the_rate_of_rounds_is_the_result() -> None:
    assert Command.is_timed(params(time="5 s").model_dump()) and not Command.is_timed(params().model_dump())
    assert Command.throughput == "rounds_per_second"
    assert Command(params(time="5 s")).footprint("tcg").seconds < Command(params(rounds=2)).footprint("tcg").seconds
