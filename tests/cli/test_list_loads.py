"""`vmlab ls` is asked often, and loads neither models nor stores where nothing is new."""

import os
import subprocess
import sys
from pathlib import Path

_LISTS = """
import sys
from vmlab.cli.main import command_line
assert command_line(["ls"]) == 0
print(*sorted({"pydantic", "sqlite3", "lxml", "textual", "rich", "asyncio"} & set(sys.modules)))
"""


def test_the_list_of_runs_loads_what_it_needs(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _LISTS], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "", done.stdout
