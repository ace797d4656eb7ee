"""The kinds of workloads, one file each; the registry finds them by looking into this folder."""
