"""`vmlab snapshot`: what is removed, what is kept, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmlab.cli.main import command_line
from vmlab.guests.cached.locks import Lock
from vmlab.system.removal import make_marked


def test_removing_all_names_what_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("web", "mail"):
        make_marked(tmp_path / "vmlab/snapshots" / name, name)
    held = Lock.shared(tmp_path / "vmlab/snapshots/web/use.lock")
    assert held is not None
    assert command_line(["snapshot", "rm", "--all"]) == 0
    said = capsys.readouterr().err
    assert sorted(said.splitlines()) == [
        "kept web: snapshot web is in use by a run (wait for the run, or vmlab stop)",
        "removed mail",
    ]
    held.release()
    assert command_line(["snapshot", "rm", "--all"]) == 0
    assert command_line(["snapshot", "rm", "--all"]) == 0
    assert capsys.readouterr().err == "removed web\nno snapshot is kept\n"


@pytest.mark.parametrize("group", ["image", "snapshot"])
def test_a_group_without_a_command_tells_its_commands(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line([group]) == 2
    told = capsys.readouterr().err.splitlines()
    assert any(line.split()[:1] == ["rm"] for line in told), told
