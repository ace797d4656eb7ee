"""The host's own guests, read only: by their QEMU processes, and by libvirt where it runs them."""
