"""Guests that run on the host itself: commands in them, and the programs that stand in for systemd there."""
