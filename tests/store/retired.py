"""Events of kinds that earlier versions wrote, put into a store as these wrote them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def add_retired(store: Path, kind: str, *, cell: int, mono: float, **fields: Any) -> None:
    """Add one at the end of a closed store."""
    body = {"kind": kind, "wall": mono, "mono": mono, "cell": cell, **fields}
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(
            "INSERT INTO events (wall, mono, kind, cell, body) VALUES (?, ?, ?, ?, ?)",
            (mono, mono, kind, cell, json.dumps(body)),
        )
