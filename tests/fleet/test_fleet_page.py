"""The how-to page on fleets: its files are valid, and its commands get as far as the hosts that they name."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.lab.faked import ROOT
from vmlab.cli.commands import hosts_commands
from vmlab.cli.main import cli
from vmlab.fleet.hosts_file import HostEntry, read_hosts
from vmlab.model.errors import VmlabError

PAGE = (ROOT / "docs/how-to/fleet.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ {4,8}(vmlab [a-z].*)$", PAGE, re.MULTILINE)
INLINE = [line for line in re.findall(r"`(vmlab [^`]+)`", PAGE) if "image build" not in line]
HOSTS = {"hv1": "192.0.2.11", "hv2": "192.0.2.12"}


class Reached(VmlabError):
    """Ends a command with the hosts that it would reach."""

    def __init__(self, hosts: dict[str, HostEntry]) -> None:
        super().__init__("reached")
        self.hosts = hosts


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The controller as the page leaves it, with its hosts file."""
    files = re.findall(r"^ *```toml\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(files) == 2
    (tmp_path / "vmlab").mkdir()
    (tmp_path / "vmlab/hosts.toml").write_text("".join(files))
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    async def reached(hosts: dict[str, HostEntry], *_: object) -> None:
        raise Reached(hosts)

    monkeypatch.setattr(hosts_commands, "demand_ready", reached)
    monkeypatch.setattr(hosts_commands, "check_hosts", reached)
    return tmp_path


def test_the_page_has_commands() -> None:
    """Of each way to use a fleet; a pattern that finds none would pass everything."""
    words = "\n".join(BLOCKS)
    assert all(word in words for word in ("hosts check", "--spread", "--together", "scale"))
    assert "vmlab hosts resume RUN" in INLINE


def test_its_hosts_file_is_valid(place: Path) -> None:
    found = read_hosts()
    assert {name: entry.address for name, entry in found.hosts.items()} == HOSTS
    assert found.hosts["hv2"].key == Path("~/.ssh/lab").expanduser()
    # What the page says of the times is what holds without them.
    assert found.waiting == type(found.waiting)()
    assert tomllib.loads((place / "vmlab/hosts.toml").read_text()).keys() == {"hosts", "waiting"}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("line", BLOCKS)
def test_a_command_gets_as_far_as_the_hosts(line: str) -> None:
    """What it asks of them is tried on real guests (`test_namespaced_fleet`)."""
    done = CliRunner().invoke(cli, shlex.split(line)[1:])
    assert isinstance(done.exception, Reached), (done.exception, done.output)
    assert done.exception.hosts.keys() == HOSTS.keys()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("line", INLINE)
def test_a_command_in_a_sentence_is_one(line: str) -> None:
    """Nothing of it is carried out."""
    context, words = click.Context(cli), shlex.split(line)[1:]
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, found, words = command.resolve_command(context, words)
        assert found is not None and name is not None, line
        command, context = found, click.Context(found, parent=context, info_name=name)
    if words and not isinstance(command, click.Group):
        command.make_context(context.info_name, words, parent=context.parent)
