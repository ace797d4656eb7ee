"""A disk with the timing of a mechanical one, served over FUSE. `emulated_disk` is its entry."""
