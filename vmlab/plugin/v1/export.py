"""For the entry points ``vmlab.exports``: an `ExportFormat`, whose functions get runs and a binary file.

`measurements` and `sampled` make tables of runs; of `Exported` only ``side`` and ``document()`` are promised, which is
the document of ``vmlab show --json``.
"""

from vmlab.report.exports.export_format import ExportFormat
from vmlab.report.exports.tidy import Cell, Exported, Kind, Tidy, measurements, sampled

__all__ = ["Cell", "ExportFormat", "Exported", "Kind", "Tidy", "measurements", "sampled"]
