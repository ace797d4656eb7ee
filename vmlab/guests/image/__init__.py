"""The guests' one root disk for all roles: built from Debian's packages, kept by the address of its recipe."""

from vmlab.guests.image.building import build, clear_unfinished, ensure
from vmlab.guests.image.catalog import Image, ImageSummary, find, hold, list_images, remove

__all__ = ["Image", "ImageSummary", "build", "clear_unfinished", "ensure", "find", "hold", "list_images", "remove"]
