"""Runs inside a guest, or a place on the host: empties the page cache, and reads what workloads are about to run.

Only the standard library of Python 3.9, started with ``-I -S``. Arguments: what to do, a folder of Python programs, and
the names of other programs::

    find   finds what those programs load, and writes it down beside this file
    load   reads it, as it was written down; else finds it first
    empty  empties the caches of pages, names and inodes before that

What they load are their own files, their shared libraries, and the modules that the Python programs import. Finding it
starts several programs, each of which takes a tenth of a second under emulation: a guest does it before it is frozen.
A program or a module that is not there is passed over.
"""

from __future__ import annotations

import json
import os
import sys

PIECE = 2**20
CACHES = "/proc/sys/vm/drop_caches"
LINKED = "/etc/ld.so.cache"
"""Where the dynamic linker looks for libraries, so that each program reads it."""
IMPORTS = """\
import sys
for line in sys.argv[1:]:
    try:
        exec(line)
    except Exception:
        pass  # A statement of several lines, or a module that is not for this system.
specs = [module.__spec__ for module in list(sys.modules.values()) if getattr(module, "__spec__", None)]
for spec in specs:
    print(spec.cached or spec.origin or "")
with open("/proc/self/maps") as maps:
    for line in maps:
        print(line.split(None, 5)[-1].strip())
"""
"""Prints the files that an interpreter has read once it has run the imports it is given."""


def found_for(folder: str, programs: list[str]) -> list[str]:
    """The files that they load, and the folders in which libraries are looked for, each once."""
    # Loaded late, as a clone that reads what was written down does without it.
    import shutil
    import subprocess

    def said(*argv: str) -> str:
        try:
            done = subprocess.run(
                argv,
                env={**os.environ, "LD_DEBUG": "libs"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError:
            return ""
        return os.fsdecode(done.stdout)

    paths = [path for path in map(shutil.which, programs) if path]
    modules = said("python3", "-I", "-S", "-c", IMPORTS, *imports_in(folder)).split()
    libraries = said("ldd", *paths).replace("search path=", " ").replace(":", " ").split()
    found = dict.fromkeys([LINKED, *paths, *modules, *libraries])
    return [path for path in found if path.startswith("/") and (os.path.isfile(path) or os.path.isdir(path))]


def imports_in(folder: str) -> list[str]:
    """The import statements of all programs there."""
    found = []
    for name in python_programs(folder):
        with open(f"{folder}/{name}", errors="replace") as program:
            found += [line.strip() for line in program if line.startswith(("import ", "from ")) and "__" not in line]
    return list(dict.fromkeys(found))


def python_programs(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".py")) if os.path.isdir(folder) else []


def read(paths: list[str]) -> None:
    """Read each file once, under each of its names: links are read as well."""
    piece = bytearray(PIECE)
    seen = set()
    for path in paths:
        try:
            if os.path.isdir(path):
                os.listdir(path)
                continue
            with open(path, "rb", buffering=0) as file:
                found = os.fstat(file.fileno())
                of = found.st_dev, found.st_ino
                while of not in seen and file.readinto(piece):
                    pass
                seen.add(of)
        except OSError:
            # It was there when it was found.
            pass


def main(what: str, folder: str, *programs: str) -> None:
    kept = f"{os.path.dirname(__file__)}/page_cache.json"
    wanted = [sorted(set(programs)), python_programs(folder)]
    if what == "find":
        with open(kept, "w") as file:
            json.dump({"wanted": wanted, "files": found_for(folder, list(programs))}, file)
        return
    if what == "empty":
        os.sync()
        with open(CACHES, "w") as caches:
            caches.write("3\n")
    try:
        with open(kept) as file:
            found = json.load(file)
    except (OSError, ValueError):
        found = {}
    read(found["files"] if found.get("wanted") == wanted else found_for(folder, list(programs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
