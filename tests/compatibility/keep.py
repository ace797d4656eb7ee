"""``python -m tests.compatibility.keep RUN``: keeps what this version says of RUN, its events, and the scenarios.

They go to ``releases/VERSION``, once a release; a folder that is there is refused.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path

import vmlab
from tests.compatibility.events import EVENTS, event_lines
from tests.compatibility.promised import KEPT, documents_of
from vmlab.store.archive import pack
from vmlab.store.reader import RunReader

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def main(run: str) -> None:
    """Write the folder of this version. Raises FileExistsError where there is one."""
    folder = KEPT / vmlab.__version__
    opened = vmlab.open_run(run)
    documents = json.dumps(documents_of(run), sort_keys=True).encode()
    folder.mkdir(parents=True)
    (folder / "documents.json.gz").write_bytes(gzip.compress(documents, mtime=0))
    with RunReader(opened.path) as reader, (folder / "run.vmlab").open("wb") as file:
        pack(reader, opened.id, file)
    (folder / EVENTS).write_text(event_lines(), encoding="utf-8")
    (folder / "scenarios").mkdir()
    for scenario in sorted(SCENARIOS.glob("*.yaml")):
        shutil.copyfile(scenario, folder / "scenarios" / scenario.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
