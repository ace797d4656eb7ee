"""Names of images that guests start from, and of Debian's packages that an image has besides."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from vmlab.model.scenarios.scenario_part import as_tuple, matched

_IMAGE_NAME = re.compile(r"[a-z][a-z0-9.-]{0,30}", re.ASCII)
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{0,98}[a-z0-9+.]", re.ASCII)
"""As Debian's policy has it, but for a dash at the end, by which apt-get removes a package."""
_MOST_PACKAGES = 64


def check_image_name(name: object) -> object:
    """The name of an image; it can be used unchanged as the name of a folder. Raises ValueError for anything else."""
    return matched(name, _IMAGE_NAME, "needs small letters, digits, dots and dashes, at most 31, the first a letter")


ImageName = Annotated[
    str, BeforeValidator(check_image_name), WithJsonSchema({"type": "string", "pattern": f"^{_IMAGE_NAME.pattern}$"})
]


def check_package(name: object) -> object:
    """The name of a package of Debian's. Raises ValueError for anything else."""
    return matched(name, _PACKAGE, "needs the name of a package of Debian's, such as redis-server")


_PACKAGE_SCHEMA = {"type": "string", "pattern": f"^{_PACKAGE.pattern}$"}
_PackageName = Annotated[str, BeforeValidator(check_package), WithJsonSchema(_PACKAGE_SCHEMA)]
Packages = Annotated[
    tuple[_PackageName, ...],
    Field(strict=False, max_length=_MOST_PACKAGES),
    BeforeValidator(as_tuple),
    WithJsonSchema(
        {"anyOf": [_PACKAGE_SCHEMA, {"type": "array", "items": _PACKAGE_SCHEMA, "maxItems": _MOST_PACKAGES}]}
    ),
]
