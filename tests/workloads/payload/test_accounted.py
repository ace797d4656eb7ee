"""The program that accounts for another one, run for real."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.programs import parse_account

PROGRAM = Path("vmlab/workloads/payload/accounted.py").resolve()


def once_open(file: Path) -> str:
    """Words for a shell, which end when its parent has looked at a file that is open: it sleeps after each look."""
    slept = "$(sed -n 's/^voluntary_ctxt_switches:.//p' /proc/$PPID/status)"
    wait = f"before={slept}; until [ {slept} -ge $((before + 5)) ]; do sleep 0.02; done"
    return f"until [ -e {file} ]; do sleep 0.02; done; {wait}"


def run(argv: list[str], folder: Path | str = "", files: int = 0) -> subprocess.CompletedProcess[str]:
    options: dict[str, Any] = {"argv": argv, "folder": str(folder), "files": files}
    return subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, json.dumps(options)], capture_output=True, text=True, timeout=240
    )


def test_what_was_written_is_counted_and_open_files_are_seen(tmp_path: Path) -> None:
    """`dd` waits for its input, so that its output is surely looked at."""
    folder, clock = tmp_path / "watched", tmp_path / "clock"
    folder.mkdir()
    out, time = folder / "out", f"cut -d ' ' -f 1 /proc/uptime >> {clock}"
    words = f"({once_open(out)}; head -c 3000000 /dev/zero) | dd of={out} bs=4096 iflag=fullblock 2>/dev/null"
    # One file more than there is, so that it does not stop to look.
    done = run(["sh", "-c", f"{time}; {words}; {time}"], folder, 2)
    account = parse_account(done.stdout)
    assert done.returncode == 0
    assert account.written >= 3_000_000
    assert account.direct == {str(out): False}
    began, ended = map(float, clock.read_text().split())
    assert account.seconds >= ended - began - 0.01 > 0, "the clock has hundredths"


def test_a_file_that_is_open_past_the_cache_is_told_apart(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = f"({once_open(out)}; head -c 4096 /dev/zero) | dd of={out} bs=4096 iflag=fullblock oflag=direct"
    done = run(["sh", "-c", words], tmp_path, 2)
    assert done.returncode == 0, done.stdout
    assert parse_account(done.stdout).direct == {str(out): True}


@pytest.mark.parametrize(("words", "status"), [("echo no >&2; exit 3", 3), ("kill -9 $$", 128 + 9)])
def test_it_ends_as_the_program_did(words: str, status: int) -> None:
    assert run(["sh", "-c", words]).returncode == status


@pytest.mark.parametrize(
    "text", ["", "words\n", '{"read": 1}\n', '{"seconds": 1, "read": 1, "written": 1, "open": 5}\n']
)
def test_an_account_that_cannot_be_read_fails(text: str) -> None:
    with pytest.raises(WorkloadError):
        parse_account(text)
