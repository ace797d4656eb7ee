"""Where the lab keeps things: images in the cache, runs in the state folder, sockets in the runtime folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Images and snapshots; follows ``XDG_CACHE_HOME``."""
    return _placed(platformdirs.user_cache_path("vmlab"), ".cache")


def state_folder() -> Path:
    """Runs and their stores; follows ``XDG_STATE_HOME``."""
    return _placed(platformdirs.user_state_path("vmlab"), ".local/state")


def _placed(found: Path, usual: str) -> Path:
    # The XDG base directory specification has a relative path ignored, which platformdirs takes.
    return found if found.is_absolute() else Path.home() / usual / "vmlab"


def runs_folder() -> Path:
    """One folder for each run, named by the run's id."""
    return state_folder() / "runs"


def runtime_folder() -> Path:
    """Sockets and libvirt's roots; short, as socket paths end at 108 bytes. ``VMLAB_RUNTIME_DIR`` moves it."""
    return Path(os.environ.get("VMLAB_RUNTIME_DIR", "/run/vmlab"))


def remedy_for(path: Path | str) -> str | None:
    """What moves the folder of the lab in which `path` is, or which cannot be made because of it; None for any other
    file.
    """
    place = Path(path).absolute()
    folders = [("XDG_STATE_HOME", runs_folder()), ("XDG_CACHE_HOME", cache_folder())]
    folders += [("XDG_STATE_HOME", state_folder()), ("VMLAB_RUNTIME_DIR", runtime_folder())]
    for variable, folder in folders:
        # os.path's answer is no, and not an error, where this user may not look.
        if place.is_relative_to(folder) or (folder.is_relative_to(place) and not os.path.isdir(place)):  # noqa: PTH112
            return f"set {variable} to a folder on a local disk"
    return None


def shipped_scenarios() -> Path:
    """The scenarios that come with the program, from a checkout or from an installed package."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "shipped"
    return installed if installed.is_dir() else package.parent / "scenarios"
