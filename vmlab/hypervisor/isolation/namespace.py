"""A program in namespaces of its own (network, mount, PID) under a reaping init: when it ends, all of it ends.

::

    launcher   waits; SIGKILL to it takes the init along (PDEATHSIG)
    └─ init    PID 1 inside: reaps, forwards signals; its end makes the kernel kill everything inside
       └─ runner   the program; its end ends the init

No clean-up code is needed for processes, mounts, bridges and taps: the kernel removes them, whichever process was
killed. The launcher stays with the host's own mounts and network: what the runner mounts does not exist for it, so that
clearing up after a dead runner cannot reach anything that was mounted.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from vmlab.hypervisor.isolation.init import ATTENDED, CHILDREN, FORWARDED, attend
from vmlab.model.errors import HypervisorUnavailable
from vmlab.system import kernel

T = TypeVar("T")

HOST_PID = "VMLAB_HOST_PID"
INIT_PID = "VMLAB_INIT_PID"
LAUNCHER_PID = "VMLAB_LAUNCHER_PID"
HOST_NETNS = "VMLAB_HOST_NETNS"
HOST_MNTNS = "VMLAB_HOST_MNTNS"
HOST_PROC = "VMLAB_HOST_PROC"

_CANNOT_EXECUTE = 126
# Without the system bus libvirt makes its cgroups itself. With it, it would give systemd-machined pids of this PID
# namespace, which on the host belong to other processes.
_NO_SYSTEM_BUS = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent"}
_ERRORS_ONLY = {"LIBVIRT_DEBUG": "4"}


@dataclass(frozen=True, slots=True)
class HostPids:
    """The three processes of a lab as the host sees them; killing any of them ends the lab."""

    launcher: int
    init: int
    runner: int


def host_pids(env: Mapping[str, str] = os.environ) -> HostPids | None:
    """The pids that `run_isolated` handed to the runner; None outside a lab."""
    try:
        return HostPids(int(env[LAUNCHER_PID]), int(env[INIT_PID]), int(env[HOST_PID]))
    except (KeyError, ValueError):
        return None


def host_proc(env: Mapping[str, str] = os.environ) -> Path:
    """A /proc that shows the host's processes, also inside a lab."""
    return Path(env.get(HOST_PROC, "/proc"))


def network_namespace() -> int:
    """The inode that names the calling process's network namespace."""
    return Path("/proc/self/ns/net").stat().st_ino


def mount_namespace() -> int:
    """The inode that names the calling process's mount namespace."""
    return Path("/proc/self/ns/mnt").stat().st_ino


def require_isolation(env: Mapping[str, str] = os.environ) -> None:
    """Raise HypervisorUnavailable unless this process runs under `run_isolated`, off the host's network and mounts.

    Inside, /proc shows no process of the host to compare with, so the launcher passes the identities of its own
    namespaces.
    """
    for name, own in ((HOST_NETNS, network_namespace()), (HOST_MNTNS, mount_namespace())):
        host = env.get(name, "")
        if not host.isdigit() or int(host) == own:
            raise HypervisorUnavailable(
                "the lab belongs in namespaces of its own, and this process is in the host's",
                remedy="start it through `vmlab run`",
            )


def in_fresh_network(function: Callable[[], T]) -> T:
    """What `function` returns in a thread of its own, in an empty network that ends with that thread.

    Raises OSError where namespaces are not allowed, and what `function` raises.
    """

    def inside() -> T:
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET)
        return function()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(inside).result()


def run_isolated(
    argv: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int] = (), own_network: bool = True
) -> int:
    """Run `argv` isolated and return its exit status (128 + signal when killed); blocks until then.

    Without a network of its own it stays in the host's, and `require_isolation` refuses there what would need one.

    For a launcher process of a single thread that does nothing else meanwhile. SIGTERM and SIGINT go on to the runner;
    SIGHUP is ignored, so that a dropped terminal ends nothing. The runner begins with the caller's signal mask: what
    the caller blocks waits until the runner is ready for it. It finds the pids that the host sees in its environment,
    see `host_pids`. File descriptors beside 0, 1, 2 and `pass_fds` are closed. Raises HypervisorUnavailable where
    namespaces are not allowed.
    """
    environment = {
        **env,
        **_NO_SYSTEM_BUS,
        **_ERRORS_ONLY,
        HOST_NETNS: str(network_namespace()),
        HOST_MNTNS: str(mount_namespace()),
        LAUNCHER_PID: _pid_by_old_proc(),
    }
    try:
        # This affects only children; the init leaves network and mounts for itself and all its children.
        kernel.unshare(kernel.CLONE_NEWPID)
    except OSError as error:
        raise _no_namespaces(str(error.strerror)) from error
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ATTENDED)
    alive, kept = os.pipe()
    refused, refusal = os.pipe()
    init = os.fork()
    if init == 0:
        for end in (kept, refused):
            os.close(end)
        _become_init(argv, environment, pass_fds, alive, refusal, before, own_network=own_network)
    for end in (alive, refusal):
        os.close(end)
    try:
        with os.fdopen(refused, encoding="utf-8", errors="replace") as words:
            said = words.read()
        status = attend(init)
    finally:
        os.close(kept)
        # Clearing up may take threads, which the kernel refuses while children go to another namespace.
        kernel.keep_children_here()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if said:
        raise _no_namespaces(said)
    return status


def _no_namespaces(why: str) -> HypervisorUnavailable:
    return HypervisorUnavailable(f"the lab cannot have namespaces of its own: {why}", remedy="run it as root")


def _leave_the_host(refusal: int, *, own_network: bool) -> None:
    """New mounts, and a new network, for this process; what is mounted from now on is not visible outside.

    Why that is not allowed is written to `refusal`, which is closed in any case.
    """
    try:
        kernel.unshare(kernel.CLONE_NEWNS | (kernel.CLONE_NEWNET if own_network else 0))
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    except OSError as error:
        os.write(refusal, str(error.strerror).encode())
        raise
    finally:
        os.close(refusal)


def _become_init(
    argv: Sequence[str],
    env: dict[str, str],
    pass_fds: Sequence[int],
    alive: int,
    refusal: int,
    mask: Iterable[int],
    *,
    own_network: bool,
) -> NoReturn:
    """What the child does. `alive` reads end-of-file when the launcher is gone; for `refusal` see `_leave_the_host`."""
    status = _CANNOT_EXECUTE
    try:
        kernel.die_with_parent()
        _leave_the_host(refusal, own_network=own_network)
        # A launcher that died before the line above caused no signal, but then its end of the pipe is closed.
        if not select.select([alive], [], [], 0)[0]:
            os.setsid()
            env[INIT_PID] = _pid_by_old_proc()
            heard, report = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            env[CHILDREN] = str(heard)
            runner = os.fork()
            if runner == 0:
                _become_runner(argv, env, (*pass_fds, heard), mask)
            os.close(heard)
            # A report to a runner that has ended must not cause SIGPIPE.
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            status = attend(runner, report)
    except OSError as error:
        _complain(f"the lab's init failed: {error}")
    finally:
        os._exit(status)


def _become_runner(argv: Sequence[str], env: dict[str, str], pass_fds: Sequence[int], mask: Iterable[int]) -> NoReturn:
    try:
        env[HOST_PID] = _pid_by_old_proc()
        # The recorder finds the host's kernel threads in the /proc that the lab's own one is about to cover.
        old_proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        env[HOST_PROC] = f"/proc/self/fd/{old_proc}"
        kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        for number in (*pass_fds, old_proc):
            os.set_inheritable(number, True)
        # A disposition to ignore would pass through exec, to the runner and to all that it starts.
        for number in (*FORWARDED, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvpe(argv[0], list(argv), env)
    except OSError as error:
        _complain(f"cannot run {argv[0]}: {error}")
    finally:
        os._exit(_CANNOT_EXECUTE)


def _complain(words: str) -> None:
    """Straight to the descriptor: a forked child must not touch its parent's buffers."""
    os.write(2, f"vmlab: {words}\n".encode())


def _pid_by_old_proc() -> str:
    """This process's pid in the namespace whose /proc is mounted: the host's, until a new /proc hides it."""
    return str(Path("/proc/self").readlink())
