"""An image of a few bytes, whole by its manifest, in the cache of the test, and a layer on it."""

from __future__ import annotations

from pathlib import Path

from vmlab.guests.image.catalog import IMAGES, Image, images_folder, load
from vmlab.guests.image.layers import layer_recipe
from vmlab.integrity.digests import describe, seal

FILES = ("root.raw", "vmlinuz", "initrd.img")
"""What an image consists of, with its manifest. Written down here, as in the hypervisor beside it."""


def small_image(folder: Path | None = None) -> Image:
    """Make it in `folder`, or in the cache; XDG_CACHE_HOME is the test's own by then."""
    folder = folder or images_folder() / "vmlab-1"
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_bytes(name.encode() * 5000)
    files = {name: describe(folder / name).as_json() for name in FILES}
    said = {"schema": "vmlab.image/2", "files": files, "command_line": "quiet", "created": 1.0}
    said["recipe"] = {"codename": "bookworm"}
    (folder / "manifest.json").write_text(seal(said))
    return load(folder)


def small_layer(base: Image, *packages: str) -> Image:
    """A layer with `packages` on top of `base`, with other bytes than that."""
    recipe = layer_recipe(base, packages)
    folder = base.folder.with_name(recipe.address())
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes(f"{name} {packages}".encode() * 5000)
    said = {
        "command_line": "quiet",
        "packages": dict.fromkeys(packages, "1.0"),
        "licences": {},
        "build_seconds": 25.0,
        "recipe": recipe.described(),
    }
    IMAGES.seal(folder, folder.name, {name: describe(folder / name) for name in FILES}, said)
    return load(folder)
