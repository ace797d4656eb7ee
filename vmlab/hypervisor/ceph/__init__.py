"""Guests' disks in a pool of a Ceph cluster."""
