"""What the lab does to the host itself: system calls, removals, marks, signals. Each has one module that guards it."""
