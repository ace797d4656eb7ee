"""Makes the CD that lets Windows Server install itself without questions, as a disk that `image add` can take.

The CD has the answer file, the drivers of virtio-win, the public half of the key, installers that the user gives, and
the program that sets these up. Element names are those of Microsoft's "Unattended Windows Setup Reference".
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from lxml import etree

from vmlab.guests.ssh import read_private_key
from vmlab.integrity.long_work import pieces
from vmlab.model.errors import ImageError, RefusedError, UsageError
from vmlab.model.quantities import format_bytes
from vmlab.system.given_file import demand_given, new_file, read_given
from vmlab.system.packages import installing
from vmlab.system.run_to_end import run_to_end
from vmlab.system.scratch import scratch

_TEMPLATES = Path(__file__).resolve().parent / "windows"
_SETTINGS = "{urn:schemas-microsoft-com:unattend}"
_STATE = "{http://schemas.microsoft.com/WMIConfig/2002/State}"
_DRIVERS = ("viostor", "NetKVM")
"""The folders of virtio-win with the drivers of disk and network."""
_LETTERS = "DEFG"
"""Where Windows may have the CD; a folder that is not there is passed over."""
_MOST_INSTALLER = 2**29
_MOST_INSTALLERS = 2**30
_SECONDS = 300.0
_PASSWORD_BYTES = 18


@dataclass(frozen=True, slots=True)
class Answers:
    """What a user gives: the ISO of virtio-win, the folder of it for this `release` of Windows (such as ``2k22``),
    the private key, the `edition` by its index in the installation's image, and installers (.msi).
    """

    drivers: Path
    release: str
    key: Path
    edition: int = 1
    installers: tuple[Path, ...] = ()


def make_answers(given: Answers, output: Path) -> None:
    """Write the CD's image to `output`, whole or not at all.

    Raises UsageError for files that cannot be used, ImageError where drivers are missing or the image cannot be
    made, RefusedError without xorriso, and OSError.
    """
    key = asyncssh.import_private_key(read_private_key(given.key))
    demand_given(given.drivers)
    with scratch("answers") as place:
        tree, image = place / "tree", place / "image.iso"
        own = tree / "vmlab"
        (own / "drivers").mkdir(parents=True)
        _copy_drivers(given, own / "drivers")
        _copy_installers(given.installers, own)
        (own / "administrators_authorized_keys").write_bytes(key.export_public_key("openssh"))
        (own / "setup.cmd").write_text((_TEMPLATES / "setup.cmd").read_text(), newline="\r\n")
        (tree / "Autounattend.xml").write_bytes(answer_file(given.edition, _password()))
        _xorriso("-as", "mkisofs", "-quiet", "-J", "-joliet-long", "-r", "-V", "VMLAB", "-o", str(image), str(tree))
        with image.open("rb") as made, new_file(output) as file:
            for data in pieces(made):
                file.write(data)


def _password() -> str:
    """One that fits Windows' rules: letters of both cases, a digit, and a sign."""
    return f"Vm1-{secrets.token_urlsafe(_PASSWORD_BYTES)}"


def answer_file(edition: int, password: str) -> bytes:
    """The answer file, as XML: which `edition` of the image is installed, and the administrator's `password`."""
    tree = etree.parse(_TEMPLATES / "Autounattend.xml", etree.XMLParser(remove_blank_text=True))
    (paths,) = tree.iter(f"{_SETTINGS}DriverPaths")
    for number, letter in enumerate(_LETTERS, start=1):
        one = etree.SubElement(paths, f"{_SETTINGS}PathAndCredentials")
        one.set(f"{_STATE}action", "add")
        one.set(f"{_STATE}keyValue", str(number))
        etree.SubElement(one, f"{_SETTINGS}Path").text = f"{letter}:\\vmlab\\drivers"
    for value in tree.iter(f"{_SETTINGS}Value"):
        parent = value.getparent()
        assert parent is not None
        value.text = str(edition) if parent.tag == f"{_SETTINGS}MetaData" else password
    return etree.tostring(tree, xml_declaration=True, encoding="utf-8", pretty_print=True)


def _copy_drivers(given: Answers, target: Path) -> None:
    known = _releases(given.drivers)
    if given.release not in known:
        raise ImageError(
            f"{given.drivers} has no drivers of virtio-win for {given.release[:40]!r}",
            remedy=f"--release {' or '.join(known)}" if known else "give the ISO of virtio-win with --drivers",
        )
    words = ["-osirrox", "on", "-indev", str(given.drivers)]
    for driver in _DRIVERS:
        words += ["-extract", f"/{driver}/{given.release}/amd64", str(target / driver)]
    _xorriso(*words)
    for driver in _DRIVERS:
        if not any((target / driver).glob("*.inf")):
            raise ImageError(f"{given.drivers} has no driver {driver} for {given.release}")


def _releases(iso: Path) -> list[str]:
    """The releases of Windows for which the ISO has all drivers for 64-bit processors; none for another ISO."""
    try:
        found = _xorriso("-indev", str(iso), "-find", "/", "-maxdepth", "3", "-type", "d")
    except ImageError:
        return []
    folders = {line.strip().strip("'") for line in found.splitlines()}
    having = {folder.split("/")[2] for folder in folders if folder.count("/") == 3}
    return sorted(one for one in having if all(f"/{driver}/{one}/amd64" in folders for driver in _DRIVERS))


def _copy_installers(installers: tuple[Path, ...], target: Path) -> None:
    total = 0
    for one in installers:
        if one.suffix.lower() != ".msi":
            raise UsageError(f"{one} is no .msi: Windows Installer takes nothing else without questions")
        total += demand_given(one)
        if total > _MOST_INSTALLERS:
            raise UsageError(f"all installers together are larger than {format_bytes(_MOST_INSTALLERS)}")
        (target / one.name).write_bytes(read_given(one, _MOST_INSTALLER))


def _xorriso(*words: str) -> str:
    """What it printed. Raises RefusedError where there is none, and ImageError with its last words where it fails."""
    missing = RefusedError("xorriso is missing, which makes and reads images of CDs", remedy=installing("xorriso"))
    late = ImageError(f"xorriso took longer than {_SECONDS:.0f} s")
    done = run_to_end(["xorriso", "-no_rc", *words], _SECONDS, missing=missing, late=late)
    if done.returncode != 0:
        failures = [line for line in done.stderr.splitlines() if "FAILURE" in line or "FATAL" in line]
        raise ImageError(f"xorriso failed: {(failures or done.stderr.splitlines() or ['no reason given'])[-1][:300]}")
    return done.stdout
