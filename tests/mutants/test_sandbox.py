"""What mutants may do to the machine: nothing. All that is tried here is tried on dummies outside of the sandbox."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


def sandboxed(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    """What `script` does in the sandbox of the checkout in `place`, which is its first argument.

    It does not begin in a namespace of this machine, where nothing would stop it.
    """
    outside = " ".join(str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("mnt", "pid", "net", "user"))
    guard = 'for one in mnt pid net user; do case "$0" in *$(readlink /proc/self/ns/$one)*) exit 9;; esac; done; '
    argv = ["sh", str(CHECKOUT / "tests" / "mutants" / "sandbox.sh"), str(place / "checkout")]
    argv += ["sh", "-c", f"{guard}[ $$ = 1 ] || exit 9; {script}", outside, str(place)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    assert done.returncode != 9, "that is no sandbox"
    return done


@pytest.fixture
def place() -> Iterator[Path]:
    """A checkout, and a folder beside it that must survive; not where the sandbox has empty folders."""
    place = Path(tempfile.mkdtemp(prefix="vmlab-dummy-", dir="/var/lib"))
    (place / "beside").mkdir()
    (place / "beside" / "precious").write_text("precious")
    checkout = place / "checkout"
    (checkout / ".venv").mkdir(parents=True)
    (checkout / ".venv" / "precious").write_text("precious")
    (checkout / "tracked").write_text("tracked")
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    subprocess.run(["git", "-C", str(checkout), "add", "tracked"], check=True)
    yield place
    shutil.rmtree(place)


def test_what_removes_everything_it_can_reach_removes_nothing_outside(place: Path) -> None:
    removes = 'cat tracked; rm -rf "$1"/* "$1/checkout/.venv"; rm -f tracked; ls'
    done = sandboxed(f'{removes}; echo x > "$1/beside/precious"; touch "$1/new"', place)
    assert done.stdout == "tracked", "its copy of the checkout was there and is gone"
    assert "Read-only file system" in done.stderr
    assert (place / "beside" / "precious").read_text() == "precious"
    assert (place / "checkout" / ".venv" / "precious").read_text() == "precious"
    assert (place / "checkout" / "tracked").read_text() == "tracked"
    assert sorted(path.name for path in place.iterdir()) == ["beside", "checkout"]


def test_what_kills_everything_it_can_reach_kills_nothing_outside(place: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as dummy:
        try:
            script = f"sleep 600 & kill -9 {dummy.pid} 2>/dev/null || echo unknown; kill -9 -1; wait; echo alone"
            assert sandboxed(script, place).stdout.split() == ["unknown", "alone"]
            assert dummy.poll() is None
        finally:
            dummy.kill()


@pytest.mark.parametrize(
    "undo", ["mount -o remount,bind,rw /", "mount -o remount,rw /", "umount -l /sys", "umount /proc"]
)
def test_what_the_sandbox_makes_read_only_stays_so(undo: str, place: Path) -> None:
    done = sandboxed(f'{undo} && echo done; touch "$1/new" && echo written', place)
    assert (done.stdout, (place / "new").exists()) == ("", False)


def test_no_cgroup_disk_or_setting_of_the_kernel_can_be_written(place: Path) -> None:
    script = (
        "find /sys/fs/cgroup -maxdepth 2 -type d -writable; find /dev -type b;"
        "[ ! -w /proc/sys/vm/swappiness ] && [ -d /sys/fs/cgroup ] && echo looked"
    )
    assert sandboxed(script, place).stdout == "looked\n"


def test_a_mutant_is_tried_nowhere_else() -> None:
    pytest.importorskip("cosmic_ray", reason="`make mutants` installs it")
    argv = [sys.executable, "-m", "tests.mutants.inside"]
    done = subprocess.run(argv, cwd=CHECKOUT, input="{}", capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (1, "mutants are tested by tests/mutants/sandbox.sh alone\n")
