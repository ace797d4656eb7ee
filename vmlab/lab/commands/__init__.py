"""What viewers ask of a run that goes on, over its socket."""
