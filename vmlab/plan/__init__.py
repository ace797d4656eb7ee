"""From a scenario file to the cells of a run, their guests and what they take."""
