"""A launcher: runs a program of this folder isolated, and exits as it does."""

import os
import signal
import sys

from tests.hypervisor.programs.made import on_host
from vmlab.hypervisor.isolation.namespace import run_isolated

if __name__ == "__main__":
    # As the real launcher does: signals are the runner's.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    name, *arguments = sys.argv[1:]
    argv = [sys.executable, "-m", f"tests.hypervisor.programs.{name}", *arguments]
    raise SystemExit(run_isolated(argv, env=os.environ, own_network=not on_host()))
