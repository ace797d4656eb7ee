"""The benchmarks, a file each; `registry` finds them by the entry points of `pyproject.toml`. See `workload_steps`."""
