"""How many tiles a host carries: throughput, targets, knees and the tile index."""
