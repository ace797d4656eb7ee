"""`make test-install`: each way to install, in a fresh root of Debian 12 and 13, by the commands of docs/install.md.

It needs root and mmdebstrap, and the package sources and the Python index that this machine has. What is installed is
the wheel of this checkout; with ``--released`` it is what `make release` left in dist/.
Exit code 0: every check passed; 1: one failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.checklist import Checklist, say
from vmlab.model.errors import ExitCode
from vmlab.model.places import cache_folder
from vmlab.system.removal import remove_tree

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "install.md"
SUITES = ("bookworm", "trixie")
_ENTER = Path(__file__).with_name("enter.sh")
_SECONDS = 1200.0
_WORKS = """
cd /tmp
test "$(vmlab demo --list | wc -l)" -gt 3
vmlab plan tile --size smoke | grep 'cells    2' >/dev/null
vmlab import /dist/run.vmlab && vmlab show last | grep 'run time' >/dev/null && vmlab compare last >/dev/null
vmlab export last -o /tmp/run.csv && test -s /tmp/run.csv
vmlab top --json --count 1 >/dev/null
"""
"""What works without root, QEMU and a compiler."""


@dataclass(frozen=True, slots=True)
class Check:
    """One way to install: `before` is what the page takes for granted, `after` shows that it works.

    `parts` are those of the page whose commands are run between them, on a terminal on which each question is answered
    with yes. `include` are Debian packages that are there.
    """

    name: str
    title: str
    parts: tuple[str, ...]
    before: str = ""
    after: str = _WORKS
    include: str = "ca-certificates,python3,python3-venv"


_IN_VENV = "PATH=/root/vmlab/bin:$PATH"
_UV = "python3 -m venv /opt/uv && /opt/uv/bin/pip -q install uv && PATH=/opt/uv/bin:$PATH"
_MANUAL = "man -w vmlab vmlab-scenario >/dev/null\ntest -s /usr/share/bash-completion/completions/vmlab"
_PURGE = """
apt-get -qq purge -y vmlab
test ! -e /usr/lib/vmlab && test ! -e /usr/bin/vmlab && test -d /root/.local/state/vmlab/runs
"""
CHECKS = (
    Check("pip", "pip in a virtual environment, without a compiler", ("pip",), after=f"{_IN_VENV}\n{_WORKS}"),
    Check("pipx", "pipx", ("pipx",), include="ca-certificates,pipx"),
    Check("uv", "uv", ("uv",), before=_UV),
    Check("doctor", "doctor --fix installs what runs need", ("pip", "doctor"), _IN_VENV, f"{_IN_VENV}\nvmlab doctor"),
    Check(
        "deb",
        "the Debian package, from apt install to purge",
        ("deb",),
        before="apt-get -qq update; cd /",
        after=f"{_WORKS}\n{_MANUAL}\n{_PURGE}",
        include="ca-certificates,man-db",
    ),
)


def blocks() -> dict[str, str]:
    """The commands of the page by the names that stand before them in comments."""
    found = re.findall(r"<!-- tried: ([a-z]+) -->\n\n((?:    .*\n)+)", PAGE.read_text(encoding="utf-8"))
    return {name: "\n".join(line[4:] for line in text.splitlines()) for name, text in found}


def _tree(suite: str, include: str, scratch: Path) -> Path:
    """A fresh root, from an archive that is kept."""
    kept = cache_folder() / "test-install" / f"{suite}-{'-'.join(include.split(','))}.tar"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        sources = Path("/etc/apt/sources.list.d/debian.sources").read_text()
        (mirror, *_) = re.findall(r"^URIs:\s*(\S+)", sources, re.MULTILINE)
        draft = kept.with_suffix(".new")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={include}", "--format=tar"]
        subprocess.run([*command, suite, str(draft), mirror], check=True)
        draft.rename(kept)
    tree = scratch / "root"
    tree.mkdir()
    subprocess.run(["tar", "-C", str(tree), "-xf", str(kept), "--exclude=./dev/*"], check=True)
    return tree


def _dist(scratch: Path, *, released: bool) -> Path:
    """The wheel of this checkout or of the release, the Debian packages that are in dist/, and a run to import."""
    dist, made = scratch / "dist", CHECKOUT / "dist"
    dist.mkdir(mode=0o755)
    if released:
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=made, check=True)
    else:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(dist), str(CHECKOUT)]
        subprocess.run(pip, check=True)
    for package in (*made.glob("*.deb"), *(made.glob("*.whl") if released else ())):
        shutil.copyfile(package, dist / package.name)
    subprocess.run([sys.executable, str(Path(__file__).with_name("make_run.py")), str(dist / "run.vmlab")], check=True)
    for file in dist.iterdir():
        file.chmod(0o644)
    return dist


def _run(check: Check, suite: str, dist: Path, output: Path) -> str:
    """Run a check; why it failed, empty where it passed."""
    parts = blocks()
    page = "\n".join(["set -e", *(parts[name] for name in check.parts)])
    if suite == "trixie":
        page = page.replace("~deb12", "~deb13")
    # apt throws away what was typed before it asks.
    yes = "(trap '' PIPE; while echo y 2>/dev/null; do sleep 1; done; true)"
    answered = f"{yes} | script --quiet --return --command 'bash -x /page.sh' /dev/null"
    start = ["set -e -o pipefail", "cd /root", "cp /dist/vmlab-*.whl ."]
    script = "\n".join([*start, check.before, f"{answered}", check.after])
    with tempfile.TemporaryDirectory(prefix="test-install-", dir=cache_folder()) as folder:
        scratch = Path(folder)
        tree = _tree(suite, check.include, scratch)
        (tree / "page.sh").write_text(page)
        (tree / "check.sh").write_text(script)
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        command = [*namespaces, "bash", str(_ENTER), str(tree), str(dist), "bash", "-x", "/check.sh"]
        with output.open("wb") as log:
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=_SECONDS)
                return "" if done.returncode == 0 else f"exit code {done.returncode}"
            except subprocess.TimeoutExpired:
                return f"it took longer than {_SECONDS:.0f} s"
            finally:
                remove_tree(tree)


def _chosen(names: Sequence[str]) -> Iterator[tuple[Check, str]]:
    for suite in SUITES:
        for check in CHECKS:
            if not names or check.name in names or f"{check.name}-{suite}" in names:
                yield check, suite


def main() -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(prog="make test-install")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(check.name for check in CHECKS))
    parser.add_argument("--released", action="store_true", help="install what `make release` left in dist/")
    options = parser.parse_args()
    names = options.checks
    if os.geteuid() != 0:
        say("test-install: run it as root")
        return ExitCode.REFUSED
    place = cache_folder() / "test-install" / "output"
    remove_tree(place)
    report = Checklist(place)
    with tempfile.TemporaryDirectory(prefix="test-install-") as folder:
        dist = _dist(Path(folder), released=options.released)
        Path(folder).chmod(0o755)
        for check, suite in _chosen(names):
            began, output = time.monotonic(), report.output(f"{check.name}-{suite}")
            report.line(began, f"{suite}: {check.title}", output, _run(check, suite, dist, output))
    report.total()
    return ExitCode.FAILED if report.failed else ExitCode.PASSED


if __name__ == "__main__":
    sys.exit(main())
