"""What `vmlab run` says at the end of a run that measured nothing valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.cli.commands.run_commands import _printed
from vmlab.cli.progress import Detail
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import ExitCode
from vmlab.model.places import runs_folder
from vmlab.store.reader import RunReader

RUN = "20261121-143000-tile-aaaa"


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose one cell is invalid."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    story = Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none"]})
    story.start_cell({"cache": "none"})
    story.end_cell("invalid", ["the host was busy"])
    story.end()


@pytest.mark.parametrize("code", [ExitCode.INVALID, ExitCode.FAILED])
def test_a_user_of_a_busy_host_is_shown_what_helps(
    code: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _printed(RunFolder(RUN, runs_folder() / RUN), False, code, Detail.CELLS) == code
    told = capsys.readouterr().err
    helped = f"`vmlab resume {RUN} --invalid` measures them once more, and --allow-noise accepts other load"
    assert (helped in told) == (code == ExitCode.INVALID)


@pytest.mark.parametrize("code", [ExitCode.INVALID, ExitCode.PASSED])
def test_the_record_of_a_run_that_has_ended_is_read_once(
    code: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[Path] = []
    read = RunReader.__init__

    def counted(reader: RunReader, path: Path, host: str | None = None) -> None:
        opened.append(path)
        read(reader, path, host)

    monkeypatch.setattr(RunReader, "__init__", counted)
    assert _printed(RunFolder(RUN, runs_folder() / RUN), False, code, Detail.CELLS) == code
    assert len(opened) == 1 and "the host was busy" in capsys.readouterr().out
