"""The demo: a recording that comes with the program, and its chapters."""
