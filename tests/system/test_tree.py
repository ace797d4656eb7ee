"""The shape of the source tree: folders that can be read at a glance, and no module whose name says nothing."""

import re
from collections import Counter
from pathlib import Path

import pytest

VMLAB = Path(__file__).parents[2] / "vmlab"
MOST_MODULES = 24
ALIKE = {"catalog", "recipe"}
"""Each is one idea: what is kept of images and snapshots, how these are made."""
VAGUE = {"behind", "control", "covered", "helpers", "known", "late", "misc", "now", "own_state", "targets", "utils"}


def test_no_folder_has_more_modules_than_can_be_read_at_a_glance() -> None:
    modules = Counter(path.parent for path in VMLAB.rglob("*.py") if path.name != "__init__.py")
    assert {str(folder): count for folder, count in modules.items() if count > MOST_MODULES} == {}


def test_two_modules_of_one_name_are_the_same_idea() -> None:
    names = Counter(path.stem for path in VMLAB.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))
    assert {name for name, count in names.items() if count > 1} <= ALIKE


def test_every_module_has_a_name_that_says_what_is_in_it() -> None:
    assert [str(path) for path in VMLAB.rglob("*.py") if path.stem in VAGUE] == []


def test_every_package_says_in_its_first_line_what_it_holds() -> None:
    packages = [path for path in VMLAB.rglob("__init__.py") if "payload" not in path.parts]
    assert len(packages) > 40
    assert [str(path) for path in packages if not path.read_text().startswith('"""')] == []


def test_a_name_that_many_modules_need_stands_in_one_of_them() -> None:
    owners = {'"run_time"': {"model/run.py"}, "HEADLINES[:": set(), '"cache", "tiles")': {"lab/commands/verbs.py"}}
    found = {
        text: {str(path.relative_to(VMLAB)) for path in VMLAB.rglob("*.py") if text in path.read_text()}
        for text in owners
    }
    assert found == owners


@pytest.mark.parametrize("page", ["docs/development/architecture.md", "CONTRIBUTING.md"])
def test_a_page_for_developers_names_files_that_there_are(page: str) -> None:
    root = Path(__file__).parents[2]
    files = [str(path.relative_to(root)) for top in ("vmlab", "tests") for path in (root / top).rglob("*.py")]
    # Links say which file they mean, and are held where the site is built.
    text = re.sub(r"\[[^\]]*\]\([^)]*\)", "", (root / page).read_text(encoding="utf-8"))
    for name in dict.fromkeys(re.findall(r"`([a-z0-9_/]+\.py)`", text)):
        there = [file for file in files if f"/{file}".endswith(f"/{name}")]
        product = [file for file in there if file.startswith("vmlab/")]
        assert there, name
        assert len(product or there) == 1 or name == "__init__.py" or f"vmlab/{name}" in product, there
