"""Runs inside a guest behind the start line: copies a tree there, idles, and copies it back, with ``cp -r``.

One JSON argument: ``tree``, ``there``, ``back`` (folders; an empty ``back`` leaves the way back out), ``idle``
(seconds) and ``files``. Prints JSON lines: ``{"stage": S, "done": N, "total": N}`` at most once a second, and
``{"ended": S, "seconds": S, "sent": BYTES, "received": BYTES, "clock": S}`` when a stage is over. Sent and received
are what crossed this guest's network interfaces during the stage.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def traffic() -> tuple[int, int]:
    """Bytes sent and received so far over all interfaces but loopback."""
    sent = received = 0
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, counters = line.split(":", 1)
        if name.strip() != "lo":
            fields = counters.split()
            received += int(fields[0])
            sent += int(fields[8])
    return sent, received


def follow(stage: str, lines: IO[bytes], files: int) -> None:
    """Count the files that ``cp -v`` names, folders left out. Ends the program at cp's first complaint."""
    done, told = 0, time.monotonic()
    for line in lines:
        if line.startswith(b"cp: "):
            sys.exit(f"{stage}: {line.decode('utf-8', 'replace').strip()}")
        done += line.endswith(b".bin'\n")
        if time.monotonic() - told >= 1:
            told = time.monotonic()
            say(stage=stage, done=done, total=files)
    say(stage=stage, done=done, total=files)


def copy(stage: str, source: str, destination: str, files: int) -> None:
    """One way, timed from before ``cp`` until the destination's file system has no dirty page left here."""
    sent, received = traffic()
    began = time.monotonic()
    argv = ["cp", "-rv", "--", source, destination]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            follow(stage, process.stdout, files)
        except SystemExit:
            # cp would go on with the next file, and wait for a lost server at each of them.
            process.kill()
            raise
    if process.returncode != 0:
        sys.exit(f"{stage}: cp exited with {process.returncode}")
    synced = subprocess.run(["sync", "-f", destination], stderr=subprocess.PIPE, text=True)
    if synced.returncode != 0:
        sys.exit(f"{stage}: {synced.stderr.strip()}")
    seconds = time.monotonic() - began
    sent_after, received_after = traffic()
    say(ended=stage, seconds=seconds, sent=sent_after - sent, received=received_after - received, clock=time.time())


def rest(seconds: float) -> None:
    """Idle; then forget what was cached here, or the way back would never touch the network."""
    for left in range(int(seconds), 0, -1):
        say(stage="idle", done=int(seconds) - left, total=int(seconds))
        time.sleep(1)
    time.sleep(seconds - int(seconds))
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def main() -> None:
    options = json.loads(sys.argv[1])
    began = time.monotonic()
    copy("there", options["tree"], options["there"], options["files"])
    if options["back"]:
        rest(options["idle"])
        copy("back", options["there"], options["back"], options["files"])
    say(ended="all", seconds=time.monotonic() - began, clock=time.time())


if __name__ == "__main__":
    main()
