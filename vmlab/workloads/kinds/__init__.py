"""The kinds of workloads, one file each; each has an entry point in `pyproject.toml`."""
