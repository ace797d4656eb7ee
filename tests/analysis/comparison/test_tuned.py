"""What `vmlab tune` finds in runs whose best setting is known, and what it does not claim."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.analysis.tuned_runs import CONFIRMATION, SCREENING, Reading, note_of, of_fio, told
from tests.store.stories import Story
from vmlab.analysis.comparison.tuned import USUAL_REPEATS, LeverWorth, Tuned, tuned
from vmlab.analysis.document import run_document
from vmlab.model.errors import ExitCode, UsageError
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.plan.tuning.tuning_scenarios import GENERATED, confirmation_file
from vmlab.report.tune_text import screening_text, tune_document, tune_text, winner_text
from vmlab.store.reader import RunReader
from vmlab.system.text_width import UNCUT


def reading(seed: int, noise: float = 0.03, **worth: float) -> Reading:
    """Some 1000 times the worth of each lever that is changed, and noise; blocks differ by a third."""
    draw = random.Random(seed)
    blocks = [draw.uniform(0.8, 1.2) for _ in range(20)]

    def value(levers: tuple[str, ...], repeat: int) -> float:
        product = 1000.0
        for lever in levers:
            product *= worth.get(lever, 1.0)
        return product * blocks[repeat] * (1 + draw.gauss(0, noise))

    return value


def confirmation(found: Tuned, repeats: int = USUAL_REPEATS) -> ScenarioFile:
    return confirmation_file(found.text, found.screening.id, found.proposed, repeats)


def both(folder: Path, seed: int = 1, noise: float = 0.03, repeats: int = USUAL_REPEATS, **worth: float) -> Tuned:
    """A screening of what fio does, and its confirmation, analysed together."""
    first = told(folder, SCREENING, of_fio().file, reading(seed, noise, **worth))
    file = confirmation(tuned(first), repeats)
    second = told(folder, CONFIRMATION, file, reading(seed + 1000, noise, **worth))
    return tuned(second, first)


def _worth(found: Tuned, name: str) -> LeverWorth:
    return next(one for one in found.levers if one.name == name)


def test_the_levers_that_matter_are_found_and_confirmed(tmp_path: Path) -> None:
    found = both(tmp_path, cache=0.5, queues=1.4, allocation=1.0)
    assert [one.name for one in found.levers][:1] == ["queues"] and found.levers[-1].name == "cache"
    assert (_worth(found, "queues").beyond_noise, _worth(found, "queues").better) == (True, True)
    assert (_worth(found, "cache").beyond_noise, _worth(found, "cache").better) == (True, False)
    assert _worth(found, "queues").percent == pytest.approx(40, abs=8)
    assert _worth(found, "cache").percent == pytest.approx(-50, abs=5)
    assert found.winner is not None and found.winner.levers == ("queues",)
    assert (found.undecided, found.exit_code) == (False, ExitCode.PASSED)
    assert "confirmed: queues=2 is better than the default" in tune_text(found)


def test_where_the_default_is_best_no_setting_wins(tmp_path: Path) -> None:
    found = both(tmp_path, cache=0.4, queues=0.9)
    assert (found.winner, found.undecided, found.exit_code) == (None, False, ExitCode.PASSED)
    assert "no setting is proven better than the default" in tune_text(found)
    assert winner_text(found) is None
    assert tune_document(found)["winner"] is None


def test_levers_that_help_together_alone_are_found_by_what_was_measured(tmp_path: Path) -> None:
    def together(levers: tuple[str, ...], repeat: int) -> float:
        return (1400.0 if {"cache", "queues"} <= {*levers} else 900.0 if levers else 1000.0) + repeat

    first = told(tmp_path, SCREENING, of_fio().file, together)
    assert {"cache", "queues"} <= {*tuned(first).proposed[0]}
    found = tuned(first, told(tmp_path, CONFIRMATION, confirmation(tuned(first)), together))
    assert found.winner is not None and {"cache", "queues"} <= {*found.winner.levers}


def test_the_simpler_of_two_settings_wins_unless_the_other_is_proven_better(tmp_path: Path) -> None:
    first = told(tmp_path, SCREENING, of_fio().file, reading(5, 0.02, cache=1.5, queues=1.2))
    found = tuned(first)
    file = confirmation_file(found.text, SCREENING, [("cache",), ("cache", "allocation")], 7)
    simple = tuned(first, told(tmp_path, CONFIRMATION, file, reading(6, 0.02, cache=1.5)))
    assert [one.better for one in simple.settings] == [True, True]
    assert simple.winner is not None and simple.winner.levers == ("cache",)
    file = confirmation_file(found.text, SCREENING, [("cache", "allocation"), ("cache",)], 7)
    last = tuned(first, told(tmp_path, f"{CONFIRMATION}a", file, reading(6, 0.02, cache=1.5)))
    assert [one.better for one in last.settings] == [True, True]
    assert last.winner is not None and last.winner.levers == ("cache",)
    file = confirmation_file(found.text, SCREENING, [("cache",), ("cache", "queues")], 7)
    more = tuned(first, told(tmp_path, f"{CONFIRMATION}b", file, reading(7, 0.02, cache=1.5, queues=1.3)))
    assert more.winner is not None and more.winner.levers == ("cache", "queues")


def test_one_lost_cell_leaves_a_verdict(tmp_path: Path) -> None:
    first = told(tmp_path, SCREENING, of_fio().file, usual := reading(1, queues=1.4))

    def lost(levers: tuple[str, ...], repeat: int) -> float | None:
        return None if (levers, repeat) == ((), 3) else usual(levers, repeat)

    found = tuned(first, told(tmp_path, CONFIRMATION, confirmation(tuned(first)), lost))
    assert found.winner is not None and found.winner.levers == ("queues",)


def test_too_few_repeats_are_no_verdict(tmp_path: Path) -> None:
    found = both(tmp_path, repeats=USUAL_REPEATS - 2, queues=1.4)
    assert (found.winner, found.undecided, found.exit_code) == (None, True, ExitCode.INVALID)
    assert "no verdict: a comparison has too few measurements" in tune_text(found)


def test_a_screening_alone_proposes_and_says_that_it_is_only_a_guide(tmp_path: Path) -> None:
    found = tuned(told(tmp_path, SCREENING, of_fio().file, reading(1, queues=1.4)))
    assert found.proposed[0] == ("queues",) and len(found.proposed) == 2
    assert (found.confirmation, found.winner, found.exit_code) == (None, None, ExitCode.INVALID)
    assert "a guide: " in screening_text(found)
    assert f"vmlab tune --confirm {SCREENING}" in tune_text(found, UNCUT)
    assert "within noise" in screening_text(found)


def test_chance_rarely_wins_where_nothing_differs(tmp_path: Path) -> None:
    """At most 5 % of confirmations prove anything; of twenty, four and more would be in one of fifty."""
    won = [both(tmp_path / str(seed), seed, noise=0.1).winner for seed in range(20)]
    assert sum(one is not None for one in won) < 4


def test_invalid_cells_cost_their_pair_and_are_named(tmp_path: Path) -> None:
    value = reading(2, queues=1.4)

    def spoilt(levers: tuple[str, ...], repeat: int) -> float | None:
        return None if levers == () and repeat == 1 else value(levers, repeat)

    plan = of_fio()
    found = tuned(told(tmp_path, SCREENING, plan.file, spoilt))
    whole = len(plan.note.settings) // 2 * plan.blocks
    assert (found.measured, found.planned) == (whole - 1, whole)
    assert _worth(found, "queues").beyond_noise
    assert f"{whole - 1} of {whole} pairs" in screening_text(found)


def test_a_setting_without_a_valid_cell_leaves_the_levers_it_can(tmp_path: Path) -> None:
    def never(levers: tuple[str, ...], repeat: int) -> float | None:
        return None if "cache" in levers else 1000.0

    found = tuned(told(tmp_path, SCREENING, of_fio().file, never))
    assert all(one.percent is None for one in found.levers)
    assert "invalid" in screening_text(found)


def test_figures_of_which_less_is_better_are_better_where_they_fall(tmp_path: Path) -> None:
    plan = of_fio()
    text = plan.file.text.replace("iops", "latency_p99")
    file = read(GENERATED, text, {})
    assert note_of(file).metric == "latency_p99"
    found = tuned(told(tmp_path, SCREENING, file, reading(3, queues=0.5)))
    assert not found.more_is_better
    assert (_worth(found, "queues").better, found.levers[0].name) == (True, "queues")
    assert found.proposed[0] == ("queues",)


def test_other_runs_and_other_screenings_are_refused(tmp_path: Path) -> None:
    first = told(tmp_path, SCREENING, of_fio().file, reading(1, queues=1.4))
    file = confirmation_file(tuned(first).text, "20261121-143000-other-cccc", [("queues",), ("cache",)], 7)
    second = told(tmp_path, CONFIRMATION, file, reading(1))
    with pytest.raises(UsageError, match="confirms run 20261121-143000-other-cccc"):
        tuned(first, second)
    with pytest.raises(UsageError, match="a screening, or a screening and its confirmation"):
        tuned(second)
    with pytest.raises(UsageError, match="a screening, or a screening and its confirmation"):
        tuned(first, first)
    story = Story(tmp_path / "plain" / "run.sqlite", run="20261121-143000-plain-dddd").begin({"cache": ["none"]})
    with RunReader(story.end()) as reader, pytest.raises(UsageError, match="is none of `vmlab tune`"):
        tuned(run_document(reader))


def test_a_run_that_was_broken_off_is_analysed_and_one_under_way_is_not(tmp_path: Path) -> None:
    document = told(tmp_path, SCREENING, of_fio().file, reading(1, queues=1.4), outcome="aborted")
    assert _worth(tuned(document), "queues").beyond_noise
    with pytest.raises(UsageError, match="is not over"):
        tuned(replace(document, run=replace(document.run, ended=None)))
