"""The engine: launches a runner in its own namespaces, and runs the cells of a plan phase by phase."""
