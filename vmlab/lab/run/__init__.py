"""The runner: the cells of a run one after the other, and what is recorded meanwhile."""
