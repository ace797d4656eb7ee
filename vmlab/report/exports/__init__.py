"""Runs in the formats of other programs; docs/reference/exports.md has them all."""
