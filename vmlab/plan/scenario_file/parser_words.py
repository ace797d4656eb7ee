"""What the YAML parser found, in the words of someone who wants to mend the scenario."""

from __future__ import annotations

import re

from ruamel.yaml.error import MarkedYAMLError

from vmlab.plan.scenario_file.problems import shorten


def plainly(error: MarkedYAMLError, text: str) -> str:
    """What is wrong in `text`, which the parser refused with `error`."""
    problem = str(error.problem or error.context or "cannot be read")
    here = "" if error.problem_mark is None else [*text.splitlines(), ""][error.problem_mark.line]
    if "'\\t'" in problem:
        return _of_tab(here, error.problem_mark.column) if error.problem_mark else "a tab cannot indent YAML"
    if error.problem_mark is not None and here[: error.problem_mark.column + 1].endswith("${"):
        return "a variable between { and }, or [ and ], needs quotation marks"
    began = error.context_mark
    if began is not None and "expected <block end>" in problem:
        what = "list" if "sequence" in str(error.context) else "mapping"
        column = "" if error.problem_mark is None else f" has column {error.problem_mark.column + 1}"
        if error.problem_mark is not None and error.problem_mark.column == began.column:
            return (
                f"wrong indentation: this is in the column of the {what} from line {began.line + 1}, and no part of it"
            )
        nearest = f"the one from line {began.line + 1} has column {began.column + 1}"
        return f"wrong indentation: no {what} above{column}; {nearest}"
    for kind, signs in (("mapping", "{}"), ("sequence", "[]")):
        if began is not None and f"flow {kind}" in str(error.context):
            opened = f"'{signs[0]}' on line {began.line + 1}, column {began.column + 1}"
            return f"is not YAML: a ',' or the '{signs[1]}' that closes {opened} is missing before this"
    if (plain := _of_scalar(error, problem, text)) is not None:
        return plain
    context = f" {error.context}" if error.context and error.problem else ""
    return shorten(f"is not YAML: {problem}{context}", 160)


def _of_tab(line: str, column: int) -> str:
    """What is wrong with the tab that is at `column` of a line, or before it."""
    if not line.strip():
        return "a tab on a line of its own; remove it"
    if line[column:].lstrip().startswith("#"):
        return "a tab cannot stand before a comment; use a space"
    if not line[:column].strip():
        return "a tab cannot indent YAML; use spaces"
    return "a tab cannot separate what stands on one line; use a space"


def _of_scalar(error: MarkedYAMLError, problem: str, text: str) -> str | None:
    """What is wrong with one key or value, where that can be said in other words than the parser's."""
    began, here = error.context_mark, error.problem_mark
    if began is not None and "quoted scalar" in str(error.context):
        return f"the quotation mark on line {began.line + 1}, column {began.column + 1} is not closed"
    if began is not None and "expected ':'" in problem:
        return f"line {began.line + 1} has no colon: a key needs one, and a space or a new line after it"
    if (sign := re.search(r"character '(.)' that cannot start", problem)) is not None:
        return f"a value cannot begin with {sign[1]}; put it in quotation marks"
    if here is None or "mapping values are not allowed" not in problem:
        return None
    lines = text.splitlines()
    if re.search(r":\s", lines[here.line][: here.column]):
        return "a value that contains a colon and a space needs quotation marks"
    above = next((place for place in range(here.line - 1, -1, -1) if lines[place].strip()), None)
    if above is None:
        return None
    if re.search(r":\s", lines[above]):
        return f"wrong indentation: the key of line {above + 1} has its value there already, and this is deeper"
    return f"line {above + 1} is no key with a value: a space is missing after its colon, or the colon itself"
