"""libvirt's QEMU driver inside the runner: its root, its domains, its events and its statistics."""
