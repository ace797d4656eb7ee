"""The host's own libvirt as the place of a lab: what stands on the host then, and how it is undone."""
