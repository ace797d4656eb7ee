"""The groups of the list of scenarios."""

from __future__ import annotations

from vmlab.plan.scenario_file.loading import shipped_names
from vmlab.tui.feed.planner import GROUPS, OTHERS, grouped
from vmlab.tui.feed.run_facts import has_words


def test_every_shipped_scenario_has_one_group_and_nothing_else_has() -> None:
    listed = [name for members in GROUPS.values() for name in members]
    assert sorted(listed) == sorted(shipped_names())


def test_beginners_come_first_and_files_of_the_user_last() -> None:
    assert grouped([*shipped_names(), "/home/me/own.yaml"])[0] == (
        "Start here",
        ["tile", "cache-modes", "consolidation"],
    )
    assert grouped([*shipped_names(), "/home/me/own.yaml"])[-1] == (OTHERS, ["/home/me/own.yaml"])
    assert grouped(["tile-disk"]) == [("Disk", ["tile-disk"])]
    assert grouped([]) == []


def test_a_filter_wants_every_word_whatever_its_capitals() -> None:
    assert has_words("tile Smoke", "SMOKE tile") and has_words("tile", "")
    assert not has_words("tile", "tile disk")
