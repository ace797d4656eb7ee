"""A process with the words of a run's launcher: ``python -m tests.lab.programs.decoy RUN FOLDER [FILE]``.

Holds the lock of a file, if one is named, until its standard input ends.
"""

import contextlib
import fcntl
import sys
from pathlib import Path


def main() -> None:
    """Hold it."""
    with contextlib.ExitStack() as holding:
        for name in sys.argv[3:]:
            fcntl.flock(holding.enter_context(Path(name).open("w")), fcntl.LOCK_EX)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
