"""Kinds of workload that run a user's own copy of a suite; without this folder vmlab has all others."""
