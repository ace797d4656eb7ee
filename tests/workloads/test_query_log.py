"""The general query log that is shipped, and its first lines."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from vmlab.workloads.query_log import captured_data, captured_queries, captured_rows, selects_in


@pytest.fixture
def log(captured: Path) -> str:
    """The first lines of the shipped log."""
    return (captured / "general.log").read_text()


def test_each_connection_has_its_own_queries_in_order(log: str) -> None:
    connections = selects_in(log)
    assert len(connections) == 4
    for queries in connections:
        assert queries[:2] == (
            "SELECT @@SESSION.sql_mode",
            "SELECT option_name, option_value FROM wp_options WHERE autoload = 'yes'",
        )
    assert all(query.lstrip().startswith("SELECT") for queries in connections for query in queries)
    # What is neither a SELECT nor a query is left out; no SELECT is.
    assert sum(map(len, connections)) == sum("Query\tSELECT" in line for line in log.splitlines())


def test_a_query_keeps_its_line_breaks(log: str) -> None:
    queries = [query for queries in selects_in(log) for query in queries]
    broken = next(query for query in queries if "wp_term_taxonomy" in query and "\n" in query)
    assert all(line in log for line in broken.splitlines())


def test_the_shipped_log_is_that_of_six_hundred_pages() -> None:
    connections = captured_queries()
    assert len(connections) == 600
    assert sum(map(len, connections)) == 21_615
    whole = hashlib.sha256(json.dumps(connections).encode()).hexdigest()
    assert whole == "5cd1a12bf588495f56f3c65a2c78fd52d6b48e1daf88a2e9585b11fe852fc400"


def test_the_shipped_data_begins_with_the_blogs_tables_and_ends_with_its_posts() -> None:
    data = captured_data().decode()
    assert "CREATE TABLE `wp_posts`" in data
    assert "FROM seq_1_to_2000 AS p" in data
    assert data.rstrip().endswith(";")
    assert data.endswith((Path(__file__).parents[2] / "packaging/query_log/posts.sql").read_text())


def test_each_shipped_query_has_its_rows() -> None:
    assert [len(one) for one in captured_rows()] == [len(one) for one in captured_queries()]
    assert sum(map(sum, captured_rows())) == 196_147
