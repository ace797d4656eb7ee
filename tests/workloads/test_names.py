"""Names that a scenario chooses from a list: each of them once."""

from typing import Any

import pytest
from pydantic import ValidationError

from vmlab.workloads.registry import kinds


@pytest.mark.parametrize(
    ("kind", "key", "name", "more"),
    [
        ("jvm", "members", "xml", {}),
        ("memcpy", "methods", "memcpy", {"array": "1 MiB"}),
        ("specjvm", "benchmarks", "compress", {}),
        ("system", "tests", "copy", {}),
        ("unixbench", "tests", "fsdisk", {}),
    ],
)
def test_a_name_stands_once(kind: str, key: str, name: str, more: dict[str, Any]) -> None:
    params = kinds()[kind].Params
    assert getattr(params.model_validate({**more, key: (name,)}), key) == (name,)
    with pytest.raises(ValidationError, match=f"{key} must not name one twice"):
        params.model_validate({**more, key: (name, name)})
