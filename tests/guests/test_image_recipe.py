"""An image's address follows from its recipe and from nothing else."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from vmlab.guests.image.recipe import COMMAND_LINE, PAYLOAD, ImageRecipe, current, read_payload
from vmlab.model.roles import ROLES

RECIPE = current("bookworm")


def test_the_address_is_a_name_and_twelve_digits() -> None:
    assert re.fullmatch(r"vmlab-[0-9a-f]{12}", RECIPE.address())
    assert current("bookworm").address() == RECIPE.address()


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(RECIPE, codename="trixie"),
        dataclasses.replace(RECIPE, architecture="arm64"),
        dataclasses.replace(RECIPE, packages=RECIPE.packages[1:]),
        dataclasses.replace(RECIPE, left_out=RECIPE.left_out[1:]),
        dataclasses.replace(RECIPE, payload={**RECIPE.payload, "root/etc/x": b"x"}),
        dataclasses.replace(RECIPE, payload={name: body + b"\n" for name, body in RECIPE.payload.items()}),
        dataclasses.replace(RECIPE, environment={**RECIPE.environment, "SHARE": "forest"}),
        dataclasses.replace(RECIPE, command_line="root=/dev/vda"),
        dataclasses.replace(RECIPE, format=RECIPE.format + 1),
    ],
)
def test_every_part_of_the_recipe_moves_the_address(other: ImageRecipe) -> None:
    assert other.address() != RECIPE.address()


def test_compiled_and_backup_files_are_no_payload(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    for name in ("kept.sh", "kept.sh~", "left.pyc", "__pycache__/left.py"):
        (tmp_path / name).write_text("x")
    assert read_payload(tmp_path) == {"kept.sh": b"x"}


def test_the_kernel_has_no_word_without_a_reason_and_keeps_its_mitigations() -> None:
    assert all(word and reason for word, reason in COMMAND_LINE)
    assert "mitigations" not in RECIPE.command_line


def test_the_payload_uses_every_variable_that_it_is_given() -> None:
    text = b"".join(RECIPE.payload.values()).decode()
    assert set(re.findall(r"\$([A-Z]+(?:_[A-Z]+)*)\b", text)) >= RECIPE.environment.keys()
    assert RECIPE.environment["LAB_NETWORK"] == "198.18.0.0/15"


def test_each_role_has_units_and_each_step_of_the_set_up_is_a_script() -> None:
    assert all(role.units and all(unit.endswith(".service") for unit in role.units) for role in ROLES.values())
    assert all((PAYLOAD / "setup" / role.setup).is_file() for role in ROLES.values() if role.setup)
    steps = sorted((PAYLOAD / "setup").glob("*.sh"))
    assert steps
    for step in steps:
        assert step.read_text().startswith("#!/bin/sh\n"), step


@pytest.mark.parametrize(("codename", "theme"), [("bookworm", "twentytwentyone"), ("trixie", "twentytwentythree")])
def test_each_release_has_one_theme_of_its_own(codename: str, theme: str) -> None:
    packages = current(codename).packages
    assert [name for name in packages if "-theme-" in name] == [f"wordpress-theme-{theme}"]
