"""One cell: its phases, its workloads, and the rules by which it is invalid."""
