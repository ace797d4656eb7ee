"""What one run's events and samples say: its cells, phases, host figures and bounds."""
