"""What programs of others rely on: a line for each name, held by a file that shows every change of it."""

import inspect
import os
from collections.abc import Collection, Iterator
from pathlib import Path


def promised_of(
    name: str, found: object, left_out: Collection[str] = (), *, attribute_types: bool = False
) -> Iterator[str]:
    """A line for the name itself, for each method and attribute of a class, and for what a function takes."""
    yield name
    if inspect.isfunction(found):
        yield f"{name}{inspect.signature(found)}"
    if not inspect.isclass(found):
        return
    for part in sorted(vars(found)):
        if not part.startswith("_") and part not in left_out:
            member = vars(found)[part]
            takes = inspect.signature(member) if inspect.isfunction(member) else ""
            kind = f": {_type(found, part, member)}" if attribute_types and not takes else ""
            yield f"{name}.{part}{takes}{kind}"


def _type(kind: type, name: str, member: object) -> str:
    """The annotation of an attribute."""
    if isinstance(member, property) and member.fget is not None:
        return str(inspect.get_annotations(member.fget)["return"])
    return str(inspect.get_annotations(kind)[name])


def hold(now: Collection[str], file: Path, least: int, broken: str) -> None:
    """Fail unless `file` has these lines; `broken` is what it means when one of its own is gone."""
    if os.environ.get("VMLAB_GOLDEN") == "write":
        file.write_text("\n".join(now) + "\n")
    before = file.read_text().splitlines()
    assert len(before) > least
    assert [line for line in before if line not in now] == [], broken
    assert [line for line in now if line not in before] == [], "a new promise: VMLAB_GOLDEN=write"
