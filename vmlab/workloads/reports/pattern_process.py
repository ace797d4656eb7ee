"""Searches texts by patterns, in a process of its own that can be ended: some patterns take for ever.

Runs as a file, by `found_figures`. Standard input has ``{"texts": [TEXT, …], "patterns": [[PATTERN, MOST], …],
"seconds": S}``; for each pattern a line follows, ``[[TIMES, GROUP, BEFORE, AFTER], …]``: for each text how often the
pattern matches, up to MOST, the first group of the first match, null for none, and the letters of the text on either
side of that group. After S seconds of CPU time the kernel ends it in any case.
"""

import json
import os
import re
import resource
import sys
from itertools import islice

AROUND = 200


def group_of(match: re.Match[str]) -> tuple[str | None, str, str]:
    """The group of a match, and the letters around it."""
    if not match.re.groups or match[1] is None:
        return None, "", ""
    (begin, end), text = match.span(1), match.string
    return match[1], text[max(0, begin - AROUND) : begin], text[end : end + AROUND]


def main() -> None:
    """Answers pattern by pattern, so that who ends this knows which one it was."""
    asked = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"]))
    for pattern, most in asked["patterns"]:
        compiled, found = re.compile(pattern, re.MULTILINE), []
        for text in asked["texts"]:
            matches = islice(compiled.finditer(text), most)
            first = next(matches, None)
            found.append([0, None, "", ""] if first is None else [1 + sum(1 for _ in matches), *group_of(first)])
        answer = json.dumps(found).encode() + b"\n"
        while answer:
            answer = answer[os.write(1, answer) :]


if __name__ == "__main__":
    main()
