"""Sources of events and samples: a live run, a recording, or the host itself."""
