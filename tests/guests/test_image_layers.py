"""Layers are built once, whole or not at all, listed, carried and removed. apt has stand-ins, the mounts are real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from tests.cli.called import ended
from tests.guests.image_stubs import MAKES_A_TREE, path_with, put_stub
from vmlab.guests.image import building, catalog, layers, recipe
from vmlab.guests.image.catalog import Image, list_images, pack, unpack
from vmlab.guests.image.layers import build_layer, ensure_layer, find_layer, states
from vmlab.guests.image.recipe import LAYER_PROGRAM
from vmlab.lab.provision.host_support import host_for_plans
from vmlab.model.errors import ImageError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a build needs root for its namespaces")
Captured = pytest.CaptureFixture[str]
A_SYSTEM = f"""{MAKES_A_TREE}
mkdir -p "$tree/proc" "$tree/run" "$tree/dev" "$tree/usr/sbin" "$tree/etc/ssh" "$tree/etc/systemd/system"
mkdir -p "$tree/var/log" "$tree/var/cache/apt/archives" "$tree/var/cache/debconf"
"""
KNOWS = """
echo "base-files:
  Installed: (none)
  Candidate: 12.4
  Version table:"
for name; do case $name in
    redis*) printf '%s:\n  Installed: (none)\n  Candidate: 5:7.0\n  Version table:\n' "$name";;
    mail-agent) printf '%s:\n  Installed: (none)\n  Candidate: (none)\n' "$name";;
esac; done
"""
INSTALLS = """
for word; do case $word in DPkg::Chroot-Directory=*) root=${word#*=};; esac; done
echo "apt-get $*" >>"$ASKED"
[ -n "${root:-}" ] || exit 0
sed -n 's/^ *\\([a-z0-9]*\\):.*/\\1/p' /proc/self/net/dev >"$root/etc/cards"
! unshare --mount true 2>/dev/null || echo mounts >"$root/etc/rights"
[ ! -w "$root/proc/sys/vm/swappiness" ] || echo settings >>"$root/etc/rights"
mkdir -p "$root/usr/share/doc/redis-server" "$root/etc/systemd/system/multi-user.target.wants"
printf 'Format: x\nLicense: BSD-3-clause\n' >"$root/usr/share/doc/redis-server/copyright"
cat >>"$root/var/lib/dpkg/status" <<END

Package: redis-server
Status: install ok installed
Version: 5:7.0
Architecture: amd64
END
ln -s /lib/systemd/system/redis-server.service "$root/etc/systemd/system/multi-user.target.wants/"
echo key >"$root/etc/ssh/ssh_host_rsa_key"
echo somebody >"$root/etc/machine-id"
echo log >"$root/var/log/redis.log"
test -x "$root/usr/sbin/policy-rc.d"
"""


@pytest.fixture(autouse=True)
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of the search path; the cache is empty and on this test's own folder."""
    folder = tmp_path / "stubs"
    put_stub(folder, A_SYSTEM)
    put_stub(folder, KNOWS, "apt-cache")
    put_stub(folder, INSTALLS, "apt-get")
    monkeypatch.setenv("PATH", path_with(folder))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "_NEEDED_BYTES", 0)
    monkeypatch.setattr(building, "_SPARE_BYTES", 32 * 1024**2)
    return folder


def silent(_line: str) -> None:
    """Takes a line for people."""


def current() -> Image:
    found = catalog.find()
    assert found is not None
    return found


def inside(image: Image, command: str) -> str:
    argv = ["debugfs", "-R", command, str(image.disk)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def left(folder: Path) -> list[str]:
    """Mounts and loop devices of what lies below `folder`."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    devices = subprocess.run(["losetup", "--noheadings", "--output", "BACK-FILE"], capture_output=True, text=True)
    return mounts + [line for line in devices.stdout.splitlines() if str(folder) in line]


def test_a_layer_is_the_image_with_packages_and_is_built_once(tmp_path: Path) -> None:
    said: list[str] = []
    layer = build_layer(("redis-server",), said.append)
    assert "installing redis-server" in said and left(tmp_path) == []
    assert subprocess.run(["e2fsck", "-fn", layer.disk], capture_output=True).returncode == 0
    assert layer.kernel.read_bytes() == current().kernel.read_bytes() and layer.command_line == current().command_line
    manifest = json.loads(layer.manifest.read_text())
    assert manifest["packages"] == {"hello": "2.10-3", "redis-server": "5:7.0"}
    assert manifest["licences"] == {"hello": ["GPL-3"], "redis-server": ["BSD-3-clause"]}
    assert {path.name for path in layer.folder.iterdir()} == {
        *("root.raw", "vmlinuz", "initrd.img", "manifest.json", "use.lock", "build.log", "vmlab.mark")
    }
    layer.require_whole()
    asked = (tmp_path / "asked").read_text()
    assert ensure_layer(current(), ("redis-server",), said.append) == layer == find_layer(current(), ("redis-server",))
    assert (tmp_path / "asked").read_text() == asked, "a second time nobody is asked"


def test_it_is_nobody_and_starts_nothing_by_itself() -> None:
    layer = build_layer(("redis-server",), silent)
    normal = "/usr/lib/vmlab/boot/normal/multi-user.target.wants"
    assert "redis-server.service" in inside(layer, f"ls {normal}")
    for gone in ("/etc/systemd/system/multi-user.target.wants", "/etc/ssh/ssh_host_rsa_key", "/var/log/redis.log"):
        assert inside(layer, f"stat {gone}") == "", gone
    for gone in ("/usr/sbin/policy-rc.d", "/usr/share/doc/redis-server", "/dev/null"):
        assert inside(layer, f"stat {gone}") == "", gone
    assert inside(layer, "cat /etc/machine-id") == ""
    assert inside(layer, "cat /etc/cards").split() == ["lo"], "there is no network while packages are installed"
    assert inside(layer, "cat /etc/rights") == "", "what packages run may neither mount nor set what is the host's"


def test_other_packages_and_another_image_make_another_layer(stubs: Path) -> None:
    one, two = (build_layer(packages, silent) for packages in (("redis-server",), ("redis-server", "redis-tools")))
    assert one.id != two.id and {one.packages: one.current for one in list_images()} == {
        (): True,
        ("redis-server",): True,
        ("redis-server", "redis-tools"): True,
    }
    put_stub(stubs, A_SYSTEM + 'echo newer >"$tree/etc/newer"\n')
    building.build(silent, force=True)
    assert find_layer(current(), ("redis-server",)) is None
    assert [one.packages for one in list_images() if one.current] == [()]
    again = build_layer(("redis-server",), silent)
    assert again.id != one.id and "newer" in inside(again, "cat /etc/newer")


def test_an_image_takes_its_layers_along(capsys: Captured) -> None:
    layer = build_layer(("redis-server",), silent)
    base = current()
    with layer.held():
        assert ended("image", "rm", layer.id) == 3
    assert ended("image", "rm", base.id, layer.id) == 0
    assert f"removed {base.id}\nremoved {layer.id}\n" in capsys.readouterr().err and list_images() == []


def test_the_list_says_what_a_layer_has(capsys: Captured) -> None:
    layer = build_layer(("redis-server", "redis-tools"), silent)
    assert ended("image", "ls") == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if layer.id in line)
    assert line.endswith("with redis-server, redis-tools, current")
    assert ended("image", "ls", "--json") == 0
    packages = {one["id"]: one["packages"] for one in json.loads(capsys.readouterr().out)["images"]}
    assert packages == {layer.id: ["redis-server", "redis-tools"], current().id: []}
    assert ended("image", "licences", "--with", "redis-tools", "--with", "redis-server") == 0
    assert "BSD-3-clause" in capsys.readouterr().out
    assert ended("image", "licences", "--with", "redis-server") == 3
    assert "no layer with redis-server was built (vmlab image build --with redis-server)" in capsys.readouterr().err


def test_what_is_known_of_layers_is_measured() -> None:
    wanted = [("redis-server",), ("redis-tools",)]
    assert [(one.is_built, one.bytes, one.seconds) for one in states(wanted)] == [(False, None, None)] * 2
    building.build(silent)
    (base,) = list_images()
    assert [(one.is_built, one.bytes, one.seconds) for one in states(wanted)] == [(False, base.bytes, None)] * 2
    layer = build_layer(wanted[0], silent)
    seconds = json.loads(layer.manifest.read_text())["build_seconds"]
    (taken,) = (one.bytes for one in list_images() if one.id == layer.id)
    assert host_for_plans().layers == {"redis-server": taken}
    assert [(one.is_built, one.bytes, one.seconds) for one in states(wanted)] == [
        (True, taken, seconds),
        (False, base.bytes, seconds),
    ]


def test_a_layer_is_carried_to_a_host_that_has_its_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    layer = build_layer(("redis-server",), silent)
    base, files = current(), (tmp_path / "layer.vmi", tmp_path / "base.vmi")
    assert ended("image", "export", "-o", str(files[0]), "--with", "redis-server") == 0
    pack(base, files[1])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    with pytest.raises(ImageError, match=f"layer {layer.id} is on top of an image {base.id} that is not here"):
        unpack(files[0], silent)
    unpack(files[1], silent)
    kept = unpack(files[0], silent)
    assert kept == find_layer(current(), ("redis-server",)) and kept.folder != layer.folder
    assert states([("redis-server",)])[0].seconds is None, "it was built elsewhere"


@pytest.mark.parametrize("name", ["redsi", "mail-agent"])
def test_a_package_that_does_not_exist_is_one_line_before_anything_is_built(name: str, capsys: Captured) -> None:
    assert ended("image", "build", "--with", "redis-server", "--with", name) == 3
    err = capsys.readouterr().err
    assert f"the configured sources of Debian have no package {name}" in err and len(err.splitlines()) == 1
    assert list_images() == []


@pytest.mark.parametrize("name", ["Redis", "redis-", "a", "-o", "redis server", "../x", "redis=7"])
def test_what_is_no_name_of_a_package_is_one_line(name: str, capsys: Captured) -> None:
    assert ended("image", "build", f"--with={name}") == 2
    assert "needs the name of a package of Debian's, such as redis-server" in capsys.readouterr().err


def test_a_machine_without_a_source_of_debians_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(layers, "debian_sources", lambda codename: recipe.debian_sources(codename, tmp_path / "apt"))
    assert ended("image", "build", "--with", "redis-server", "--with", "zip") == 3
    err = capsys.readouterr().err
    assert err.count("no package source for Debian") == 1 and len(err.splitlines()) == 1
    assert f"(add one below {tmp_path}/apt)" in err and list_images() == []


def test_without_lists_the_build_says_what_does_not_exist(stubs: Path, tmp_path: Path) -> None:
    put_stub(stubs, f'[ -e "{tmp_path}/asked" ] || exit 0\n{KNOWS}', "apt-cache")
    with pytest.raises(ImageError, match="sources of Debian have no package redsi"):
        build_layer(("redsi",), silent)
    assert [one.packages for one in list_images()] == [()] and left(tmp_path) == []


def test_packages_beyond_the_images_room_are_refused_in_one_line(stubs: Path, tmp_path: Path) -> None:
    put_stub(
        stubs, 'case "$*" in *--download-only*) : >"$(dirname "$APT_CONFIG")/apt/archives/x.deb";; esac', "apt-get"
    )
    put_stub(stubs, "echo 40000\n", "dpkg-deb")
    with pytest.raises(
        ImageError, match=r"layer.sh failed: redis-server take 39 MiB, and the image has room for \d+ MiB"
    ):
        build_layer(("redis-server",), silent)
    assert [one.packages for one in list_images()] == [()] and left(tmp_path) == []


@pytest.mark.parametrize("fills", ['cat /dev/zero >"$root/zeros"', "cat /etc/passwd >/dev/full"])
def test_what_became_full_is_named(stubs: Path, tmp_path: Path, fills: str) -> None:
    put_stub(stubs, f"{INSTALLS}\n{fills}", "apt-get")
    of_image = "the image's root file system, with redis-server,"
    full = of_image if "zeros" in fills else f"this host's file system of {catalog.images_folder()}"
    with pytest.raises(ImageError, match=f"^{full} became full while the guest image was built"):
        build_layer(("redis-server",), silent)
    assert [one.packages for one in list_images()] == [()] and left(tmp_path) == []


def test_aptgets_refusal_is_the_builds(stubs: Path) -> None:
    put_stub(stubs, 'case "$*" in *update) exit 0;; esac\necho "E: Packages need to be removed"\nexit 100', "apt-get")
    with pytest.raises(ImageError, match=r"layer.sh failed: Packages need to be removed"):
        build_layer(("redis-server",), silent)


BUILDS = """
    import sys
    from vmlab.guests.image import building
    from vmlab.guests.image.layers import build_layer
    from vmlab.model.errors import VmlabError
    try:
        build_layer(("redis-server",), lambda line: print(line, flush=True))
    except VmlabError as error:
        print("error:", error)
        sys.exit(int(error.exit_code))
"""
HANGS = ["sleep", f"54322.{os.getpid()}"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_end_in_the_midst_leaves_no_mount_no_device_and_no_process(
    stubs: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    building.build(silent)
    put_stub(stubs, f'case "$*" in *--no-download*) {" ".join(HANGS)};; esac\n', "apt-get")
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BUILDS)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    try:
        until(hanging)
        assert left(tmp_path), "it is mounted by now"
        process.send_signal(number)
        process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == status
    until(lambda: not hanging() and left(tmp_path) == [])
    building.clear_unfinished()
    assert [one.packages for one in list_images()] == [()]
    assert [path.name for path in catalog.images_folder().glob(".building*")] == []


def hanging() -> bool:
    return any(process.info["cmdline"] == HANGS for process in psutil.process_iter(["cmdline"]))


def until(condition: object, seconds: float = 120.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def test_the_program_refuses_to_mount_outside_of_namespaces_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(["sh", str(LAYER_PROGRAM), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 1 and "namespaces of its own alone" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["stubs"]
