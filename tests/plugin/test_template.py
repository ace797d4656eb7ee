"""The template of a plugin: it builds, it is found, and its keys are known wherever vmlab's own are."""

import json
import shutil
from pathlib import Path

import pytest

from tests.plugin.conftest import TEMPLATE, Packages
from tests.tui.conftest import RECORDED

pytestmark = pytest.mark.xdist_group("template")

SCENARIO = str(TEMPLATE / "compress.yaml")


def test_it_is_listed_with_its_package(template: Packages) -> None:
    done = template.vmlab("plugins", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "vmlab.plugins/1"
    added = [one for one in document["plugins"] if one["package"] != "vmlab"]
    assert {(one["group"], one["name"], one["package"], one["version"], one["left_out"]) for one in added} == {
        ("vmlab.workloads", "compress", "vmlab-compress", "1.0", None),
        ("vmlab.exports", "influx", "vmlab-compress", "1.0", None),
        ("vmlab.host_figures", "interrupts", "vmlab-compress", "1.0", None),
    }
    lines = template.vmlab("plugins").stdout.splitlines()
    assert "compress   gzip compresses a file of words. (vmlab-compress 1.0)" in lines


def test_its_keys_are_in_the_schema_and_in_plans(template: Packages) -> None:
    schema = json.loads(template.vmlab("schema").stdout)
    keys = schema["$defs"]["workload-compress"]["properties"]
    assert keys.keys() == {"kind", "on", "bytes", "level"}
    assert keys["level"]["description"].startswith("gzip's level")
    plan = template.vmlab("plan", SCENARIO, "--set", "workloads.pack.bytes=1 MB", "--json")
    assert (plan.returncode, plan.stderr) == (0, "")
    assert '"level": 9' in plan.stdout and '"bytes": 1000000' in plan.stdout
    wrong = template.vmlab("plan", SCENARIO, "--set", "workloads.pack.levle=1")
    assert wrong.returncode == 2
    assert "level" in wrong.stderr and wrong.stderr.count("\n") == 1


def test_the_shell_completes_its_format(template: Packages) -> None:
    line = "vmlab export last --format in"
    asked = {"COMP_WORDS": line, "COMP_CWORD": "4", "_VMLAB_COMPLETE": "bash_complete"}
    answer = template.vmlab(**asked)
    assert answer.stdout.split() == ["plain,influx"]


def test_its_format_has_every_figure_of_a_run(template: Packages, tmp_path: Path) -> None:
    csv, lines = tmp_path / "run.csv", tmp_path / "run.lp"
    for file in (csv, lines):
        done = template.vmlab("export", str(RECORDED), "-o", str(file))
        assert (done.returncode, done.stderr) == (0, "")
    rows = [row.rpartition(",")[2] for row in csv.read_text().splitlines()[1:]]
    values = [line.rpartition(" value=")[2] for line in lines.read_text().splitlines()]
    assert values == [row for row in rows if row]


def test_its_figure_is_recorded_and_shown(template: Packages) -> None:
    first, second = (json.loads(line) for line in template.vmlab("top", "--json", "--count", "2").stdout.splitlines())
    assert first["interrupts_per_second"] > 0 and second["interrupts_per_second"] > 0
    assert "\nInterrupts served " in template.vmlab("top", "--count", "1").stdout


def test_its_own_tests_pass(template: Packages) -> None:
    done = template.python("-m", "pytest", "-p", "no:cacheprovider", str(TEMPLATE / "tests"))
    assert done.returncode == 0, done.stdout
    assert "...." in done.stdout


@pytest.mark.exhaustive
def test_its_types_are_strict_by_what_is_promised_alone(template: Packages, tmp_path: Path) -> None:
    shutil.copytree(TEMPLATE, tmp_path / "mine")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n")
    done = template.python(
        *("-m", "mypy", "--config-file", str(config), "--cache-dir", str(tmp_path / "cache")),
        *(str(tmp_path / "mine" / folder) for folder in ("src", "tests")),
        MYPYPATH=str(tmp_path / "mine" / "src"),
    )
    assert done.returncode == 0, done.stdout
    assert "Success: no issues found in 5 source files" in done.stdout


def test_it_imports_nothing_but_what_is_promised() -> None:
    texts = [file.read_text() for file in TEMPLATE.rglob("*.py")]
    names = [
        line.split()[1]
        for text in texts
        for line in text.splitlines()
        if line.startswith(("from vmlab.", "import vmlab"))
    ]
    assert names
    assert all(name.startswith("vmlab.plugin.v1.") for name in names)
