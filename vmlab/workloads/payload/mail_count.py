"""Runs inside a guest: counts delivered mail with one subject.

One JSON argument: ``maildir`` and ``subject``. Prints ``{"delivered": N, "sizes": {BYTES: N}, "others": N}``. Sizes
are of bodies as they crossed the wire, where each line ends with two bytes; `others` have another subject.
It does without pathlib, whose import would be a fifth of all that its start takes.
"""

import json
import os
import sys


def read(message: bytes) -> tuple[str, int]:
    """Subject and size of the body on the wire."""
    header, _, body = message.partition(b"\n\n")
    for line in header.split(b"\n"):
        if line.lower().startswith(b"subject:"):
            return line[8:].strip().decode("utf-8", "replace"), len(body) + body.count(b"\n")
    return "", len(body)


def main() -> None:
    options = json.loads(sys.argv[1])
    folder = f"{options['maildir']}/new"
    sizes: dict[int, int] = {}
    others = 0
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with open(f"{folder}/{name}", "rb") as file:
            subject, size = read(file.read())
        if subject == options["subject"]:
            sizes[size] = sizes.get(size, 0) + 1
        else:
            others += 1
    sys.stdout.write(json.dumps({"delivered": sum(sizes.values()), "sizes": sizes, "others": others}) + "\n")


if __name__ == "__main__":
    main()
