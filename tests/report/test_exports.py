"""Exports, each read back by a program that is made to read it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import junitparser
import polars
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_format

from tests.store.stories import Story
from tests.tui.conftest import RECORDED
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.results import RawOutput
from vmlab.report.exports import fio_folder, junit, openmetrics, parquet, perfkit, tidy, tidy_tables
from vmlab.report.exports.export_format import export_formats, format_names, of_ending
from vmlab.report.exports.openmetrics_names import FamilyNames, labels_text
from vmlab.report.exports.tidy import Exported, Tidy
from vmlab.store.reader import RunReader
from vmlab.store.samples import samples

CAPTURED = Path(__file__).parents[1] / "workloads/captured"


@pytest.fixture(scope="module")
def recorded() -> RunReader:
    return RunReader(RECORDED)


@pytest.fixture(scope="module")
def document(recorded: RunReader) -> RunDocument:
    return run_document(recorded)


def figures(document: RunDocument) -> list[tuple[int, str, str, float]]:
    """Cell, workload, metric and value of every measurement."""
    return [
        (cell.cell, one.workload, one.metric, one.value)
        for cell in document.cells
        for one in cell.measurements
        if one.value is not None
    ]


def parsed(file: BytesIO) -> list[Metric]:
    """The metric families of an OpenMetrics text."""
    return list(text_string_to_metric_families(file.getvalue().decode()))  # type: ignore[no-untyped-call]


def values_of(frame: polars.DataFrame) -> list[tuple[Any, ...]]:
    return frame.filter(polars.col("workload").is_not_null())["cell", "workload", "metric", "value"].rows()


def test_polars_reads_the_measurements_from_csv_and_parquet(recorded: RunReader, document: RunDocument) -> None:
    text, packed = BytesIO(), BytesIO()
    tidy_tables.write_csv(tidy.measurements(Exported(recorded)), text)
    parquet.write_parquet(tidy.measurements(Exported(recorded)), packed)
    by_text, by_bytes = polars.read_csv(text.getvalue()), polars.read_parquet(packed.getvalue())
    assert values_of(by_bytes) == figures(document)
    assert values_of(by_text) == figures(document)
    assert by_bytes.columns == by_text.columns
    assert by_bytes.schema["axis_tiles"] == polars.Int64
    assert by_bytes["axis_cache"].unique().sort().to_list() == ["none", "writeback"]
    walls = by_bytes.filter(polars.col("metric") == "wall_seconds")["value"].to_list()
    assert walls == [cell.wall_seconds for cell in document.cells]


def test_polars_reads_the_samples_with_their_cells_and_phases(recorded: RunReader) -> None:
    packed = BytesIO()
    parquet.write_parquet(tidy.sampled(Exported(recorded)), packed)
    frame = polars.read_parquet(packed.getvalue())
    known = [sample for _, sample in samples(recorded)]
    assert len(frame) == sum(value == value for sample in known for value in sample.values)
    user = frame.filter(polars.col("metric") == "cpu_user_percent", polars.col("instance").is_null())
    assert user["value"].to_list() == pytest.approx([one.get("cpu_user_percent") for one in known])
    executed = user.filter(polars.col("phase") == "execute")
    assert executed.group_by("axis_cache", maintain_order=True).len()["axis_cache"].to_list() == ["none", "writeback"]
    assert executed["value"].mean() == pytest.approx(92, abs=2)
    assert frame.filter(polars.col("metric") == "guest_cpu_percent")["instance"].n_unique() == 4


def story(path: Path) -> Story:
    """A run with an axis of hostile values, a workload that failed, and a cell that was not begun."""
    told = Story(path / "run.sqlite").begin(
        {"setup": ['a "b"\n,\\', "<c>&"]}, {"columns": "setup", "rows": "workloads"}, cells=3
    )
    told.start_cell({"setup": 'a "b"\n,\\'})
    told.measure("web", 9.5)
    told.end_cell("invalid", ["clients started 700 ms apart"], wall=10.0)
    told.start_cell({"setup": "<c>&"})
    told.measure("web", 4.0)
    told.fail("mail", "3 of 600 mails were not delivered\x1b[2J")
    told.end_cell("failed", ["tile 1 mail: 3 of 600"], wall=12.0)
    return told


def test_a_failed_workload_has_a_row_without_a_value(tmp_path: Path) -> None:
    with RunReader(story(tmp_path).end("failed", 1)) as reader:
        table = tidy.measurements(Exported(reader))
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        text = BytesIO()
        tidy_tables.write_csv(tidy.measurements(Exported(reader)), text)
    (failed,) = [row for row in rows if row["workload"] == "mail"]
    assert (failed["workload_outcome"], failed["metric"], failed["value"]) == ("failed", "run_time", None)
    frame = polars.read_csv(text.getvalue())
    assert frame["axis_setup"].unique(maintain_order=True).to_list() == ['a "b"\n,\\', "<c>&"]
    assert frame.filter(polars.col("workload") == "mail")["value"].to_list() == [None]


def test_perfkit_samples_have_its_fields(recorded: RunReader, document: RunDocument) -> None:
    file = BytesIO()
    perfkit.write_perfkit([Exported(recorded)], file)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    fields = {"metric", "value", "unit", "metadata", "timestamp", "test", "product_name", "run_uri", "sample_uri"}
    assert all(line.keys() == fields for line in lines)
    assert len({line["sample_uri"] for line in lines}) == len(lines)
    found = [(one["metadata"]["cell"], one["metadata"].get("workload"), one["metric"], one["value"]) for one in lines]
    assert [row for row in found if row[1] is not None] == figures(document)
    assert lines[0]["metadata"]["axis_cache"] == "none"
    assert lines[0]["metadata"]["host"]["kernel"] == document.run.host["kernel"]


def test_prometheus_reads_the_measurements(recorded: RunReader, document: RunDocument) -> None:
    file = BytesIO()
    openmetrics.write_measurements([Exported(recorded)], file)
    families = {family.name: family for family in parsed(file)}
    times = [
        (one.labels["axis_cache"], one.value)
        for one in families["vmlab_run_time_seconds"].samples
        if one.labels["workload"] == "web"
    ]
    web = [(cell, value) for cell, name, metric, value in figures(document) if (name, metric) == ("web", "run_time")]
    assert times == [("none", web[0][1]), ("writeback", web[1][1])]
    assert families["vmlab_run_time_seconds"].unit == "seconds"


def test_prometheus_reads_the_samples_with_their_times(recorded: RunReader) -> None:
    file = BytesIO()
    openmetrics.write_samples([Exported(recorded)], file)
    families = {family.name: family for family in parsed(file)}
    family = families["vmlab_disk_util_percent"]
    util = [one for one in family.samples if "part" not in one.labels]
    util.sort(key=lambda one: float(one.timestamp or 0))
    known = [(sample.wall, sample.get("disk_util_percent")) for _, sample in samples(recorded)]
    kept = [(wall, value) for wall, value in known if value == value]
    assert [one.value for one in util] == pytest.approx([value for _, value in kept])
    assert [float(one.timestamp or 0) for one in util] == pytest.approx([wall for wall, _ in kept], abs=0.1)
    assert {one.labels.get("axis_cache") for one in util} >= {"none", "writeback"}


def test_prometheus_reads_hostile_labels(tmp_path: Path) -> None:
    file = BytesIO()
    with RunReader(story(tmp_path).end("failed", 1)) as reader:
        openmetrics.write_measurements([Exported(reader)], file)
    (times,) = [one for one in parsed(file) if "run_time" in one.name]
    assert [one.labels["axis_setup"] for one in times.samples] == ['a "b"\n,\\', "<c>&"]


NAMED_ALIKE = {
    "latency": (1.0, "s", "vmlab_latency_seconds"),
    "latency_seconds": (2.0, "1", "vmlab_latency_seconds_2"),
    "run_info": (3.0, "1", "vmlab_run_info_2"),
    "p99.9": (4.0, "s", "vmlab_p99_9_seconds"),
    "p99_9": (5.0, "s", "vmlab_p99_9_2_seconds"),
    "rate": (6.0, "1/s", "vmlab_rate_per_second"),
    "rate_per_second": (7.0, "1/s", "vmlab_rate_per_second_2_per_second"),
}


def test_metrics_whose_names_end_up_alike_have_families_of_their_own(tmp_path: Path) -> None:
    told = Story(tmp_path / "run.sqlite").begin({})
    told.start_cell({})
    told.measure("job", 9.0)
    for metric, (value, unit, _) in NAMED_ALIKE.items():
        told.measure("job", value, metric, unit)
    told.end_cell("passed", [], wall=10.0)
    file = BytesIO()
    with RunReader(told.end()) as reader:
        openmetrics.write_measurements([Exported(reader)], file)
    found = {family.name: [one.value for one in family.samples] for family in parsed(file)}
    assert {name: found[name] for _, _, name in NAMED_ALIKE.values()} == {
        name: [value] for value, _, name in NAMED_ALIKE.values()
    }


def test_thousands_of_names_that_end_up_alike_have_families_of_their_own() -> None:
    names, metrics = FamilyNames(), [f"a{chr(0x4E00 + number)}" for number in range(20_000)]
    found = [names.of(metric, "1")[0] for metric in metrics]
    assert found[:3] == ["vmlab_a_", "vmlab_a__2", "vmlab_a__3"] and len(set(found)) == len(metrics)
    assert [names.of(metric, "1")[0] for metric in metrics] == found
    labels = labels_text(dict.fromkeys(metrics, ""))
    assert labels.startswith('{a_="",a__2=""') and labels.count("=") == len(metrics)


def test_junit_has_a_case_for_each_workload_and_cell(tmp_path: Path) -> None:
    file = BytesIO()
    with RunReader(story(tmp_path).end("failed", 1, "2 cells did not pass")) as reader:
        junit.write_junit([Exported(reader)], file)
    suites = junitparser.JUnitXml.fromstring(file.getvalue())
    assert (suites.tests, suites.failures, suites.errors) == (6, 2, 2)
    cases = {(case.classname, case.name): case for suite in suites for case in suite}
    mail = cases["tile.setup <c>&", "mail of tile 1"].result[0]
    assert isinstance(mail, junitparser.Failure)
    assert (mail.type, mail.message) == ("failed", "3 of 600 mails were not delivered\\x1b[2J")
    invalid = cases['tile.setup a "b"\\n,\\', "cell 1"].result[0]
    assert isinstance(invalid, junitparser.Error)
    assert (invalid.type, invalid.message) == ("invalid", "clients started 700 ms apart")
    assert cases["tile.setup <c>&", "web of tile 1"].is_passed
    assert cases["tile", "1 cell"].result[0].message == "2 cells did not pass"


def test_junit_of_a_run_that_passed_has_no_failure(recorded: RunReader) -> None:
    file = BytesIO()
    junit.write_junit([Exported(recorded)], file)
    suites = junitparser.JUnitXml.fromstring(file.getvalue())
    assert (suites.tests, suites.failures, suites.errors) == (10, 0, 0)


def fio_run(path: Path) -> Path:
    """Two cache modes with random reads and mixed blocks each, by recorded reports."""
    told = Story(path / "run.sqlite").begin({"job": ["r", "m"], "cache": ["none", "writeback"]}, cells=4)
    for job, rw in (("r", "randread"), ("m", "randrw")):
        for cache in ("none", "writeback"):
            params = {"rw": rw, "depth": 16, "jobs": 2, "block": 4096}
            told.start_cell(
                {"job": job, "cache": cache}, settings={"workloads": {"../x": {"kind": "fio", "params": params}}}
            )
            text = (CAPTURED / f"fio-{rw}.json").read_text()
            told.writer.raw(told.cells, RawOutput("../x", 1, "vm", "fio", text))
            told.writer.raw(told.cells, RawOutput("../x", 1, "vm", "stderr", "nothing"))
            told.end_cell(wall=1.0)
    return told.end()


def test_fio_reports_lie_untouched_where_fio_plot_finds_them(tmp_path: Path) -> None:
    with RunReader(fio_run(tmp_path)) as reader:
        assert fio_folder.write_fio(Exported(reader), tmp_path / "out") == 4
        with pytest.raises(RefusedError, match="is not empty"):
            fio_folder.write_fio(Exported(reader), tmp_path / "out")
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.json"))
    place = "-x_tile-1_repeat-1_block-4096_cache-"
    files = ("randread-16-2.json", "randrw-16-2.json")
    assert found == [f"{place}{cache}/{file}" for cache in ("none", "writeback") for file in files]
    folder = tmp_path / "out" / f"{place}none"
    assert (folder / files[0]).read_bytes() == (CAPTURED / "fio-randread.json").read_bytes()
    drawn = tmp_path / "drawn.png"
    plot = [sys.executable, "-m", "fio_plot", "-i", str(folder), "-T", "t", "-l", "-r", "randread"]
    subprocess.run([*plot, "-d", "16", "-n", "2", "-o", str(drawn)], check=True, timeout=240, cwd=tmp_path)
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_a_run_without_fio_says_so(recorded: RunReader, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no report of fio"):
        fio_folder.write_fio(Exported(recorded), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def hostile(folder: Path) -> RunReader:
    told = Story(folder / "run.sqlite").begin({"setup": ["=1+1", "-5"]})
    told.start_cell({"setup": "=1+1"})
    told.measure("=cmd|calc!A1", 1.0)
    told.measure("a\x1b[2Jb", 2.0)
    told.end_cell("passed", [], wall=3.0)
    return RunReader(told.end("passed", 0))


def test_csv_guards_formulas_unless_it_is_for_programs(tmp_path: Path) -> None:
    with hostile(tmp_path) as reader:
        guarded, plain = BytesIO(), BytesIO()
        tidy_tables.write_csv(tidy.measurements(Exported(reader)), guarded)
        tidy_tables.write_csv(tidy.measurements(Exported(reader)), plain, guarded=False)
    assert b",'=cmd|calc!A1," in guarded.getvalue() and b",'=1+1," in guarded.getvalue()
    assert b",=cmd|calc!A1," in plain.getvalue() and b"'" not in plain.getvalue()
    assert tidy_tables._guarded("-a") == "'-a"
    assert tidy_tables._guarded(-5.0) == -5.0


@pytest.mark.parametrize(
    "text",
    [
        *(
            "7.2.22",
            "9.0.0",
            "8.2",
            "1e5",
            "1E+5",
            "007",
            "0x1F",
            "0b1",
            "0o7",
            "-5",
            "+5",
            " 5 ",
            "5 %",
            "$5",
            "1_000",
            "1,5",
        ),
        *(
            "1.",
            ".5",
            "1.e3",
            "10.0.0.1",
            "2026-11-27",
            "27/11/2026",
            "27.11.26",
            "20261127",
            "2026-11-27T10:00:00Z",
            "1/2",
        ),
        *(
            "2026-11-27 10:00:00+01:00",
            "12:30",
            "12:30:00.5",
            "1-Mar",
            "Nov 27",
            "27 November 2026",
            "mar1",
            "11-27",
            "(5)",
        ),
        *(
            "true",
            "FALSE",
            "yes",
            "no",
            "t",
            "F",
            "y",
            "N",
            "inf",
            "-Infinity",
            "nan",
            "NaN",
            "NULL",
            "NA",
            "n/a",
            "None",
            "<NA>",
        ),
    ],
)
def test_text_that_readers_take_for_something_else_is_text_in_csv(text: str) -> None:
    """The rule: a value of a text column is read as text, whatever the rest of the column is.

    Tried by hand with DuckDB 2.0.1, pandas, Polars and Arrow, which guess by the values. Polars is at hand here.
    """
    rows = iter([(text, 1.0, text)] * 3)
    file, plain = BytesIO(), BytesIO()
    tidy_tables.write_csv(Tidy({"host": "text", "value": "number", "unit": "text"}, rows), file)
    frame = polars.read_csv(file.getvalue(), try_parse_dates=True)
    assert frame["host"].to_list() == [f"'{text}"] * 3 and frame.schema["value"] == polars.Float64
    tidy_tables.write_csv(Tidy({"host": "text"}, iter([(text,)])), plain, guarded=False)
    assert plain.getvalue().decode().splitlines()[1].strip('"') == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "none",
            "off",
            "on",
            "writeback",
            "6.1.0-18-amd64",
            "20261121-143000-tile-7f3a",
            "web",
            "64k",
            "host-1",
            "may",
            "x1",
        ),
        *(
            "decade",
            "Intel(R) Xeon(R) CPU @ 2.30GHz",
            "no-cache",
            "e5",
            "disk-matrix",
            "naive",
            "it's",
            "node 3",
            "q35",
        ),
    ],
)
def test_other_text_is_left_as_it_is_in_csv(text: str) -> None:
    assert tidy_tables._guarded(text) == text


@pytest.mark.parametrize("end", ["", "\N{BULLET}", "x", "e5"])
@pytest.mark.parametrize("begin", ["", "1", "1 jan", "0x"])
@pytest.mark.parametrize("letters", ["1", " ", "-", "e", "a", "1 ", "jan"])
def test_no_text_takes_the_square_of_its_length(begin: str, letters: str, end: str) -> None:
    text = f"{begin}{letters * 400_000}{end}"
    assert tidy_tables._guarded(text) in (text, f"'{text}")


def test_units_are_left_as_they_are_in_csv() -> None:
    file = BytesIO()
    tidy_tables.write_csv(Tidy({"unit": "text"}, iter([("1",), ("s",)])), file)
    assert file.getvalue() == b"unit\n1\ns\n"


def _several(tmp_path: Path) -> RunReader:
    """Two repeats of one place, of whose figures some share workload, tile and metric."""
    told = Story(tmp_path / "run").begin({"a-b": [1], "a_b": [2]})
    for repeat in (1, 2):
        told.start_cell({"a-b": 1, "a_b": 2}, repeat)
        told.measure("job", 1.0, "requests", "1")
        told.measure("job", 2.0, "requests", "1")
        told.measure("job", 3.0)
        told.end_cell("passed", [], wall=3.0)
    return RunReader(told.end("passed", 0))


def test_no_two_entries_of_an_export_have_one_id(tmp_path: Path) -> None:
    """The rule: what a format knows an entry by is unique in a file, and the same in each export of a run."""
    with _several(tmp_path) as reader:
        exports = []
        for _ in range(2):
            lines, prom, xml = BytesIO(), BytesIO(), BytesIO()
            perfkit.write_perfkit([Exported(reader)], lines)
            openmetrics.write_measurements([Exported(reader)], prom)
            junit.write_junit([Exported(reader)], xml)
            exports.append((lines.getvalue(), prom.getvalue(), xml.getvalue()))
    assert exports[0] == exports[1]
    jsonl, text, suites = exports[0]
    ids = [json.loads(line)["sample_uri"] for line in jsonl.splitlines()]
    assert len(set(ids)) == len(ids) == 2 * 4
    series = [line.rpartition(" ")[0] for line in text.decode().splitlines() if not line.startswith("#")]
    assert len(set(series)) == len(series)
    assert 'axis_a_b="1",axis_a_b_2="2"' in text.decode()
    assert sum('reading="2"' in one for one in series) == 2
    cases = [(case.classname, case.name) for suite in junitparser.JUnitXml.fromstring(suites) for case in suite]
    assert len(set(cases)) == len(cases) == 4


def test_figures_of_no_workload_are_told_apart_by_their_guest(
    recorded: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the percentiles of guests' disks, and two guests of the host's own that have one name."""
    columns = tidy.measurements(Exported(recorded)).columns
    guests = ["db-a", "db-b", "web", "web"]
    named = [
        dict.fromkeys(columns) | {"run": "r", "cell": 1, "guest": guest, "metric": "m", "unit": "s", "value": 1.0}
        for guest in guests
    ]
    rows = [tuple(one[name] for name in columns) for one in named]
    monkeypatch.setattr(tidy, "measurements", lambda run: Tidy(columns, iter(rows)))
    file = BytesIO()
    perfkit.write_perfkit([Exported(recorded)], file)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["metadata"]["guest"] for line in lines] == guests
    assert len({line["sample_uri"] for line in lines}) == 4


def test_no_export_has_a_control_character(tmp_path: Path) -> None:
    with hostile(tmp_path) as reader:
        text, prom, xml = BytesIO(), BytesIO(), BytesIO()
        tidy_tables.write_csv(tidy.measurements(Exported(reader)), text)
        openmetrics.write_measurements([Exported(reader)], prom)
        openmetrics.write_samples([Exported(reader)], prom)
        junit.write_junit([Exported(reader)], xml)
    for file in (text, prom, xml):
        assert all(sign >= 32 or sign == 10 for sign in file.getvalue()), file.getvalue()
    assert b"a\\x1b[2Jb" in text.getvalue()


def test_a_figure_says_where_and_when_it_was_measured(recorded: RunReader, document: RunDocument) -> None:
    run, host = document.run, document.run.host
    for table in (tidy.measurements(Exported(recorded)), tidy.sampled(Exported(recorded))):
        text, packed = BytesIO(), BytesIO()
        first = Tidy(table.columns, islice(table.rows, 3))
        rows = list(first.rows)
        tidy_tables.write_csv(Tidy(table.columns, iter(rows)), text)
        parquet.write_parquet(Tidy(table.columns, iter(rows)), packed)
        frame = polars.read_parquet(packed.getvalue())
        names = ("host", "kernel", "qemu", "libvirt", "accelerator")
        wanted = (host["hostname"], host["kernel"], host["qemu"], host["libvirt"], run.accelerator)
        assert frame.select(names).row(0) == wanted
        by_csv = polars.read_csv(text.getvalue())
        assert by_csv.select(names).row(0) == tuple(tidy_tables._guarded(word) for word in wanted)
        assert by_csv["qemu"][0] == f"'{host['qemu']}"
        assert frame.schema["started"] == polars.Datetime("ms", "UTC")
        moment = datetime.fromisoformat(str(run.started))
        assert abs((frame["started"][0] - moment).total_seconds()) < 0.001
        by_text = polars.read_csv(text.getvalue(), try_parse_dates=True)
        assert by_text["started"].to_list() == frame["started"].to_list()
        if "time" in frame.columns:
            assert frame.schema["time"] == polars.Datetime("ms", "UTC")
            assert by_text["time"].to_list() == frame["time"].to_list()


def test_series_have_their_run_in_an_info_metric_and_as_a_label_where_asked(recorded: RunReader) -> None:
    def written(write: Any, **how: bool) -> dict[str, Metric]:
        file = BytesIO()
        write([Exported(recorded)], file, **how)
        return {family.name: family for family in parsed(file)}

    run = run_document(recorded).run
    families = written(openmetrics.write_measurements)
    (info,) = families["vmlab_run_info"].samples
    assert info.labels["run"] == run.id
    assert info.labels["kernel"] == run.host["kernel"]
    series = families["vmlab_run_time_seconds"].samples
    assert not any({"run", "kernel", "started"} & one.labels.keys() for one in series)
    series = written(openmetrics.write_measurements, run_label=True)["vmlab_run_time_seconds"].samples
    assert {one.labels["run"] for one in series} == {run.id}
    series = written(openmetrics.write_samples)["vmlab_disk_util_percent"].samples
    assert {one.labels["run"] for one in series} == {run.id}


def test_measurements_are_what_textfile_collectors_read(recorded: RunReader) -> None:
    file = BytesIO()
    openmetrics.write_measurements([Exported(recorded)], file)
    lines = file.getvalue().decode().splitlines()
    # The older format knows neither the type info nor that of a unit; it reads lines of other words as comments.
    assert {line.split()[3] for line in lines if line.startswith("# TYPE ")} == {"gauge"}
    families = {one.name: one for one in older_format("\n".join(lines))}
    assert len(families["vmlab_run_time_seconds"].samples) == len(
        [line for line in lines if line.startswith("vmlab_run_time_seconds{")]
    )


def test_every_format_writes_the_recorded_run(recorded: RunReader, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    formats = export_formats()
    names = ["benchstat", "csv", "fio", "junit", "openmetrics", "parquet", "perfkit", "vmlab"]
    assert list(formats) == format_names() == names
    for name, one in formats.items():
        for number, write in enumerate(write for write in (one.write, one.write_samples) if write is not None):
            with (tmp_path / f"{name}.{number}").open("wb") as file:
                write([Exported(recorded)], file)
            assert (tmp_path / f"{name}.{number}").stat().st_size > 0
        assert one.write_folder is None or name == "fio"
        assert all(of_ending(ending) == name for ending in one.endings)
    assert of_ending(".CSV") == "csv" and of_ending(".txt") is None
