"""What passes for a user's own copy of a suite."""

from __future__ import annotations

from pathlib import Path

from vmlab.workloads.assets import asset_forms


def unixbench_at(place: Path) -> Path:
    """A folder in `place`, made anew, that passes for UnixBench's source."""
    suite = place / "byte-unixbench" / "UnixBench"
    for file in asset_forms()["unixbench"].files:
        (suite / file).parent.mkdir(parents=True, exist_ok=True)
        (suite / file).write_text(f"{file}\n" * 1000)
    (suite / "Run").chmod(0o755)
    return suite
