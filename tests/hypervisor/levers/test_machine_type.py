"""Board and firmware: what libvirt is told, what QEMU and a guest show of them, and what a host has for them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.hypervisor.conftest import spec
from tests.hypervisor.libvirt.test_domain_xml import FILES, FROZEN, IMAGE, SCHEMA, TCG
from vmlab.hypervisor.levers import machine_type, qemu_offers
from vmlab.hypervisor.levers.guest_lever import MISSING, RunningQemu
from vmlab.hypervisor.levers.machine_type import EFI, PRODUCT, VENDOR, MachineLever
from vmlab.hypervisor.levers.qemu_offers import lacking_machine, uefi_loader
from vmlab.hypervisor.libvirt.domain_xml import domain_xml
from vmlab.model.cell_event import LeverProved
from vmlab.model.errors import MOST_LETTERS, HypervisorError
from vmlab.model.event_json import from_json, to_json

Q35, PC = "Standard PC (Q35 + ICH9, 2009)\n", "Standard PC (i440FX + PIIX, 1996)\n"
FLASH = Path("/usr/share/OVMF/CODE.fd")


def found(inside: dict[str, str], kind: str, flash: str, **asked: Any) -> list[tuple[str, str, bool]]:
    answers = {"type": kind, "pflash0": flash}

    def monitor(command: str, arguments: dict[str, Any] | None = None) -> Any:
        assert command == "qom-get" and arguments is not None and arguments["path"] == "/machine"
        if not answers[arguments["property"]]:
            # As QEMU without flash.
            raise HypervisorError("qom-get: Property 'pc-q35-7.2-machine.pflash0' not found")
        return answers[arguments["property"]]

    proofs = MachineLever().prove(
        RunningQemu("web", 1, spec(**asked).resources, Path("/proc/1"), monitor, inside=inside)
    )
    return [(one.lever, one.found, one.agrees) for one in proofs]


@pytest.mark.parametrize(
    ("asked", "machine", "product", "right"),
    [
        ("pc", "pc-i440fx-7.2-machine", PC, (True, True)),
        ("q35", "pc-q35-7.2-machine", Q35, (True, True)),
        ("pc", "pc-q35-7.2-machine", PC, (False, True)),
        ("q35", "pc-q35-7.2-machine", PC, (True, False)),
        ("q35", "microvm-machine", "", (False, False)),
    ],
)
def test_the_board_is_qemus_machine_and_the_name_that_the_guest_reads(
    asked: str, machine: str, product: str, right: tuple[bool, bool]
) -> None:
    inside = {PRODUCT: product, VENDOR: "SeaBIOS\n", EFI: ""}
    proofs = [one for one in found(inside, machine, "", machine=asked) if one[0] == "machine"]
    assert tuple(agrees for _, _, agrees in proofs) == right


def test_of_a_long_name_that_the_guest_reads_a_part_is_kept() -> None:
    inside = {PRODUCT: "a" * 2**22, VENDOR: "b" * 2**22, EFI: ""}
    qemu = RunningQemu("web", 1, spec().resources, Path("/proc/1"), lambda command, arguments=None: "", inside=inside)
    proofs = list(MachineLever().prove(qemu))
    assert any(len(one.found) == MOST_LETTERS for one in proofs)
    assert all(from_json(to_json(LeverProved(cell=1, proof=one))) for one in proofs)


@pytest.mark.parametrize(("asked", "flash", "efi"), [("bios", "", ""), ("uefi", "libvirt-pflash0-format", "64\n")])
def test_the_firmware_is_qemus_flash_and_what_the_guest_started_by(asked: str, flash: str, efi: str) -> None:
    def firmware(flash: str, efi: str) -> list[bool]:
        proofs = found({PRODUCT: Q35, VENDOR: "", EFI: efi}, "pc-q35-7.2-machine", flash, firmware=asked)
        return [agrees for lever, _, agrees in proofs if lever == "firmware"]

    other = "" if flash else "flash"
    assert firmware(flash, efi) == [True, True]
    assert firmware(other, efi) == [False, True]
    assert firmware(flash, "" if efi else "64\n") == [True, False]


@pytest.mark.parametrize("asked", ["bios", "uefi"])
def test_a_monitor_that_does_not_answer_proves_no_firmware(asked: str) -> None:
    def monitor(command: str, arguments: dict[str, Any] | None = None) -> Any:
        if arguments == {"path": "/machine", "property": "pflash0"}:
            raise HypervisorError("qom-get: the monitor has not answered")
        return "pc-q35-7.2-machine"

    proofs = MachineLever().prove(RunningQemu("web", 1, spec(firmware=asked).resources, Path("/proc/1"), monitor))
    assert [(one.found, one.agrees) for one in proofs if one.lever == "firmware"] == [(MISSING, False)]


def test_a_guest_that_cannot_be_asked_is_proved_by_qemu_alone() -> None:
    assert [one[0] for one in found({}, "pc-q35-7.2-machine", "")] == ["machine", "firmware"]


@pytest.mark.parametrize("files", [FILES, FROZEN])
@pytest.mark.parametrize("machine", ["q35", "pc"])
@pytest.mark.parametrize("firmware", ["bios", "uefi"])
def test_libvirt_is_told_both(monkeypatch: pytest.MonkeyPatch, files: Any, machine: str, firmware: str) -> None:
    monkeypatch.setattr(machine_type, "uefi_loader", lambda: FLASH)
    text = domain_xml(spec(machine=machine, firmware=firmware), "run1", IMAGE, files, TCG)
    domain = etree.fromstring(text)
    assert domain.xpath("string(os/type/@machine)") == ("pc" if machine == "pc" else TCG.machine_type)
    ports = domain.xpath("devices/controller[@type='pci']")
    assert bool(ports) == (machine == "q35")
    assert domain.findtext("os/loader") == (str(FLASH) if firmware == "uefi" else None)
    if SCHEMA.exists():
        etree.RelaxNG(etree.parse(SCHEMA)).assertValid(domain)


def test_a_host_without_the_firmware_starts_no_guest_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_type, "uefi_loader", lambda: None)
    with pytest.raises(HypervisorError, match="no UEFI firmware"):
        domain_xml(spec(firmware="uefi"), "run1", IMAGE, FILES, TCG)


def described(flash: Path, **changes: Any) -> str:
    """A description as edk2's packages have it, with other fields."""
    usual = {
        "interface-types": ["uefi"],
        "mapping": {"device": "flash", "executable": {"filename": str(flash), "format": "raw"}},
        "targets": [{"architecture": "x86_64", "machines": ["pc-i440fx-*", "pc-q35-*"]}],
        "features": ["acpi-s3", "verbose-dynamic"],
    }
    return json.dumps({**usual, **changes})


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    own, packages = tmp_path / "etc", tmp_path / "usr"
    own.mkdir()
    packages.mkdir()
    monkeypatch.setattr(qemu_offers, "FOLDERS", (own, packages))
    return own, packages


def test_the_firmware_is_the_first_that_both_boards_can_have_without_secure_boot(folders: tuple[Path, Path]) -> None:
    own, packages = folders
    flash, other = packages / "code.fd", packages / "other.fd"
    assert uefi_loader() is None
    (packages / "40.json").write_text(described(flash, features=["secure-boot", "requires-smm"]))
    (packages / "41.json").write_text(described(flash, targets=[{"architecture": "x86_64", "machines": ["pc-q35-*"]}]))
    (packages / "42.json").write_text(described(flash, mapping={"device": "memory", "filename": str(flash)}))
    (packages / "43.json").write_text(described(flash, **{"interface-types": ["bios"]}))
    (packages / "44.json").write_text("{no JSON")
    (packages / "45.json").write_text("[]")
    flash.touch()
    assert uefi_loader() is None
    (packages / "60.json").write_text(described(flash))
    (packages / "70.json").write_text(described(other))
    assert uefi_loader() == flash
    # The host's own file of the same name stands for that of the package.
    (own / "60.json").write_text(described(other))
    assert uefi_loader() is None
    other.touch()
    assert uefi_loader() == other


@pytest.mark.parametrize(
    ("said", "lacking"),
    [
        ([{"name": "pc-i440fx-7.2", "alias": "pc"}, {"name": "pc-q35-7.2", "alias": "q35"}], ["firmware uefi"]),
        ([{"name": "pc-q35-7.2", "alias": "q35"}], ["firmware uefi", "machine pc"]),
        ({}, ["firmware uefi"]),
    ],
)
def test_what_qemu_and_the_host_lack_is_known_before(
    monkeypatch: pytest.MonkeyPatch, said: Any, lacking: list[str]
) -> None:
    text = f'{{"return": {{}}}}\n{json.dumps({"return": said})}\n'
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, 0, text, ""))
    monkeypatch.setattr(qemu_offers, "uefi_loader", lambda: None)
    assert list(lacking_machine()) == lacking
    monkeypatch.setattr(qemu_offers, "uefi_loader", lambda: FLASH)
    assert list(lacking_machine()) == lacking[1:]
