"""Files beside a scenario that a workload sends to its guests: a parameter, and where its content comes from."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import Annotated, NamedTuple, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema


class GivenFile(NamedTuple):
    """What a file holds, and whether its owner may execute it."""

    content: bytes
    is_executable: bool


class SentFiles(Protocol):
    """Where the files of a scenario are; parameters are validated with it as the context ``files``."""

    def read(self, path: str) -> GivenFile:
        """The file at a path that the scenario names. Raises ValueError, with what is wrong with it."""
        ...


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    sha256: str
    is_executable: bool
    content: bytes = Field(exclude=True, repr=False)

    @property
    def name(self) -> str:
        """Its name in the guest."""
        return PurePosixPath(self.path).name


def _sent(path: object, validation: ValidationInfo) -> object:
    if isinstance(path, _File):
        return path
    if not isinstance(path, str):
        raise ValueError("needs the path of a file, such as ./bench.sh")
    files: SentFiles | None = (validation.context or {}).get("files")
    if files is None:
        raise ValueError("is a file beside a scenario, and there is no scenario file here")
    content, is_executable = files.read(path)
    digest = hashlib.sha256(content).hexdigest()
    return _File(path=path, sha256=digest, is_executable=is_executable, content=content)


SentFile = Annotated[_File, BeforeValidator(_sent), WithJsonSchema({"type": "string"})]
"""A field of a model that a scenario writes as a path, such as ``./bench.sh``; records have path and SHA-256 of it."""
