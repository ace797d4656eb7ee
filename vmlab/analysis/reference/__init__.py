"""A run beside its publication: figures and claims."""
