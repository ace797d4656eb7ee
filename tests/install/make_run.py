"""Writes an exported run, for the checks that import one: ``make_run.py FILE``."""

import os
import sys
import tempfile
from pathlib import Path

RUN = "20261121-143000-tile-aaaa"


def main(target: Path) -> None:
    """Record a run of two cells and pack it."""
    from tests.store.stories import Story
    from vmlab.cli.main import command_line
    from vmlab.model.places import runs_folder

    story = Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    story.cell({"cache": "writeback"}, {"web": 4.0}, wall=5.0)
    story.end()
    assert command_line(["export", RUN, "-o", str(target)]) == 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        main(Path(sys.argv[1]))
