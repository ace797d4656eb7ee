"""A guest's memory and devices saved to files, and loaded from them."""
