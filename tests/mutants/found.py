"""What is known of a module's mutants, and of those that no test can kill."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One change: by which operator, its how-manieth place, the line of the module, and its text before and after."""

    operator: str
    occurrence: int
    line: int
    was: str
    now: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is, wherever it stands in the module."""
        return self.operator, self.was, self.now


@dataclass(frozen=True)
class Equivalent:
    """Mutants that do what the module does: those of `module` (of all where it is empty) with these texts.

    `was` and `now` are regular expressions of the changed lines before and after, `why` says what makes them the same.
    """

    why: str
    was: str
    now: str = r"(?s).*"
    module: str = ""

    def covers(self, module: str, mutant: Mutant) -> bool:
        """Whether `mutant` of `module` is one of them."""
        return (
            self.module in ("", module)
            and re.fullmatch(self.was, mutant.was) is not None
            and re.fullmatch(self.now, mutant.now) is not None
        )
