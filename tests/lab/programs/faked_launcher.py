"""The real launcher with an image that is there at once and a faked runner."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.programs.faked_vmlab import HOST, IMAGE, roots
from tests.priority import stay_nice
from vmlab.guests.image.catalog import Image
from vmlab.lab.process import launcher, measuring_runs

_launcher: Any = launcher
_measuring: Any = measuring_runs

BUILD_SECONDS = "FAKED_BUILD_SECONDS"
_NONE = Path("/none")


class HeldByNobody(Image):
    """An image without files."""

    def held(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def ensure(tell: Callable[[str], None]) -> Image:
    """An image, after a time."""
    tell("the image is faked")
    time.sleep(float(os.environ.get(BUILD_SECONDS, "0")))
    return HeldByNobody("faked", _NONE, Path(os.environ.get(IMAGE, _NONE)), _NONE, _NONE, "", _NONE, {})


if __name__ == "__main__":
    stay_nice()
    _measuring.RUN_FOLDERS = (Path(os.environ[HOST]),)
    _launcher.RUNNER = "tests.lab.programs.faked_runner"
    launcher.main(launcher.LauncherParts(ensure_image=ensure, roots=roots()))
