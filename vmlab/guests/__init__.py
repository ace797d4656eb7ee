"""Access to guests: image, identity, shell, and the start line behind which clients wait."""
