"""`vmlab record --blktrace` of guests of the host's own with a known load: one writes at random past the page cache."""

from __future__ import annotations

from pathlib import Path

from tests.host.inside import own_guests
from tests.host.inside.lab import require, tell, vmlab
from tests.host.inside.own_guests import READER, WRITER

_FOLDER = Path("/run/traced")
_INSTANCES = Path("/sys/kernel/tracing/instances")


def compared() -> None:
    """The copy of the writer's disk is at random alone, that of the reader's, which uses the page cache, in both
    orders; the guests are as they were, and no instance of tracing is left.
    """
    own_guests.start()
    before = own_guests.as_they_are()
    _FOLDER.mkdir(exist_ok=True)
    vmlab("record", "--for", "90s", "--blktrace", "--json")
    texts = {}
    for guest in (WRITER, READER):
        file = _FOLDER / f"{guest.name}.yaml"
        vmlab("advise", "last", "--disk", f"{guest.name}/vdb", "-o", str(file))
        texts[guest.name] = " ".join(line.strip("# ") for line in file.read_text().splitlines())
        tell("\n".join(line for line in file.read_text().splitlines() if "began where" in line or "at random" in line))
    require("had ended: random here" in texts[WRITER.name], f"no order of the writer's disk: {texts[WRITER.name]}")
    require("once in sequence" not in texts[WRITER.name], "the writer's disk is copied in sequence, too")
    require("once in sequence" in texts[READER.name], "an order is told of a disk that uses the page cache")
    left = [one.name for one in _INSTANCES.glob("vmlab-*")]
    require(not left, f"instances of tracing are left: {left}")
    after = own_guests.as_they_are()
    for name, was in before.items():
        require(after[name] == was, f"{name} was\n{was}\nand is\n{after[name]}")
