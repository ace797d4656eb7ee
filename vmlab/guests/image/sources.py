"""Reads the machine's own Debian package sources, so that an image is built from the same packages as the machine."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vmlab.model.errors import ImageError

APT = Path("/etc/apt")
_COMPONENTS = frozenset({"main", "contrib", "non-free", "non-free-firmware"})
_CARRIED = ("Acquire::http", "Acquire::https", "Acquire::Check-Valid-Until", "Acquire::Check-Date", "Acquire::Retries")


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of deb822 or one-line style: where, which suites and components, and further options by name."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)

    def stanza(self) -> str:
        """The entry in deb822 style."""
        fields = {
            "Types": "deb",
            "URIs": " ".join(self.uris),
            "Suites": " ".join(self.suites),
            "Components": " ".join(self.components),
            **self.options,
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items())


def running_codename() -> str:
    """The codename of the Debian release that runs here. Raises ImageError anywhere else."""
    release = platform.freedesktop_os_release()
    codename = release.get("VERSION_CODENAME", "")
    if release.get("ID") != "debian" or not codename:
        raise ImageError(f"guest images are built from Debian's packages, and this is {release.get('PRETTY_NAME')}")
    return codename


def debian_sources(codename: str, folder: Path = APT) -> list[Source]:
    """The entries of Debian's own suites of `codename`, below an ``/etc/apt``.

    Raises ImageError where there is none of the suite itself.
    """
    kept = [found for source in _read_all(folder) if (found := _only_debian(source, codename)) is not None]
    if not any(codename in source.suites for source in kept):
        raise ImageError(f"no package source for Debian {codename} is configured", remedy=f"add one below {folder}")
    return kept


def apt_options() -> list[str]:
    """The machine's own settings of how packages are fetched (proxies, validity of dates), as apt.conf lines."""
    dump = subprocess.run(
        ["apt-config", "dump", "--no-empty", "--format", "%f %v%n"], capture_output=True, text=True, check=True
    )
    lines = (line.partition(" ") for line in dump.stdout.splitlines())
    return [f'{name} "{value}";' for name, _, value in lines if name.startswith(_CARRIED) and '"' not in value]


def _only_debian(source: Source, codename: str) -> Source | None:
    own = {codename, f"{codename}-updates", f"{codename}-security"}
    suites = tuple(suite for suite in source.suites if suite in own)
    components = tuple(part for part in source.components if part in _COMPONENTS)
    keyring = source.options.get("Signed-By", "")
    foreign = keyring.startswith("/") and "debian-archive" not in keyring
    return Source(source.uris, suites, components, source.options) if suites and components and not foreign else None


def _read_all(folder: Path) -> Iterator[Source]:
    for path in (folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))):
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".sources":
            yield from parse_deb822(text)
        elif path.suffix == ".list":
            yield from parse_one_line(text)


def parse_deb822(text: str) -> Iterator[Source]:
    """The enabled binary entries of a ``.sources`` file."""
    for stanza in _stanzas(text.splitlines()):
        words = {name: tuple(stanza.get(name, "").split()) for name in ("types", "uris", "suites", "components")}
        if "deb" in words["types"] and stanza.get("enabled", "yes").strip().lower() not in {"no", "false", "0"}:
            yield Source(words["uris"], words["suites"], words["components"], _options(stanza))


def _stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    name = ""
    for line in (*lines, ""):
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, ""
        elif line[0].isspace() and name:
            fields[name] += "\n" + line
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()


def parse_one_line(text: str) -> Iterator[Source]:
    """The binary entries of a ``.list`` file: ``deb [option=value …] URI SUITE COMPONENT …``."""
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words.pop(0) != "deb":
            continue
        options: dict[str, str] = {}
        if words and words[0].startswith("["):
            end = next((at for at, word in enumerate(words) if word.endswith("]")), len(words) - 1)
            pairs = " ".join(words[: end + 1]).strip("[] ").split()
            options = {name.lower(): value for name, _, value in (pair.partition("=") for pair in pairs)}
            words = words[end + 1 :]
        if len(words) >= 3:
            yield Source((words[0],), (words[1],), tuple(words[2:]), _options(options))


def _options(fields: dict[str, str]) -> dict[str, str]:
    kept = {"signed-by": "Signed-By", "trusted": "Trusted", "check-valid-until": "Check-Valid-Until"}
    return {proper: fields[name] for name, proper in kept.items() if name in fields}
