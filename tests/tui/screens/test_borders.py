"""What the console may load, and when: looked up in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

import vmlab

SCREENS = sorted(path.stem for path in (Path(vmlab.__file__).parent / "tui/screens").glob("*.py"))


def loaded_by(*modules: str) -> set[str]:
    """All modules that importing `modules` loads."""
    program = f"import sys, {', '.join(modules)}; sys.stdout.write(' '.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    )


@pytest.mark.parametrize("screen", SCREENS)
def test_no_screen_loads_a_hypervisor_or_ssh(screen: str) -> None:
    assert not loaded_by(f"vmlab.tui.screens.{screen}", "vmlab.tui.commands") & {
        "libvirt",
        "asyncssh",
        "pyroute2",
        "numpy",
    }


def test_the_command_line_does_not_load_what_draws() -> None:
    assert not loaded_by("vmlab.__main__", "vmlab.cli.main") & {"textual"}
