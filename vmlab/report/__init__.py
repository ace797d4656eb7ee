"""Runs as people read them: plain text tables."""
