"""The host's disks: its root, kept by the digest of its recipe, and one of each try with the program and the image."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.host import recipe
from vmlab.guests.image.building import ensure
from vmlab.guests.image.catalog import Image
from vmlab.guests.image.recipe import apt_options, debian_sources, running_codename
from vmlab.guests.image.steps import run_step
from vmlab.integrity.long_work import LongWork
from vmlab.system.removal import remove_tree

_NOT_UNPACKED = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")
_WITHOUT = ("systemd-networkd-wait-online.service", "apt-daily.timer", "apt-daily-upgrade.timer")


@dataclass(frozen=True, slots=True)
class Root:
    """A host's root disk (raw ext4, never written to), with the kernel and initrd that boot it."""

    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "root.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.img"


def root_disk(cache: Path, scratch: Path, stop: LongWork) -> Root:
    """The root disk, from `cache` or built in the folder `scratch`; other recipes' disks go. Raises ImageError."""
    codename = running_codename()
    root = Root(cache / "root" / recipe.address(codename))
    if not root.folder.is_dir():
        _say("building the host: Debian's packages, two minutes or three")
        built = scratch / "built"
        built.mkdir()
        _build(Root(built), codename, scratch, stop)
        remove_tree(root.folder.parent)
        root.folder.parent.mkdir()
        built.rename(root.folder)
    return root


def _build(root: Root, codename: str, scratch: Path, stop: LongWork) -> None:
    log, tree = scratch / "build.log", scratch / "tree"
    wheels = scratch / "wheels"
    _wheels(wheels, scratch, stop, *recipe.dependencies())
    sources, options = scratch / "debian.sources", scratch / "apt.conf"
    sources.write_text("\n".join(source.stanza() for source in debian_sources(codename)))
    options.write_text("".join(f"{line}\n" for line in apt_options()))
    debootstrap = ["mmdebstrap", "--mode=root", "--variant=important", "--format=directory", f"--aptopt={options}"]
    debootstrap += [f"--include={','.join(recipe.packages())}", "--dpkgopt=force-unsafe-io"]
    debootstrap += [f"--dpkgopt=path-exclude={pattern}" for pattern in _NOT_UNPACKED]
    debootstrap += [f"--customize-hook={hook}" for hook in _hooks(wheels)]
    run_step([*debootstrap, codename, str(tree), str(sources)], log, stop, environment={"TMPDIR": str(scratch)})
    for name, pattern in ((root.kernel, "vmlinuz-*"), (root.initrd, "initrd.img-*")):
        shutil.copy(next((tree / "boot").glob(pattern)), name)
    _make_disk(tree, root.disk, recipe.DISK_BYTES, log, stop)
    remove_tree(tree)


def _hooks(wheels: Path) -> list[str]:
    """Shell lines with the new root as ``$1``."""
    venv = recipe.VENV
    return [
        f"tar -C '{recipe.PAYLOAD}' --mode=u=rwX,go=rX --owner=0 --group=0 -cf - ."
        ' | tar -C "$1" --no-overwrite-dir -xf -',
        'ln -s ../default.xml "$1/etc/libvirt/qemu/networks/autostart/default.xml"',
        'chroot "$1" systemctl enable systemd-networkd.service ssh.service',
        # Nothing answers on that network, and nothing can be fetched from it.
        *(f'ln -s /dev/null "$1/etc/systemd/system/{unit}"' for unit in _WITHOUT),
        'mkdir -p "$1/root/.cache"',
        f'cp -r "{wheels}" "$1/wheels"',
        f'chroot "$1" python3 -m venv {venv}',
        f'unshare --net chroot "$1" sh -c "{venv}/bin/pip install --quiet --no-index --no-deps /wheels/*.whl"',
        f'ln -s {venv}/bin/vmlab "$1/usr/local/bin/vmlab"',
        'rm -r "$1/wheels"',
    ]


def _wheels(folder: Path, scratch: Path, stop: LongWork, *what: str) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--wheel-dir", str(folder)]
    run_step([*pip, "-c", str(recipe.CHECKOUT / "constraints.txt"), *what], scratch / "build.log", stop)


def _make_disk(tree: Path, disk: Path, size: int, log: Path, stop: LongWork) -> None:
    with disk.open("wb") as file:
        file.truncate(size)
    argv = ["mke2fs", "-q", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=0", "-d", str(tree), str(disk)]
    run_step(argv, log, stop)


def data_disk(scratch: Path, public_key: bytes, stop: LongWork) -> Path:
    """A disk that is to be root's cache folder in the host: guest image, the program as a wheel, checks, SSH key."""
    _say("packing the program and the guest image")
    image: Image = ensure(_say)
    tree = scratch / "cache"
    images = tree / "vmlab" / "images"
    images.mkdir(parents=True)
    # cp keeps the holes of the image's disk.
    run_step(["cp", "-r", "--sparse=always", str(image.folder), str(images)], scratch / "build.log", stop)
    _wheels(tree / "wheels", scratch, stop, "--no-deps", str(recipe.CHECKOUT))
    _wheels(tree / "wheels-of-tests", scratch, stop, "pytest")
    for tests in recipe.TESTS:
        source, place = recipe.CHECKOUT / tests, tree / "checks" / tests
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place)
    keys = tree / "authorized_keys"
    keys.write_bytes(public_key)
    keys.chmod(0o600)
    tree.chmod(0o700)
    disk = scratch / "data.raw"
    _make_disk(tree, disk, recipe.DISK_BYTES, scratch / "build.log", stop)
    remove_tree(tree)
    return disk


def overlay(base: Path, kind: str, place: Path) -> Path:
    """A qcow2 disk at `place` that takes what is written over `base`."""
    argv = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", kind, str(place)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return place


def scratch_folder(cache: Path) -> Path:
    """A new folder for one try; those of tries that were killed go. Only for who holds the lock of `cache`."""
    for left in cache.glob("try-*"):
        remove_tree(left)
    return Path(tempfile.mkdtemp(prefix="try-", dir=cache))


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
