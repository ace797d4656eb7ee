"""The options that make `vmlab compare` a gate, and the exit code that its conditions give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.gate import Condition
from vmlab.analysis.comparison.judging import gate_code, judge
from vmlab.cli.diagnostics import Option, say, with_options
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.visible import visible_line
from vmlab.report.gate_text import failing_lines
from vmlab.system.given_file import new_file


def _fail_if(help: str) -> Option:
    """Raises UsageError for a wrong condition."""
    return click.option(
        "--fail-if", "conditions", multiple=True, metavar="CONDITION", callback=_parsed_conditions, help=help
    )


def _parsed_conditions(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Condition, ...]:
    return tuple(map(Condition.parse, texts))


_OPTIONS: tuple[Option, ...] = (
    _fail_if(
        "Exit with 1 if the interval proves this: a difference, such as 'web.latency_p95 > +20 %', or a level, such as "
        "'web.latency_p95 > 20 ms'; can be repeated. Without a metric it applies to the run time."
    ),
    click.option("--strict", is_flag=True, help="Exit with 1 instead of 4 if a condition is undecided."),
    click.option("--lenient", is_flag=True, help="Exit with 0 instead of 4 if a condition is undecided."),
    click.option("--junit", type=click.Path(path_type=Path), help="Write the results of the conditions as JUnit XML."),
)


@dataclass(frozen=True, slots=True)
class GateOptions:
    """The conditions as they were given, whether doubt fails or passes, and the JUnit file to write."""

    conditions: tuple[Condition, ...]
    strict: bool
    lenient: bool
    junit: Path | None

    def demand_sense(self, *, reference: bool) -> None:
        """Raises UsageError for options that contradict each other."""
        if not self.conditions and (self.strict or self.lenient or self.junit is not None):
            raise UsageError("--strict, --lenient and --junit go with --fail-if, which names a condition")
        if self.strict and self.lenient:
            raise UsageError("--strict and --lenient exclude each other")
        if self.conditions and reference:
            raise UsageError("--fail-if compares what was measured; it does not go with --reference")

    def judged(self, comparison: Comparison) -> Comparison:
        """The comparison with its gate, which is in the JUnit file then."""
        comparison = judge(comparison, self.conditions, strict=self.strict)
        if self.junit is not None:
            # Imported late: no other comparison writes XML.
            from vmlab.report.exports.junit import junit_gate

            with new_file(self.junit) as file:
                file.write(junit_gate(comparison))
        return comparison

    def told(self, comparison: Comparison, *, alone: bool) -> ExitCode:
        """The exit code. What fails, or is undecided, is said on standard error where JSON or tables stand `alone`."""
        undecided = not self.lenient and any(answer.undecided for answer in comparison.gate)
        for line in failing_lines(comparison, undecided=undecided) if alone else ():
            say(f"vmlab: {visible_line(line)}")
        return gate_code(comparison, lenient=self.lenient)


conditions_option = _fail_if("Show how many repeats or runs this `vmlab compare` condition needs.")
"""``--fail-if`` alone; a command is called with ``conditions``."""
gate_options = with_options(_OPTIONS, "gate", GateOptions, ("conditions", "strict", "lenient", "junit"))
"""All of them; a command is called with them as ``gate``."""
