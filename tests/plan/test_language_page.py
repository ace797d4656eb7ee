"""The reference page of the language says what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from tests.plan.language_page import PAGE as KEYS
from tests.plan.language_page import current
from vmlab.model.run import CACHE_MODES
from vmlab.model.scenarios.axis import RESERVED_NAMES
from vmlab.plan.planning import validate_all
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.scenario_file.yaml_text import MOST_BYTES, MOST_NESTING, MOST_NODES

PAGE = KEYS.with_name("scenario-language.md")


def test_the_tables_are_those_of_the_models() -> None:
    page = KEYS.read_text()
    assert page == current(page), "run `python -m tests.plan.language_page`"


JOB = "name: job\nguests: {vm: {memory: 512 MiB}}\nworkloads: {job: {kind: cpu, on: vm, threads: 1}}\n"
FLOW = (
    "name: flow\nguests: {near: {memory: 512 MiB}, far: {memory: 512 MiB}}\n"
    "workloads: {flow: {kind: iperf3, from: near, to: far}}\n"
)


def test_the_examples_are_scenarios() -> None:
    found = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    example, places, way, bare, points, host, disk, small, size, *_ = found
    assert validate_all(read(Path("page"), example + size)).cells == {"published": 4, "full": 4, "demo": 2}
    assert validate_all(read(Path("page"), FLOW + way)).cells == {"full": 3}
    assert validate_all(read(Path("page"), FLOW.replace("far", "server") + bare)).cells == {"full": 2}
    having_data = JOB.replace("512 MiB", "512 MiB, data: 1 GiB")
    assert validate_all(read(Path("page"), having_data + places)).cells == {"full": 4}
    assert validate_all(read(Path("page"), JOB + points)).cells == {"full": 5}
    assert validate_all(read(Path("page"), JOB + host)).cells == {"full": 2}
    assert validate_all(read(Path("page"), JOB + disk)).cells == {"full": 1}
    assert validate_all(read(Path("page"), JOB + small)).cells == {"full": 1}


def test_bounds_and_reserved_words_are_the_program_s() -> None:
    page = PAGE.read_text()
    assert f"{MOST_NODES:,} values, {MOST_NESTING} levels and {MOST_BYTES // 1024} KiB" in page
    assert all(f"`{word}`" in page for word in (*RESERVED_NAMES, *CACHE_MODES))
