"""The hosts file: what it may have, and one line with file and key for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmlab.fleet.hosts_file import HostEntry, chosen_hosts, read_hosts
from vmlab.model.errors import UsageError

FILE = """
[hosts.hv1]
address = "192.0.2.11"
[hosts.hv2]
address = "192.0.2.12"
port = 2222
user = "admin"
key = "~/lab"
vmlab = "sudo -n vmlab"
[waiting]
reconnect = "5 s"
"""


def _written(folder: Path, text: str) -> Path:
    (folder / "hosts.toml").write_text(text)
    return folder / "hosts.toml"


def test_hosts_are_read_with_their_usual_keys(tmp_path: Path) -> None:
    """What is left out has its usual value, paths may begin with ~."""
    found = read_hosts(_written(tmp_path, FILE))
    assert found.hosts["hv1"] == HostEntry(address="192.0.2.11")
    assert (found.hosts["hv1"].user, found.hosts["hv1"].port, found.hosts["hv1"].vmlab) == ("root", 22, "vmlab")
    assert found.hosts["hv2"].key == Path.home() / "lab"
    assert (found.waiting.reconnect, found.waiting.hold) == (5.0, 600.0)


def test_an_entry_survives_the_way_to_the_controller(tmp_path: Path) -> None:
    """As JSON, with its paths."""
    entry = read_hosts(_written(tmp_path, FILE)).hosts["hv2"]
    assert HostEntry.model_validate_json(entry.model_dump_json()) == entry


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[hosts.hv1]\n", "hosts.hv1.address is missing"),
        ('[hosts.hv1]\naddress = "a"\nprot = 22\n', "hosts.hv1.prot: unknown key; known are address, port"),
        ('[hosts.hv1]\naddress = "a"\nport = "22"\n', "hosts.hv1.port: input should be a valid integer"),
        ('[hosts.hv1]\naddress = "a"\nport = 0\n', "hosts.hv1.port: input should be greater"),
        ('[host.hv1]\naddress = "a"\n', "host: unknown key; known are hosts, waiting"),
        ('[waiting]\nhold = "soon"\n', "waiting.hold: "),
        ('[hosts."a b"]\naddress = "a"\n', "hosts.a b: a name has"),
        ('[hosts.all]\naddress = "a"\n', "hosts.all: a name has"),
        ("[hosts\n", "line 1"),
        (f"a = {'[' * 50_000}\n", "is nested too deep"),
        (f"a = {'9' * 5000}\n", "digits"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    """Nothing is guessed."""
    path = _written(tmp_path, text)
    with pytest.raises(UsageError) as raised:
        read_hosts(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_hosts_are_chosen_by_name_or_address(tmp_path: Path) -> None:
    """A name that the file lacks is an address; `all` is every host of the file."""
    path = _written(tmp_path, FILE)
    assert list(chosen_hosts(["all"], path)) == ["hv1", "hv2"]
    assert list(chosen_hosts(["hv2", "198.51.100.7"], path).values())[1] == HostEntry(address="198.51.100.7")
    with pytest.raises(UsageError, match="named twice"):
        chosen_hosts(["hv1", "hv1"], path)
    with pytest.raises(UsageError, match="no name of a host"):
        chosen_hosts(["-oProxyCommand=x"], path)
    with pytest.raises(UsageError, match="names no host"):
        chosen_hosts(["all"], tmp_path / "none.toml")
