"""What the console may load, and when: looked up in processes of their own."""

import subprocess
import sys
from pathlib import Path

import vmlab

SCREENS = sorted(
    path.stem for path in (Path(vmlab.__file__).parent / "tui/screens").glob("*.py") if path.stem != "__init__"
)


def loaded_by(*modules: str) -> set[str]:
    """All modules that importing `modules` loads."""
    program = f"import sys, {', '.join(modules)}; sys.stdout.write(' '.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    )


def test_no_screen_loads_a_hypervisor_or_ssh() -> None:
    """All of them in one process, which each alone loads a part of."""
    screens = [f"vmlab.tui.screens.{one}" for one in SCREENS]
    loaded = loaded_by(*screens, "vmlab.tui.commands")
    assert loaded >= {*screens}
    assert not loaded & {"libvirt", "asyncssh", "pyroute2", "numpy"}


def test_the_command_line_does_not_load_what_draws() -> None:
    assert not loaded_by("vmlab.__main__", "vmlab.cli.main") & {"textual"}
