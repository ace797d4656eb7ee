"""Searches texts by patterns, in a process of its own that can be ended: some patterns take for ever.

Runs as a file, by `found_figures`. Standard input has ``{"texts": [TEXT, …], "patterns": [[PATTERN, MOST], …],
"seconds": S}``; for each pattern a line follows, ``[[TIMES, GROUP], …]``: for each text how often the pattern matches,
up to MOST, and the first group of the first match, null for none. After S seconds of CPU time the kernel ends it in any
case.
"""

import json
import os
import re
import resource
import sys
from itertools import islice


def main() -> None:
    """Answers pattern by pattern, so that who ends this knows which one it was."""
    asked = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"]))
    for pattern, most in asked["patterns"]:
        compiled, found = re.compile(pattern, re.MULTILINE), []
        for text in asked["texts"]:
            groups = [one[1] if compiled.groups else None for one in islice(compiled.finditer(text), most)]
            found.append([len(groups), groups[0] if groups else None])
        answer = json.dumps(found).encode() + b"\n"
        while answer:
            answer = answer[os.write(1, answer) :]


if __name__ == "__main__":
    main()
