"""The store: one SQLite file a run, written by its runner alone, read by everybody."""
