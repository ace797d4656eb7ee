"""The general query log: as a server wrote it, and the one that is shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.query_log import captured_data, captured_queries, parse_general_log


@pytest.fixture
def log(captured: Path) -> str:
    """The first lines of the shipped log."""
    return (captured / "general.log").read_text()


def test_each_connection_has_its_own_queries_in_order(log: str) -> None:
    connections = parse_general_log(log)
    assert len(connections) == 4
    for queries in connections:
        assert queries[:2] == [
            "SELECT @@SESSION.sql_mode",
            "SELECT option_name, option_value FROM wp_options WHERE autoload = 'yes'",
        ]
    assert all(query.lstrip().startswith("SELECT") for queries in connections for query in queries)
    # What is neither a SELECT nor a query is left out; no SELECT is.
    assert sum(map(len, connections)) == sum("Query\tSELECT" in line for line in log.splitlines())


def test_a_query_keeps_its_line_breaks(log: str) -> None:
    queries = [query for queries in parse_general_log(log) for query in queries]
    broken = next(query for query in queries if "wp_term_taxonomy" in query and "\n" in query)
    assert all(line in log for line in broken.splitlines())


def test_a_line_of_no_entry_is_told(log: str) -> None:
    lines = log.splitlines()
    with pytest.raises(WorkloadError, match="line 4 of the general query log cannot be read: SELECT 1"):
        parse_general_log("\n".join([*lines[:3], "SELECT 1"]))


def test_the_shipped_log_is_that_of_six_hundred_pages() -> None:
    connections = captured_queries()
    assert len(connections) == 600
    assert sum(map(len, connections)) == 21_615
    assert len({query for queries in connections for query in queries}) > 3_000


def test_the_shipped_data_begins_with_the_blogs_tables_and_ends_with_its_posts() -> None:
    data = captured_data().decode()
    assert "CREATE TABLE `wp_posts`" in data
    assert "FROM seq_1_to_2000 AS p" in data
    assert data.rstrip().endswith(";")
    assert data.endswith((Path(__file__).parents[2] / "packaging/query_log/posts.sql").read_text())
