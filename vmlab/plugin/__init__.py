"""What packages that add to vmlab may import, a version a package; nothing else of vmlab is promised to them."""
