"""The programs that make, copy and read trees, run on folders of this machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from vmlab.workloads.kinds.filecopy import first_differences
from vmlab.workloads.payload import filecopy_client, tree_digest, tree_make

Json = dict[str, Any]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a program's main with options; its JSON lines. This machine's page cache stays as it is."""
    monkeypatch.setattr(tree_digest, "forget_cache", lambda: None)
    monkeypatch.setattr(filecopy_client, "rest", lambda seconds: filecopy_client.say(stage="idle", done=0, total=1))

    def run(program: Any, **options: Any) -> list[Json]:
        monkeypatch.setattr("sys.argv", ["program", json.dumps(options)])
        program.main()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def make(call: Any, place: Path, *, files: int = 600, size: int = 90_001, seed: str = "7-1-load") -> Json:
    (made,) = call(
        tree_make, folder=str(place / "tree"), manifest=str(place / "manifest"), files=files, bytes=size, seed=seed
    )
    return dict(made)


def test_a_tree_has_exactly_the_files_and_bytes_asked_for(call: Any, tmp_path: Path) -> None:
    made = make(call, tmp_path)
    paths = [path for path in (tmp_path / "tree").rglob("*") if path.is_file()]
    sizes = [path.stat().st_size for path in paths]
    assert (len(paths), sum(sizes)) == (600, 90_001) == (made["files"], made["bytes"])
    assert 70 <= min(sizes) < 100 < 200 < max(sizes) <= 230
    assert sorted(len(list(folder.iterdir())) for folder in (tmp_path / "tree").iterdir()) == [100, 250, 250]


def test_a_tree_follows_from_its_seed_alone(call: Any, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    first = make(call, tmp_path)
    assert make(call, again) == first
    assert make(call, again, seed="7-2-load")["digest"] != first["digest"]


def test_the_digest_of_a_whole_tree_is_the_manifests(call: Any, tmp_path: Path) -> None:
    made = make(call, tmp_path)
    (found,) = call(tree_digest, folder=str(tmp_path / "tree"), listing=str(tmp_path / "listing"), made="")
    assert found == {**made, "made": None}
    assert (tmp_path / "listing").read_text() == (tmp_path / "manifest").read_text()


def test_one_changed_byte_one_missing_and_one_strange_file_are_named(call: Any, tmp_path: Path) -> None:
    made = make(call, tmp_path)
    changed, missing, cut = (tmp_path / "tree/d0000" / f"f00000{number}.bin" for number in (0, 1, 2))
    content = bytearray(changed.read_bytes())
    content[-1] ^= 1
    changed.write_bytes(content)
    missing.unlink()
    cut.write_bytes(cut.read_bytes()[:50])
    (tmp_path / "tree/strange").touch()
    (found,) = call(tree_digest, folder=str(tmp_path / "tree"), listing=str(tmp_path / "listing"), made="")
    assert found["digest"] != made["digest"]
    told = first_differences((tmp_path / "manifest").read_text(), (tmp_path / "listing").read_text())
    assert "f000000.bin has other content, d0000/f000001.bin is missing, d0000/f000002.bin has 50 bytes" in told
    assert told.endswith(" and 1 more")


def test_what_was_made_is_told_with_the_digest(call: Any, tmp_path: Path) -> None:
    (tmp_path / "made").write_text('{"files": 3}')
    options = {"folder": str(tmp_path), "listing": str(tmp_path / "listing"), "made": str(tmp_path / "made")}
    (found,) = call(tree_digest, **options)
    assert found["made"] == {"files": 3}
    assert found["files"] == 1


def test_a_folder_that_is_not_there_has_no_files(call: Any, tmp_path: Path) -> None:
    (found,) = call(tree_digest, folder=str(tmp_path / "none"), listing=str(tmp_path / "listing"), made="")
    assert (found["files"], found["bytes"]) == (0, 0)


def test_the_client_copies_there_and_back(call: Any, tmp_path: Path) -> None:
    made = make(call, tmp_path)
    places = {"tree": str(tmp_path / "tree"), "there": str(tmp_path / "there"), "back": str(tmp_path / "back")}
    said = call(filecopy_client, **places, idle=0, files=600)
    ends = {line["ended"]: line for line in said if "ended" in line}
    assert list(ends) == ["there", "back", "all"]
    assert ends["all"]["seconds"] >= ends["there"]["seconds"] + ends["back"]["seconds"] > 0
    assert [line["done"] for line in said if line.get("stage") in ("there", "back")][-1] == 600
    (found,) = call(tree_digest, folder=places["back"], listing=str(tmp_path / "listing"), made="")
    assert found == {**made, "made": None}


def test_the_client_fails_where_cp_does(call: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"there: cp: cannot stat .*none"):
        call(filecopy_client, tree=str(tmp_path / "none"), there=str(tmp_path / "there"), back="", idle=0, files=1)
