"""A run in words and tables."""
