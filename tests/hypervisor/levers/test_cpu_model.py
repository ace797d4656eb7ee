"""The model of a guest's processors: libvirt's element, QEMU's processor, the guest's list, what a host can give."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.hypervisor.conftest import spec
from tests.hypervisor.libvirt.test_domain_xml import FILES, FROZEN, IMAGE, SCHEMA, TCG
from vmlab.hypervisor.levers import qemu_offers
from vmlab.hypervisor.levers.cpu_model import CPUINFO, CpuLever
from vmlab.hypervisor.levers.guest_lever import RunningQemu, files_inside
from vmlab.hypervisor.levers.qemu_offers import lacking_cpu, lacking_long_mode
from vmlab.hypervisor.libvirt.domain_xml import domain_xml
from vmlab.model.errors import HypervisorError

INSIDE = """\
processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC Processor
flags\t\t: fpu vme sse4_1 erms lahf_lm

processor\t: 1
model name\t: another
flags\t\t: avx2
"""
OFFERED = "<domainCapabilities><cpu><mode name='host-model'><model>EPYC-Milan</model></mode></cpu></domainCapabilities>"


class Monitor:
    """A QEMU whose first processor has these properties."""

    def __init__(self, **properties: Any) -> None:
        self.properties = {"model-id": "AMD EPYC Processor ", "unavailable-features": [], **properties}

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        if command == "query-cpus-fast":
            return [{"cpu-index": 0, "qom-path": "/machine/unattached/device[0]"}]
        assert command == "qom-get" and arguments is not None
        assert arguments["path"] == "/machine/unattached/device[0]"
        if arguments["property"] not in self.properties:
            raise HypervisorError(f"qom-get: no property {arguments['property']}")
        return self.properties[arguments["property"]]


def found(cpu: str | None, inside: str | None = None, **properties: Any) -> list[tuple[str, str, bool]]:
    # QEMU has both names of a feature.
    monitor = Monitor(**{**properties, **{name.replace("_", "-"): value for name, value in properties.items()}})
    files = {} if inside is None else {CPUINFO: inside}
    qemu = RunningQemu(
        "web", 1, spec(cpu=cpu).resources, Path("/proc/1"), monitor, capabilities=lambda: OFFERED, inside=files
    )
    proofs = list(CpuLever().prove(qemu))
    assert {one.lever for one in proofs} <= {"cpu"}
    return [(one.expected, one.found, one.agrees) for one in proofs]


@pytest.mark.parametrize(
    ("cpu", "kind", "got"),
    [
        ("max", "max", "max"),
        ("host", "host", "host"),
        ("EPYC", "EPYC", "EPYC"),
        ("EPYC", "max", "max"),
        ("host-model", "EPYC-Milan", "host-model"),
        ("host-model", "EPYC", "EPYC"),
        ("host-model", "max", "max"),
    ],
)
def test_the_model_is_the_type_of_qemus_processor(cpu: str, kind: str, got: str) -> None:
    assert found(cpu, type=f"{kind}-x86_64-cpu") == [(cpu, got, cpu == got)]


def test_features_are_properties_of_qemus_processor() -> None:
    kind = {"type": "max-x86_64-cpu"}
    assert found("max +avx2 -erms", avx2=True, erms=False, **kind) == [("max +avx2 -erms", "max +avx2 -erms", True)]
    assert found("max +avx2 -erms", avx2=False, erms=True, **kind) == [("max +avx2 -erms", "max -avx2 +erms", False)]


def test_what_qemu_has_left_out_of_a_model_is_found() -> None:
    kind: dict[str, Any] = {"type": "EPYC-x86_64-cpu", "svm": False, "unavailable_features": ["svm", "xsavec"]}
    assert found("EPYC -svm", **kind) == [("EPYC -svm", "EPYC -svm, without xsavec", False)]
    assert found("EPYC -svm", **{**kind, "unavailable_features": ["svm"]})[0][2] is True
    assert found("EPYC -fxsr_opt", **{**kind, "fxsr_opt": False, "unavailable_features": ["fxsr-opt"]})[0][2] is True


def test_the_guests_own_list_is_held_against_qemus_model() -> None:
    kind = {"type": "EPYC-x86_64-cpu", "sse4.1": True, "lahf_lm": True, "avx2": False}
    asked = "EPYC +lahf_lm -avx2"
    wanted = "AMD EPYC Processor +lahf_lm -avx2"
    assert found(asked, INSIDE, **kind) == [(asked, asked, True), (wanted, wanted, True)]
    without = INSIDE.replace(" lahf_lm", "").replace("AMD EPYC Processor", "QEMU Virtual CPU")
    assert found(asked, without, **kind)[1] == (wanted, "QEMU Virtual CPU -lahf_lm -avx2", False)
    assert found(asked, INSIDE.replace("erms", "avx2"), **kind)[1][2] is False
    adds = INSIDE.replace("erms", "erms 3dnowprefetch")
    assert found("EPYC -3dnowprefetch", adds, **{**kind, "3dnowprefetch": False})[1][2] is True
    assert found("EPYC -3dnowprefetch", adds, **{**kind, "3dnowprefetch": True})[0][2] is False
    # Linux lists some by other names, and some not at all.
    assert found("EPYC +spec-ctrl", INSIDE, spec_ctrl=True, **kind)[1][2] is True


def test_a_guest_with_the_usual_processor_is_not_proved_and_no_file_is_read_without_need() -> None:
    assert found(None, INSIDE) == []
    assert files_inside(["cpu", "pin"]) == [CPUINFO]
    assert files_inside(["pin", "io"]) == []


@pytest.mark.parametrize(
    ("cpu", "attributes", "within"),
    [
        ("host", {"mode": "host-passthrough"}, []),
        ("max", {"mode": "maximum"}, []),
        ("host-model -avx2", {"mode": "host-model"}, [("feature", {"policy": "disable", "name": "avx2"}, None)]),
        (
            "EPYC +aes -svm",
            {"mode": "custom", "match": "exact", "check": "none"},
            [
                ("model", {"fallback": "forbid"}, "EPYC"),
                ("feature", {"policy": "require", "name": "aes"}, None),
                ("feature", {"policy": "disable", "name": "svm"}, None),
            ],
        ),
    ],
)
def test_libvirt_is_told_it_in_its_words(cpu: str, attributes: dict[str, str], within: list[Any]) -> None:
    for files in (FILES, FROZEN):
        domain = etree.fromstring(domain_xml(spec(cpu=cpu), "run1", IMAGE, files, TCG))
        (made,) = domain.findall("cpu")
        assert dict(made.items()) == attributes
        assert [(one.tag, dict(one.items()), one.text) for one in made] == within
        if SCHEMA.exists():
            etree.RelaxNG(etree.parse(SCHEMA)).assertValid(domain)


_PROPS = {"avx2": True, "svm": False, "min-level": 13, "fxsr-opt": False, "fxsr_opt": False, "l3-cache": True}


class Asked:
    """A QEMU that answers to what is asked without a guest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers: list[dict[str, Any]] = [
            {"QMP": {}},
            {"return": {}},
            {"return": [{"name": "EPYC", "unavailable-features": ["svm", "fxsr-opt"]}, {"name": "base"}]},
            {"return": {"model": {"name": "max", "props": _PROPS}}},
            {"timestamp": {}, "event": "SHUTDOWN"},
            {"return": {}},
        ]
        self.stdout = "\n".join(map(json.dumps, answers))
        qemu_offers._offers.cache_clear()
        features = {name: name for name in ("avx2", "svm", "lm", "fxsr_opt")} | {"fxsr-opt": "fxsr_opt"}
        monkeypatch.setattr(qemu_offers, "_features_of_libvirt", lambda: features)
        monkeypatch.setattr(qemu_offers, "_known_to_libvirt", lambda: frozenset({"EPYC", "Haswell"}))
        monkeypatch.setattr("subprocess.run", self.run)

    def run(self, argv: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, 0, self.stdout, "")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


@pytest.mark.parametrize(
    ("cpu", "why"),
    [
        ("max", None),
        ("max -svm", None),
        ("host-model", None),
        ("EPYC  svm", None),
        ("EPYC -svm -fxsr_opt", None),
        ("EPYC -svm -fxsr-opt", "libvirt's name of the CPU feature fxsr-opt is fxsr_opt"),
        ("max -l3-cache", "this host's QEMU and libvirt do not both know a CPU feature l3-cache"),
        ("max +topoext", "this host's QEMU and libvirt do not both know a CPU feature topoext"),
        ("max +fast", "this host's QEMU and libvirt do not both know a CPU feature fast"),
        ("max +svm", "emulation (TCG) has no CPU feature svm here"),
        ("host", "the host's own processor needs KVM"),
        ("EPYC", "emulation (TCG) cannot give it svm, fxsr_opt; without these it is EPYC -svm -fxsr_opt"),
        ("EPYC -avx2", "emulation (TCG) cannot give it svm, fxsr_opt; without these it is EPYC -avx2 -svm -fxsr_opt"),
        ("Haswell", "this host's QEMU and libvirt do not both know a CPU model Haswell"),
        ("base", "this host's QEMU and libvirt do not both know a CPU model base"),
    ],
)
def test_what_this_host_cannot_give_is_known_before(asked: Asked, cpu: str, why: str | None) -> None:
    assert lacking_cpu(cpu, "tcg") == why


@pytest.mark.parametrize(
    ("cpu", "lm", "starts"),
    [
        ("486", False, False),
        ("486 +lm", False, True),
        ("qemu64", True, True),
        ("qemu64 -lm", True, False),
        ("max", False, True),
        ("max -lm", True, False),
        ("EPYC", None, True),
    ],
)
def test_a_processor_without_long_mode_starts_no_image_of_64_bits(
    asked: Asked, cpu: str, lm: bool | None, starts: bool
) -> None:
    answers = [{"return": {}}, {"return": {"model": {"props": {} if lm is None else {"lm": lm}}}}, {"return": {}}]
    asked.stdout = "\n".join(map(json.dumps, answers))
    qemu_offers._has_long_mode.cache_clear()
    why = None if starts else "vmlab's own image has 64 bits, which this processor has not (lm)"
    assert lacking_long_mode(cpu, "tcg") == why


def test_a_qemu_that_is_not_understood_refuses_nothing(asked: Asked) -> None:
    for said in ("", "no JSON", '{"return": {}}\n{"error": {"desc": "no such command"}}\n{"return": {}}'):
        qemu_offers._offers.cache_clear()
        asked.stdout = said
        assert lacking_cpu("EPYC +fast", "tcg") is None
