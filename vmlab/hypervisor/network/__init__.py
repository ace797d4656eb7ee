"""The lab's bridge and what is on it."""
