"""From a run's events and samples to timelines, documents, statistics and comparisons."""
