"""Advice from a recording in plain text: each piece with the figures behind it and the run that would measure it."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.analysis.advice.advice import Advised
from vmlab.report.run.recording_text import NO_ADVICE
from vmlab.report.writers.text import paragraph


def advice_text(advised: Advised, width: int) -> str:
    """All of it; a line says where there is none."""
    lines: list[str] = []
    for one in advised.advice:
        lines += [*paragraph(f"{one.subject}: {one.matters}", width, "  ")]
        lines += [line for why in one.why for line in paragraph(f"- {why}", width, "  ")]
        lines += [f"  measure it: {one.run}", ""]
    if not advised.advice:
        lines += [NO_ADVICE, ""]
    return "\n".join([*lines, *_none(advised, width)]).rstrip() + "\n"


def _none(advised: Advised, width: int) -> Iterator[str]:
    if advised.none:
        yield "no advice for"
    for one in advised.none:
        yield from (f"  {line}" for line in paragraph(f"{one.subject}: {one.matters}", width - 2, "  "))
