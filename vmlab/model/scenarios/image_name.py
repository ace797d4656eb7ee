"""Names of images that guests start from."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_IMAGE_NAME = re.compile(r"[a-z][a-z0-9.-]{0,30}", re.ASCII)


def check_image_name(name: object) -> object:
    """The name of an image; it can be used unchanged as the name of a folder. Raises ValueError for anything else."""
    if not isinstance(name, str) or not _IMAGE_NAME.fullmatch(name):
        raise ValueError("needs small letters, digits, dots and dashes, at most 31, the first a letter")
    return name


ImageName = Annotated[
    str, BeforeValidator(check_image_name), WithJsonSchema({"type": "string", "pattern": f"^{_IMAGE_NAME.pattern}$"})
]
