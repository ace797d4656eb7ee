"""Namespaces and cgroups around a lab."""
