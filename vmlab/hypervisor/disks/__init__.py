"""Guests' disks: their files and loop devices, the proof of their cache modes, and switching these."""
