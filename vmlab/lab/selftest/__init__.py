"""`vmlab selftest`: what works on this host, tried on one real guest, and a bundle of the results for a bug report."""
