"""Scenarios that are wrong in one way each, and the line that says so; used by the planner's and the CLI's tests."""

from __future__ import annotations

from dataclasses import dataclass

from vmlab.model.scenarios.axis import HOST_AXES
from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES

GOOD = """\
name: trial
guests:
  a: {role: fileserver, memory: 512 MiB}
  b: {role: fileserver, memory: 512 MiB}
workloads:
  copy: {kind: filecopy, from: a, to: b, files: 10, bytes: 1 MB}
"""

COMMAND = """\
name: mine
guests: {vm: {memory: 512 MiB}}
workloads:
  mine: {kind: command, on: vm, run: make}
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


def of_command(name: str, key: str, line: str) -> Bad:
    """A good scenario of a command with one key more, in column 44 of line 4."""
    return Bad(f"command: {name}", COMMAND.replace("run: make}", f"run: make, {key}}}"), f":4:{line}")


_BOMB = "\n".join(f"{c}: &{c} [{', '.join(['*' + p] * 10)}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True))
_MERGE_BOMB = "\n".join(
    ["x-a: &a {k: 1}", *(f"x-{c}: &{c} {{<<: [{', '.join(['*' + p] * 60)}]}}" for p, c in ("ab", "bc"))]
)
_NEEDS_MAPPING = " needs a mapping, most likely an alias such as *usual, or a list of mappings"
_NOT_EXPANDED = "environment variables and templates are not expanded: write the value itself, or --set PATH=VALUE"
_MAKE = "--var {0}=VALUE and `vars` make one, and $${{ stands for ${{"
_NO_VARIABLE = "is no variable, as ${NAME} and ${NAME:-default} are; $${ stands for ${"
_NO_NAME = "is no name of a variable: letters, digits and _, at most 64, no digit first"
_NO_VALUE = "the variable VMLAB_NONE has no value: --var VMLAB_NONE=VALUE, or VMLAB_NONE in the environment"
_BYTE_UNITS = "B, kB, MB, GB, TB, PB, EB, KiB, MiB, GiB, TiB, PiB, EiB"
_NAME_RULE = "needs small letters, digits and dashes, at most 31, the first a letter"
_IMAGE_RULE = "needs small letters, digits, dots and dashes, at most 31, the first a letter"
_POINT_RULE = "needs small letters, digits, dots, dashes and underscores, at most 31, one of them a letter"
_CACHE_RULE = "must be 'none', 'writeback', 'writethrough', 'directsync' or 'unsafe'"
_GUEST_KEYS = ", ".join(GUEST_ATTRIBUTES)
_HOST_KEYS = ", ".join(HOST_AXES)
_NO_PATH = (
    "may not be set so: a path is for tuning that has no key of its own, and begins with features, clock/timer[NAME], "
    "cputune, memtune, blkiotune, memoryBacking, disk/driver, data/driver, interface/driver, interface/coalesce, "
    "such as features/pmu/@state"
)
_NOT_NATIVE = (
    "io: native needs O_DIRECT, which cache mode writeback does not have; use none or directsync, or another io"
)
_UNSAFE = "cache mode unsafe may lose guests' data; say so with --allow-unsafe or allow: {unsafe_cache: true}"

BAD = [
    Bad(
        "another file",
        "root: {password: secret}\nxyz: secret\n",
        ":1:1: is no scenario: it has none of its keys, which are name, summary, hypervisor, guests, workloads, "
        "provision, helper, host, axes, repeats, until, again, order, warm_up, warm, steady, seed, sizes, targets, "
        "limits, table, reference, recorded, allow",
    ),
    added("unknown key", "sedd: 3", ":7:1: unknown key 'sedd' in the scenario; did you mean 'seed'?"),
    added("duplicate key", "name: again", ":7:1: the key 'name' is given twice; the first is on line 1"),
    added(
        "a path as the name of an axis",
        "axes: {guests.a.data_cache: [none, writeback]}",
        ":7:8: the name 'guests.a.data_cache' is a path, not a name; "
        "write data_cache: {values: […], sets: guests.a.data_cache}",
    ),
    added(
        "a short path as the name of an axis",
        "axes: {copy.files: [1, 2]}",
        ":7:8: the name 'copy.files' is a path, not a name; "
        "write files: {values: […], sets: workloads.copy.files or guests.copy.files}",
    ),
    added(
        "a key of a workload as an axis",
        "axes: {files: [1, 2]}",
        ":7:8: axis files: needs `values` and `sets`, as in files: {values: […], sets: workloads.copy.files} "
        f"(axes without `sets` are tiles, host, {_GUEST_KEYS}, {_HOST_KEYS})",
    ),
    added(
        "a word of the language as an axis",
        "axes: {warm: {values: [true, host], sets: workloads.copy.back}}",
        ":7:8: the name 'warm' has a meaning in the language; an axis needs another name",
    ),
    added(
        "one value as an axis",
        "axes: {tiles: 3}",
        ":7:15: axes.tiles: needs a list of values, or a mapping with `values` and `sets`, not 3",
    ),
    added(
        "a mapping as a value of an axis",
        "axes: {n: {values: [{a: 1}], sets: workloads.copy.files}}",
        ":7:21: axes.n.values.1: needs a word or a number, not a mapping",
    ),
    added(
        "truth for a target",
        "targets: {copy: {run_time: true}}",
        ":7:28: targets.copy.run_time: needs a word or a number, not true",
    ),
    added(
        "truth for a number of tiles",
        "axes: {tiles: [true]}",
        ":7:16: axis tiles needs whole numbers from 1 to 64, not true",
    ),
    added(
        "truth twice",
        "axes: {back: {values: [true, true], sets: workloads.copy.back}}",
        ":7:30: axis back has true twice",
    ),
    added("word that is not of warm", "warm: hots", ":7:7: warm: must be false, true or host, not 'hots'"),
    changed(
        "too small a quota",
        "memory: 512 MiB}",
        "memory: 512 MiB, cpu_quota: 5 %}",
        ":3:53: guests.a.cpu_quota: must be at least 10, not 5",
    ),
    added(
        "a share of no number",
        "limits: {host_other_percent: some}",
        ":7:30: limits.host_other_percent: needs a number of percent, such as 25 %, not 'some'",
    ),
    Bad(
        "the sign % for a whole number",
        "name: x\nguests: {a: {memory: 512 MiB}}\n"
        "workloads: {disk: {kind: fio, on: a, rw: randrw, size: 8 MiB, read_percent: 40 %}}\n",
        ":3:77: workloads.disk.read_percent: needs a whole number without the sign %, not '40 %'",
    ),
    Bad(
        "a rate of a mix",
        "name: x\nguests: {a: {memory: 512 MiB}}\n"
        "workloads: {disk: {kind: fio, on: a, rw: randrw, size: 8 MiB, time: 5 s, rate: 80/s}}\n",
        ":3:19: workloads.disk: rate does not go with a mix of reads and writes: give each a workload of its own",
    ),
    Bad(
        "requests at random without a rate",
        "name: x\nguests: {a: {memory: 512 MiB}}\n"
        "workloads: {disk: {kind: fio, on: a, rw: read, size: 8 MiB, time: 5 s, rate_process: poisson}}\n",
        ":3:19: workloads.disk: rate_process: poisson needs a rate of a whole number a second, 10000 at most",
    ),
    Bad(
        "flushes of reads",
        "name: x\nguests: {a: {memory: 512 MiB}}\n"
        "workloads: {disk: {kind: fio, on: a, rw: read, size: 8 MiB, fdatasync: 4}}\n",
        ":3:19: workloads.disk: fdatasync needs writes alone",
    ),
    added(
        "a recorded load without requests",
        "recorded: {run: r, domain: d, disk: vda, phases: {load: {time: 5 s}}}",
        ":7:57: recorded.phases.load: needs reads or writes",
    ),
    added(
        "a recorded load of no phase",
        "recorded: {run: r, domain: d, disk: vda, phases: {}}",
        ":7:50: recorded.phases: needs at least one entry",
    ),
    Bad(
        "a line that is too deep",
        "name: x\nguests:\n  a:\n    memory: 512 MiB\n      cache: none\n",
        ":5:12: wrong indentation: the key of line 4 has its value there already, and this is deeper",
    ),
    Bad(
        "an entry of a list in the column of its key",
        "name: x\naxes:\n  cache:\n   - none\n  - writeback\n",
        ":5:3: wrong indentation: this is in the column of the mapping from line 3, and no part of it",
    ),
    Bad(
        "a key without a colon",
        "name: x\nguests\n  a: {memory: 512 MiB}\n",
        ":3:4: line 2 has no colon: a key needs one, and a space or a new line after it",
    ),
    Bad(
        "a colon without a space",
        "name:x\nguests:\n  a: {memory: 512 MiB}\n",
        ":2:7: line 1 is no key with a value: a space is missing after its colon, or the colon itself",
    ),
    Bad(
        "a colon in a value",
        "name: x\nsummary: why: this\n",
        ":2:13: a value that contains a colon and a space needs quotation marks",
    ),
    Bad("a quotation mark alone", "name: 'x\nseed: 1\n", ":3:1: the quotation mark on line 1, column 7 is not closed"),
    Bad(
        "a value that begins with a sign", "name: @x\n", ":1:7: a value cannot begin with @; put it in quotation marks"
    ),
    added(
        "indentation that fits nothing",
        "axes:\n    tiles: [1]\n  cache: [none]",
        ":9:3: wrong indentation: no mapping above has column 3; the one from line 1 has column 1",
    ),
    added(
        "a list's indentation that fits nothing",
        "axes:\n  cache:\n    - none\n   - writeback",
        ":10:4: wrong indentation: no mapping above has column 4; the one from line 8 has column 3",
    ),
    added(
        "a mapping that is not closed",
        "axes: {tiles: [1]\nseed: 3",
        ":8:1: is not YAML: a ',' or the '}' that closes '{' on line 7, column 7 is missing before this",
    ),
    changed(
        "files that do not fit their disk",
        "bytes: 1 MB}",
        "bytes: 5 GB}",
        ":6:60: 9.31 GiB of files and tables do not fit the disk of guest a: 8 GiB",
    ),
    added(
        "a file beside another that does not fit",
        "  disk: {kind: fio, on: a, rw: randread, size: 8 GiB, time: 5 s}",
        ":7:48: 8 GiB of files and tables do not fit the disk of guest a: 8 GiB",
    ),
    changed(
        "a percentage in words",
        "{role: fileserver, memory: 512 MiB}",
        "{role: web, memory: 1 GiB, cpu_quota: half}",
        ":3:44: guests.a.cpu_quota: needs a number of percent, such as 25 %, not 'half'",
    ),
    changed(
        "duplicate key in a guest",
        "{role: fileserver, memory: 512 MiB}",
        "{role: web, role: mail, memory: 1 GiB}",
        ":3:18: the key 'role' is given twice; the first is on line 3",
    ),
    changed(
        "pace of a kind that has none",
        "bytes: 1 MB}",
        "bytes: 1 MB, pace: 5/s}",
        ":6:66: kind filecopy takes no pace: its client works as fast as it can; "
        "kinds that take one are http (requests), oltp (transactions), smtp (messages)",
    ),
    changed(
        "unknown unit",
        "512 MiB",
        "512 Mib",
        f":3:33: guests.a.memory: unknown unit 'Mib' (did you mean MiB?); use one of {_BYTE_UNITS}, such as 512 MiB, "
        "not '512 Mib'",
    ),
    changed("no unit", "512 MiB", "512", ":3:33: guests.a.memory: needs a number and a unit, such as 512 MiB, not 512"),
    changed("too small", "512 MiB", "1 MiB", ":3:33: guests.a.memory: must be at least 64 MiB, not '1 MiB'"),
    changed(
        "queues of no data disk",
        "memory: 512 MiB",
        "memory: 512 MiB, data_queues: 4",
        ":3:42: data_queues is of a data disk, which guest a does not have; give it one, such as data: 10 GiB",
    ),
    changed(
        "allocation",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, allocation: thick",
        ":3:67: guests.a.allocation: must be 'thin' or 'full', not 'thick'",
    ),
    changed(
        "a pool without a name",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, backing: 'rbd:'",
        ":3:64: guests.a.backing: needs file, block, ext4, xfs, btrfs, folder:PATH with an absolute path, lvm:GROUP "
        "with the name of a volume group, or rbd:POOL with the name of a pool of a Ceph cluster, not 'rbd:'",
    ),
    changed(
        "a folder by a relative path",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, backing: 'folder:nvme'",
        ":3:64: guests.a.backing: needs file, block, ext4, xfs, btrfs, folder:PATH with an absolute path, lvm:GROUP "
        "with the name of a volume group, or rbd:POOL with the name of a pool of a Ceph cluster, not 'folder:nvme'",
    ),
    changed(
        "a volume that is allocated as it is written",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, backing: 'lvm:vg0', allocation: thin",
        ":3:87: a logical volume has all of its room from the start; use full, or leave allocation out",
    ),
    changed(
        "an image in a pool that is allocated before",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, backing: 'rbd:lab', allocation: full",
        ":3:87: an image in pool lab is allocated by Ceph as it is written; use thin, or another backing",
    ),
    changed(
        "read-ahead between pages",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, read_ahead: 5 kB",
        ":3:67: guests.a.read_ahead: must be a multiple of 4 KiB, not '5 kB'",
    ),
    changed(
        "native without O_DIRECT",
        "memory: 512 MiB",
        "memory: 512 MiB, io: native",
        f":3:42: {_NOT_NATIVE}",
    ),
    changed(
        "a data disk that has its I/O from the key for all",
        "memory: 512 MiB",
        "memory: 512 MiB, io: native, cache: none, data: 1 GiB, data_cache: writeback",
        f":3:42: {_NOT_NATIVE}",
    ),
    changed(
        "no interface",
        "memory: 512 MiB",
        "memory: 512 MiB, io: uring",
        ":3:46: guests.a.io: must be 'threads', 'native' or 'io_uring', not 'uring'",
    ),
    changed(
        "an iothread without a name",
        "memory: 512 MiB",
        "memory: 512 MiB, iothread: 2",
        ":3:52: guests.a.iothread: needs true, false, or a name for one that disks share: small letters, digits and "
        "dashes, none of on, off, yes, no, none, root, data, not 2",
    ),
    changed(
        "an iothread that is off",
        "memory: 512 MiB",
        "memory: 512 MiB, iothread: off",
        ":3:52: guests.a.iothread: needs true, false, or a name for one that disks share: small letters, digits and "
        "dashes, none of on, off, yes, no, none, root, data, not 'off'",
    ),
    changed(
        "zeroes that cannot be discarded",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, detect_zeroes: unmap, data_discard: ignore",
        ":3:55: detect_zeroes: unmap needs a data disk that discards; set data_discard: unmap, or another "
        "detect_zeroes",
    ),
    changed(
        "a cluster that is too small for the disk",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 200 GiB, data_format: qcow2, data_cluster: 512 B",
        ":3:77: data_cluster: 512 B maps 128 GiB at most, less than data has",
    ),
    changed(
        "clusters of a raw disk",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, data_cluster: 64 KiB",
        ":3:55: data_cluster is for data_format: qcow2, not raw",
    ),
    changed(
        "clusters that are no power of two",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, data_format: qcow2, data_cluster: 96 KiB",
        ":3:75: data_cluster needs a power of two from 512 B to 2 MiB, not 96 KiB",
    ),
    changed(
        "memory for tables of which L2 gets none",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, data_format: qcow2, data_table_cache: 256 KiB",
        ":3:75: data_table_cache: 256 KiB leaves nothing to L2 tables: refcounts take the first 256 KiB, which are 4 "
        "clusters",
    ),
    changed(
        "qcow2 on a block device",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, data_format: qcow2, backing: block",
        ":3:55: data_format: qcow2 is a file, and the backing is block; use backing: file",
    ),
    changed(
        "a limit that is no rate",
        "memory: 512 MiB",
        "memory: 512 MiB, limit_bandwidth: 100 MB",
        ":3:59: guests.a.limit_bandwidth: needs bytes a second, such as 100 MB/s, not '100 MB'",
    ),
    changed(
        "a limit that no disk has",
        "memory: 512 MiB",
        "memory: 512 MiB, limit_bandwidth: 1 EB/s",
        ":3:59: guests.a.limit_bandwidth: must be at most 931 GiB/s, not '1 EB/s'",
    ),
    changed(
        "a burst without a limit",
        "memory: 512 MiB",
        "memory: 512 MiB, limit_iops_burst: 500",
        ":3:42: limit_iops_burst needs a limit that a burst may exceed; set limit_iops",
    ),
    changed(
        "a burst below the limit of the data disk",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, limit_iops: 5, limit_iops_burst: 9, data_limit_iops: 10",
        ":3:70: limit_iops_burst is less than data_limit_iops, and a burst exceeds the limit",
    ),
    changed(
        "a length without a burst",
        "memory: 512 MiB",
        "memory: 512 MiB, limit_iops: 5, limit_burst_length: 5 s",
        ":3:57: limit_burst_length needs limit_iops_burst or limit_bandwidth_burst",
    ),
    changed(
        "half a second of a burst",
        "memory: 512 MiB",
        "memory: 512 MiB, limit_iops: 5, limit_iops_burst: 9, limit_burst_length: 1.5 s",
        ":3:98: guests.a.limit_burst_length: needs whole seconds, such as 5 s, not '1.5 s'",
    ),
    changed(
        "a path to a file of the host",
        "memory: 512 MiB",
        "memory: 512 MiB, libvirt: {devices/disk/source/@file: /etc/shadow}",
        f":3:51: guests.a.libvirt: 'devices/disk/source/@file' {_NO_PATH}",
    ),
    changed(
        "a path that has a key, by the driver's name",
        "memory: 512 MiB",
        "memory: 512 MiB, libvirt: {'disk/driver[qemu]/@cache': unsafe}",
        f":3:51: guests.a.libvirt: 'disk/driver[qemu]/@cache' {_NO_PATH}",
    ),
    changed(
        "a path that is deeper than any of libvirt's",
        "memory: 512 MiB",
        "memory: 512 MiB, libvirt: {features/hyperv/stimer/direct/more/@state: off}",
        f":3:51: guests.a.libvirt: 'features/hyperv/stimer/direct/more/@state' {_NO_PATH}",
    ),
    changed(
        "an attribute of another element",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, libvirt: {data/driver/@rotation_rate: 1}",
        f":3:64: guests.a.libvirt: 'data/driver/@rotation_rate' {_NO_PATH}",
    ),
    changed(
        "a path of a data disk that is not there",
        "memory: 512 MiB",
        "memory: 512 MiB, libvirt: {data/driver/@copy_on_read: on}",
        ":3:42: data/driver/@copy_on_read is of a data disk, which the guest does not have; give it one, such as data: "
        "10 GiB",
    ),
    changed(
        "a path of a virtio disk's driver",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, data_bus: scsi, libvirt: {data/driver/@queue_size: 256}",
        ":3:71: data/driver/@queue_size is for data_bus: virtio, not scsi",
    ),
    changed(
        "a quota of iothreads that are not there",
        "memory: 512 MiB",
        "memory: 512 MiB, libvirt: {cputune/iothread_quota: 1000}",
        ":3:42: cputune/iothread_quota is of iothreads, and the guest has none; set iothread or data_iothread",
    ),
    changed(
        "an attribute without a text",
        "memory: 512 MiB",
        "memory: 512 MiB, libvirt: {features/pmu/@state: true}",
        ":3:51: guests.a.libvirt: features/pmu/@state needs a whole number or a text of at most 100 printable "
        "characters",
    ),
    changed(
        "unsafe data disk",
        "memory: 512 MiB",
        "memory: 512 MiB, data: 1 GiB, data_cache: unsafe",
        f":3:67: {_UNSAFE}",
    ),
    changed("missing key", ", memory: 512 MiB", "", ":3:3: guests.a needs 'memory'"),
    changed("dangling guest", "to: b", "to: c", ":6:39: there is no guest 'c'; known are a, b"),
    changed("workload to itself", "to: b", "to: a", ":6:39: workloads.copy runs from a to itself; it needs two guests"),
    changed(
        "two sides on the host",
        "from: a",
        "from: host",
        ":6:32: kind filecopy cannot run on the host here; it needs a guest",
    ),
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
    changed(
        "text for a number",
        "10",
        '"10"',
        ":6:49: workloads.copy.files: needs a whole number, not '10' (a number has no quotation marks)",
    ),
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
    changed(
        "guests on two hosts",
        "memory: 512 MiB",
        "memory: 512 MiB, host: other",
        ":3:42: guests.a.host: the guests of a cell are all on one host, so leave this out; `--hosts hv1,hv2` runs "
        "each cell on every host, and with --together on all of them at once",
    ),
    added("image", "image: mine", ":7:1: image belongs to a guest, as in guests: {front: {image: NAME, …}}"),
    changed(
        "image that cannot be one",
        "memory: 512 MiB",
        "memory: 512 MiB, image: ../x",
        f":3:49: guests.a.image: {_IMAGE_RULE}, not '../x'",
    ),
    changed(
        "what is no name of a package",
        "memory: 512 MiB",
        "memory: 512 MiB, packages: [redis-server, Redis]",
        ":3:67: guests.a.packages.2: needs the name of a package of Debian's, such as redis-server, not 'Redis'",
    ),
    changed(
        "packages of an added image",
        "memory: 512 MiB",
        "memory: 512 MiB, image: mine, packages: zip",
        ":3:55: packages are put on vmlab's own image, and guest a starts from mine",
    ),
    changed(
        "packages of a guest on the host",
        "{role: fileserver, memory: 512 MiB}",
        "{role: fileserver, memory: 512 MiB, on: host, packages: zip}",
        ":3:52: guest a is on the host, where there is no packages of a virtual machine; leave it out",
    ),
    changed(
        "boot of an added image",
        "memory: 512 MiB",
        "memory: 512 MiB, image: mine, boot: rescue",
        ":3:55: boot is of vmlab's own image; guest a boots as its image mine does",
    ),
    changed(
        "firmware of an added image",
        "memory: 512 MiB",
        "memory: 512 MiB, image: mine, firmware: uefi",
        ":3:55: firmware is of vmlab's own image; guest a boots image mine by BIOS",
    ),
    changed(
        "role that an added image cannot have",
        "{role: fileserver, memory: 512 MiB}",
        "{role: [fileserver, web], memory: 512 MiB, image: mine}",
        ":3:13: a guest of an added image can have the role fileserver, or none; not web",
    ),
    changed(
        "added image on an emulated disk",
        "guests:\n  a: {role: fileserver, memory: 512 MiB}",
        "host: {disk: hdd-7200}\nguests:\n  a: {role: fileserver, memory: 512 MiB, image: mine}",
        ":4:49: an emulated disk takes vmlab's own image alone; guest a starts from mine",
    ),
    changed("guest that is a command", "  b:", '  "x; rm -rf /":', f":4:3: the name 'x; rm -rf /' {_NAME_RULE}"),
    changed("workload in capitals", "  copy:", "  Copy:", f":6:3: the name 'Copy' {_NAME_RULE}"),
    changed(
        "reserved name",
        "  b:",
        "  host:",
        ":4:3: the name 'host' is taken: the scenario language gives the word a meaning of its own",
    ),
    Bad("tab", "name: x\n\tguests: 1\n", ":2:1: a tab cannot indent YAML; use spaces"),
    Bad("tab before a comment", "name: x\t# one\n", ":1:8: a tab cannot come before a comment; use a space"),
    Bad("tab before a line's comment", "name: x\n\t# one\n", ":2:1: a tab cannot come before a comment; use a space"),
    Bad("tab after a colon", "name:\tx\n", ":1:6: a tab cannot separate words on one line; use a space"),
    Bad("tab alone", "name: x\n\t\nseed: 1\n", ":2:1: a tab on a line of its own; remove it"),
    Bad("YAML 1.1", f"%YAML 1.1\n---\n{GOOD}", ":1:1: a scenario is read as YAML 1.2; remove this line"),
    Bad("YAML 1.3", f"# x\n%YAML 1.3\n---\n{GOOD}", ":2:1: a scenario is read as YAML 1.2; remove this line"),
    Bad("a tag's directive", f"%TAG ! x:\n---\n{GOOD}", ":1:1: a scenario has no such directives; remove this line"),
    changed(
        "a variable without quotation marks",
        "512 MiB",
        "${MEM}",
        ":3:34: a variable between { and }, or [ and ], needs quotation marks",
    ),
    changed(
        "an unknown variable",
        "512 MiB",
        "'${MEM}'",
        f":3:33: there is no variable MEM; none is known here; {_MAKE.format('MEM')}",
    ),
    added(
        "a misspelt variable",
        "vars: {FILES: 1}\nrepeats: ${FILE}",
        f":8:10: there is no variable FILE; did you mean 'FILES'?; {_MAKE.format('FILE')}",
    ),
    added("no variable", "summary: a ${} b", f":7:10: '${{}} b' {_NO_VARIABLE}"),
    added("a variable that does not end", "summary: ${A", f":7:10: '${{A' {_NO_VARIABLE}"),
    added("a variable in a default", "summary: ${A:-${B}}", f":7:10: '${{A:-${{B}}}}' {_NO_VARIABLE}"),
    added("a variable in a key", "targets: {'${A}': {}}", ":7:11: a key cannot contain a variable"),
    added("variables that are a list", "vars: [A]", ":7:7: vars needs a mapping, such as vars: {SIZE: 4}"),
    added("a variable of a mapping", "vars: {A: {b: 1}}", ":7:11: the variable A needs a word or a number"),
    added("a variable of itself", "vars: {A: '${A}'}", ":7:11: the variable A cannot use variables"),
    added("a variable with a dash", "vars: {a-b: 1}", f":7:8: 'a-b' {_NO_NAME}"),
    added("a variable without a value", "vars: {VMLAB_NONE: null}\nrepeats: ${VMLAB_NONE}", f":8:10: {_NO_VALUE}"),
    added(
        "a variable that is too long",
        f"vars: {{A: '{'x' * 4097}'}}",
        ":7:8: the variable A has a value of more than 4096 characters",
    ),
    added(
        "a bomb of variables",
        f"vars: {{A: '{'x' * 4096}'}}\nsummary: {'${A}' * 65}",
        ":8:10: is larger than 256 KiB with its variables and aliases; no scenario is",
    ),
    added(
        "a bomb of aliases to one long text",
        f"x-a: &a '{'x' * 60_000}'\nx-b: [*a, *a, *a, *a, *a]",
        ":8:19: is larger than 256 KiB with its variables and aliases; no scenario is",
    ),
    added("a variable for a mapping", "host: '${A:-thp: 1}'", ":7:7: host: needs a mapping, not 'thp: 1'"),
    added(
        "a variable for a list",
        "axes: {cache: '${A:-[none]}'}",
        ":7:15: axes.cache: needs a list of values, or a mapping with `values` and `sets`, not '[none]'",
    ),
    added("a variable of too many digits", f"repeats: ${{A:-{'9' * 19}}}", f":7:10: {'9' * 19} is too large a number"),
    changed(
        "a variable for a number",
        "10",
        "$FILES",
        f":6:49: workloads.copy.files: needs a whole number, not '$FILES'; {_NOT_EXPANDED}",
    ),
    changed(
        "a template",
        "512 MiB",
        "{{ mem }}",
        ":3:34: a key must be a word; templates such as {{ name }} are not filled in",
    ),
    changed(
        "a guest called null",
        "a:",
        "null:",
        ":3:3: the key null is no word in YAML; in quotation marks it is a word: 'null'",
    ),
    changed("a guest called ~", "a:", "~:", ":3:3: the key ~ is no word in YAML; in quotation marks it is a word: '~'"),
    changed(
        "a guest called true",
        "a:",
        "True:",
        ":3:3: the key True is no word in YAML; in quotation marks it is a word: 'True'",
    ),
    changed("no key", "a:", ":", ":3:3: a key is missing before this colon"),
    changed(
        "from nothing",
        "from: a",
        "from: null",
        ":6:32: workloads.copy.from is nothing, as null and ~ are; a guest called so needs quotation marks",
    ),
    changed(
        "truth for a word",
        "from: a",
        "from: true",
        ":6:32: workloads.copy.from: needs a word, not true (in quotation marks it is a word: 'true')",
    ),
    changed("merged from no mapping", "{role", "{<<: 5, role", ":3:11: <<" + _NEEDS_MAPPING),
    changed("merged from a word in a list", "{role", "{<<: [{}, x], role", ":3:16: <<" + _NEEDS_MAPPING),
    changed("merged from nothing", "{role", "{<<: *gone, role", ":3:11: the alias *gone names no anchor"),
    changed(
        "merged twice", "{role", "{<<: {}, <<: {}, role", ":3:15: the key '<<' is given twice; the first is on line 3"
    ),
    changed("merged into itself", "a: {role", "a: &a {<<: *a, role", ":3:14: the alias *a contains itself"),
    changed(
        "a merged key that is none",
        "{role",
        "{<<: {colour: red}, role",
        f":3:12: unknown key 'colour' in guests.a; known are {_GUEST_KEYS}, role",
    ),
    added("a bomb of merges", _MERGE_BOMB, ":9:231: holds more than 10000 values, aliases counted in full"),
    changed(
        "a key without a space",
        "memory: 512 MiB",
        "memory: 512 MiB, vcpus:2",
        ":3:42: 'vcpus:2' is no key: a space is missing after vcpus:",
    ),
    changed(
        "a grouped number", "10", "1_000", ":6:49: workloads.copy.files: needs a whole number, not '1_000' (write 1000)"
    ),
    changed(
        "quoted truth",
        "files: 10",
        "files: 10, back: 'true'",
        ":6:59: workloads.copy.back: needs true or false, not 'true' (without quotation marks)",
    ),
    changed(
        "a size with a comma",
        "512 MiB",
        "'1,5 GiB'",
        ":3:33: guests.a.memory: needs a number with a point and a unit, such as 512 MiB, not '1,5 GiB'",
    ),
    changed(
        "a unit without its B",
        "512 MiB",
        "1G",
        f":3:33: guests.a.memory: unknown unit 'G' (did you mean GB or GiB?); use one of {_BYTE_UNITS}, "
        "such as 512 MiB, not '1G'",
    ),
    changed(
        "a half for a count", "files: 10", "files: 2.5", ":6:49: workloads.copy.files: needs a whole number, not 2.5"
    ),
    Bad("list", "- 1\n", ":1:1: a scenario is a mapping: keys such as name, guests and workloads"),
    Bad("empty", "", ":1:1: is empty; a scenario needs at least a name and workloads"),
    Bad("only comments", "# nothing\n", ":1:1: is empty; a scenario needs at least a name and workloads"),
    Bad("no workloads", "name: x\n", ":1:1: the scenario needs 'workloads'"),
    Bad("two documents", f"{GOOD}---\n{GOOD}", ":7:1: holds a second document; a scenario is one"),
    Bad("control character", "name: a\0b\n", ":1:8: a control character is not allowed"),
    added(
        "tag",
        "seed: !!python/name:os.system x",
        ":7:7: the tag tag:yaml.org,2002:python/name:os.system is not allowed; remove it",
    ),
    Bad(
        "alias bomb",
        f"a: &a [{', '.join('x' * 10)}]\n{_BOMB}\n",
        ":4:44: holds more than 10000 values, aliases counted in full",
    ),
    Bad("alias to itself", "a: &a [*a]\n", ":1:8: the alias *a contains itself"),
    Bad("alias to nothing", "a: *b\n", ":1:4: the alias *b names no anchor"),
    Bad("deep nesting", "[" * 20000, ":1:18: is nested more than 16 deep"),
    Bad("long list", f"a: [{'1, ' * 30000}]", ":1:30002: holds more than 10000 values, aliases counted in full"),
    added(
        "a thousand million tiles",
        "axes: {tiles: [1000000000]}",
        ":7:16: axis tiles needs whole numbers from 1 to 64, not 1000000000",
    ),
    added(
        "target of no workload",
        "targets: {cpoy: {run_time: 3 s}}",
        ":7:11: there is no workload 'cpoy'; did you mean 'copy'?",
    ),
    added(
        "target of no metric",
        "targets: {copy: {run_tme: 3 s}}",
        ":7:18: kind filecopy has no metric 'run_tme'; did you mean 'run_time'?",
    ),
    added(
        "target that only describes",
        "targets: {copy: {files: 3}}",
        ":7:18: files only describes the work: neither more nor less of it is better",
    ),
    added(
        "target in another unit",
        "targets: {copy: {run_time: 3}}",
        ":7:28: targets.copy.run_time: needs a number and a unit, such as 30 s, not 3",
    ),
    Bad(
        "target that these parameters leave out",
        f"{GOOD.replace('bytes: 1 MB', 'bytes: 1 MB, back: false')}targets: {{copy: {{copy_back_time: 3 s}}}}\n",
        ":7:18: copy never gives copy_back_time with these parameters; it gives run_time, copy_there_time, elapsed, "
        "throughput_bytes_per_second",
    ),
    added(
        "metric of a table that no workload gives",
        "table: {columns: workloads, rows: metrics, metrics: [run_time, latency_p99]}",
        ":7:64: no workload gives 'latency_p99' at any point of the axes; copy gives run_time, copy_there_time, "
        "copy_back_time, elapsed, files, bytes, throughput_bytes_per_second",
    ),
    added("target as a list", "targets: {copy: [run_time]}", ":7:17: targets.copy: needs a mapping, not a list"),
    Bad(
        "share of no pace",
        "name: x\n"
        "guests: {a: {memory: 512 MiB}, b: {role: web, memory: 512 MiB}}\n"
        "workloads: {web: {kind: http, from: a, to: b, requests: 60}}\n"
        "targets: {web: {delivered_percent: 90 %}}\n",
        ":4:17: delivered_percent is a share of a pace, and web has none; give it one, such as pace: 5/s",
    ),
    added("half a tile", "axes: {tiles: [0.5]}", ":7:16: axis tiles needs whole numbers from 1 to 64, not 0.5"),
    added(
        "unknown axis",
        "axes: {colour: [red]}",
        ":7:8: axis colour: needs `values` and `sets`, as in colour: {values: […], sets: workloads.NAME.KEY} "
        f"(axes without `sets` are tiles, host, {_GUEST_KEYS}, {_HOST_KEYS})",
    ),
    added(
        "unknown path in a point",
        "axes: {setup: {points: {a: {workloads.cpy.files: 3}}}}",
        ":7:29: point a: there is no workload 'cpy'; did you mean 'copy'?",
    ),
    added(
        "unknown word in a point",
        "axes: {setup: {points: {a: {cash: none}}}}",
        ":7:29: point a: there is no 'cash' to set; did you mean 'cache'?",
    ),
    added(
        "unknown key of a guest in a point",
        "axes: {setup: {points: {a: {guests.a.memry: 1 GiB}}}}",
        ":7:29: point a: guests.a has no 'memry'; did you mean 'memory'?",
    ),
    added(
        "unit in a point",
        "axes: {setup: {points: {a: {guests.a.memory: 5}}}}",
        ":7:46: guests.a.memory: needs a number and a unit, such as 512 MiB, not 5",
    ),
    added(
        "tiles of a point",
        "axes: {setup: {points: {a: {tiles: many}}}}",
        ":7:36: tiles of point a needs whole numbers from 1 to 64, not many",
    ),
    added(
        "name of a point",
        "axes: {setup: {points: {Host: {cache: none}}}}",
        f":7:25: the name 'Host' {_POINT_RULE}",
    ),
    added(
        "number as the name of a point",
        "axes: {setup: {points: {4: {cache: none}}}}",
        f":7:25: the name '4' {_POINT_RULE}",
    ),
    added("no point", "axes: {setup: {points: {}}}", ":7:8: axes.setup.values: needs at least one entry"),
    added(
        "point that is no mapping",
        "axes: {setup: {points: {a: none}}}",
        ":7:28: axes.setup.points.a: needs a mapping, not 'none'",
    ),
    added(
        "two points that set nothing",
        "axes: {setup: {points: {a: {}, b: {cache: none}, c: {}}}}",
        ":7:50: points a and c both set nothing",
    ),
    added(
        "two points that set the same",
        "axes: {setup: {points: {a: {guests.a.cache: none, guests.b.cache: none}, b: {cache: none}}}}",
        ":7:74: points a and b both set the same",
    ),
    added(
        "a place twice in a point",
        "axes: {setup: {points: {a: {cache: none, guests.a.cache: none}}}}",
        ":7:42: point a sets guests.a.cache twice, as cache and as guests.a.cache",
    ),
    added(
        "absent and more",
        "axes: {setup: {points: {a: {}, b: {absent: no licence, cache: none}}}}",
        ":7:36: point b is absent and can set nothing",
    ),
    added(
        "absent without a reason",
        "axes: {setup: {points: {a: {}, b: {absent: true}}}}",
        ":7:44: axes.setup.points.b.absent: needs the reason in words, at most 200 characters, not true",
    ),
    added(
        "value that is no point",
        "axes: {setup: {values: [a, c], points: {a: {}, b: {cache: none}}}}",
        ":7:28: axis setup has no point 'c'; known are a, b",
    ),
    added(
        "point that a size does not find",
        "axes: {setup: {points: {plain: {}, b: {cache: none}}}}\nsizes: {smoke: {axes: {setup: [plane]}}}",
        ":8:32: axis setup has no point 'plane'; did you mean 'plain'?",
    ),
    added(
        "points beside sets",
        "axes: {setup: {points: {a: {}}, sets: guests.a.memory}}",
        ":7:39: axis setup: has points, which say themselves what they set; leave `sets` out",
    ),
    added(
        "points of an axis with a place",
        "axes: {cache: {points: {a: {}}}}",
        ":7:8: axis cache: has its place already; an axis with points needs a name of its own",
    ),
    added(
        "point and axis for one place",
        "axes: {setup: {points: {a: {}, b: {cache: none}}}, cache: [none, writeback]}",
        ":7:36: point b of axis setup and axis cache both set guests.a.cache",
    ),
    added(
        "points of two axes for one place",
        "axes: {x: {points: {a: {}, b: {tiles: 2}}}, y: {points: {c: {}, d: {tiles: 3}}}}",
        ":7:69: point b of axis x and point d of axis y both set tiles",
    ),
    added(
        "without no axis",
        "axes: {setup: {points: {a: {without: cash}, b: {}}}, cache: [none, writeback]}",
        ":7:38: point a: there is no other axis 'cash'; did you mean 'cache'?",
    ),
    added(
        "without what leaves out itself",
        "axes: {x: {points: {a: {without: y}, b: {}}}, y: {points: {c: {without: tiles}, d: {}}}, tiles: [1, 2]}",
        ":7:34: point a leaves out axis y, whose points leave out axes themselves",
    ),
    added(
        "what a point would undo",
        "axes: {setup: {points: {a: {}, b: {workloads.copy.files: 5}}}}\nsizes: {demo: {copy: {files: 3}}}",
        ":8:30: point b of axis setup sets workloads.copy.files; change it there",
    ),
    added("host setting", "host: {tph: always}", ":7:8: unknown key 'tph' in host; did you mean 'thp'?"),
    added(
        "scheduler that there is not",
        "host: {scheduler: cfq}",
        ":7:19: host.scheduler: must be 'none', 'mq-deadline', 'kyber' or 'bfq', not 'cfq'",
    ),
    added(
        "more than all memory dirty",
        "host: {dirty_ratio: 101}",
        ":7:21: host.dirty_ratio: must be at most 100, not 101",
    ),
    added("word of a host setting", "host: {ksm: true}", ":7:13: host.ksm: must be 'on' or 'off', not true"),
    added(
        "read-ahead that is no page",
        "host: {read_ahead: 5 KiB}",
        ":7:20: host.read_ahead: needs a multiple of 4 KiB: the kernel counts in pages, not '5 KiB'",
    ),
    added(
        "axis of no host setting",
        "axes: {host.turbo: [1]}",
        f":7:8: the name 'host.turbo' is no setting of the host that can be varied; known are {_HOST_KEYS}",
    ),
    added(
        "value of a host axis",
        "axes: {host.thp: [always, sometimes]}",
        ":7:27: host.thp: must be 'always', 'madvise' or 'never', not 'sometimes'",
    ),
    added("empty axis", "axes: {tiles: []}", ":7:8: axes.tiles.values: needs at least one entry"),
    added("axis twice", "axes: {tiles: [1, 2, 1]}", ":7:22: axis tiles has 1 twice"),
    added(
        "axis that hits nothing",
        "axes: {threads: {values: [1], sets: workloads.*.threads}}",
        ":7:37: axis threads: 'workloads.*.threads' hits nothing: no workload here has a 'threads'; "
        "known are kind, from, to, on, files, bytes, idle, back, contents",
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
        f":7:22: guests.a.cache: {_CACHE_RULE}, not 'writeboth'",
    ),
    changed(
        "cache mode of a guest",
        "memory: 512 MiB}",
        "memory: 512 MiB, cache: off}",
        f":3:49: guests.a.cache: {_CACHE_RULE}, not 'off'",
    ),
    changed(
        "truth for a cache mode",
        "memory: 512 MiB}",
        "memory: 512 MiB, cache: true}",
        f":3:49: guests.a.cache: {_CACHE_RULE}, not true",
    ),
    changed(
        "unsafe guest without the flag", "memory: 512 MiB}", "memory: 512 MiB, cache: unsafe}", f":3:49: {_UNSAFE}"
    ),
    added(
        "two axes for one guest's cache",
        "axes:\n  cache: [none]\n  far: {values: [writeback], sets: guests.b.cache}",
        ":9:3: axes cache and far both set guests.b.cache",
    ),
    added(
        "cache mode that an axis undoes",
        "axes: {cache: [none, writeback]}\nsizes: {demo: {guests: {a: {cache: none}}}}",
        ":8:36: axis cache sets guests.a.cache; change axes.cache instead",
    ),
    added(
        "unsafe without the flag",
        "axes: {cache: [none, unsafe]}",
        f":7:22: {_UNSAFE}",
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
    added("no such size", "sizes: {tiny: {}}", ":7:9: 'tiny' is no size; sizes here are smoke, demo and published"),
    added(
        "full as a size",
        "sizes: {full: {}}",
        ":7:9: 'full' is what the scenario itself says; sizes here are smoke, demo and published",
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
        "baseline of another type",
        "axes: {files: {values: [1, 2], sets: workloads.copy.files}}\ntable: {columns: files, baseline: true}",
        ":8:35: no column is 'true'; known are 1, 2",
    ),
    added(
        "baseline by parts of another type",
        "axes: {files: {values: [1, 2], sets: workloads.copy.files}}\n"
        "table: {columns: files, relative: percent, baseline: {files: true}}",
        ":8:62: files has no 'true'; known are 1, 2",
    ),
    added(
        "baseline that is absent",
        "axes: {setup: {points: {guest: {cache: none}, iron: {absent: no key}}}}\n"
        "table: {columns: setup, rows: workloads, baseline: iron}",
        ":8:52: nothing can be compared with 'iron', which is absent: no key",
    ),
    added(
        "baseline by parts that is absent",
        "axes: {setup: {points: {guest: {cache: none}, iron: {absent: no key}}}}\n"
        "table: {columns: setup, rows: workloads, relative: percent, baseline: {setup: iron}}",
        ":8:79: nothing can be compared with 'iron', which is absent: no key",
    ),
    added(
        "limit without unit",
        "limits: {start_skew: 500}",
        ":7:22: limits.start_skew: needs a number and a unit, such as 30 s, not 500",
    ),
    added(
        "figure that is a number",
        "reference: {source: x, figures: [{value: 85.3440}]}",
        ":7:42: reference.figures.1.value: needs quotation marks, such as '85.3440': "
        "a YAML number loses zeros that were printed, not 85.344",
    ),
    added(
        "figure that is a word",
        "reference: {source: x, figures: [{value: many}]}",
        ":7:42: reference.figures.1.value: is no number as publications print them, "
        "such as '85.3440', '.996', '13.0k' or '115m25s', not 'many'",
    ),
    added(
        "figure of no axis",
        "reference: {source: x, figures: [{value: '1', rows: {cash: none}}]}",
        ":7:54: there is no axis 'cash'; known are workloads, statistics",
    ),
    added(
        "claim that compares nothing",
        "reference: {source: x, claims: [{say: x}]}",
        ":7:33: reference.claims.1: needs one of less, greater, equal_within, ratio, at_least, at_most, not 0",
    ),
    added(
        "claim about no tile",
        "axes: {cache: [none]}\nreference: {source: x, claims: [{say: x, value: '1', at_most: [{tile: 0}]}]}",
        ":8:71: needs the number of a tile, the first of which is 1",
    ),
    added(
        "bound of an order",
        "axes: {cache: [none, unsafe]}\n"
        "reference: {source: x, claims: [{say: x, bound: ours, less: [{cache: none}, {cache: unsafe}]}]}",
        ":8:33: reference.claims.1: `less` without `by` is an order, which has no bound: leave `bound` out",
    ),
    added(
        "claim that restates none",
        "axes: {cache: [none]}\nreference: {source: x, claims: [{say: x, value: '1', at_most: [{cache: none}], "
        "restates: {say: y, why: z}}]}",
        ":8:12: reference: no other claim of it says 'y', which 'x' restates",
    ),
    added(
        "needs that exclude each other",
        "reference: {source: x, claims: [{say: x, value: '1', at_most: [{}], needs: {least_cpus: 4, most_cpus: 2}}]}",
        ":7:76: reference.claims.1.needs: `least_cpus` is more than `most_cpus`",
    ),
    added(
        "needs of no workload",
        "reference: {source: x, claims: [{say: x, value: '1', at_most: [{}], needs: {amounts: {coppy.files: 4}}}]}",
        ":7:87: there is no workload 'coppy'; did you mean 'copy'?",
    ),
    added(
        "needs of no parameter",
        "reference: {source: x, claims: [{say: x, value: '1', at_most: [{}], needs: {amounts: {copy.flies: 4}}}]}",
        ":7:87: kind filecopy has no 'flies'; did you mean 'files'?",
    ),
    added(
        "needs that are no amount",
        "reference: {source: x, claims: [{say: x, value: '1', at_most: [{}], needs: {amounts: {copy.files: many}}}]}",
        ":7:99: needs a number, a size such as 25 MB, or a duration such as 5 s, not 'many'",
    ),
    added(
        "finding without a reason",
        "reference: {source: x, unasked: [{say: x, where: page 2}]}",
        ":7:34: reference.unasked.1 needs 'why'",
    ),
    added(
        "claim about a value that is not there",
        "axes: {cache: [none]}\nreference: {source: x, claims: [{say: x, less: [{cache: none}, {cache: unsafe}]}]}",
        ":8:72: cache has no 'unsafe'; known are none",
    ),
    added(
        "relative without a baseline",
        "axes: {cache: [none]}\ntable: {columns: cache, relative: percent}",
        ":8:25: needs `baseline`, such as baseline: {setup: host}",
    ),
    added(
        "side that is named twice",
        "axes: {cache: [none]}\ntable: {columns: [cache, metrics], rows: cache}",
        ":8:42: columns and rows are both cache",
    ),
    added("reference without source", "reference: {values: []}", ":7:1: reference needs 'source'"),
    added(
        "hypervisor that does not work",
        "hypervisor: qemu:///session",
        ":7:13: hypervisor: must be 'embedded' or 'qemu:///system', not 'qemu:///session'",
    ),
    of_command(
        "an empty pattern", "expect: ''", "52: workloads.mine.expect: is empty, and matches whatever is printed, not ''"
    ),
    of_command(
        "a broken pattern",
        "expect: '('",
        "52: workloads.mine.expect: is no regular expression: missing ), unterminated subpattern at position 0, "
        "not '('",
    ),
    of_command(
        "a pattern without a group",
        "metrics: {rate: {find: '[0-9]+'}}",
        "67: workloads.mine.metrics.rate.find: has no group; it needs one around the number, such as ([0-9.]+), and "
        "(?:…) for others, not '[0-9]+'",
    ),
    of_command(
        "two places of one figure",
        "metrics: {rate: {csv: a, json: .b}}",
        "60: workloads.mine.metrics.rate: needs one of find, csv and json",
    ),
    of_command(
        "a key of a metric that is none",
        "metrics: {rate: {csv: a, units: s}}",
        "69: unknown key 'units' in workloads.mine.metrics.rate; did you mean 'unit'?",
    ),
    of_command(
        "the name of a metric",
        "metrics: {run_time: {csv: a}}",
        "54: the name 'run_time' is taken: vmlab has a metric of this name itself",
    ),
    of_command(
        "a unit",
        "metrics: {rate: {csv: a, unit: tps}}",
        "75: workloads.mine.metrics.rate.unit: is no unit; use 1, k, M, these with /s, %, a time such as ms, a size "
        "such as MiB, or a rate such as MB/s or Mbit/s, not 'tps'",
    ),
    of_command(
        "a file that is not there",
        "files: [./bench.sh]",
        "52: workloads.mine.files.1: is no file below the scenario's folder, not './bench.sh'",
    ),
    of_command(
        "a file elsewhere",
        "files: [../bench.sh]",
        "52: workloads.mine.files.1: needs a path below the scenario's folder, such as ./bench.sh, not '../bench.sh'",
    ),
    of_command(
        "on and to",
        "to: vm",
        "44: kind command takes on, or from and to, and not both",
    ),
    Bad(
        "command: an unknown guest",
        COMMAND.replace("on: vm", "on: vn"),
        ":4:29: there is no guest 'vn'; known are vm",
    ),
    of_command(
        "what is no name of a package",
        "packages: [redis-server, redis server]",
        "69: workloads.mine.packages.2: needs the name of a package of Debian's, such as redis-server, "
        "not 'redis server'",
    ),
    Bad(
        "command: packages for a guest of an added image",
        COMMAND.replace("run: make", "run: make, packages: zip").replace("MiB", "MiB, image: mine"),
        ":4:44: packages are put on vmlab's own image, and guest vm starts from mine",
    ),
    Bad(
        "command: on the host",
        COMMAND.replace("on: vm", "on: host"),
        ":4:29: kind command cannot run on the host here; it needs a guest",
    ),
    Bad(
        "command: in a guest on the host",
        COMMAND.replace("memory: 512 MiB", "memory: 512 MiB, on: host"),
        ":4:29: kind command runs in virtual machines alone, and guest vm is on the host",
    ),
    Bad(
        "command: without a place",
        COMMAND.replace("on: vm, ", ""),
        ":4:3: workloads.mine needs 'on': the guest where it runs",
    ),
    Bad(
        "command: without a target",
        COMMAND.replace("on: vm", "from: vm"),
        ":4:3: workloads.mine needs 'to': the guest where its server runs",
    ),
    of_command(
        "another guest is prepared, without from and to",
        "prepare_to: serve",
        "56: workloads.mine.prepare_to: needs from and to instead of on, not 'serve'",
    ),
    of_command(
        "the address of another guest, without from and to",
        "prepare: 'ping {to}'",
        "53: workloads.mine.prepare: has {to}, which needs from and to instead of on, not 'ping {to}'",
    ),
    Bad(
        "command: runs with the address of another guest, without from and to",
        COMMAND.replace("run: make", "run: 'ping {to}'"),
        ":4:38: workloads.mine.run: has {to}, which needs from and to instead of on, not 'ping {to}'",
    ),
    Bad(
        "command: a target of a metric that it does not have",
        f"{COMMAND}targets: {{mine: {{get_rate: 5/s}}}}\n",
        ":5:18: kind command has no metric 'get_rate'; known are run_time, rounds_per_second",
    ),
]
