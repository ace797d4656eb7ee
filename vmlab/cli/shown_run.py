"""A run as `run` and `show` print it, without what starts one: whoever reads runs loads no engine."""

from __future__ import annotations

from vmlab.analysis.shape import RunDocument
from vmlab.cli.output import page_width
from vmlab.model.run import OF_HOST
from vmlab.report.run.run_page import run_table
from vmlab.report.run.run_screen import run_screen


def run_text(document: RunDocument, name: str) -> str:
    """A run on one screen; a recording of the host has a page of its own."""
    return run_table(document, page_width()) if document.run.size == OF_HOST else run_screen(document, name)
