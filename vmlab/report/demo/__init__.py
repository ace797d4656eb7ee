"""The demo: a recording that comes with the program, and the chapters in which it is told."""
