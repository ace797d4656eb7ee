"""`make experiments HOST=kvm` in that host, whose figures count for nothing."""

from __future__ import annotations

import json
from pathlib import Path

from tests.host.inside.lab import command, require, tell

_PYTHON = "/opt/vmlab/bin/python"
_SCENARIO = "system-overhead"
_RECORD = Path.home() / ".cache/vmlab/experiments/kvm/records/smoke" / f"{_SCENARIO}.json"
_MINUTES = 40


def answered() -> None:
    """Claims that emulated guests cannot answer are answered, and the record says that the host itself is emulated."""
    asked = ("--host", "kvm", "--once", "--allow-noise", "--minutes", str(_MINUTES), _SCENARIO)
    command(_PYTHON, "-m", "tests.experiments.run_claims", *asked, timeout=60.0 * _MINUTES)
    record = json.loads(_RECORD.read_text())
    run, claims = record["beside"]["run"], record["beside"]["claims"]
    require(run["accelerator"] == "kvm", f"accelerator {run['accelerator']}")
    virtualization = record["machine"].get("virtualization")
    require(virtualization == "qemu", f"the record says {virtualization} of an emulated host")
    answers = [one["answer"] for one in claims]
    tell(f"answers: {', '.join(answers)}")
    require(answers and "not answerable here" not in answers, f"answers: {answers}")
