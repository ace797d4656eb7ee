"""The benchmarks, a file each. A new workload is one new file: see `contract` and `registry`."""
