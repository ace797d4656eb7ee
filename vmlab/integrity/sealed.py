"""Manifests in which every change is noticed: JSON in exactly one form, with its own SHA-256 as the last value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_SEAL = "seal"


def seal(values: Mapping[str, Any]) -> str:
    """`values` as text that `unseal` takes."""
    digest = hashlib.sha256(_text(values).encode()).hexdigest()
    return _text({**values, _SEAL: digest})


def unseal(text: bytes) -> dict[str, Any]:
    """The values in `text`. Raises ValueError unless it is exactly the text that `seal` made of them."""
    values = json.loads(text)
    if not isinstance(values, dict) or values.pop(_SEAL, None) is None or seal(values).encode() != text:
        raise ValueError("it is not what was written")
    return values


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1) + "\n"
