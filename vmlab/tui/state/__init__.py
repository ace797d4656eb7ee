"""What a viewer knows of a run and of the host, made from events and samples alone."""
