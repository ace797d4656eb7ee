"""A workload, an export format and a figure of the host, for vmlab."""
