"""The general query log: as a server wrote it, and the one that is shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.query_log import captured_data, captured_queries, is_select, parse_general_log


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


HEAD = (
    "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-0+deb12u1-log (Debian 12). started with:\n"
    "Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\n"
    "Time\t\t    Id Command\tArgument\n"
)
MYSQL_HEAD = (
    "/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:\n"
    "Tcp port: 3306  Unix socket: /var/run/mysqld/mysqld.sock\n"
    "Time                 Id Command    Argument\n"
)


@pytest.mark.parametrize(
    "command",
    [
        *("Reset stmt", "Kill", "Statistics", "Field List", "Init DB", "Ping", "Change user", "Execute", "Prepare"),
        *("Close stmt", "Long Data", "Binlog Dump", "Binlog Dump GTID", "Register Slave", "Register Replica", "Quit"),
        *("Fetch", "Set option", "Processlist", "Refresh", "Shutdown", "Debug", "Time", "Delayed insert", "Daemon"),
        *("Error", "Sleep", "Create DB", "Drop DB", "Connect Out", "Table Dump", "Reset Connection", "clone".title()),
        "Group Replication Data Stream subscription",
    ],
)
def test_any_command_ends_the_query_before_it(command: str) -> None:
    """The rule: what looks like the beginning of an entry is one, whether its command is known or not."""
    for end in ("\t", "", "\tSELECT 3\nof two lines"):
        log = f"{HEAD}231127 17:00:00\t     5 Query\tSELECT 1\n\t\t     5 {command}{end}\n\t\t     5 Query\tSELECT 2\n"
        assert parse_general_log(log) == [["SELECT 1", "SELECT 2"]]


@pytest.mark.parametrize(
    ("head", "first", "next_"),
    [
        (HEAD, "231127 17:00:00\t", "\t\t"),
        (HEAD, "231127  7:00:00\t", "231127  7:00:01\t"),
        (MYSQL_HEAD, "2020-05-27T05:03:27.500301Z\t", "2020-05-27T05:03:27.543379Z\t"),
        (MYSQL_HEAD, "2023-11-27T17:00:00.000001+09:00\t", "2023-11-27T17:00:00.000002+09:00\t"),
        (MYSQL_HEAD, "2020-05-27T05:03:27.500301Z ", "2020-05-27T05:03:27.543379Z "),
        (MYSQL_HEAD, "2023-11-27 17:00:00\t", "2023-11-27 17:00:01\t"),
        ("", "231127 17:00:00\t", "\t\t"),
    ],
)
def test_the_times_of_all_servers_are_read(head: str, first: str, next_: str) -> None:
    log = f"{head}{first}   11 Connect\troot@localhost on  using Socket\n{next_}   11 Query\tSELECT 1,\n 2\n"
    assert parse_general_log(f"{log}{next_}12345678 Query\tselect 3\n") == [["SELECT 1,\n 2"], ["select 3"]]


def test_a_restart_ends_the_query_before_it_and_its_numbers_are_other_connections() -> None:
    one, other = (
        "\t\t     5 Query\tSELECT 1\n231127 17:00:00\t     6 Query\tSELECT 2\nx\n",
        "\t\t     5 Query\tSELECT 3",
    )
    assert parse_general_log(f"{HEAD}{one}{HEAD}{other}") == [["SELECT 1"], ["SELECT 2\nx"], ["SELECT 3"]]
    assert parse_general_log(f"{HEAD}{one}{MYSQL_HEAD}") == [["SELECT 1"], ["SELECT 2\nx"]]
    # Only all three lines are a head.
    assert parse_general_log(f"{HEAD}{one}{HEAD.splitlines()[2]}") == [
        ["SELECT 1"],
        ["SELECT 2\nx\nTime\t\t    Id Command\tArgument"],
    ]


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\r", "\x1c", "\x1d", "\x1e", "\r\n"])
def test_no_letter_but_a_newline_ends_a_line(letter: str) -> None:
    log = f"{HEAD}231127 17:00:00\t     5 Query\tSELECT 'x{letter}y'\n\t\t     5 Quit\t\n"
    assert parse_general_log(log) == [[f"SELECT 'x{letter}y'"]]


@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT 1", "select*from t", "SELECT(1)", "  \n SELECT 1", "SELECT 1;", "SELECT 1 ; ; -- end"),
        *("(SELECT 1) UNION (SELECT 2)", "((SELECT 1))", "( -- of two\n(SELECT 1) UNION (SELECT 2))"),
        *("/* app */ SELECT 1", "/*a*//*b*/SELECT 1", "-- app\nSELECT 1", "# app\nSELECT 1"),
        "--\tapp\n#\n(SELECT 1)",
        *("/*!40001 SELECT */ 1", "/*M!100100 SELECT 1 */", "SELECT /*!40001 SQL_NO_CACHE */ * FROM t"),
        *(
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "with recursive a (n) as (select 1), b as (select 2) select * from a, b",
        ),
        *(
            "(WITH x AS (SELECT 1) SELECT * FROM x)",
            "WITH x AS (SELECT 1) (SELECT * FROM x)",
            "/*a*/WITH x AS (SELECT ')') SELECT 1",
        ),
        *("WITH x AS (SELECT REPLACE(a, 'b', 'c') FROM t) SELECT * FROM x", "WITH `update` AS (SELECT 1) SELECT 1"),
        *(
            "SELECT 'into'",
            'SELECT "a into b; c"',
            "SELECT `into` FROM t",
            "SELECT 1 /* INTO OUTFILE */",
            "SELECT 'it''s; \\' into'",
        ),
        *("SELECT * FROM t FOR UPDATE", "SELECT * FROM t LOCK IN SHARE MODE", "SELECT /*+ BKA(t) */ 1"),
    ],
)
def test_a_select_is_known_wherever_its_word_stands(statement: str) -> None:
    """The rule: what gives rows and writes nothing is replayed, however it begins."""
    assert is_select(statement)
    assert parse_general_log(f"{HEAD}231127 17:00:00\t     5 Query\t{statement}\n") == [[statement]]


@pytest.mark.parametrize(
    "statement",
    [
        *(
            "",
            "SELECTED",
            "SET @a = 1",
            "-- SELECT 1",
            "# SELECT 1",
            "/* SELECT 1 */",
            "--SELECT 1",
            "/* SELECT 1",
            "'SELECT'",
        ),
        *("INSERT INTO t SELECT 1", "/* SELECT */ UPDATE t SET a = 1", "(DELETE FROM t)", "REPLACE INTO t SELECT 1"),
        *("WITH x AS (SELECT 1) UPDATE t, x SET a = 1", "WITH x AS (SELECT 1) DELETE FROM t", "WITH x AS (SELECT 1)"),
        *("WITH x AS (SELECT 1), y AS (SELECT 2) INSERT INTO t SELECT * FROM x", "WITH x AS (SELECT 1) TABLE x"),
        *("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", "TABLE t", "VALUES (1)", "VALUES ROW(1)"),
        *("EXPLAIN SELECT 1", "SHOW TABLES", "DESCRIBE t", "CREATE TABLE t AS SELECT 1", "DO 1", "CALL p()"),
        *("SELECT * FROM t INTO OUTFILE '/tmp/x'", "SELECT 1 into dumpfile 'x'", "SELECT a INTO @b FROM t"),
        *(
            "SELECT 1 /*! INTO OUTFILE 'x' */",
            "(SELECT 1) UNION (SELECT 2) INTO OUTFILE 'x'",
            "SELECT 1; DELETE FROM t",
        ),
        *("WITH x AS (SELECT 1) SELECT * FROM x INTO OUTFILE 'y'", "SELECT 1; SELECT 2"),
    ],
)
def test_what_writes_or_gives_no_rows_is_left_out(statement: str) -> None:
    assert not is_select(statement)
    assert parse_general_log(f"{HEAD}231127 17:00:00\t     5 Query\t{statement}\n\t\t     5 Query\tSELECT 9") == [
        ["SELECT 9"]
    ]


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
