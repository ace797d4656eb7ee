"""Whatever the command line does with runs, the API does: a call for each command, and a parameter for each option."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click
import pytest

import vmlab
import vmlab.api
from vmlab.cli.main import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs/reference/api.md").read_text(encoding="utf-8")
WITHOUT_A_CALL = {"run", "scale", "selftest", "gate", "tune"}
"""They start guests, which needs root. `gate --run` and `tune --of` start none: they are `gate_run` and `tune_runs`."""
NOT_ABOUT_RUNS = {"demo", "serve", "top", "plan", "validate", "schema", "image", "snapshot", "plugins", "doctor"}
NOT_ABOUT_RUNS |= {"scenario"}
DOCUMENT = "Run.document"
ANSWERED = {
    "attach": {"run": "attach_run.run", "verbose": "", "quiet": "", "as_json": DOCUMENT},
    "stop": {"run": "stop_run.run"},
    "set": {
        "words": "set_coming_cells.cache set_coming_cells.tiles set_coming_cells.skip set_coming_cells.planned "
        "set_running_cell.cache set_running_cell.ksm set_running_cell.tiles set_running_cell.end",
        "cell": "set_coming_cells.cell",
        "as_list": "coming_cells.run",
        "as_json": "coming_cells",
        "now": "set_running_cell.run",
    },
    "ls": {"scenarios": "", "as_json": "listing"},
    "show": {
        "run": "open_run.name",
        "cell": "Run.document.cell Run.raw.cell Run.phases.cell Run.measurements.cell Run.samples.cell",
        "raw": "Run.raw",
        "phases": "Run.phases",
        "reference": "Run.reference",
        "share": "Run.document.knee",
        "explain": "",
        "quiet": "",
        "as_json": DOCUMENT,
    },
    "compare": {
        "runs": "compare.runs",
        "cell": "compare.runs",
        "reference": "Run.reference",
        "control": "compare.control",
        "baseline": "compare.baseline pool.baseline",
        "metrics": "compare.metric pool.metric",
        "pooled": "pool.runs",
        "explain": "compare.explain Comparison.explanation",
        "conditions": "compare.fail_if",
        "strict": "compare.strict",
        "lenient": "compare.lenient",
        "junit": "Comparison.junit",
        "quiet": "",
        "as_json": "Comparison.document",
    },
    "tag": {"run": "tag_run.run", "name": "tag_run.name", "removed": "remove_tag.name", "as_json": "tags"},
    "note": {"run": "note_run.run", "text": "note_run.note Run.note", "removed": "note_run.note"},
    "report": {
        "runs": "report_runs.runs chart_runs.runs",
        "output": "report_runs.output",
        "name": "report_runs.format",
        "chart": "chart_runs.output",
        "figure": "chart_runs.figure",
    },
    "export": {
        "runs": "export_runs.runs",
        "output": "export_runs.output",
        "name": "export_runs.format",
        "samples": "export_runs.samples",
        "plain": "export_runs.plain",
        "run_label": "export_runs.run_label",
    },
    "import": {"file": "import_run.file"},
    "reparse": {"run": "reparse_run.run", "dry_run": "reparse_run.dry_run", "as_json": "reparse_run"},
    "replay": {"run": "attach_run.run", "theme": "", "no_mouse": ""},
    "record": {
        "duration": "record_host.seconds",
        "detach": "record_host",
        "interval": "record_host.interval",
        "keep": "record_host.keep_seconds",
        "most": "record_host.keep_bytes",
        "blktrace": "record_host.blktrace",
        "as_json": DOCUMENT,
    },
    "advise": {
        "run": "open_run.name",
        "as_json": "Run.advice",
        "output": "Run.load_scenario",
        "disk": "Run.load_scenario.disk",
    },
    "resume": {
        "run": "resume_run.run",
        "invalid": "resume_run.invalid",
        "repeats": "resume_run.repeats",
        "detach": "",
        "wait": "resume_run.wait",
        "concurrent": "resume_run.concurrent",
        "verbose": "",
        "quiet": "",
        "as_json": "attach_run",
    },
    "hosts resume": {"run": "resume_run.run"},
    "rm": {"runs": "remove_runs.runs", "older": "remove_runs.older", "tagged": "remove_runs.tagged", "yes": ""},
    "clean": {"hosts": "", "as_json": "clean_runs"},
}
"""For each command, and each of its parameters, the calls of the API and their parameters; empty for a question on the
terminal, for what the console draws, and for what is of no run or of another host."""


def _command(words: str) -> click.Command:
    first, *rest = words.split()
    command = COMMANDS[first].load()
    for name in rest:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


def test_each_command_on_runs_has_a_call() -> None:
    told = {words.split()[0] for words in ANSWERED}
    assert told | WITHOUT_A_CALL | NOT_ABOUT_RUNS == COMMANDS.keys(), "a new command: has it a call in the API?"
    rows = re.findall(r"^\| `vmlab .*\|$", PAGE, re.MULTILINE)
    assert {words for row in rows for words in re.findall(r"`vmlab ([a-z ]+)`", row)} == ANSWERED.keys()
    for row in rows:
        calls = {name for words in re.findall(r"`vmlab ([a-z ]+)`", row) for name in _calls(words)}
        named = {name for name in re.findall(r"`([A-Za-z_.]+)`", row) if name.partition(".")[0] in vmlab.api.__all__}
        assert named <= calls | {"Run", "open_run", "runs"}, row
        assert {name for name in calls if name[0].islower()} <= named | {"open_run"}, row


def _calls(words: str) -> set[str]:
    return {".".join(_parts(answer)[0]) for told in ANSWERED[words].values() for answer in told.split()}


def _parts(answer: str) -> tuple[list[str], str]:
    """The names of a call, and that of its parameter, which is empty where none is named."""
    names = answer.split(".")
    own = 2 if names[0][0].isupper() else 1
    return names[:own], ".".join(names[own:])


@pytest.mark.parametrize("words", ANSWERED)
def test_each_of_its_options_is_a_parameter(words: str) -> None:
    parameters = {one.name for one in _command(words).params}
    assert parameters == ANSWERED[words].keys(), "a new option: which parameter of the API is it?"
    for answer in " ".join(ANSWERED[words].values()).split():
        call, parameter = _parts(answer)
        found: object = vmlab
        for name in call:
            found = getattr(found, name)
        assert call[0] in vmlab.api.__all__, answer
        if parameter:
            assert callable(found) and parameter in inspect.signature(found).parameters, answer
