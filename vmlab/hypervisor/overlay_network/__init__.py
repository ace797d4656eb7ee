"""VXLAN, elastic addresses and limits of bandwidth. `guest_networks` is its entry."""
