"""Each host of a fleet says which of Debian's packages it cannot get; the controller's own lists decide nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from vmlab.cli.commands import hosts_commands
from vmlab.fleet import serving
from vmlab.fleet.clock import ClockOffset
from vmlab.fleet.fleet_host import Connect
from vmlab.fleet.host_answers import Condition
from vmlab.fleet.host_checks import Needs, demand_ready
from vmlab.fleet.hosts_file import HostEntry
from vmlab.fleet.link import HostLink
from vmlab.guests.image.layers import no_package
from vmlab.lab.provision.host_support import LACKING
from vmlab.model.errors import RefusedError
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides

SCENARIO = """\
name: mine
guests: {a: {memory: 128 MiB, packages: [zip]}}
workloads: {one: {kind: command, on: a, run: "true", packages: [redis-server]}}
"""
ASKED = ("redis-server", "zip")
ENTRIES = {name: HostEntry(address=name) for name in ("hv1", "hv2")}


class Line:
    """To a host that is ready but for the packages that it lacks."""

    def __init__(self, lacking: dict[str, str]) -> None:
        self._lacking = lacking

    async def offset(self) -> ClockOffset:
        """None."""
        return ClockOffset(0.0, 0.0, 0.0)

    async def ask(self, answer: Any, ask: str, **question: Any) -> Condition:
        """Its condition."""
        lacking = {name: self._lacking[name] for name in question["packages"] if name in self._lacking}
        return Condition(checks=[], image="vmlab-1", snapshots=0, measuring=[], lacking_packages=lacking)

    async def close(self) -> None:
        """Nothing is open."""


def connecting(**lacking: dict[str, str]) -> Connect:
    async def connect(name: str, _entry: HostEntry) -> HostLink:
        return cast(HostLink, Line(lacking.get(name, {})))

    return connect


async def test_the_refusal_names_the_host_that_lacks_a_package_before_anything_starts() -> None:
    connect = connecting(hv2={"zip": no_package("zip")})
    with pytest.raises(RefusedError) as caught:
        await demand_ready(ENTRIES, "vmlab-1", print, Needs(packages=ASKED), connect)
    assert str(caught.value) == f"host hv2: {no_package('zip')} (apt-get update there reads the newest lists)"
    await demand_ready(ENTRIES, "vmlab-1", print, Needs(packages=("redis-server",)), connect)


def test_a_host_asks_its_own_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "checks", list)
    monkeypatch.setattr(serving, "find", lambda: None)
    asked: list[list[str]] = []

    def lacking(names: list[str]) -> dict[str, str]:
        asked.append(names)
        return {"zip": no_package("zip")}

    monkeypatch.setattr(serving, "lacking_packages", lacking)
    answer = serving._condition({"packages": [*ASKED]})
    assert answer["lacking_packages"] == {"zip": no_package("zip")} and asked == [[*ASKED]]


def test_what_the_controller_lacks_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Needs] = []

    async def ready(_hosts: object, _image: object, _notice: object, needs: Needs) -> None:
        asked.append(needs)
        raise RefusedError("asked")

    monkeypatch.setattr(hosts_commands, "demand_ready", ready)
    monkeypatch.setattr(hosts_commands, "require_engine", lambda: None)
    monkeypatch.setattr(hosts_commands, "chosen_hosts", lambda _names: ENTRIES)
    monkeypatch.setattr(hosts_commands, "find", lambda: SimpleNamespace(id="vmlab-1"))
    lacking = {f"package {name}": no_package(name) for name in ASKED}
    monkeypatch.setattr(LACKING, "_known", lacking)
    monkeypatch.setattr(LACKING, "_asked", {*lacking})
    file = read(Path("mine.yaml"), SCENARIO)
    with pytest.raises(RefusedError, match="asked"):
        hosts_commands.started_on_fleet(file, Overrides(hosts=("hv1", "hv2")))
    assert [one.packages for one in asked] == [ASKED]
