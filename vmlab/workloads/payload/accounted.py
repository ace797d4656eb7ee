"""Runs a program, and prints what the kernel counted for it and which files it had open.

One JSON argument: ``argv``; ``folder`` and ``files``: how many different files below the folder are to be seen open
(0 looks for none). The program has this one's standard output, for its error output too. Ends with a line
``{"status": N, "seconds": S, "read": BYTES, "written": BYTES, "open": {PATH: DIRECT}}``: what the program and its
children had from and gave to storage (getrusage(2); bytes written to the page cache count as given), and for each file
that was seen open whether it was open with O_DIRECT. It exits as the program did.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

O_DIRECT = os.O_DIRECT
PR_SET_PDEATHSIG = 1
BLOCK = 512
PAUSE = 0.03


def family(root: int) -> list[int]:
    """The process and all that descend from it."""
    found = [root]
    for process in found:
        try:
            children = Path(f"/proc/{process}/task/{process}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in children.split()]
    return found


def open_files(process: int, folder: str) -> dict[str, bool]:
    """The files below `folder` that a process has open, and whether it has them with O_DIRECT."""
    found = {}
    try:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            try:
                path = str(descriptor.readlink())
                if path.startswith(f"{folder}/"):
                    said = Path(f"/proc/{process}/fdinfo/{descriptor.name}").read_text()
                    flags = int(said.split("flags:", 1)[1].split()[0], 8)
                    found[path] = bool(flags & O_DIRECT)
            except OSError:
                continue
    except OSError:
        pass
    return found


def die_with_parent() -> None:
    """In the child: if this program is killed, the program that it runs is killed too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    options = json.loads(sys.argv[1])
    seen: dict[str, bool] = {}
    began = time.monotonic()
    process = subprocess.Popen(options["argv"], stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
    while len(seen) < options["files"]:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None:
            break
        for member in family(process.pid):
            seen.update(open_files(member, options["folder"]))
        time.sleep(PAUSE)
    status = process.wait()
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    account = {"read": used.ru_inblock * BLOCK, "written": used.ru_oublock * BLOCK, "open": seen}
    sys.stdout.write("\n" + json.dumps({"status": status, "seconds": seconds, **account}) + "\n")
    sys.stdout.flush()
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
