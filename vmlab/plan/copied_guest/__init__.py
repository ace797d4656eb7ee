"""A scenario that describes a guest like one of the user's own: sources, what is found in them, and its text."""
