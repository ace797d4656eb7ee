"""One screen a file; a stylesheet for each lies in ``styles``."""
