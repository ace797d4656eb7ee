"""Figures of a run's tables, and how the tables are laid out."""
