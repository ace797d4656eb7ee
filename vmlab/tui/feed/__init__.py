"""Where events and samples come from: a run that lives, a recording, or the host itself."""
