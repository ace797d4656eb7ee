"""The licences of the packages that an image is made of, as Debian's copyright files name them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vmlab.guests.image.catalog import IMAGES, MEND, Image
from vmlab.model.errors import ImageError

DOCS = "usr/share/doc"
_MOST = 4 * 2**20
"""Bytes that are read of a copyright file."""
_FIELD = re.compile(r"^License:[ \t]*(\S[^\n]*)$", re.MULTILINE | re.IGNORECASE)
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9][A-Za-z0-9.+-]*[A-Za-z0-9+])")


@dataclass(frozen=True, slots=True)
class Package:
    """A package in an image; `licences` is empty where Debian names none in a form that programs read."""

    name: str
    version: str
    licences: tuple[str, ...]


def packages_of(image: Image) -> list[Package]:
    """What an image is made of, by name. Raises ImageError for one that was built before licences were kept."""
    manifest = IMAGES.read(image.folder)
    if "licences" not in manifest:
        raise ImageError(f"guest image {image.id} was built by a vmlab that kept no licences", remedy=MEND)
    named = manifest["licences"]
    return [Package(name, str(version), tuple(named.get(name, ()))) for name, version in manifest["packages"].items()]


def licences(tree: Path, packages: Iterable[str]) -> dict[str, list[str]]:
    """The names of the licences of each of `packages`, which are installed in `tree`.

    They are those of the fields `License` in a copyright file that programs can read (Debian's DEP 5), of another one
    the common licences that it refers to; none where it names neither, or is missing.
    """
    return {package: named(_copyright(tree, package)) for package in packages}


def named(text: str) -> list[str]:
    """The licences that a copyright file names, each once, in alphabetical order."""
    found = {" ".join(name.split()) for name in _FIELD.findall(text)} if text.startswith("Format:") else set()
    return sorted(found or set(_COMMON.findall(text)), key=lambda name: (name.lower(), name))


def _copyright(tree: Path, package: str) -> str:
    """The text, also where the package has that of another one by a link; links lead nowhere out of `tree`."""
    place = f"{DOCS}/{package}"
    for _ in range(8):
        folder = tree / place
        if not folder.is_symlink():
            break
        place = os.path.normpath(Path("/", place).parent / folder.readlink()).lstrip("/")
    file = tree / place / "copyright"
    if file.is_symlink() or any((tree / part).is_symlink() for part in (Path(place), *Path(place).parents)):
        return ""
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
