"""A package that is broken: one line says so, and everything else is as it was."""

import json
from pathlib import Path

import pytest

from tests.plugin.conftest import Packages
from tests.tui.conftest import RECORDED

WORKLOAD = """
from vmlab.plugin.v1.workload import *
class Params(WorkloadParams):
    size: int = 1
class Odd(Workload[Params]):
    kind = "odd"
    sides = 1
    Params = Params
    summary = "An odd one."
    metrics = with_run_time()
    def footprint(self, accelerator):
        return Footprint(0, 1.0)
    async def prepare(self, context):
        pass
    def client(self, context):
        return Client(("true",), 10.0)
    async def collect(self, context, finished):
        return Collected({RUN_TIME: finished.seconds})
"""
SCENARIO = "name: mine\nguests: {a: {memory: 512 MiB}}\nworkloads: {one: {kind: %s, on: a}}\n"


def workload(packages: Packages, text: str, name: str = "odd") -> None:
    packages.add("vmlab-odd", {"vmlab.workloads": {name: "odd_kind:Odd"}}, odd_kind=text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("from vmlab.plugin.v2.workload import Workload", "ModuleNotFoundError: No module named 'vmlab.plugin.v2'"),
        ("def Odd(:", "SyntaxError: invalid syntax"),
        ("raise SystemExit('I give up')", "SystemExit: I give up"),
        ("x = 1", "AttributeError: module 'odd_kind' has no attribute 'Odd'"),
        ("Odd = 3", "TypeError: odd_kind:Odd is no Workload"),
        (WORKLOAD.replace('kind = "odd"', 'kind = "even"'), "ValueError: its kind is 'even', its entry point 'odd'"),
        (WORKLOAD.replace("    async def collect", "    async def collects"), "TypeError: it lacks collect"),
        (WORKLOAD.replace("    summary = ", "    words = "), "TypeError: it lacks summary"),
        (WORKLOAD.replace("    size: int = 1", "    on: int = 1"), "ValueError: every workload has the key on already"),
        (WORKLOAD.replace("with_run_time()", "{}"), "ValueError: its metrics do not begin with run_time"),
        (WORKLOAD.replace("sides = 1", "sides = 3"), "ValueError: sides is 3, not 1 or 2"),
        (
            WORKLOAD.replace("    sides = 1", '    sides = 1\n    throughput = "x"'),
            "ValueError: it declares no metric x",
        ),
        (
            WORKLOAD.replace("    size: int = 1", "    size: type = int"),
            "PydanticInvalidForJsonSchema: Cannot generate a JsonSchema",
        ),
    ],
)
def test_a_workload_that_cannot_be_used_is_left_out_in_one_line(packages: Packages, text: str, why: str) -> None:
    workload(packages, text)
    line = f"workload odd of vmlab-odd 1.0 is left out: {why}"
    schema = packages.vmlab("schema")
    assert schema.returncode == 0
    assert "workload-cpu" in json.loads(schema.stdout)["$defs"]
    assert "workload-odd" not in schema.stdout
    assert schema.stderr.startswith(f"vmlab: {line}") and schema.stderr.count("\n") == 1


def test_a_scenario_that_needs_it_is_refused_and_others_are_not(packages: Packages) -> None:
    workload(packages, "x = 1")
    (packages.state / "mine.yaml").write_text(SCENARIO % "odd")
    (packages.state / "ours.yaml").write_text(SCENARIO % "cpu, threads: 1")
    why = "vmlab: workload odd of vmlab-odd 1.0 is left out: AttributeError: module 'odd_kind' has no attribute 'Odd'"
    ours = packages.vmlab("validate", "ours.yaml")
    assert ours.returncode == 0 and why not in ours.stderr
    wrong = packages.vmlab("validate", "mine.yaml")
    words = "the workload odd of vmlab-odd 1.0 is left out, as it cannot be used"
    assert (wrong.returncode, wrong.stderr.splitlines()) == (2, [f"mine.yaml:3:25: {words}", why])


def test_a_workload_takes_no_name_of_ours_or_of_another_package(packages: Packages) -> None:
    workload(packages, WORKLOAD.replace('"odd"', '"cpu"'), "cpu")
    packages.add("vmlab-a", {"vmlab.workloads": {"even": "even:Odd"}}, even=WORKLOAD.replace('"odd"', '"even"'))
    packages.add("vmlab-b", {"vmlab.workloads": {"even": "even:Odd"}})
    done = packages.vmlab("plugins", "--json")
    assert done.returncode == 3
    found = {(one["name"], one["package"]): one["left_out"] for one in json.loads(done.stdout)["plugins"]}
    assert found["cpu", "vmlab"] is None and found["even", "vmlab-a"] is None
    assert found["cpu", "vmlab-odd"] == "the name cpu is taken"
    assert found["even", "vmlab-b"] == "the name even is taken"
    assert done.stderr.count("\n") == 2


def test_a_workload_that_fails_in_a_plan_is_one_line(packages: Packages) -> None:
    workload(packages, WORKLOAD.replace("return Footprint(0, 1.0)", "return 1 / 0"))
    (packages.state / "mine.yaml").write_text(SCENARIO % "odd")
    done = packages.vmlab("plan", "mine.yaml")
    assert done.returncode == 1
    words = "workload odd of vmlab-odd 1.0: footprint failed: ZeroDivisionError: division by zero"
    assert done.stderr == f"vmlab: {words}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FORMAT = 1", "TypeError: odd_format:FORMAT is no ExportFormat"),
        ("FORMAT = ExportFormat(('.odd',))", "ValueError: a format has either write or write_folder, and no options"),
    ],
)
def test_a_format_that_cannot_be_used_is_left_out(packages: Packages, tmp_path: Path, text: str, why: str) -> None:
    before = "from vmlab.plugin.v1.export import ExportFormat\n"
    packages.add("vmlab-odd", {"vmlab.exports": {"odd": "odd_format:FORMAT"}}, odd_format=before + text)
    line = f"vmlab: export format odd of vmlab-odd 1.0 is left out: {why}\n"
    done = packages.vmlab("export", str(RECORDED), "-o", str(tmp_path / "run.csv"))
    assert (done.returncode, done.stderr) == (0, "")
    done = packages.vmlab("export", str(RECORDED), "--format", "odd", "-o", str(tmp_path / "run.odd"))
    words = "vmlab: the export format odd of vmlab-odd 1.0 is left out, as it cannot be used\n"
    assert (done.returncode, done.stderr) == (2, words + line)


def test_a_format_that_fails_leaves_no_file(packages: Packages, tmp_path: Path) -> None:
    text = """
from vmlab.plugin.v1.export import ExportFormat
def write(runs, file):
    file.write(b"half")
    {}["x"]
FORMAT = ExportFormat((".odd",), write)
"""
    packages.add("vmlab-odd", {"vmlab.exports": {"odd": "odd_format:FORMAT"}}, odd_format=text)
    done = packages.vmlab("export", str(RECORDED), "-o", str(tmp_path / "run.odd"))
    assert (done.returncode, done.stderr) == (1, "vmlab: export format odd of vmlab-odd 1.0 failed: KeyError: 'x'\n")
    assert not (tmp_path / "run.odd").exists()


FIGURES = """
from vmlab.plugin.v1.host_figure import *
class Odd:
    title = "odd figures"
    names = ("odd_percent",)
    reads = 0
    def read(self, mono, length):
        self.reads += 1
        return [50.0]
SHOWN = (HostFigure("odd_percent", "odd", "odd", "Odd"),)
SOURCE = FigureSource((GroupMaker(Odd.title, lambda watched: Odd()),), SHOWN)
"""


def figures(packages: Packages, text: str) -> tuple[list[dict[str, float | None]], str]:
    """The ticks of `vmlab top` with a package's figures, and what it said."""
    packages.add("vmlab-odd", {"vmlab.host_figures": {"odd": "odd_figures:SOURCE"}}, odd_figures=text)
    done = packages.vmlab("top", "--json", "--count", "3", "--interval", "100 ms")
    assert done.returncode == 0, done.stderr
    ticks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ticks) == 3 and all(tick["memory_used_bytes"] > 0 for tick in ticks)
    return ticks, "".join(line for line in done.stderr.splitlines(keepends=True) if "odd" in line)


def test_figures_in_order_are_beside_ours(packages: Packages) -> None:
    ticks, said = figures(packages, FIGURES)
    assert [tick["odd_percent"] for tick in ticks] == [50.0] * 3
    assert said == ""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("return [50.0]", "raise KeyError('x')", "no metrics for odd figures here: KeyError: 'x'"),
        ("return [50.0]", "return [50.0, 1.0]", "no metrics for odd figures here: 2 values for 1 names"),
        ("return [50.0]", "return ['much']", "no metrics for odd figures here: ValueError: could not convert"),
        ('"odd_percent",)', '"cpu_user_percent",)', "no metrics for odd figures here: two values are called cpu_user"),
        ('"odd_percent",)', '"Odd %",)', "no metrics for odd figures here: 'Odd %' is no name of a value"),
        ("lambda watched: Odd()", "lambda watched: 1 / 0", "no metrics for odd figures here: host figures odd of"),
        ('HostFigure("odd_percent"', 'HostFigure("disk_await_ms"', "is left out: there is a metric disk_await_ms"),
        ('"Odd"),)', '"Odd", chart="CPU"),)', "is left out: ValueError: odd_percent: charts and tables of stages"),
        ("SOURCE = ", "SOURCE = 1 or ", "is left out: TypeError: odd_figures:SOURCE is no FigureSource"),
    ],
)
def test_figures_that_cannot_be_read_are_left_out(packages: Packages, old: str, new: str, why: str) -> None:
    assert old in FIGURES
    ticks, said = figures(packages, FIGURES.replace(old, new))
    assert all("odd_percent" not in tick for tick in ticks)
    assert why in said and said.count("\n") == 1


def test_figures_that_fail_later_are_unknown_then(packages: Packages) -> None:
    ticks, said = figures(packages, FIGURES.replace("return [50.0]", "return [50.0] if self.reads < 4 else [{}['x']]"))
    assert [tick["odd_percent"] for tick in ticks] == [50.0, None, None]
    assert "no metrics for odd figures (vmlab-odd 1.0) for now: KeyError: 'x'" in said and said.count("\n") == 1
