"""The CD that installs Windows: its answer file's structure, what it has from virtio-win, and what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import asyncssh
import pytest
from lxml import etree

from vmlab.cli.main import command_line
from vmlab.guests.image import windows_answers
from vmlab.guests.image.windows_answers import Answers, answer_file, make_answers
from vmlab.model.errors import ExitCode, ImageError, RefusedError, UsageError

NAMES = {"u": "urn:schemas-microsoft-com:unattend"}
STATE = "{http://schemas.microsoft.com/WMIConfig/2002/State}"


def _iso(tree: Path, iso: Path) -> Path:
    subprocess.run(
        ["xorriso", "-as", "mkisofs", "-quiet", "-J", "-r", "-o", iso, tree], check=True, capture_output=True
    )
    return iso


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ISO laid out as that of virtio-win; ``w10`` has no network driver."""
    folder = tmp_path_factory.mktemp("virtio-win")
    for driver, release in (("viostor", "2k22"), ("NetKVM", "2k22"), ("viostor", "2k19"), ("NetKVM", "2k19")):
        for word in ("amd64", "x86"):
            place = folder / "tree" / driver / release / word
            place.mkdir(parents=True)
            (place / f"{driver.lower()}.inf").write_text(f"{driver} {release} {word}")
    (folder / "tree/viostor/w10/amd64").mkdir(parents=True)
    return _iso(folder / "tree", folder / "virtio-win.iso")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(tmp_path / "id")
    return tmp_path / "id"


def _read(iso: Path, folder: Path) -> dict[str, bytes]:
    """All files on a CD, by their path."""
    words = ["xorriso", "-osirrox", "on:auto_chmod_on", "-indev", str(iso), "-extract", "/", str(folder)]
    subprocess.run(words, check=True, capture_output=True)
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_the_cd_has_what_windows_needs_and_no_private_key(drivers: Path, key: Path, tmp_path: Path) -> None:
    (tmp_path / "fio 3.msi").write_bytes(b"installer")
    output = tmp_path / "answers.iso"
    make_answers(Answers(drivers, "2k22", key, 2, (tmp_path / "fio 3.msi",)), output)
    files = _read(output, tmp_path / "read")
    assert set(files) == {
        "Autounattend.xml",
        "vmlab/administrators_authorized_keys",
        "vmlab/drivers/NetKVM/netkvm.inf",
        "vmlab/drivers/viostor/viostor.inf",
        "vmlab/fio 3.msi",
        "vmlab/setup.cmd",
    }
    assert files["vmlab/drivers/viostor/viostor.inf"] == b"viostor 2k22 amd64"
    public = asyncssh.import_public_key(files["vmlab/administrators_authorized_keys"])
    assert public.export_public_key() == asyncssh.read_private_key(str(key)).export_public_key()
    assert not any(b"PRIVATE KEY" in content for content in files.values())
    lines = files["vmlab/setup.cmd"].split(b"\n")
    assert all(line.endswith(b"\r") for line in lines[:-1]) and lines[-1] == b""
    assert [path.name for path in tmp_path.iterdir() if "new" in path.name] == []


def test_each_cd_has_a_password_of_its_own_that_windows_takes(drivers: Path, key: Path, tmp_path: Path) -> None:
    found: list[str] = []
    for number in range(2):
        make_answers(Answers(drivers, "2k22", key), tmp_path / "one.iso")
        tree = etree.fromstring(_read(tmp_path / "one.iso", tmp_path / f"read{number}")["Autounattend.xml"])
        both = {str(value.text) for value in tree.findall(".//u:PlainText/../u:Value", NAMES)}
        assert len(both) == 1, "who logs in once is who was made"
        found += both
    assert found[0] != found[1]
    for one in found:
        assert any(map(str.isupper, one)) and any(map(str.islower, one)) and any(map(str.isdigit, one)) and "-" in one


def test_the_answer_file_has_each_pass_and_component_that_it_needs() -> None:
    tree = etree.fromstring(answer_file(4, "a&b<c"))
    components = {
        settings.get("pass"): [str(one.get("name")) for one in settings.findall("u:component", NAMES)]
        for settings in tree.findall("u:settings", NAMES)
    }
    assert tree.tag == "{urn:schemas-microsoft-com:unattend}unattend"
    assert components == {
        "windowsPE": [
            "Microsoft-Windows-International-Core-WinPE",
            "Microsoft-Windows-PnpCustomizationsWinPE",
            "Microsoft-Windows-Setup",
        ],
        "specialize": ["Microsoft-Windows-Shell-Setup"],
        "oobeSystem": ["Microsoft-Windows-Shell-Setup"],
    }
    for component in tree.iter("{urn:schemas-microsoft-com:unattend}component"):
        assert (component.get("processorArchitecture"), component.get("versionScope")) == ("amd64", "nonSxS")
    assert tree.findtext(".//u:MetaData/u:Value", namespaces=NAMES) == "4"
    assert {one.text for one in tree.findall(".//u:PlainText/../u:Value", NAMES)} == {"a&b<c"}
    paths = tree.findall(".//u:PathAndCredentials", NAMES)
    assert [one.findtext("u:Path", namespaces=NAMES) for one in paths] == [f"{one}:\\vmlab\\drivers" for one in "DEFG"]
    assert len({one.get(f"{STATE}keyValue") for one in paths}) == len(paths)
    (command,) = tree.findall(".//u:FirstLogonCommands//u:CommandLine", NAMES)
    assert "\\vmlab\\setup.cmd" in str(command.text)


def test_a_release_without_all_drivers_is_refused_with_those_that_have_them(
    drivers: Path, key: Path, tmp_path: Path
) -> None:
    for release in ("w10", "2k99", "../2k22", ""):
        with pytest.raises(ImageError, match="has no drivers of virtio-win for") as caught:
            make_answers(Answers(drivers, release, key), tmp_path / "one.iso")
        assert caught.value.remedy == "--release 2k19 or 2k22"
    other = _iso(tmp_path, tmp_path.parent / "other.iso")
    (tmp_path / "text.iso").write_text("no CD")
    for iso in (other, tmp_path / "text.iso"):
        with pytest.raises(ImageError, match="has no drivers of virtio-win") as caught:
            make_answers(Answers(iso, "2k22", key), tmp_path / "one.iso")
        assert caught.value.remedy == "give the ISO of virtio-win with --drivers"
    assert not (tmp_path / "one.iso").exists()


def test_what_cannot_be_used_is_refused_and_leaves_an_older_cd_as_it_is(
    drivers: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "one.iso"
    output.write_text("older")
    (tmp_path / "fio.exe").touch()
    with pytest.raises(UsageError, match=r"fio\.exe is no \.msi"):
        make_answers(Answers(drivers, "2k22", key, 1, (tmp_path / "fio.exe",)), output)
    with pytest.raises(UsageError, match="is no private key"):
        make_answers(Answers(drivers, "2k22", tmp_path / "fio.exe"), output)
    monkeypatch.setattr(windows_answers, "_MOST_INSTALLERS", 3)
    (tmp_path / "four.msi").write_bytes(b"four")
    with pytest.raises(UsageError, match="all installers together are larger than 3 B"):
        make_answers(Answers(drivers, "2k22", key, 1, (tmp_path / "four.msi",)), output)
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="xorriso is missing") as caught:
        make_answers(Answers(drivers, "2k22", key), output)
    assert "xorriso" in str(caught.value.remedy) and output.read_text() == "older"


def test_the_command_needs_the_users_word_on_the_licence(
    drivers: Path, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["image", "answers", "--drivers", str(drivers), "--release", "2k22", "--key", str(key)]
    words += ["-o", str(tmp_path / "one.iso")]
    assert command_line(words) == ExitCode.USAGE
    assert "--accept-licence" in capsys.readouterr().err and not (tmp_path / "one.iso").exists()
    assert command_line([*words, "--accept-licence"]) == 0
    assert (tmp_path / "one.iso").exists()
