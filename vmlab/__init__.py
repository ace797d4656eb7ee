"""vmlab: a test lab for Linux hypervisors, in a terminal."""

__version__ = "0.1.0"
