"""The store: one SQLite file a run, written by the run itself, read by every viewer."""
