"""Charts, their axes and scales."""
