"""The machine's own package sources, of which only Debian's own suites are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmlab.guests.image.recipe import debian_sources, parse_deb822, parse_one_line
from vmlab.model.errors import ImageError

DEB822 = """\
# A comment before
Types: deb deb-src
URIs: http://mirror.invalid/debian
Suites: bookworm bookworm-updates bookworm-backports
# a comment inside
Components: main
 contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.invalid/debian-security
Suites: bookworm-security
Components: main
Enabled: no

Types: deb-src
URIs: http://mirror.invalid/debian
Suites: bookworm
Components: main
"""

ONE_LINE = """\
# deb http://mirror.invalid/debian trixie main
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.invalid/debian bookworm main
deb http://mirror.invalid/tool nodistro main # a tool
deb-src http://mirror.invalid/debian bookworm main
deb [ signed-by=/etc/apt/keyrings/other.gpg ] http://other.invalid/debian bookworm main
"""


def _apt(tmp_path: Path, **files: str) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        (tmp_path / name.replace("__", "/").replace("_", ".")).write_text(text)
    return tmp_path


def test_deb822_gives_enabled_binary_entries_with_continued_fields() -> None:
    (entry,) = parse_deb822(DEB822)
    assert entry.suites == ("bookworm", "bookworm-updates", "bookworm-backports")
    assert entry.components == ("main", "contrib")
    assert entry.options == {"Signed-By": "/usr/share/keyrings/debian-archive-keyring.gpg"}


def test_a_key_inside_the_file_keeps_its_lines() -> None:
    text = "Types: deb\nURIs: http://m.invalid\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n"
    (entry,) = parse_deb822(text)
    assert "Signed-By: \n -----BEGIN\n .\n abc\n" in entry.stanza()
    assert list(parse_deb822(entry.stanza())) == [entry]


def test_one_line_entries_with_and_without_options() -> None:
    entries = list(parse_one_line(ONE_LINE))
    assert [entry.suites for entry in entries] == [("bookworm",), ("nodistro",), ("bookworm",)]
    assert entries[0].options == {"Signed-By": "/usr/share/keyrings/debian-archive-keyring.gpg"}
    assert entries[1].components == ("main",)
    assert entries[2].options == {"Signed-By": "/etc/apt/keyrings/other.gpg"}


def test_only_debians_own_suites_of_the_release_are_kept(tmp_path: Path) -> None:
    folder = _apt(tmp_path, sources_list=ONE_LINE, sources_list_d__debian_sources=DEB822)
    kept = debian_sources("bookworm", folder)
    assert {uri for entry in kept for uri in entry.uris} == {"http://mirror.invalid/debian"}
    assert {suite for entry in kept for suite in entry.suites} == {"bookworm", "bookworm-updates"}


def test_files_of_other_endings_are_not_read(tmp_path: Path) -> None:
    folder = _apt(tmp_path, sources_list_d__old_list_disabled=ONE_LINE)
    with pytest.raises(ImageError, match="no package source for Debian bookworm"):
        debian_sources("bookworm", folder)


def test_updates_alone_are_not_enough(tmp_path: Path) -> None:
    folder = _apt(tmp_path, sources_list="deb http://mirror.invalid/debian bookworm-updates main\n")
    with pytest.raises(ImageError, match="no package source"):
        debian_sources("bookworm", folder)
