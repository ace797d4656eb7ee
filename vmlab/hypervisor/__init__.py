"""QEMU through libvirt in namespaces of the lab's own, disks, networks and snapshots of memory."""
