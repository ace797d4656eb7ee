"""Differences between runs or cells: their intervals, verdicts, conditions and gates."""
