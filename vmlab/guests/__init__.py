"""Guests as the lab reaches them: image, identity, shell, and the line behind which clients wait."""
