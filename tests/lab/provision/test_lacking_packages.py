"""apt is asked once for all packages of a scenario, and a machine without a source of Debian's says so once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.test_image_layers import HOST, SCENARIO
from vmlab.lab.provision import host_support
from vmlab.lab.provision.host_support import Lacking
from vmlab.model.errors import ScenarioError
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides

Asked = list[Sequence[str]]
ALL = ["redis-tools", "zip", "redis-server"]


def asked_by_plan(monkeypatch: pytest.MonkeyPatch, lacking: dict[str, str]) -> tuple[Asked, str]:
    """What apt is asked while a scenario is planned twice, and what is wrong with it."""
    asked: Asked = []

    def answer(names: Sequence[str]) -> dict[str, str]:
        asked.append(names)
        return {name: lacking[name] for name in names if name in lacking}

    monkeypatch.setattr(host_support, "lacking_packages", answer)
    host = replace(HOST, lacking=Lacking())
    wrong = ""
    for _ in range(2):
        try:
            make_plan(read(Path("x.yaml"), SCENARIO), Overrides(size="full"), host)
        except ScenarioError as error:
            wrong = "\n".join(error.lines())
    return asked, wrong


def test_all_packages_are_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_by_plan(monkeypatch, {}) == ([ALL], "")
    asked, wrong = asked_by_plan(monkeypatch, {"zip": "no zip", "redis-server": "no redis"})
    assert asked == [ALL] and wrong == "x.yaml:3:48: no zip\nx.yaml:7:67: no redis"


def test_one_reason_of_all_packages_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    none = "no package source for Debian bookworm is configured"
    assert asked_by_plan(monkeypatch, dict.fromkeys(ALL, none))[1] == f"x.yaml:3:35: {none}"
