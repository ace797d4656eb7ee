"""The place on the host where a guest runs without a virtual machine."""
