"""Parsers of what the benchmarks print."""
