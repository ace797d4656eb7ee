"""Whether this host can plan a scenario that is being written, and why not."""

from __future__ import annotations

from pathlib import Path

from vmlab.model.errors import ScenarioError, VmlabError
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.scenario_file.problems import ScenarioErrors
from vmlab.plan.terms import HostFacts, Overrides

_FILE = Path("<vmlab scenario>")


class Trial:
    """Plans scenarios on a `host`."""

    def __init__(self, host: HostFacts) -> None:
        self._host = host
        self._has_to_fit = True

    @property
    def emulates(self) -> bool:
        """Whether guests of this host are emulated, as far as is known without one."""
        return self._host.accelerator_guess == "tcg"

    @property
    def image_bytes(self) -> int:
        """How large the disk of the lab's image is, in bytes; 0 where it was not built yet."""
        return (self._host.images or {}).get(LAB_IMAGE, 0)

    def leave_host_out(self) -> None:
        """From now on ask only whether a scenario is valid: this host can run none."""
        self._has_to_fit = False

    def why_not(self, text: str) -> str | None:
        """Why the scenario is not valid, or does not fit this host; None where it does."""
        try:
            plan = make_plan(read(_FILE, text, {}), Overrides(), self._host)
            if self._has_to_fit:
                check_fit(plan, self._host)
        except ScenarioErrors as several:
            first = several.problems[0]
            return first.message if isinstance(first, ScenarioError) else str(first)
        except ScenarioError as error:
            return error.message
        except VmlabError as error:
            return str(error)
        return None
