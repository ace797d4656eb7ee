"""Which processors this host's QEMU and libvirt can give a guest. Both are asked, without a guest."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from vmlab.hypervisor.kvm_probe import EMULATOR
from vmlab.model.run import Accelerator
from vmlab.model.scenarios.cpu_levers import HOST_CPU, LIKE_HOST_CPU, MOST_CPU, read_cpu

_ENOUGH = 30.0
_ACCELERATORS: Mapping[Accelerator, str] = {"kvm": "KVM", "tcg": "emulation (TCG)"}


def lacking_cpu(text: str, accelerator: Accelerator) -> str | None:
    """Why no guest can have this value of ``cpu`` here; None where it can, or nobody says so.

    Where QEMU or libvirt says nothing that is understood, the guest's start finds out.
    """
    words = _ACCELERATORS[accelerator]
    try:
        asked = read_cpu(text)
        if asked.model == HOST_CPU and accelerator != "kvm":
            return "the host's own processor is to be had with KVM alone"
        models, features = _offers(accelerator)
    except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError):
        return None
    if unknown := [name for name in (*asked.added, *asked.removed) if name not in features]:
        return f"this host's QEMU has no CPU feature {unknown[0]}"
    if never := [name for name in asked.added if not features[name]]:
        return f"{words} has no CPU feature {', '.join(never)} here"
    if asked.model in (HOST_CPU, MOST_CPU, LIKE_HOST_CPU):
        return None
    if asked.model not in models or asked.model not in _known_to_libvirt():
        return f"this host's QEMU and libvirt do not both know a CPU model {asked.model}"
    if lacking := [name for name in models[asked.model] if name not in asked.removed]:
        without = " ".join([text, *(f"-{name}" for name in lacking)])
        return f"{words} cannot give it {', '.join(lacking)}; without these it is {without}"
    return None


@cache
def _offers(accelerator: Accelerator) -> tuple[dict[str, list[str]], dict[str, bool]]:
    """By model the features that it cannot have here, and by feature whether the accelerator can give it."""
    every = HOST_CPU if accelerator == "kvm" else MOST_CPU
    most = {"type": "full", "model": {"name": every}}
    models, expanded = _answers(
        accelerator,
        {"execute": "query-cpu-definitions"},
        {"execute": "query-cpu-model-expansion", "arguments": most},
    )
    props = expanded["model"]["props"]
    return (
        {one["name"]: list(one.get("unavailable-features", ())) for one in models},
        {name: value for name, value in props.items() if isinstance(value, bool)},
    )


def _answers(accelerator: Accelerator, *asked: dict[str, Any]) -> Iterator[Any]:
    """QEMU's answers, in order. Raises what `lacking_cpu` takes for nothing said."""
    words = ["-machine", f"none,accel={accelerator}", "-nodefaults", "-display", "none", "-qmp", "stdio"]
    requests = [{"execute": "qmp_capabilities"}, *asked, {"execute": "quit"}]
    done = subprocess.run(
        [EMULATOR, *words],
        input="".join(map(json.dumps, requests)),
        capture_output=True,
        text=True,
        timeout=_ENOUGH,
        check=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    returned = [one["return"] for one in said if "return" in one]
    yield from returned[1 : 1 + len(asked)]


@cache
def _known_to_libvirt() -> frozenset[str]:
    """The models by name. libvirt's own driver for tests answers with the same list, and starts nothing."""
    import libvirt

    connection = libvirt.open("test:///default")
    try:
        return frozenset(connection.getCPUModelNames("x86_64"))
    finally:
        connection.close()
