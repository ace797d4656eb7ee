"""What a guest's page cache has at the start: the real program, which empties no cache of this machine here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vmlab.guests.channel import payload_file
from vmlab.guests.payload import page_cache

PIECE = 3 * 2**20


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with the program, one client that imports modules, and caches that only note what is written there."""
    monkeypatch.setattr(page_cache, "__file__", str(tmp_path / "page_cache.py"))
    monkeypatch.setattr(page_cache, "CACHES", str(tmp_path / "drop_caches"))
    monkeypatch.setattr(os, "sync", lambda: None)
    (tmp_path / "programs").mkdir()
    client = "from __future__ import annotations\nimport json\nimport not_on_linux\n"
    client += "from os import (\n    path,\n)\nfrom array import array\n"
    (tmp_path / "programs/client.py").write_text(client)
    return tmp_path


def found_in(place: Path) -> list[str]:
    told: list[str] = json.loads((place / "page_cache.json").read_text())["files"]
    return told


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def read_by(what: str, place: Path, *programs: str) -> int:
    """Bytes that it reads of files; a few thousand of them are its own."""
    before = bytes_read()
    page_cache.main(what, str(place / "programs"), *programs)
    return bytes_read() - before


def test_programs_their_libraries_and_the_modules_of_clients_are_found(place: Path) -> None:
    page_cache.main("find", str(place / "programs"), "true", "no-such-program")
    found = found_in(place)
    assert shutil.which("true") in found
    assert page_cache.LINKED in found
    # Debian's own python3 or another one: json is a package of Python, array an extension that is mapped or built in.
    assert [path for path in found if "/json/__pycache__/decoder." in path]
    assert [path for path in found if path.rpartition("/")[2].startswith("libc.so.")]
    assert len(set(found)) == len(found) and all(map(os.path.exists, found))


def test_a_folder_in_which_the_linker_looks_is_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = place / "libraries"
    libraries.mkdir()
    ldd = place / "bin/ldd"
    ldd.parent.mkdir()
    searched = f"{place}/no/hwcaps:{libraries}"
    ldd.write_text(f"#!/bin/sh\nprintf ' 7:\\t search path={searched}\\t\\t(RUNPATH from file x)\\n'\n")
    ldd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ldd.parent}:{os.environ['PATH']}")
    page_cache.main("find", str(place / "programs"), "true")
    assert str(libraries) in found_in(place) and f"{place}/no/hwcaps" not in found_in(place)


def test_what_was_written_down_is_read_once_under_all_its_names(place: Path) -> None:
    page_cache.main("find", str(place / "programs"), "true")
    told = json.loads((place / "page_cache.json").read_text())
    (place / "large").write_bytes(bytes(PIECE))
    (place / "link").symlink_to(place / "large")
    names = [str(place / one) for one in ("link", "large", "gone", "programs")]
    (place / "page_cache.json").write_text(json.dumps({**told, "files": names}))
    assert PIECE <= read_by("load", place, "true") < PIECE + 2**16


@pytest.mark.parametrize("kept", ["{", "{}", '{"wanted": [["other"], ["client.py"]], "files": []}'])
def test_what_was_written_down_for_others_is_found_anew(place: Path, kept: str) -> None:
    (place / "page_cache.json").write_text(kept)
    sizes = Path(os.path.realpath("/usr/bin/env")).stat().st_size
    assert read_by("load", place, "env") > sizes
    assert (place / "page_cache.json").read_text() == kept


def test_the_caches_are_emptied_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: order.append("sync"))
    monkeypatch.setattr(page_cache, "read", lambda paths: order.append((place / "drop_caches").read_text()))
    page_cache.main("empty", str(place / "programs"), "true")
    assert order == ["sync", "3\n"]


def test_caches_that_cannot_be_emptied_are_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "CACHES", str(place / "no/such/file"))
    monkeypatch.setattr(page_cache, "read", lambda paths: pytest.fail("it went on"))
    with pytest.raises(OSError, match="no/such/file"):
        page_cache.main("empty", str(place / "programs"))


def test_it_needs_no_module_that_a_helper_has_not_loaded(place: Path) -> None:
    """A module that is read in each clone takes a tenth of a second there."""
    page_cache.main("find", str(place / "programs"), "true")
    at = place / "page_cache.py"
    at.write_bytes(payload_file("page_cache.py"))
    words = [str(at), "load", str(place / "programs"), "true"]
    script = f"""\
import __future__, json, os, sys
before, sys.argv = set(sys.modules), {words!r}
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"), {{"__name__": "__main__", "__file__": sys.argv[0]}})
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
