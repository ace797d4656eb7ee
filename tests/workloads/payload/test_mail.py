"""The programs around mail: sending, watching the queue, comparing clocks, counting."""

import json
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from vmlab.workloads.payload import clock_difference, mail_count, queue_watch, smtp_client

Json = dict[str, Any]

COUNTING = """#!/bin/sh
printf '1\\r2\\r'; [ "$FAIL" = early ] && exit 1
printf '3\\r\\n'; [ "$FAIL" = late ] && exit 1
exit 0
"""
"""Speaks as ``smtp-source -c`` does for three messages."""


def call(monkeypatch: pytest.MonkeyPatch, program: Any, **options: Any) -> None:
    monkeypatch.setattr("sys.argv", ["program", json.dumps(options)])
    program.main()


def test_only_this_cells_mail_is_counted_with_its_size_on_the_wire(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], captured: Path, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    for name in ("delivered", "bounced"):
        shutil.copy(captured / f"{name}.eml", tmp_path / "new")
    shutil.copy(captured / "delivered.eml", tmp_path / "new/again")
    call(monkeypatch, mail_count, maildir=str(tmp_path), subject="vmlab token-s")
    assert json.loads(capsys.readouterr().out) == {"delivered": 2, "sizes": {"102": 2}, "others": 1}


def test_a_mailbox_that_is_not_there_has_no_mail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call(monkeypatch, mail_count, maildir=str(tmp_path / "none"), subject="x")
    assert json.loads(capsys.readouterr().out)["delivered"] == 0


@pytest.fixture
def port() -> int:
    """A UDP port that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for queue in (*queue_watch.QUEUES, "deferred/A"):
        (tmp_path / queue).mkdir(exist_ok=True)
    monkeypatch.setattr(queue_watch, "SPOOL", str(tmp_path))
    return tmp_path


def test_the_queue_is_watched_and_both_clocks_are_compared(
    spool: Path, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mail = spool / "active/ABC"
    mail.touch()
    watches = threading.Event()
    watch = queue_watch.watch

    def noted(server: socket.socket, deadline: float) -> tuple[int, float | None]:
        watches.set()
        return watch(server, deadline)

    monkeypatch.setattr(queue_watch, "watch", noted)
    monkeypatch.setattr("sys.argv", ["program", json.dumps({"port": port, "deadline": 240})])
    watching = threading.Thread(target=queue_watch.main)
    watching.start()
    assert watches.wait(60)
    monkeypatch.setattr("sys.argv", ["program", json.dumps({"address": "127.0.0.1", "port": port})])
    # Both programs share this process and its clock, so they are no time apart.
    clock_difference.main()
    assert watching.is_alive(), "it waits for the mail that is left"
    before = time.time()
    mail.unlink()
    after = time.time()
    watching.join()
    clocks, watched = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert abs(clocks["ahead"]) <= clocks["uncertainty"] + 1e-3
    assert clocks["uncertainty"] > 0
    assert watched["left"] == 0
    # A file system's stamps are of the last tick of the kernel's clock.
    assert before - 0.05 <= watched["empty"] <= after


def test_a_clock_that_is_ahead_is_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            question = b""
            while question != b"bye":
                question, origin = server.recvfrom(64)
                server.sendto(question + f" {time.time() + 5:.6f}".encode(), origin)

        thread = threading.Thread(target=answer)
        thread.start()
        call(monkeypatch, clock_difference, address="127.0.0.1", port=server.getsockname()[1])
        thread.join()
    clocks = json.loads(capsys.readouterr().out)
    assert clocks["ahead"] == pytest.approx(5, abs=clocks["uncertainty"] + 1e-3)


def test_a_clock_that_nobody_shows_ends_the_program(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(clock_difference, "SECONDS_TO_TRY", 0.3)
    with pytest.raises(SystemExit, match="no clock answered"):
        call(monkeypatch, clock_difference, address="127.0.0.1", port=port)


@pytest.mark.parametrize("queue", ["maildrop", "incoming", "active", "deferred", "deferred/A"])
def test_a_queue_that_does_not_drain_is_told_as_such(
    spool: Path, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], queue: str
) -> None:
    (spool / queue / "ABC").touch()
    call(monkeypatch, queue_watch, port=port, deadline=0.6)
    assert json.loads(capsys.readouterr().out) == {"left": 1, "empty": None}


@pytest.fixture
def sending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Json:
    program = tmp_path / "smtp-source"
    program.write_text(COUNTING)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return {"server": "x:25", "sender": "a", "recipient": "b", "subject": "s", "size": 9, "pause": 0.2}


def test_batches_pauses_and_burst_are_timed_apart(
    sending: Json, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(monkeypatch, smtp_client, **sending, batches=2, messages=3, burst=3)
    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (end["ended"], end["accepted"]) == ("all", 9)
    assert 0 < end["burst"] < end["sending"] < end["seconds"] - 0.4


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_message_that_was_not_taken_ends_the_client(
    sending: Json, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setenv("FAIL", when)
    with pytest.raises(SystemExit, match="batches: smtp-source exited with 1"):
        call(monkeypatch, smtp_client, **sending, batches=1, messages=3, burst=0)


def test_an_end_without_all_messages_ends_the_client(sending: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="burst: smtp-source exited with 0, 3 of 4 messages accepted"):
        call(monkeypatch, smtp_client, **sending, batches=0, messages=3, burst=4)
