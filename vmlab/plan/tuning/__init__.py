"""What `vmlab tune` compares: the levers of a data disk, their design, and the scenarios that measure it."""
