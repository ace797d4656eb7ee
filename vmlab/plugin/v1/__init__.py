"""Version 1 of what plugins may import: `workload`, `export` and `host_figure`.

Names may be added to it. What changes so that a plugin would break becomes version 2, beside it.
"""
