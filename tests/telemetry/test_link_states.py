"""Links that are changed under a lab, in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = """
import json, os, subprocess, sys, time
from pathlib import Path
from vmlab.telemetry.link_states import LinkStates
for words in (
    "link add br9 type bridge", "link add va type veth peer name vb", "link set va master br9",
    "link set br9 up", "link set va up", "link set vb up",
):
    subprocess.run(["ip", *words.split()], check=True)
def up():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        shown = subprocess.run(["ip", "-json", "link"], check=True, capture_output=True).stdout
        if all(one["operstate"] == "UP" for one in json.loads(shown) if one["ifname"] != "lo"):
            return
up()
links = LinkStates(os.environ.get("BRIDGE"))
links.look(0.0)
for moment, line in enumerate(sys.argv[1:], 1):
    for words in filter(None, line.split("; ")):
        if words == "up":
            up()
        elif words == "away":
            other = subprocess.Popen(["unshare", "--net", "sleep", "600"])
            own = Path("/proc/self/ns/net").readlink()
            while Path(f"/proc/{other.pid}/ns/net").readlink() == own:
                time.sleep(0.01)
            subprocess.run(["ip", "link", "set", "va", "netns", str(other.pid)], check=True)
        elif words == "back":
            inside = ["nsenter", "-t", str(other.pid), "-n"]
            subprocess.run([*inside, "ip", "link", "set", "va", "netns", str(os.getpid())], check=True)
            other.kill()
            other.wait()
        else:
            subprocess.run(words.split(), check=True)
    links.look(float(moment))
found = links.changed(float(len(sys.argv)))
links.close()
print(json.dumps([(one.what, one.was, one.became, one.seconds) for one in found]))
"""


def changed(*lines: str, bridge: str | None = None) -> list[Any]:
    """What is found where a second passes after each line of commands; of a `bridge` and its ports alone, if any."""
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", _PROGRAM, *lines],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **({} if bridge is None else {"BRIDGE": bridge})},
    )
    if "Unknown device type" in done.stderr:
        pytest.skip("this kernel has no veth or no bridge")
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_links_that_nobody_touches_are_no_change() -> None:
    assert changed("", "ip link show", "ip link add br8 type bridge; ip link set br8 up; ip link del br8") == []


def test_a_link_that_was_down_is_told_with_its_time() -> None:
    found = changed("ip link set va down", "", "ip link set va up; up", "")
    assert ["the state of link va", "up", "down", 2.0] in found


def test_a_link_that_was_down_between_two_looks_is_told() -> None:
    """The kernel tells each change: none is too short."""
    assert "the state of link va" in [one[0] for one in changed("ip link set va down; ip link set va up", "")]


def test_a_link_that_was_taken_away_and_brought_back_is_told_and_one_that_went_for_good_is_not() -> None:
    back = "back; ip link set va master br9; ip link set va up"
    found = changed("away", "", back)
    assert ["the network namespace of link va", "the lab's", "elsewhere", 2.0] in found
    assert not [one for one in changed("", "ip link del va", "") if "link va" in one[0]]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("ip link set va mtu 600", "the MTU of link va"),
        ("ip link set va nomaster", "the bridge of link va"),
        ("ip link set va txqueuelen 1", "the queue length of link va"),
        ("bridge link set dev va state 0", "the bridge port of link va"),
        ("bridge link set dev va isolated on", "the isolation of link va"),
    ],
)
def test_what_else_slows_a_link_down_is_told(words: str, what: str) -> None:
    assert what in [one[0] for one in changed("", words)]


def test_in_the_hosts_namespace_only_the_labs_bridge_and_its_ports_are_watched() -> None:
    """What somebody does with a link of his own is no matter of the lab's."""
    lines = ("ip link set vb mtu 600", "ip link set va mtu 700")
    assert {one[0] for one in changed(*lines)} == {"the MTU of link va", "the MTU of link vb", "the MTU of link br9"}
    assert {one[0] for one in changed(*lines, bridge="br9")} == {"the MTU of link va", "the MTU of link br9"}
