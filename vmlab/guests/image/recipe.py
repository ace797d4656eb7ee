"""What an image is made of. Its id is a digest of this and of nothing else.

The machine's own Debian package sources are read, so that an image is built from the same packages as the machine.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vmlab.model.errors import ImageError
from vmlab.model.names import NETWORK
from vmlab.model.roles import ROLES
from vmlab.workloads import services

FORMAT = 1
"""Increased when the build itself changes in a way that packages and payload do not show."""

NAME = "vmlab"
PAYLOAD = Path(__file__).resolve().parent / "payload"
LAYER_PROGRAM = PAYLOAD.with_name("layer.sh")
"""What installs packages in a copy of the image's root disk."""

_FIRST_ROLES = ("web", "database", "mail", "fileserver")
"""The order of packages is part of an image's id: these come as in the images that users have, later roles behind."""


def _place(role: str) -> int:
    return _FIRST_ROLES.index(role) if role in _FIRST_ROLES else len(_FIRST_ROLES)


PACKAGES: tuple[str, ...] = (
    # The guest itself.
    "linux-image-cloud-amd64",
    "systemd",
    "systemd-sysv",
    "udev",
    "dbus",
    "openssh-server",
    "qemu-guest-agent",
    "iproute2",
    "kmod",
    "python3",
    "e2fsprogs",
    "ethtool",
    "procps",
    "psmisc",
    # The image's own initrd is made of these two.
    "busybox-static",
    "cpio",
    # The servers of the roles.
    *(package for role in sorted(ROLES, key=_place) for package in ROLES[role].packages),
    # The clients and benchmarks of the workloads.
    "cifs-utils",
    "apache2-utils",
    "sysbench",
    "fio",
    "iperf3",
    "mbw",
    "bonnie++",
    "stress-ng",
    # Java, and the libraries that programs of its suite use.
    "default-jre-headless",
    "libderby-java",
    "libeclipse-jdt-core-java",
    "libjlayer-java",
    "libsunflow-java",
)

THEMES = {"bookworm": "wordpress-theme-twentytwentyone"}
"""The theme of the web service by release; a later one has none that PHP alone draws."""
LATER_THEME = "wordpress-theme-twentytwentythree"

LEFT_OUT: tuple[str, ...] = (
    # Manuals are not read in a guest.
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/i18n/*",
    # PostgreSQL's JIT compiler takes a tenth of the disk and is switched off.
    "/usr/lib/postgresql/*/lib/bitcode/*",
    "/usr/lib/postgresql/*/lib/llvmjit*",
    "/usr/lib/x86_64-linux-gnu/libLLVM*",
    # The image makes an initial RAM disk of its own; Debian's would take a tenth of the build.
    "/etc/kernel/postinst.d/initramfs-tools",
)
"""Files of packages that are never unpacked, as dpkg's patterns."""

COMMAND_LINE: tuple[tuple[str, str], ...] = (
    ("root=/dev/vda", "the whole disk is the root file system; there is no partition table"),
    ("rw", "nothing checks the file system at boot, so it need not be mounted twice"),
    ("rootflags=noatime,noinit_itable", "reads cause no writes, and no kernel thread zeroes inode tables under a load"),
    ("console=ttyS0", "what the kernel says lands in the guest's console log"),
    ("quiet", "a serial line under emulation is slow"),
    ("net.ifnames=0", "the first network card is eth0, whatever slot it is in"),
    ("ipv6.disable_ipv6=1", "the lab's network is IPv4; nobody waits for duplicate address detection"),
    ("no_timer_check", "the timer of an emulated machine works, and testing it takes time"),
    ("cryptomgr.notests", "the kernel need not test its ciphers at every boot"),
    ("panic=-1", "a guest that panics resets at once, which the hypervisor sees"),
)
"""The kernel's parameters, each with its reason. Mitigations stay as the kernel sets them: they are part of what is
measured.
"""


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """All that an image depends on. `payload` maps a file's path to its content, `environment` feeds the set-up."""

    codename: str
    architecture: str
    packages: tuple[str, ...]
    left_out: tuple[str, ...]
    payload: dict[str, bytes]
    environment: dict[str, str]
    command_line: str
    format: int = FORMAT

    def described(self) -> dict[str, object]:
        """The recipe as JSON values, with the SHA-256 of every payload file instead of its content."""
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(self.payload.items())}
        return {**asdict(self), "payload": digests}

    def address(self) -> str:
        """The image's id: its name and twelve hexadecimal digits of the recipe's SHA-256."""
        return _address(self.described())


@dataclass(frozen=True, slots=True)
class LayerRecipe:
    """All that a layer depends on: the image below it, by its id and the SHA-256 of its root disk, and the packages, in
    order.
    """

    codename: str
    base: str
    base_sha256: str
    packages: tuple[str, ...]

    def described(self) -> dict[str, object]:
        """The recipe as JSON values, with the SHA-256 of the program that makes the layer."""
        return {
            "codename": self.codename,
            "base": self.base,
            "base_sha256": self.base_sha256,
            "layer": list(self.packages),
            "program": hashlib.sha256(LAYER_PROGRAM.read_bytes()).hexdigest(),
        }

    def address(self) -> str:
        """As that of an image."""
        return _address(self.described())

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> LayerRecipe | None:
        """That of the layer with this manifest; None for an image. Raises KeyError, TypeError."""
        recipe = manifest.get("recipe", {})
        if "layer" not in recipe:
            return None
        codename, base, digest = (str(recipe[key]) for key in ("codename", "base", "base_sha256"))
        return cls(codename, base, digest, tuple(map(str, recipe["layer"])))


def _address(described: Mapping[str, object]) -> str:
    canonical = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return f"{NAME}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


def read_payload(folder: Path = PAYLOAD) -> dict[str, bytes]:
    """Every file below `folder` by its relative path; compiled Python and editors' backups are no part of it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith(("~", ".pyc"))
    }


def setup_environment() -> dict[str, str]:
    """The variables that the programs of the set-up read."""
    return {
        "LAB_NETWORK": str(NETWORK),
        "LAB_USER": services.LAB_USER,
        "LAB_PASSWORD": services.LAB_PASSWORD,
        "SHARE": services.SHARE,
        "SHARE_FOLDER": services.SHARE_FOLDER,
        "MAIL_DOMAIN": services.MAIL_DOMAIN,
        "DATABASE": services.DATABASE,
    }


def current(codename: str, architecture: str = "amd64") -> ImageRecipe:
    """The recipe that this version of the program builds for a Debian release."""
    return ImageRecipe(
        codename=codename,
        architecture=architecture,
        packages=(*PACKAGES, THEMES.get(codename, LATER_THEME)),
        left_out=LEFT_OUT,
        payload=read_payload(),
        environment=setup_environment(),
        command_line=" ".join(word for word, _ in COMMAND_LINE),
    )


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
