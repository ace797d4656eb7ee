"""Packages by the names of each distribution, and the commands that install them."""

import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from vmlab.system import packages
from vmlab.system.packages import extra_command, extra_packages, family, install_command, installing

ROOT = Path(__file__).parents[2]


def on(monkeypatch: pytest.MonkeyPatch, **release: str) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ({"ID": "debian"}, "apt-get install --no-install-recommends gcc libc6-dev qemu-utils"),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, "apt-get install --no-install-recommends gcc libc6-dev qemu-utils"),
        ({"ID": "fedora"}, "dnf install gcc glibc-devel qemu-img"),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "dnf install gcc glibc-devel qemu-img"),
        ({"ID": "arch"}, "pacman -S gcc glibc qemu-img"),
        ({"ID": "plan9"}, "install what Debian calls gcc, libc6-dev, qemu-utils"),
    ],
)
def test_each_distribution_has_its_own_names(
    release: dict[str, str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(monkeypatch, **release)
    assert installing("gcc", "libc6-dev", "qemu-utils") == command


def test_a_package_that_has_several_of_debians_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, ID="arch")
    assert install_command("libvirt-dev", "libvirt-daemon", unasked=True) == ("pacman", "-S", "--noconfirm", "libvirt")


def test_a_host_that_does_not_say_what_it_is_has_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> dict[str, str]:
        raise OSError("no os-release")

    monkeypatch.setattr(platform, "freedesktop_os_release", none)
    assert family() is None
    assert install_command("gcc") == ()


@pytest.mark.parametrize("distribution", ["debian", "fedora", "arch"])
def test_all_that_setup_and_the_extras_need_has_a_name(distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, ID=distribution)
    lines = (ROOT / "packaging" / "debian-packages.txt").read_text().splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    assert len(install_command(*names, *extra_packages("lab"), *extra_packages("disk"))) > 10


@pytest.mark.parametrize(
    ("marker", "command"),
    [
        (None, [sys.executable, "-m", "pip", "install"]),
        ("pipx_metadata.json", ["pipx", "inject", "vmlab"]),
        ("uv-receipt.toml", ["uv", "pip", "install", "--python", sys.executable]),
    ],
)
def test_an_extra_goes_where_vmlab_is(
    marker: str | None, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    if marker:
        (tmp_path / marker).touch()
    assert list(extra_command("lab")) == [*command, "libvirt-python>=9.0"]
    assert list(extra_command("parquet")) == [*command, "pyarrow>=17"]


def test_setup_on_another_distribution_names_its_packages_and_stops(tmp_path: Path) -> None:
    (tmp_path / "packaging").mkdir()
    for name in ("setup", "debian-packages.txt"):
        shutil.copy(ROOT / "packaging" / name, tmp_path / "packaging")
    place = tmp_path / "vmlab" / "system"
    place.mkdir(parents=True)
    # As on a host whose os-release(5) says Fedora.
    source = Path(packages.__file__).read_text(encoding="utf-8")
    (place / "packages.py").write_text(source.replace("platform.freedesktop_os_release()", '{"ID": "fedora"}'))
    command = ["env", f"PYTHON={sys.executable}", str(tmp_path / "packaging" / "setup")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("setup: this is no Debian; run, then SKIP_PACKAGES=1 make setup: dnf install ")
    assert "libvirt-devel" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_checkout_that_is_not_installed_names_the_extra_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", none)
    assert extra_command("lab", "disk")[-1] == "vmlab[lab,disk]"
