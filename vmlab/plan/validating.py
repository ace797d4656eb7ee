"""A scenario checked as far as it can be without a host: every cell of every size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vmlab.model.scenarios.scenario import SIZES
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import ScenarioFile, load
from vmlab.plan.terms import HostFacts, Overrides

_ANY_HOST = HostFacts(
    memory_available_bytes=2**60, memory_total_bytes=2**60, disk_free_bytes=2**60, cpus=1, accelerator_guess="tcg"
)


@dataclass(frozen=True, slots=True)
class Valid:
    """A scenario in order; `cells` counts them by size."""

    path: Path
    name: str
    cells: dict[str, int]


def validate_all(
    file: ScenarioFile,
    lacked_programs: Mapping[str, Sequence[str]] | None = None,
    windows_images: tuple[str, ...] | None = None,
) -> Valid:
    """Plan every size for a host that holds anything. Raises ScenarioError for the first that fails.

    `lacked_programs` and `windows_images` are what is known of added images, as in `HostFacts`.
    """
    host = replace(_ANY_HOST, lacked_programs=lacked_programs or {}, windows_images=windows_images)
    sizes = [size for size in reversed(SIZES) if size == "full" or size in file.scenario.sizes]
    cells = {size: len(make_plan(file, Overrides(size=size), host).cells) for size in sizes}
    return Valid(file.path, file.scenario.name, cells)


def load_valid(reference: str) -> ScenarioFile:
    """As `loading.load`, with every size checked: a mistake that the chosen size covers is a mistake still."""
    file = load(reference)
    validate_all(file)
    return file
