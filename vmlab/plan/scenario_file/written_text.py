"""Plain values as the text of a scenario, which `yaml_text.parse` reads as the same values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from vmlab.plan.scenario_file.variables import SIGN
from vmlab.plan.scenario_file.yaml_text import scalar

_WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._/%+-]*[A-Za-z0-9%])?", re.ASCII)
_WORDS_ELSEWHERE = {"y", "n", "yes", "no", "on", "off"}
"""Words that other readers of YAML take for truth values."""


def written_text(values: Mapping[str, Any]) -> str:
    """A mapping as YAML: mappings below each other as far as they do not fit into a line."""
    return "".join(f"{line}\n" for line in _lines(values, 0))


def _lines(values: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for key, value in values.items():
        line = f"{indent}{_text(key, is_key=True)}: {flow_text(value)}"
        if isinstance(value, dict) and value and (depth == 0 or len(line) > _WIDTH):
            yield f"{indent}{_text(key, is_key=True)}:"
            yield from _lines(value, depth + 1)
        else:
            yield line


def flow_text(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(key, is_key=True)}: {flow_text(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow_text, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str, *, is_key: bool = False) -> str:
    """A word as it is where every reader takes it for that word, else in quotation marks."""
    if _is_word(text) and (is_key or text.lower() not in _WORDS_ELSEWHERE):
        return text
    # A sign of variables that is part of the value is written twice.
    quoted = json.dumps(text.replace(SIGN, f"${SIGN}"), ensure_ascii=False)
    return re.sub("[^ -~]", lambda sign: f"\\U{ord(sign[0]):08x}", quoted)


def _is_word(text: str) -> bool:
    try:
        return _PLAIN.fullmatch(text) is not None and isinstance(scalar(text), str)
    except ValueError:
        return False
