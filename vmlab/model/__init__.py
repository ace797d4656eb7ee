"""The terms of the lab: scenario, run, event, sample, units and errors. Imports nothing of ours."""
