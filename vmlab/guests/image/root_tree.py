"""The guests' root file system as a folder: Debian's packages, the payload, and its set-up run inside."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from vmlab.guests.image.licences import DOCS
from vmlab.guests.image.recipe import PAYLOAD, ImageRecipe
from vmlab.guests.image.sources import apt_options, debian_sources
from vmlab.system.removal import remove_file

RunStep = Callable[[list[str]], None]


def make_tree(recipe: ImageRecipe, tree: Path, scratch: Path, step: RunStep) -> None:
    """Fill `tree`, which must not exist yet, with the help of two files in `scratch`. Raises ImageError."""
    sources = debian_sources(recipe.codename)
    listed = scratch / "debian.sources"
    listed.write_text("\n".join(source.stanza() for source in sources), encoding="utf-8")
    options = scratch / "apt.conf"
    options.write_text("".join(f"{line}\n" for line in apt_options()), encoding="utf-8")
    local = any(uri.startswith(("file:", "copy:")) for source in sources for uri in source.uris)
    step(
        [
            *("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"),
            f"--architectures={recipe.architecture}",
            f"--include={','.join(recipe.packages)}",
            f"--aptopt={options}",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.left_out),
            # Licences are read of it before it goes; a package may have another one's folder by a link.
            f"--dpkgopt=path-include=/{DOCS}/*",
            "--dpkgopt=force-unsafe-io",
            *(["--hook-directory=/usr/share/mmdebstrap/hooks/file-mirror-automount"] if local else []),
            # Java of Debian 13 makes links to manuals, whose folder is left out with them.
            '--essential-hook=mkdir -p "$1/usr/share/man/man1"',
            *(f"--customize-hook={hook}" for hook in _hooks()),
            recipe.codename,
            str(tree),
            str(listed),
        ]
    )
    # They may contain the address of a private mirror, which does not belong in an image.
    remove_file(listed)
    remove_file(options)


def _hooks() -> Iterator[str]:
    """Shell lines that mmdebstrap runs with the new root as ``$1``; modes are set, whatever the checkout's are."""
    pack = "tar -C '{source}' --mode=u=rwX,go=rX --owner=0 --group=0 -cf - ."
    copy = pack + ' | tar -C "$1{target}" --no-overwrite-dir -xf -'
    yield copy.format(source=PAYLOAD / "root", target="")
    for part in ("setup", "initrd"):
        yield f'mkdir -p "$1/usr/lib/vmlab/{part}"'
        yield copy.format(source=PAYLOAD / part, target=f"/usr/lib/vmlab/{part}")
    yield f"sh '{PAYLOAD / 'programs' / 'compile'}' \"$1\""
    # Servers that run during the build must not conflict with those of the host, so they have their own network.
    yield 'unshare --net --mount chroot "$1" sh /usr/lib/vmlab/setup/run'
    # Whoever installs something in a guest leaves out what its image leaves out.
    yield 'kept="$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"; [ ! -f "$kept" ] || sed -i "/^path-include=/d" "$kept"'


def package_versions(tree: Path) -> dict[str, str]:
    """Every installed package's version, by its name."""
    listed = subprocess.run(
        ["dpkg-query", f"--admindir={tree}/var/lib/dpkg", "--show", "--showformat=${Package} ${Version}\n"],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split(" ", 1) for line in listed.stdout.splitlines())
