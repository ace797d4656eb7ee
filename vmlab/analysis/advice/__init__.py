"""What a recording of the host says of the cache modes of its own guests' disks."""
