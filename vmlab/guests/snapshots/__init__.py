"""Frozen guests: made on first use, stored under a digest of all that they depend on, shared by all runs."""
