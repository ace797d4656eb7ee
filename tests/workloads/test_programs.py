"""Running programs in guests, and what becomes of steps that fail side by side."""

import json

import pytest

from tests.fakes.shell import FakeShell, says
from vmlab.model.errors import GuestError, WorkloadError
from vmlab.workloads import registry
from vmlab.workloads.programs import ask, command, install, told_progress
from vmlab.workloads.verification import line_object, objects
from vmlab.workloads.workload_steps import Progress, Workload


async def test_a_program_is_installed_where_its_command_looks_for_it(source: FakeShell) -> None:
    await install(source, "tree_make", "mail_count")
    assert command("tree_make", {})[-2] in source.files
    assert b"def main()" in source.files[command("mail_count", {})[-2]]


async def test_options_travel_as_one_word(source: FakeShell) -> None:
    source.answers["mail_count"] = says('a word\n{"delivered": 1}\n')
    assert await ask(source, "mail_count", {"subject": "a; rm -rf /"}, deadline=1) == {"delivered": 1}
    assert command("mail_count", {"subject": "a b"})[-1] == '{"subject":"a b"}'


@pytest.mark.parametrize("text", ["", "Traceback", "[1]", '{"delivered": '])
async def test_an_answer_that_is_no_object_is_quoted(source: FakeShell, text: str) -> None:
    source.answers["mail_count"] = says(text)
    with pytest.raises(WorkloadError, match="mail_count on near should end with a JSON object, not"):
        await ask(source, "mail_count", {}, deadline=1)


async def test_a_program_that_fails_is_the_guests_error(source: FakeShell) -> None:
    source.answers["mail_count"] = says("", status=1, stderr="no such folder")
    with pytest.raises(GuestError, match="no such folder"):
        await ask(source, "mail_count", {}, deadline=1)


def test_lines_that_are_no_objects_are_passed_over() -> None:
    assert objects('cp: word\n{"a": 1}\n{"b"\n[2]\n') == [{"a": 1}]
    assert line_object("{}") == {}


@pytest.mark.parametrize("line", ['{"done": 1e150, "total": 1}', '{"done": 1, "total": -1e150}'])
def test_a_progress_that_no_record_can_hold_is_none(line: str) -> None:
    with pytest.raises(ValueError, match=r"^a progress of \S+ of \S+$"):
        told_progress(line, "files")


def test_the_stage_of_a_progress_is_a_few_words() -> None:
    told = told_progress(json.dumps({"done": 1, "total": 2, "stage": "a" * 2**22}), "files")
    assert told == Progress(1, 2, "files", "a" * 79 + "…")


def test_every_kind_is_found_with_its_words() -> None:
    kinds = registry.kinds()
    assert {"cpu", "filecopy", "http", "oltp", "smtp"} <= kinds.keys()
    for kind in kinds.values():
        assert issubclass(kind, Workload)
        assert kind.summary.endswith(".")
        for name, field in kind.Params.model_json_schema()["properties"].items():
            assert field.get("description"), f"{kind.kind}.{name} has no docstring"
