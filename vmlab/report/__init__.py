"""Runs as people and other programs read them: text tables, the report as a page, exports."""
