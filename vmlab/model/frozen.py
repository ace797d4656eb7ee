"""The names of the files of a frozen guest, for the code that saves, keeps and compares them."""

RAM = "ram"
"""RAM and devices, as QEMU streams them."""
DISK = "disk.qcow2"
"""The overlay."""
MACHINE = "machine.json"
"""The description of the machine that they belong to, as JSON."""
FILES = (RAM, DISK, MACHINE)
