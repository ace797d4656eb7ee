"""Writers of pages: each writes the same tree of blocks for one medium."""
