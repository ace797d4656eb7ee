"""Several hypervisors as one: their cells are placed by an engine, over SSH alone, and recorded in one run."""
