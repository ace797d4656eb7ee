"""The memory of libvirt's XML of a domain: its size, its pages, and the node that it is bound to."""

from __future__ import annotations

from lxml import etree

from vmlab.model.quantities import exact_bytes, whole
from vmlab.model.scenarios.memory_levers import RESERVED_PAGES
from vmlab.plan.copied_guest.found_guest import Findings, say_settings
from vmlab.plan.copied_guest.left_over import attributes_of, left_of, shown
from vmlab.telemetry.domains.libvirt_reader import scaled_bytes
from vmlab.telemetry.source import Roots


def memory_of(root: etree._Element, count: int, found: Findings, here: Roots | None) -> None:
    """Note it; `here` are the files of the domain's host, None where that may be another."""
    memory, current = root.find("memory"), root.find("currentMemory")
    if count and memory is not None:
        is_all = count == scaled_bytes(memory.text, memory.get("unit"))
        words = "" if is_all else " without what virtio-mem has not given it"
        found.say("memory", exact_bytes(count), f"{shown(memory, 'unit')}{words}")
    if current is not None and 0 < scaled_bytes(current.text, current.get("unit")) < count:
        found.lack(f"{shown(current, 'unit')}: a balloon has taken the rest; the lab's guests have all of their memory")
    backing = root.find("memoryBacking")
    if backing is not None:
        _backing(backing, found, here)
    tuned = root.find("numatune/memory")
    if tuned is not None:
        if (nodes := tuned.get("nodeset", "")).isdecimal() and tuned.get("mode", "strict") == "strict":
            found.say("numa", whole(nodes), shown(tuned))
        else:
            found.lack(f"{shown(tuned)}: the lab takes a guest's memory from one node (strict) or from any")
    for node in root.iterfind("numatune/memnode"):
        found.lack(f"{shown(node)}: guests of the lab have one node")
    for cell in root.iterfind("cpu/numa/cell"):
        if left := left_of(cell, ("id", "cpus", "memory", "unit")):
            found.lack(f"{left} of numa: no key")
    if (cells := len(root.findall("cpu/numa/cell"))) > 1:
        found.lack(f"<numa> with {cells} cells: guests of the lab have one node")


def _backing(backing: etree._Element, found: Findings, here: Roots | None) -> None:
    if (pages := backing.find("hugepages")) is not None:
        _huge_pages(pages, found, here)
    if (shared := backing.find("nosharepages")) is not None:
        found.say("ksm", False, shown(shared))
    if (locked := backing.find("locked")) is not None:
        found.say("memory_lock", True, shown(locked))
    settings: dict[str, bool | str] = {}
    if (allocation := backing.find("allocation")) is not None:
        settings |= {f"memoryBacking/allocation/@{key}": value for key, value in attributes_of(allocation).items()}
    if backing.find("discard") is not None:
        settings["memoryBacking/discard"] = True
    say_settings(found, settings, "<memoryBacking>")
    for tag in ("source", "access"):
        if (other := backing.find(tag)) is not None:
            found.lack(f"{shown(other)} of memoryBacking: no key")


def _huge_pages(pages: etree._Element, found: Findings, here: Roots | None) -> None:
    page = pages.find("page")
    if page is not None:
        size = scaled_bytes(page.get("size"), page.get("unit"))
        where = f"<hugepages>{shown(page, 'size', 'unit')}"
    else:
        size = 0 if here is None else _usual_page(here)
        where = f"{shown(pages)}, whose pages have the size that is usual on its host"
    if size in RESERVED_PAGES:
        found.say("huge_pages", RESERVED_PAGES[size], where)
    else:
        found.lack(f"{where}: the lab has pages of {' and '.join(RESERVED_PAGES.values())}")
    for other in pages.findall("page")[1:]:
        found.lack(f"{shown(other)} of hugepages: guests of the lab have pages of one size")


def _usual_page(here: Roots) -> int:
    """Bytes of the huge pages that the kernel takes where no size is said; 0 where that is not known."""
    try:
        lines = (here.proc / "meminfo").read_text().splitlines()
    except OSError:
        return 0
    said = next((line.split() for line in lines if line.startswith("Hugepagesize:")), [])
    return scaled_bytes(said[1], "KiB") if len(said) > 1 else 0
