"""What the recorder samples: the host, its guests, the lab's own processes."""
