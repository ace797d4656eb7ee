"""One run at a time measures on a host; whoever goes on beside another is noted in the records of both."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.lab.conftest import NewHome
from tests.lab.faked import BUILD_SECONDS, CELL_FILE, CELL_SECONDS, SOON, Home, until
from vmlab.lab.process.measuring_runs import (
    HostBusy,
    claim,
    clear_dead,
    leave,
    measuring_place,
    others_measuring,
)
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import ExitCode, RefusedError
from vmlab.store.life import is_alive

ROOT = Path(__file__).parents[3]
RUN = ("run", "cpu-overhead", "--size", "smoke")


def folder(name: str) -> RunFolder:
    return RunFolder(name, Path("/nowhere") / name)


def places(host: Path) -> list[str]:
    return sorted(path.name for path in (host / "vmlab-measuring").glob("*") if path.is_file())


def test_a_second_claim_is_refused_with_the_name_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")
    first = claim(folder("one"))
    with pytest.raises(HostBusy) as refused:
        claim(folder("two"))
    assert f"run one of anna (process {os.getpid()}) measures on this host now" in str(refused.value)
    assert "--wait" in str(refused.value)
    assert "--concurrent" in str(refused.value)
    assert refused.value.exit_code == ExitCode.REFUSED
    assert places(tmp_path) == ["one"]
    os.close(first)
    os.close(claim(folder("two")))


def test_each_sees_the_others_and_not_itself() -> None:
    held = [claim(folder(name), concurrent=True) for name in ("one", "two", "three")]
    place = measuring_place()
    assert [other.run for other in others_measuring(place, "two")] == ["one", "three"]
    for descriptor in (*held, place):
        os.close(descriptor)


def test_after_the_first_ended_one_beside_it_still_keeps_others_out() -> None:
    first, second = (claim(folder(name), concurrent=True) for name in ("one", "two"))
    os.close(first)
    with pytest.raises(HostBusy, match="run two of"):
        claim(folder("three"))
    os.close(second)


def test_files_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    os.close(claim(folder("dead")))
    living = claim(folder("living"))
    assert places(tmp_path) == ["living"]
    (tmp_path / "vmlab-measuring" / "dead").write_text("nonsense")
    clear_dead()
    assert places(tmp_path) == ["living"]
    leave("living")
    os.close(living)
    assert not (tmp_path / "vmlab-measuring").exists(), "the last one leaves nothing at all"


def test_where_many_come_and_go_at_once_never_two_are_alone(tmp_path: Path) -> None:
    alone: list[str] = []
    most = 0

    def come_and_go(name: str) -> None:
        nonlocal most
        for turn in range(40):
            run = f"{name}-{turn}"
            try:
                held = claim(folder(run))
            except HostBusy:
                continue
            alone.append(run)
            most = max(most, len(alone))
            alone.remove(run)
            leave(run)
            os.close(held)

    comers = [threading.Thread(target=come_and_go, args=(name,)) for name in "abcd"]
    for comer in comers:
        comer.start()
    for comer in comers:
        comer.join()
    assert most == 1
    assert not (tmp_path / "vmlab-measuring").exists()


_CLAIMER = """
import sys, time
from pathlib import Path
from vmlab.lab.process import measuring_runs
from vmlab.lab.process.run_folder import RunFolder
measuring_runs.RUN_FOLDERS = (Path(sys.argv[1]),)
measuring_runs.claim(RunFolder("mortal", Path("/nowhere")))
print("claimed", flush=True)
time.sleep(3600)
"""


def test_kill_nine_frees_the_host(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CLAIMER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        with pytest.raises(HostBusy, match=f"run mortal of .* \\(process {process.pid}\\)"):
            claim(folder("next"))
        process.kill()
    os.close(claim(folder("next")))


def test_without_the_right_to_ask_the_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("vmlab.lab.process.measuring_runs.RUN_FOLDERS", (tmp_path / "file",))
    with pytest.raises(RefusedError, match=r"cannot tell whether another run measures: .*file/vmlab-measuring"):
        claim(folder("one"))


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
@pytest.mark.parametrize("beside", ["--mount", "--net"])
def test_the_place_is_the_hosts_whatever_namespace_and_variables_a_user_has(beside: str) -> None:
    """All in a PID namespace of the test's own, so that its first process is "the host's"; with a /run of its own."""
    said = "from vmlab.lab.process import measuring_runs; print(measuring_runs._folder().stat().st_ino)"
    user = f'unshare {beside} sh -c \'[ {beside} = --net ] || mount -t tmpfs none /run; exec "$0" -c "$1"\' "$@"'
    script = f'mount -t tmpfs none /run && "$@" -c "$SAID" && XDG_STATE_HOME=/x VMLAB_RUNTIME_DIR=/y {user} "$SAID"'
    host = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", sys.executable]
    environment = {**os.environ, "SAID": said, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(host, capture_output=True, text=True, env=environment, timeout=SOON)
    inodes = ran.stdout.split()
    assert len(inodes) == 2, ran.stderr
    assert inodes[0] == inodes[1]


def test_a_second_run_of_another_user_is_refused_and_nothing_is_started(homes: NewHome) -> None:
    anna, bert = homes("anna"), homes("bert")
    assert anna.run(*RUN, "--detach", **{BUILD_SECONDS: "3600"})[0] == 0
    (first,) = anna.records()
    for options in ((), ("--detach",), ("--json",)):
        code, output, words = bert.run(*RUN, *options)
        assert (code, output) == (3, "")
        assert re.fullmatch(rf"vmlab: run {first.name} of anna \(process \d+\) measures on this host now, .*\n", words)
    assert bert.records() == []
    assert not (bert.folder / "run").exists()
    anna.run("stop")
    code, _, words = bert.run(*RUN, **{CELL_SECONDS: "0"})
    assert code == 0, words
    assert places(anna.host) == []


@pytest.mark.parametrize("victim", [pytest.param("launcher_pid", marks=pytest.mark.exhaustive), "runner_pid"])
def test_a_run_that_is_killed_frees_the_host(homes: NewHome, victim: str) -> None:
    anna, bert = homes("anna"), homes("bert")
    anna.run(*RUN, "--detach")
    until(anna.in_a_cell, "the first cell")
    os.kill(anna.pid(victim), signal.SIGKILL)
    until(lambda: not is_alive(anna.records()[0]), "the end of the run")
    code, _, words = bert.run(*RUN, **{CELL_SECONDS: "0"})
    assert code == 0, words


def test_one_that_waits_begins_when_the_first_has_ended(homes: NewHome) -> None:
    anna, bert = homes("anna"), homes("bert")
    anna.run(*RUN, "--detach")
    until(anna.in_a_cell, "the first cell")
    waiting = bert.spawn(*RUN, "--wait", **{CELL_SECONDS: "0"})
    assert waiting.stderr is not None
    line = waiting.stderr.readline()
    (first,) = anna.records()
    full = rf"^waiting: place 1 of 1, begins in about \d+ (s|min|h); run {first.name} of anna \(process \d+\), "
    full += rf"started 20\S+ \S+ UTC, planned for about \d+ (s|min|h), in {first}, measures now; nothing of this run"
    assert re.search(full, line), line
    assert waiting.poll() is None
    assert bert.records() == []
    assert anna.run("stop")[0] == 0
    _, words = waiting.communicate(timeout=SOON)
    assert waiting.returncode == 0, words
    assert bert.events("AnotherRunSeen") == []
    assert not (anna.host / "vmlab-measuring").exists(), "the last one leaves nothing at all"


def test_commands_that_wait_are_told_their_places_and_served_in_order(homes: NewHome) -> None:
    """Of all users; `vmlab ls` lists them, and one that does not wait comes behind them."""
    anna, bert, carl = homes("anna"), homes("bert"), homes("carl")
    # At its own size, so that it does not outlive its estimate on a busy machine.
    anna.run("run", "cpu-overhead", "--detach")
    until(anna.in_a_cell, "the first cell")
    waiting = []
    for place, (home, scenario) in enumerate([(bert, "cpu-overhead"), (carl, "tile"), (bert, "cpu-overhead")], 1):
        options = ("--size", "smoke", "--wait", "--json")
        waiting.append(home.spawn("run", scenario, *options, **{CELL_SECONDS: "0"}))
        stream = waiting[-1].stderr
        assert stream is not None
        line = stream.readline()
        assert re.match(rf"waiting: place {place} of {place}, begins in about \d", line), line
        assert ("is before it" in line) == (place > 1), line
    listed = json.loads(anna.run("ls", "--json")[1])["waiting"]
    assert [(one["place"], one["name"], one["user"]) for one in listed] == [
        (1, "cpu-overhead", "bert"),
        (2, "tile", "carl"),
        (3, "cpu-overhead", "bert"),
    ]
    assert [one["process"] for one in listed] == [process.pid for process in waiting]
    estimates = [one["begins_in_seconds"] for one in listed]
    assert estimates == sorted(estimates) and estimates[0] < estimates[1] < estimates[2]
    words = anna.run("ls")[2]
    assert re.search(rf"2\. tile of carl \(process {waiting[1].pid}\), begins in about", words), words
    waiting[0].send_signal(signal.SIGSTOP)
    until(lambda: json.loads(anna.run("ls", "--json")[1])["waiting"][0]["user"] == "carl", "that it is passed over")
    waiting[0].send_signal(signal.SIGCONT)
    assert anna.run("stop")[0] == 0
    for process in waiting:
        output, said = process.communicate(timeout=SOON)
        assert process.returncode == 0, said
        assert json.loads(output)["run"]["outcome"] == "passed"
    ((first, third), (second,)) = bert.records(), carl.records()
    begun = [
        json.loads(home.run("show", str(run), "--json")[1])["run"] for home, run in ((bert, first), (carl, second))
    ]
    begun.append(json.loads(bert.run("show", str(third), "--json")[1])["run"])
    moments = [moment for run in begun for moment in (run["started"], run["ended"])]
    assert moments == sorted(moments)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.exhaustive)],
)
def test_giving_up_the_wait_leaves_nothing(homes: NewHome, number: int, code: int) -> None:
    anna, bert = homes("anna"), homes("bert")
    anna.run(*RUN, "--detach")
    waiting = bert.spawn(*RUN, "--wait")
    assert waiting.stderr is not None
    assert "waiting: place 1 of 1" in waiting.stderr.readline()
    waiting.send_signal(number)
    waiting.communicate(timeout=SOON)
    assert waiting.returncode == code
    assert bert.records() == []
    assert places(anna.host) == [anna.records()[0].name]


def noted(home: Home) -> dict[str, str]:
    """The other runs in the JSON document of the newest run, with their users."""
    document = json.loads(home.run("show", "last", "--json")[1])
    return {other["run"]: other["user"] for other in document["run"]["measured_beside"]}


def test_concurrent_runs_are_noted_on_both_and_told_wherever_they_are_shown(homes: NewHome) -> None:
    anna, bert = homes("anna"), homes("bert")
    anna.run(*RUN, "--detach")
    until(anna.in_a_cell, "the first cell")
    # Others are looked for once a second: the second run lasts until the first has seen it.
    seen = bert.folder / "seen"
    beside = bert.spawn(*RUN, "--concurrent", **{CELL_SECONDS: "0.3", CELL_FILE: str(seen)})
    until(lambda: anna.events("AnotherRunSeen"), "that the first run sees the second")
    seen.touch()
    _, words = beside.communicate(timeout=SOON)
    assert beside.returncode == 0, words
    assert anna.run("stop")[0] == 0
    (first,), (second,) = anna.records(), bert.records()
    assert f"run {first.name} of anna measures on this host at the same time" in words
    assert noted(anna) == {second.name: "bert"}
    assert noted(bert) == {first.name: "anna"}
    assert len(anna.events("AnotherRunSeen")) == 1
    shown = " ".join(anna.run("show", "--explain")[1].split())
    assert f"run {second.name} of bert measured on this host at the same time" in shown
    compared = json.loads(bert.run("compare", str(first), str(second), "--json")[1])
    told = [warning for warning in compared["warnings"] if "at the same time" in warning]
    assert len(told) == 2
    assert second.name in told[0]
    assert first.name in told[1]


def test_waiting_and_going_ahead_exclude_each_other(homes: NewHome) -> None:
    home = homes("anna")
    for command in (RUN, ("resume", "last"), ("selftest",), ("scale", "tile", "--until-knee")):
        code, _, words = home.run(*command, "--wait", "--concurrent")
        assert code == 2 and "exclude each other" in words, (command, words)
    assert home.records() == []
