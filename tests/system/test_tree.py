"""The shape of the source tree: folders that can be read at a glance, and no module whose name says nothing."""

from collections import Counter
from pathlib import Path

VMLAB = Path(__file__).parents[2] / "vmlab"
MOST_MODULES = 24
VAGUE = {"behind", "control", "covered", "helpers", "known", "late", "misc", "now", "own_state", "targets", "utils"}


def test_no_folder_has_more_modules_than_can_be_read_at_a_glance() -> None:
    modules = Counter(path.parent for path in VMLAB.rglob("*.py") if path.name != "__init__.py")
    assert {str(folder): count for folder, count in modules.items() if count > MOST_MODULES} == {}


def test_every_module_has_a_name_that_says_what_is_in_it() -> None:
    assert [str(path) for path in VMLAB.rglob("*.py") if path.stem in VAGUE] == []


def test_every_package_says_in_its_first_line_what_it_holds() -> None:
    packages = [path for path in VMLAB.rglob("__init__.py") if "payload" not in path.parts]
    assert len(packages) > 40
    assert [str(path) for path in packages if not path.read_text().startswith('"""')] == []


def test_a_name_that_many_modules_need_stands_in_one_of_them() -> None:
    owners = {'"run_time"': {"model/run.py"}, "HEADLINES[:": set(), '"cache", "tiles")': {"lab/commands/asking.py"}}
    found = {
        text: {str(path.relative_to(VMLAB)) for path in VMLAB.rglob("*.py") if text in path.read_text()}
        for text in owners
    }
    assert found == owners
