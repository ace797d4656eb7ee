"""Runs in the formats of other programs; docs/exports.md has them all."""
