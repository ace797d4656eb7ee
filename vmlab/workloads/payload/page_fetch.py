"""Runs inside a guest: fetches one page. One JSON argument: ``url`` and ``agent``.

Prints ``{"status": N, "length": N, "generator": TEXT, "complete": BOOL}``: the page's ``generator`` as its HTML names
it, and whether the HTML has its end.
"""

import json
import re
import sys
import urllib.error
import urllib.request


def fetch(url: str, agent: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"User-Agent": agent})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode("utf-8", "replace")


def main() -> None:
    options = json.loads(sys.argv[1])
    status, text = fetch(options["url"], options["agent"])
    generator = re.search(r'<meta name="generator" content="([^"]*)"', text)
    answer = {
        "status": status,
        "length": len(text),
        "generator": generator[1] if generator else "",
        "complete": text.rstrip().endswith("</html>"),
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
