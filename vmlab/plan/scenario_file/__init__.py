"""A scenario file from YAML to models, with the place of every problem."""
