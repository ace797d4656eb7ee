"""The main job, on real guests."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

import vmlab
from tests.e2e.conftest import Home, wait_until

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(1200)]

_LIMITS = ("--set", "limits.start_skew=1 h", "--set", "limits.clock_drift_percent=100")
ON_A_BUSY_MACHINE = (*_LIMITS, "--allow-noise", "--allow-equal-weight")
"""What a run is told that is not to be judged by what else the machine does, nor slower for guests of other tests."""
ON_AN_EMULATED_DISK = """
name: slow
guests: {vm: {memory: 256 MiB, data: 64 MiB, cache: none}}
workloads:
  blocks: {kind: fio, on: vm, rw: randread, block: 4 KiB, size: 32 MiB, time: 3 s, engine: psync, direct: true}
host: {disk: hdd-7200}
"""
FOLLOWED = """
name: followed
guests: {vm: {memory: 256 MiB, cache: none}}
workloads:
  blocks: {kind: fio, on: vm, rw: randrw, block: 4 KiB, size: 32 MiB, time: 90 s, engine: psync, direct: true}
repeats: 3
"""
KNOWN_BYTES = """
name: known
guests: {vm: {memory: 512 MiB, data: 1 GiB, cache: none}}
workloads:
  blocks: {kind: fio, on: vm, rw: read, block: 256 KiB, size: 128 MiB, direct: true}
host: {disk: hdd-7200}
axes: {size: {values: [192 MiB, 512 MiB], sets: workloads.blocks.size}}
"""
RPM_7200 = 7200
WORKLOADS = ["filecopy", "database", "web", "mail"]
HOST_KEYS = {
    "cpu_user_percent",
    "cpu_system_percent",
    "cpu_iowait_percent",
    "disk_await_ms",
    "disk_util_percent",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "memory_used_bytes",
    "memory_cached_bytes",
    "ksm_saved_bytes",
}


def test_a_tile_runs_in_two_cache_modes_and_its_times_stand_side_by_side(home: Home) -> None:
    ran = home.vmlab("run", "tile", "--size", "smoke", *ON_A_BUSY_MACHINE)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"tile: 2 of 2 cells passed in .* · size smoke · (TCG|KVM)", ran.stdout)
    table = ran.stdout.split("run time (s)")[1]
    assert table.splitlines()[0].split()[:2] == ["none", "writeback"]
    rows = [line.split("  ")[0] for line in table.splitlines()[1:6]]
    assert rows == [*WORKLOADS, "total wall clock"]

    document = home.show()
    assert document["schema"] == "vmlab.run/1"
    assert document["run"]["outcome"] == "passed"
    assert [cell["axes"] for cell in document["cells"]] == [
        {"tiles": 1, "cache": "none"},
        {"tiles": 1, "cache": "writeback"},
    ]
    for cell in document["cells"]:
        assert cell["outcome"] == "passed"
        assert cell["reasons"] == []
        assert cell["provision"]["guests"] == 4
        assert cell["provision"]["how"] == "restored"
        assert len(set(cell["provision"]["snapshots"].values())) == 4
        times = {m["workload"]: m["value"] for m in cell["measurements"] if m["metric"] == "run_time"}
        assert list(times) == WORKLOADS
        assert all(0 < value <= cell["wall_seconds"] + 0.5 for value in times.values())
        assert cell["host"].keys() >= HOST_KEYS
        assert cell["host"]["cpu_user_percent"]["mean"] > 5
        assert cell["start_skew_ms"] >= 0
        assert len(cell["cache_proof"]) >= 8
        direct = cell["axes"]["cache"] == "none"
        assert all(proof["agrees"] and proof["o_direct"] is direct for proof in cell["cache_proof"])
    first, second = (cell["provision"]["snapshots"] for cell in document["cells"])
    assert first == second
    assert home.leftovers() == []
    assert home.processes() == []
    assert "wordpress" not in ran.stdout.lower()
    raw = home.vmlab("show", "last", "--raw").stdout
    assert "Requests per second" in raw
    assert "transactions:" in raw


@pytest.mark.alone
def test_a_guest_on_an_emulated_disk_reads_no_faster_than_it(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "slow.yaml"
    file.write_text(ON_AN_EMULATED_DISK)
    ran = home.vmlab("run", str(file), "--wait", *ON_A_BUSY_MACHINE, "--json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert (document["run"]["host"]["disk"]["emulated"], document["run"]["host"]["disk"]["profile"]) == (
        True,
        "hdd-7200",
    )
    (cell,) = document["cells"]
    assert (cell["outcome"], cell["provision"]["guests"]) == ("passed", 1)
    assert cell["cache_proof"] and all(proof["agrees"] and proof["o_direct"] for proof in cell["cache_proof"])
    (iops,) = [m["value"] for m in cell["measurements"] if m["metric"] == "iops"]
    # One read at a time, each after half a turn on average; no machine makes that quicker.
    assert 0 < iops < 2 * RPM_7200 / 60
    assert "emulated disk" in home.vmlab("show", "last").stdout
    assert home.leftovers() == []
    assert home.processes() == []


def test_bytes_by_fio_are_those_of_the_guests_disk_and_of_the_hosts(home: Home, tmp_path: Path) -> None:
    """Cells of about one and three seconds, of the disk that nobody else uses.

    Nothing but fio reads: its program was loaded before. A second of the disk's is 100 MiB and more.
    """
    file = tmp_path / "known.yaml"
    file.write_text(KNOWN_BYTES)
    ran = home.vmlab("run", str(file), "--wait", *ON_A_BUSY_MACHINE, "--json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert len(document["cells"]) == 2
    for cell in document["cells"]:
        raw = json.loads(home.vmlab("show", f"last:{cell['cell']}", "--raw", "--json").stdout)
        (text,) = [one["text"] for one in raw["outputs"] if one["name"] == "fio"]
        read = sum(job["read"]["io_bytes"] for job in json.loads(text)["jobs"])
        traffic = cell["disk_traffic"]
        assert traffic["exact"]
        guests = traffic["read"]["guests_bytes"]
        assert traffic["read"]["host_bytes"] == pytest.approx(guests, rel=0.01, abs=256 * 2**10)
        assert guests == pytest.approx(read, rel=0.01, abs=256 * 2**10)


@pytest.mark.exhaustive
def test_figures_agree_with_what_the_tools_themselves_printed(home: Home) -> None:
    ran = home.vmlab("run", "cpu-overhead", "--size", "smoke", *ON_A_BUSY_MACHINE, "--json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert {(c["axes"]["setup"], c["axes"]["threads"]) for c in document["cells"]} == {
        (setup, threads) for setup in ("node", "vm-rescue", "vm") for threads in (1, 6)
    }
    for cell in document["cells"]:
        (run_time,) = [m["value"] for m in cell["measurements"] if m["metric"] == "run_time"]
        raw = json.loads(home.vmlab("show", f"last:{cell['cell']}", "--raw", "--json").stdout)
        printed = re.search(r"total time:\s+([0-9.]+)s", json.dumps(raw))
        assert printed is not None
        assert float(printed[1]) == pytest.approx(run_time)
        assert cell["provision"]["guests"] == (0 if cell["axes"]["setup"] == "node" else 1)
    table = home.vmlab("show", "last").stdout
    assert all(re.search(rf"^\s*{setup}\s.*\d", table, re.MULTILINE) for setup in ("node", "vm-rescue", "vm"))


@pytest.mark.nightly
def test_shares_configured_and_shares_got_stand_side_by_side(home: Home) -> None:
    ran = home.vmlab("run", "cpu-priority", "--size", "smoke", "--set", "axes.threads=[6]", *ON_A_BUSY_MACHINE)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"threads\s+pr100\s+pr50\s+difference\s+share set\s+share got", ran.stdout)
    busiest = max(home.show()["cells"], key=lambda cell: int(cell["axes"]["threads"]))["measurements"]
    got = {m["workload"]: m["value"] for m in busiest if m["metric"] == "cpu_share_got"}
    configured = {m["workload"]: m["value"] for m in busiest if m["metric"] == "cpu_share_configured"}
    assert configured == {"pr100": pytest.approx(2 / 3), "pr50": pytest.approx(1 / 3)}
    assert got["pr100"] > got["pr50"]


@pytest.mark.parametrize("victim", ["runner_pid", pytest.param("launcher_pid", marks=pytest.mark.exhaustive)])
def test_a_killed_process_takes_all_along_and_the_run_is_aborted(home: Home, victim: str) -> None:
    watcher = home.spawn("run", "tile", "--size", "smoke", "--cache", "none")
    wait_until(lambda: any(e["kind"] == "GuestStateChanged" for e in home.events()), 400, "the first guest")
    pid = json.loads(next(home.state.glob("vmlab/runs/*/runner.json")).read_text())[victim]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not [p for p in home.processes() if p != watcher.pid], 120, "the end of all processes")
    _, words = watcher.communicate(timeout=240)
    assert watcher.returncode == 1
    assert "aborted" in words
    (run,) = home.runs()
    assert run["outcome"] == "aborted"
    assert "runner_pid" not in run
    cleaned = home.vmlab("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert home.leftovers() == []
    assert "nothing to clean" in home.vmlab("clean").stderr


@pytest.mark.exhaustive
def test_ctrl_c_in_the_middle_clears_up_and_keeps_what_was_measured(home: Home) -> None:
    running = home.spawn("run", "cpu-overhead", "--size", "smoke", *ON_A_BUSY_MACHINE, "--set", "order=as written")
    wait_until(
        lambda: any(e["kind"] == "GuestStateChanged" and e["state"] in ("created", "restored") for e in home.events()),
        400,
        "the first guest",
    )
    running.send_signal(signal.SIGINT)
    _, words = running.communicate(timeout=300)
    assert running.returncode == 130, words
    assert home.processes() == []
    assert home.leftovers() == []
    document = home.show()
    assert document["run"]["outcome"] == "aborted"
    # The cells of the host come first: one for each number of threads of this size.
    finished = [cell for cell in document["cells"] if cell["outcome"] == "passed"]
    assert [cell["axes"] for cell in finished] == [{"setup": "node", "threads": threads} for threads in (1, 6)]
    assert all(cell["measurements"] for cell in finished)
    assert document["cells"][-1]["outcome"] == "aborted"


@pytest.mark.exhaustive
def test_a_detached_run_is_found_and_stopped_again(home: Home) -> None:
    started = home.vmlab("run", "tile", "--size", "smoke", "--detach", "--json", timeout=240)
    assert started.returncode == 0, started.stderr
    run = json.loads(started.stdout)["run"]["id"]
    wait_until(lambda: home.runs()[0].get("runner_pid"), 240, "the runner")
    assert home.runs()[0]["outcome"] == "running"
    wait_until(lambda: any(e["kind"] == "PhaseStarted" for e in home.events()), 240, "the first phase")
    stopped = home.vmlab("stop", run, timeout=300)
    assert stopped.returncode == 0, stopped.stderr
    assert home.processes() == []
    assert home.runs()[0]["outcome"] == "aborted"
    assert home.vmlab("stop", run).returncode == 2


@pytest.mark.exhaustive
def test_a_program_follows_a_run_switches_its_guest_and_stops_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_STATE_HOME", "VMLAB_RUNTIME_DIR"):
        monkeypatch.setenv(name, home.environment[name])
    (tmp_path / "followed.yaml").write_text(FOLLOWED)
    started = home.vmlab("run", str(tmp_path / "followed.yaml"), "--detach", *ON_A_BUSY_MACHINE)
    assert started.returncode == 0, started.stderr
    attached, changes, stopped = vmlab.attach_run(), [], []
    for event in attached:
        if event.kind == "WorkloadStarted":
            assert (attached.cell, attached.phase, attached.outcome) == (1, "execute", "running")
            changes.append(vmlab.set_running_cell(cache="writeback"))
        if event.kind == "CacheSwitched":
            assert [one["cell"] for one in vmlab.coming_cells()["cells"]] == [2, 3]
            stopped.append(vmlab.stop_run())
    (change,) = changes
    assert (change.cell, change.what, change.before, change.after) == (1, "cache", "none", "writeback")
    assert change.pauses_ms and all(pause >= 0 for pause in change.pauses_ms.values())
    assert (attached.id, attached.outcome, attached.exit_code) == (started.stdout.strip(), "aborted", 130)
    assert [run.outcome for run in stopped] == ["aborted"]
    (cell,) = stopped[0].document()["cells"]
    assert [one["origin"] for one in cell["switches"]] == ["vmlab.set_running_cell"]
    assert not home.processes() and not home.leftovers()
