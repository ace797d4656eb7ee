"""Counts the rows of each captured query, by a MariaDB of the guest image's version in which nothing else is.

::

    .venv/bin/python packaging/query_log/count_rows.py SOCKET

MariaDB's C library has to be found. The counts are written beside the log, as lists by connection.
"""

import json
import lzma
import subprocess
import sys
from pathlib import Path

from vmlab.workloads import query_log
from vmlab.workloads.payload.replay_client import Connection


def main(socket: str) -> None:
    shell = ["mariadb", "--socket", socket]
    subprocess.run([*shell, "-e", "CREATE DATABASE replay CHARACTER SET utf8mb4"], check=True)
    subprocess.run([*shell, "replay"], input=query_log.captured_data(), stdout=subprocess.DEVNULL, check=True)
    connection = Connection({"address": "", "port": 0, "socket": socket, "user": "root", "database": "replay"})
    rows = [[connection.ask(query.encode(), False)[0] for query in one] for one in query_log.captured_queries()]
    text = json.dumps(rows, separators=(",", ":")).encode()
    (Path(query_log.__file__).with_name("rows.json.xz")).write_bytes(lzma.compress(text, preset=9))


if __name__ == "__main__":
    main(sys.argv[1])
