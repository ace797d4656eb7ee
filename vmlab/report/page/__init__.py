"""The report of runs: one HTML file that needs no network, or Markdown for an issue or a wiki."""
