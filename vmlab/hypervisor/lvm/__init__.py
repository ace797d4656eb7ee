"""Data disks that are logical volumes in a volume group of the user's own."""
