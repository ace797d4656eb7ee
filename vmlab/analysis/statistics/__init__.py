"""The statistics that the lab uses, each with its source."""
