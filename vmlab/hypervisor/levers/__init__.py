"""What can be set on a guest beside its cache mode: how libvirt is told of it, and what shows that QEMU has it."""
