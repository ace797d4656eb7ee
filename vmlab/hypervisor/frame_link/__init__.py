"""The link between the labs of two hosts: Ethernet frames over a stream, from a TAP at each lab's bridge."""
