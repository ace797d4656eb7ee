"""The guests' root disk, one for all roles: built from Debian's packages, stored under the digest of its recipe."""

from vmlab.guests.image.building import build, clear_unfinished, ensure
from vmlab.guests.image.catalog import (
    Image,
    ImageSummary,
    damaged,
    find,
    hold,
    list_images,
    load,
    remove,
    require_whole,
)

__all__ = [
    "Image",
    "ImageSummary",
    "build",
    "clear_unfinished",
    "damaged",
    "ensure",
    "find",
    "hold",
    "list_images",
    "load",
    "remove",
    "require_whole",
]
