"""A run from outside: its launcher, folder, locks and signals, and what dead runs leave."""
