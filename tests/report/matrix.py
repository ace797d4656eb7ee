"""A run of nine setups by six jobs with two metrics each, with the figures that a publication prints: 216 of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.store.stories import Story
from vmlab.model.scenarios.reference import printed_number, unit_factor

TSV = Path(__file__).parents[1] / "experiments/published/cloud-local-disk.tsv"
SETUPS = {
    "host": "Physical Machine",
    "none": "Linux Virtual Machine (cache=none)",
    "none-4q": "Linux Virtual Machine (cache=none,queues=4)",
    "writeback": "Linux Virtual Machine (cache=writeback)",
    "writeback-4q": "Linux Virtual Machine (cache=writeback,queues=4)",
    "windows-none": "Windows Virtual Machine (cache=none)",
    "windows-none-4q": "Windows Virtual Machine (cache=none,queues=4)",
    "windows-wb": "Windows Virtual Machine (cache=writeback)",
    "windows-wb-4q": "Windows Virtual Machine (cache=writeback,queues=4)",
}
JOBS = {
    "4k-randread": "4KB Random Read",
    "4k-randwrite": "4KB Random Write",
    "4k-read": "4KB Sequential Read",
    "4k-write": "4KB Sequential Write",
    "1m-read": "1MB Sequential Read",
    "1m-write": "1MB Sequential Write",
}
METRICS = {"iops": ("IOPS", "1/s"), "throughput": ("Throughput", "B/s")}
ABSENT = "needs the user's own image"
TABLE = {
    "columns": ["job", "metrics"],
    "rows": ["setup"],
    "metrics": list(METRICS),
    "relative": "percent",
    "baseline": {"setup": "host"},
}


def figures() -> list[dict[str, Any]]:
    """The publication's figures in the form of a scenario's reference."""
    rows = {printed: name for name, printed in SETUPS.items()}
    jobs = {printed: name for name, printed in JOBS.items()}
    metrics = {printed: name for name, (printed, _) in METRICS.items()}
    found: list[dict[str, Any]] = []
    for line in TSV.read_text(encoding="utf-8").splitlines():
        if line.startswith(("# ", "row\t")):
            continue
        row, column, value, unit, kind = line.split("\t")
        job, _, metric = column.partition(" / ")
        figure = {
            "metric": metrics[metric],
            "rows": {"setup": rows[row]},
            "columns": {"job": jobs[job]},
            "value": value,
            "unit": unit,
            "where": f"cloud-local-disk | {row} | {column}",
        }
        found.append(figure | ({"relative": "percent"} if kind == "relative" else {}))
    return found


def tell_matrix(path: Path, *, windows: bool = True) -> Path:
    """The store of a run that measured exactly what was published; without `windows` its points are absent."""
    printed = figures()
    absent = {} if windows else {name: {"absent": ABSENT} for name in SETUPS if name.startswith("windows")}
    said = {
        "axes": {"setup": {"points": absent, "label": "setup"}},
        "reference": {"source": "Test Steps", "host": "E5-2678 v3, RAID10", "figures": printed, "claims": CLAIMS},
    }
    story = Story(path, "disk-matrix", "20261121-143000-disk-matrix-7f3a")
    story.begin({"setup": list(SETUPS), "job": list(JOBS)}, TABLE, size="full", accelerator="kvm", said=said, cells=54)
    for setup in SETUPS:
        for job in JOBS:
            if setup not in absent:
                _cell(story, setup, job, printed)
    return story.end()


def _cell(story: Story, setup: str, job: str, printed: list[dict[str, Any]]) -> None:
    story.start_cell({"setup": setup, "job": job}, guests=1)
    story.measure("job", 60.0)
    for figure in printed:
        if "relative" not in figure and (figure["rows"]["setup"], figure["columns"]["job"]) == (setup, job):
            unit = METRICS[figure["metric"]][1]
            factor = unit_factor(figure["unit"], unit)
            assert factor is not None
            story.measure("job", printed_number(figure["value"]).value * factor, figure["metric"], unit)
    story.end_cell(wall=61.0)


CLAIMS = [
    {
        "say": "Writeback and 4 queues accelerate writes.",
        "metric": "iops",
        "greater": [{"setup": "writeback-4q"}, {"setup": "none"}],
        "each": {"job": ["4k-randwrite", "4k-write", "1m-write"]},
    },
    {
        "say": "Sequential reads of 4 KiB have half the performance.",
        "metric": "throughput",
        "ratio": [{"setup": "none", "job": "4k-read"}, {"setup": "host", "job": "4k-read"}],
        "value": "0.5",
        "tolerance": "20 %",
    },
]
