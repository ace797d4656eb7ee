"""Where the lab keeps things: images in the cache, runs in the state folder, sockets in the runtime folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Images and snapshots; follows ``XDG_CACHE_HOME``."""
    return platformdirs.user_cache_path("vmlab")


def state_folder() -> Path:
    """Runs and their stores; follows ``XDG_STATE_HOME``."""
    return platformdirs.user_state_path("vmlab")


def runs_folder() -> Path:
    """One folder for each run, named by the run's id."""
    return state_folder() / "runs"


def runtime_folder() -> Path:
    """Sockets and libvirt's roots; short, as socket paths end at 108 bytes. ``VMLAB_RUNTIME_DIR`` moves it."""
    return Path(os.environ.get("VMLAB_RUNTIME_DIR", "/run/vmlab"))


def shipped_scenarios() -> Path:
    """The scenarios that come with the program, from a checkout or from an installed package."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "shipped"
    return installed if installed.is_dir() else package.parent / "scenarios"
