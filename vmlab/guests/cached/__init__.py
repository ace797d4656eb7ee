"""What images and snapshots have in common: they are entries of the cache, each a folder with locks, a mark and a
manifest.
"""
