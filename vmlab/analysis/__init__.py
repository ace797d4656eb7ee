"""What a run's events and samples add up to: records, documents, statistics, comparisons."""
