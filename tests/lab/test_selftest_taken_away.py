"""`vmlab selftest` on this host without something that a run needs, or that it can do without."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.inside.lab import Failed
from tests.host.inside.taken_away import TAKEN, judge
from vmlab.system.removal import remove_tree

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and other users need root")
NEEDED = [name for name, taken in TAKEN.items() if taken.needed]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may reach and write to."""
    folder = Path(tempfile.mkdtemp(prefix="vmlab-taken-", dir="/var/tmp"))
    folder.chmod(0o777)
    yield folder
    remove_tree(folder)


def selftest(name: str, place: Path) -> subprocess.CompletedProcess[str]:
    """What `vmlab selftest` answers without `name`."""
    places = {variable: f"{place}/{variable}" for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "VMLAB_RUNTIME_DIR")}
    argv = TAKEN[name].argv([sys.executable, "-m", "vmlab", "selftest", "--json"])
    return subprocess.run(
        argv,
        env={**os.environ, **places, "HOME": str(place)},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@AS_ROOT
@pytest.mark.parametrize("name", NEEDED)
def test_what_runs_need_is_named_and_refused(name: str, place: Path) -> None:
    prefix = TAKEN[name].prefix
    if subprocess.run([*prefix, sys.executable, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("this checkout is not readable for other users")
    judge(name, selftest(name, place))


def test_what_is_not_said_is_noticed() -> None:
    said = '{"trials": [{"name": "KVM", "state": "not here", "detail": "there is no /dev/kvm"}]}'
    with pytest.raises(Failed, match=r"host\.disk is not said"):
        judge("FUSE", subprocess.CompletedProcess([], 3, said, ""))
    with pytest.raises(Failed, match="exit code 3"):
        judge("KVM", subprocess.CompletedProcess([], 3, said, ""))
    with pytest.raises(Failed, match="exit code 1: oh"):
        judge("KVM", subprocess.CompletedProcess([], 1, "", "oh"))
