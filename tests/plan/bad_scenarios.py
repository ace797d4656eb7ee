"""Scenarios that are wrong in one way each, and the line that says so; used by the planner's and the CLI's tests."""

from __future__ import annotations

from dataclasses import dataclass

GOOD = """\
name: trial
guests:
  a: {role: fileserver, memory: 512 MiB}
  b: {role: fileserver, memory: 512 MiB}
workloads:
  copy: {kind: filecopy, from: a, to: b, files: 10, bytes: 1 MB}
"""


@dataclass(frozen=True)
class Bad:
    """A text, and what is said of it after the file's name."""

    name: str
    text: str
    line: str


def changed(name: str, old: str, new: str, line: str) -> Bad:
    """The good scenario with one piece replaced."""
    assert old in GOOD
    return Bad(name, GOOD.replace(old, new, 1), line)


def added(name: str, text: str, line: str) -> Bad:
    """The good scenario with something after it; that begins on line 7."""
    return Bad(name, f"{GOOD}{text}\n", line)


_BOMB = "\n".join(f"{c}: &{c} [{', '.join(['*' + p] * 10)}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True))
_BYTE_UNITS = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
_NAME_RULE = "needs small letters, digits and dashes, at most 31, the first a letter"

BAD = [
    added("unknown key", "sedd: 3", ":7:1: unknown key 'sedd' in the scenario; did you mean 'seed'?"),
    added("duplicate key", "name: again", ":7:1: the key 'name' stands twice; the first is on line 1"),
    changed(
        "duplicate key in a guest",
        "{role: fileserver, memory: 512 MiB}",
        "{role: web, role: mail, memory: 1 GiB}",
        ":3:18: the key 'role' stands twice; the first is on line 3",
    ),
    changed(
        "unknown unit",
        "512 MiB",
        "512 Mib",
        f":3:33: guests.a.memory: unknown unit 'Mib'; use one of {_BYTE_UNITS}, such as 512 MiB, not '512 Mib'",
    ),
    changed("no unit", "512 MiB", "512", ":3:33: guests.a.memory: needs a number and a unit, such as 512 MiB, not 512"),
    changed("too small", "512 MiB", "1 MiB", ":3:33: guests.a.memory: must be at least 64 MiB, not '1 MiB'"),
    changed("missing key", ", memory: 512 MiB", "", ":3:3: guests.a needs 'memory'"),
    changed("dangling guest", "to: b", "to: c", ":6:39: there is no guest 'c'; known are a, b"),
    changed("workload to itself", "to: b", "to: a", ":6:39: workloads.copy runs from a to itself; it needs two guests"),
    changed("two sides on the host", "from: a", "from: host", ":6:32: only workloads with `on` can run on the host"),
    changed("wrong side", "from: a, to: b", "on: a", ":6:26: kind filecopy takes from and to, not 'on'"),
    changed("missing side", ", to: b", "", ":6:3: workloads.copy needs 'to': the guest where its server runs"),
    changed("role", "role: fileserver", "role: web", ":6:32: guest a needs the role fileserver for kind filecopy"),
    changed(
        "no such role",
        "role: fileserver",
        "role: [web, maul]",
        ":3:19: guests.a.role.2: must be 'fileserver', 'web', 'database' or 'mail', not 'maul'",
    ),
    changed("kind", "filecopy", "filecpy", ":6:16: there is no kind of workload 'filecpy'; did you mean 'filecopy'?"),
    changed("parameter", "files:", "flies:", ":6:42: unknown key 'flies' in workloads.copy; did you mean 'files'?"),
    changed("word for a number", "10", "ten", ":6:49: workloads.copy.files: needs a whole number, not 'ten'"),
    changed("text for a number", "10", '"10"', ":6:49: workloads.copy.files: needs a whole number, not '10'"),
    changed("fraction for a count", "10", "1.5", ":6:49: workloads.copy.files: needs a whole number, not 1.5"),
    changed("truth for a number", "10", "true", ":6:49: workloads.copy.files: needs a whole number, not true"),
    changed(
        "nothing for a number", "files: 10", "files: ", ":6:48: workloads.copy.files: needs a whole number, not nothing"
    ),
    changed("negative", "10", "-1", ":6:49: workloads.copy.files: must be at least 1, not -1"),
    changed("not a number", "10", ".nan", ":6:49: .nan needs a finite number"),
    changed("infinite", "10", "-.inf", ":6:49: -.inf needs a finite number"),
    changed("huge", "10", "9" * 26, f":6:49: {'9' * 26} is too large a number"),
    changed("huge float", "10", "1e999", ":6:49: 1e999 is too large a number"),
    changed("YAML 1.1 truth", "10", "10, back: yes", ":6:59: workloads.copy.back: needs true or false, not 'yes'"),
    added("image", "image: ../../etc/shadow", f":7:8: image: {_NAME_RULE}, not '../../etc/shadow'"),
    changed("guest that is a command", "  b:", '  "x; rm -rf /":', f":4:3: the name 'x; rm -rf /' {_NAME_RULE}"),
    changed("workload in capitals", "  copy:", "  Copy:", f":6:3: the name 'Copy' {_NAME_RULE}"),
    changed(
        "reserved name",
        "  b:",
        "  host:",
        ":4:3: the name 'host' is taken: the scenario language gives the word a meaning of its own",
    ),
    Bad("tab", "name: x\n\tguests: 1\n", ":2:1: a tab cannot indent YAML; use spaces"),
    Bad("list", "- 1\n", ":1:1: a scenario is a mapping: keys such as name, guests and workloads"),
    Bad("empty", "", ":1:1: is empty; a scenario needs at least a name and workloads"),
    Bad("only comments", "# nothing\n", ":1:1: is empty; a scenario needs at least a name and workloads"),
    Bad("no workloads", "name: x\n", ":1:1: the scenario needs 'workloads'"),
    Bad("two documents", f"{GOOD}---\n{GOOD}", ":7:1: holds a second document; a scenario is one"),
    Bad("control character", "name: a\0b\n", ":1:8: a control character is not allowed"),
    added(
        "tag", "seed: !!python/name:os.system x", ":7:7: the tag tag:yaml.org,2002:python/name:os.system is not allowed"
    ),
    Bad(
        "alias bomb",
        f"a: &a [{', '.join('x' * 10)}]\n{_BOMB}\n",
        ":4:44: holds more than 10000 values, aliases counted in full",
    ),
    Bad("alias to itself", "a: &a [*a]\n", ":1:8: the alias *a stands inside itself"),
    Bad("alias to nothing", "a: *b\n", ":1:4: the alias *b names no anchor"),
    Bad("deep nesting", "[" * 20000, ":1:18: is nested more than 16 deep"),
    Bad("long list", f"a: [{'1, ' * 30000}]", ":1:30002: holds more than 10000 values, aliases counted in full"),
    added(
        "a thousand million tiles",
        "axes: {tiles: [1000000000]}",
        ":7:16: axis tiles needs whole numbers from 1 to 64, not 1000000000",
    ),
    added("half a tile", "axes: {tiles: [0.5]}", ":7:16: axis tiles needs whole numbers from 1 to 64, not 0.5"),
    added(
        "unknown axis",
        "axes: {colour: [red]}",
        ":7:8: axis colour: needs `sets`, such as sets: workloads.NAME.KEY "
        "(axes without `sets` are tiles, cache, vcpus, memory, queues, cpu_shares)",
    ),
    added("empty axis", "axes: {tiles: []}", ":7:8: axes.tiles.values: needs at least one entry"),
    added("axis twice", "axes: {tiles: [1, 2, 1]}", ":7:22: axis tiles has 1 twice"),
    added(
        "axis that hits nothing",
        "axes: {threads: {values: [1], sets: workloads.*.threads}}",
        ":7:37: axis threads: 'workloads.*.threads' hits nothing: no workload here has a 'threads'",
    ),
    added(
        "axis to no workload",
        "axes: {n: {values: [1], sets: workloads.cpy.files}}",
        ":7:31: axis n: there is no workload 'cpy'; did you mean 'copy'?",
    ),
    added(
        "two axes for one place",
        "axes: {n: {values: [1], sets: workloads.copy.files}, m: {values: [2], sets: workloads.*.files}}",
        ":7:54: axes n and m both set workloads.copy.files",
    ),
    added(
        "bad value in an axis",
        "axes: {memory: [1 GiB, 5]}",
        ":7:24: guests.a.memory: needs a number and a unit, such as 512 MiB, not 5",
    ),
    added(
        "cache mode",
        "axes: {cache: [none, writeboth]}",
        ":7:22: there is no cache mode 'writeboth'; did you mean 'writethrough'?",
    ),
    added(
        "unsafe without the flag",
        "axes: {cache: [none, unsafe]}",
        ":7:22: cache mode unsafe may lose guests' data; say so with --allow-unsafe or allow: {unsafe_cache: true}",
    ),
    added(
        "too many cells",
        "axes: {tiles: [1, 2, 3]}\nrepeats: 1000",
        ":8:10: 1000 repeats of 3 cells are 3000; at most 2000 are allowed",
    ),
    added(
        "size of no workload",
        "sizes: {demo: {coqy: {files: 3}}}",
        ":7:16: there is no workload 'coqy'; did you mean 'copy'?",
    ),
    added("no such size", "sizes: {tiny: {}}", ":7:9: 'tiny' is no size; sizes here are smoke and demo"),
    added(
        "full as a size",
        "sizes: {full: {}}",
        ":7:9: 'full' is what the scenario itself says; sizes here are smoke and demo",
    ),
    added(
        "unit in a size",
        "sizes: {demo: {copy: {files: 3 MB}}}",
        ":7:30: workloads.copy.files: needs a whole number, not '3 MB'",
    ),
    added(
        "parameter in a size",
        "sizes: {demo: {copy: {flies: 3}}}",
        ":7:23: unknown key 'flies' in workloads.copy; did you mean 'files'?",
    ),
    added("table", "table: {columns: cash}", ":7:18: there is no axis 'cash'; known are workloads"),
    added(
        "baseline",
        "axes: {cache: [none]}\ntable: {columns: cache, baseline: writeback}",
        ":8:35: no column is 'writeback'; known are none",
    ),
    added(
        "limit without unit",
        "limits: {start_skew: 500}",
        ":7:22: limits.start_skew: needs a number and a unit, such as 30 s, not 500",
    ),
    added("reference without source", "reference: {values: []}", ":7:1: reference needs 'source'"),
    added(
        "hypervisor of later",
        "hypervisor: qemu:///system",
        ":7:13: hypervisor qemu:///system is not built yet; use embedded",
    ),
]
