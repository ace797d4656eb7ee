"""The options of `vmlab compare` that make it a gate: conditions by which it ends with exit code 1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from vmlab.analysis.comparison import Comparison
from vmlab.analysis.gate import Condition
from vmlab.analysis.judging import judge
from vmlab.cli.diagnostics import say
from vmlab.model.errors import ExitCode, UsageError
from vmlab.report.gate import failing_lines
from vmlab.system.new_file import new_file

_OPTIONS = (
    click.option(
        "--fail-if",
        "texts",
        multiple=True,
        metavar="CONDITION",
        help="Exit with 1 where this difference is established, as 'web.latency_p95 > +20 %'; may be given often. "
        "Without a metric it is about the run time.",
    ),
    click.option("--strict", is_flag=True, help="Fail also where a condition is possible, or nothing is known of it."),
    click.option("--junit", type=click.Path(path_type=Path), help="Write the conditions to this file as JUnit XML."),
)


@dataclass(frozen=True, slots=True)
class GateOptions:
    """The conditions as they were given, whether doubt fails, too, and the JUnit file to write."""

    conditions: tuple[Condition, ...]
    strict: bool
    junit: Path | None

    def demand_sense(self, *, reference: bool) -> None:
        """Raises UsageError for options that mean nothing together."""
        if not self.conditions and (self.strict or self.junit is not None):
            raise UsageError("--strict and --junit go with --fail-if, which names a condition")
        if self.conditions and reference:
            raise UsageError("--fail-if compares what was measured; it does not go with --reference")

    def judged(self, comparison: Comparison) -> Comparison:
        """The comparison with its gate, which is in the JUnit file then."""
        comparison = judge(comparison, self.conditions, strict=self.strict)
        if self.junit is not None:
            # Imported late: no other comparison writes XML.
            from vmlab.report.exports.junit_gate import junit_gate

            with new_file(self.junit) as file:
                file.write(junit_gate(comparison))
        return comparison

    def told(self, comparison: Comparison, *, as_json: bool) -> ExitCode:
        """The exit code. What fails has its line on standard error where standard output is a document."""
        lines = failing_lines(comparison)
        for line in lines if as_json else ():
            say(f"vmlab: {line}")
        return ExitCode.FAILED if lines else ExitCode.PASSED


def gate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options; it is called with them as ``gate``. Raises UsageError for a wrong condition."""

    @functools.wraps(command)
    def with_gate(*args: Any, texts: tuple[str, ...], strict: bool, junit: Path | None, **values: Any) -> Any:
        gate = GateOptions(tuple(map(Condition.parse, texts)), strict, junit)
        return command(*args, gate=gate, **values)

    for option in reversed(_OPTIONS):
        with_gate = option(with_gate)
    return with_gate
