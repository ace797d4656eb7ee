"""The host's figures, a group a file."""
