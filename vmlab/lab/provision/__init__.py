"""The guests of a cell, their disks, addresses and snapshots, and the host as a place for workloads."""
