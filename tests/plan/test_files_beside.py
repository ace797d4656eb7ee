"""Files that workloads send from a scenario's folder: which they may be, and that a run keeps them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.plan.test_planning import HOST
from vmlab.lab.process.prepared import RunRequest, kept_overrides, plan_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import ScenarioError
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.files_beside import MOST_BYTES, FilesBeside
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.terms import Overrides
from vmlab.workloads.sent_file import GivenFile

TEXT = """
name: mine
guests: {vm: {memory: 512 MiB}}
workloads:
  mine: {kind: command, on: vm, run: ./bench.sh, files: [./bench.sh]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "bench.sh").write_text("echo 1\n")
    (folder / "bench.sh").chmod(0o755)
    (folder / "mine.yaml").write_text(TEXT)
    return folder / "mine.yaml"


def test_a_file_is_read_once_with_its_mode(scenario: Path) -> None:
    (scenario.parent / "in").mkdir()
    (scenario.parent / "in/rows").write_bytes(b"\0\xff")
    beside = FilesBeside(scenario.parent)
    assert beside.read("./bench.sh") == GivenFile(b"echo 1\n", is_executable=True)
    assert beside.read("in/rows") == GivenFile(b"\0\xff", is_executable=False)
    (scenario.parent / "bench.sh").write_text("echo 2\n")
    assert beside.read("./bench.sh").content == b"echo 1\n"
    assert FilesBeside(None, beside.kept).read("./bench.sh") == beside.read("./bench.sh")


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "../x", "in/../../x", "a\nb", "x" * 201])
def test_a_path_outside_of_the_folder_is_refused(scenario: Path, path: str) -> None:
    with pytest.raises(ValueError, match=r"needs a path below the scenario's folder|is a folder"):
        FilesBeside(scenario.parent).read(path)


def test_what_is_no_ordinary_file_is_refused(scenario: Path) -> None:
    os.mkfifo(scenario.parent / "pipe")
    for name, words in (("pipe", "is a named pipe"), ("none", "is no file below the scenario's folder")):
        with pytest.raises(ValueError, match=words):
            FilesBeside(scenario.parent).read(name)
    with pytest.raises(ValueError, match="is a file that was not kept with the scenario"):
        FilesBeside(None).read("bench.sh")


def test_a_link_does_not_lead_out_of_the_folder(scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("secret\n")
    for link, target in (("link.sh", "../id_rsa"), ("up", ".."), ("same.sh", "bench.sh"), ("loop", "loop")):
        (scenario.parent / link).symlink_to(target)
    for name in ("link.sh", "up/id_rsa"):
        with pytest.raises(ValueError, match=r"^leads out of the scenario's folder by a link$"):
            FilesBeside(scenario.parent).read(name)
    with pytest.raises(ValueError, match=r"^is no file below the scenario's folder$"):
        FilesBeside(scenario.parent).read("loop")
    (tmp_path / "linked").symlink_to(scenario.parent)
    assert FilesBeside(tmp_path / "linked").read("same.sh").content == b"echo 1\n"


def test_files_have_a_size_together(scenario: Path) -> None:
    for name in ("a", "b"):
        (scenario.parent / name).write_bytes(bytes(MOST_BYTES // 2 + 1))
    beside = FilesBeside(scenario.parent)
    beside.read("a")
    with pytest.raises(ValueError, match="is too large: the files of a scenario have 1 MiB together at most"):
        beside.read("b")


def test_a_run_is_planned_again_with_the_files_that_it_was_asked_for_with(scenario: Path, tmp_path: Path) -> None:
    file = load(str(scenario))
    plan = make_plan(file, Overrides(), HOST)
    folder = RunFolder("r", tmp_path)
    kept = kept_overrides(file, Overrides(), plan)
    write_request(folder, RunRequest("r", "x.yaml", kept, plan.seed), file.text, HOST)
    (scenario.parent / "bench.sh").unlink()
    assert plan_of(folder).cells == plan.cells
    (sent,) = plan_of(folder).cells[0].workloads[0].params.model_dump()["files"]
    assert (sent["path"], sent["is_executable"], len(sent["sha256"])) == ("./bench.sh", True, 64)
    recorded = settings_of(plan.cells[0])["workloads"]["mine"]["params"]["files"]
    assert recorded == [sent], "path and digest, without the content"


def test_a_kept_scenario_reads_no_file_of_this_host(scenario: Path) -> None:
    words = "workloads.mine.files.1: is a file that was not kept with the scenario, not './bench.sh'"
    with pytest.raises(ScenarioError) as error:
        make_plan(read(scenario, TEXT, {}, files={}), Overrides(), HOST)
    assert str(error.value) == f"{scenario}:5:58: {words}"
