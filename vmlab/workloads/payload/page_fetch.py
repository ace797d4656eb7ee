"""Runs inside a guest: fetches one page over HTTP/1.0. One JSON argument: ``address``, ``port``, ``path``, ``agent``.

Prints ``{"status": N, "length": N, "generator": TEXT, "complete": BOOL}``: the page's ``generator`` as its HTML names
it, and whether the HTML has its end. Python's own HTTP client would cost an emulated guest a second to import.
"""

import json
import re
import socket
import sys

_PATIENCE = 120.0
_MOST = 64 * 2**20


def fetch(address: str, port: int, path: str, agent: str) -> tuple[int, str]:
    """The status and the body; status 0 where the answer is not HTTP."""
    request = f"GET {path} HTTP/1.0\r\nHost: {address}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    answer = bytearray()
    with socket.create_connection((address, port), timeout=_PATIENCE) as connection:
        connection.sendall(request.encode("ascii"))
        while len(answer) < _MOST and (piece := connection.recv(65536)):
            answer += piece
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.[01] (\d{3})", head)
    return int(status[1]) if status else 0, body.decode("utf-8", "replace")


def main() -> None:
    options = json.loads(sys.argv[1])
    status, text = fetch(options["address"], options["port"], options["path"], options["agent"])
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
