"""What a scenario file may contain."""
