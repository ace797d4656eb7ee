"""A proof is read from open descriptors; here they are this process's own, and QMP's words are scripted."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vmlab.hypervisor.cache_proof import EXPECTED, CacheFlags, direct_flags, prove
from vmlab.model.run import CACHE_MODES, CacheMode, CacheProof


@contextlib.contextmanager
def opened(file: Path, direct: bool) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    try:
        yield
    finally:
        os.close(descriptor)


class Qemu:
    """QMP's answers, as QEMU 7.2 gives them: a backing file's write cache is always on."""

    def __init__(self, overlay: Path, base: Path, flags: CacheFlags) -> None:
        self.overlay, self.base, self.flags = overlay, base, flags

    def _node(self, file: Path, driver: str) -> dict[str, Any]:
        cache = {"writeback": True, "direct": self.flags.direct, "no-flush": self.flags.no_flush}
        return {"file": str(file), "drv": driver, "cache": cache}

    def __call__(self, command: str) -> Any:
        if command == "query-named-block-nodes":
            files = (self.overlay, "file"), (self.overlay, "qcow2"), (self.base, "file"), (self.base, "raw")
            return [self._node(file, driver) for file, driver in files]
        inserted = self._node(self.overlay, "qcow2")
        inserted["cache"]["writeback"] = self.flags.writeback
        return [{"device": "", "inserted": inserted}, {"device": "empty"}]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    overlay, base = tmp_path / "web-1.qcow2", tmp_path / "root.raw"
    for file in (overlay, base):
        file.write_bytes(bytes(4096))
    return overlay, base


def proofs(mode: CacheMode, files: tuple[Path, Path], really: CacheMode) -> list[CacheProof]:
    flags = EXPECTED[really]
    with opened(files[0], flags.direct), opened(files[1], flags.direct):
        return prove("web", mode, files, os.getpid(), Qemu(*files, flags))


@pytest.mark.parametrize("mode", CACHE_MODES)
@pytest.mark.parametrize("really", CACHE_MODES)
def test_every_mode_agrees_with_itself_alone(mode: CacheMode, really: CacheMode, files: tuple[Path, Path]) -> None:
    overlay, base = proofs(mode, files, really)
    assert overlay.agrees is (mode == really)
    assert (overlay.file, base.file) == (str(files[0]), str(files[1]))
    assert overlay.o_direct is EXPECTED[really].direct
    if mode == really:
        assert base.agrees, "the write cache of a backing file counts for nothing"


def test_a_base_image_read_through_the_hosts_cache_is_not_cache_none(files: tuple[Path, Path]) -> None:
    with opened(files[0], True), opened(files[1], False):
        overlay, base = prove("web", "none", files, os.getpid(), Qemu(*files, EXPECTED["none"]))
    assert (overlay.agrees, base.agrees) == (True, False)


def test_one_descriptor_of_two_without_the_flag_is_enough_to_disagree(files: tuple[Path, Path]) -> None:
    with opened(files[0], False):
        assert sorted(direct_flags(os.getpid(), files[0])) == [False]
        assert not proofs("none", files, "none")[0].agrees


@pytest.mark.parametrize("mode", CACHE_MODES)
def test_a_file_that_nobody_has_open_does_not_agree(mode: CacheMode, files: tuple[Path, Path]) -> None:
    for proof in prove("web", mode, files, os.getpid(), Qemu(*files, EXPECTED[mode])):
        assert not proof.agrees
        assert not proof.o_direct


def test_a_device_that_qmp_does_not_know_does_not_agree(files: tuple[Path, Path]) -> None:
    def without_devices(command: str) -> Any:
        return [] if command == "query-block" else Qemu(*files, EXPECTED["writethrough"])(command)

    with opened(files[0], False), opened(files[1], False):
        overlay, base = prove("web", "writethrough", files, os.getpid(), without_devices)
    assert (overlay.agrees, base.agrees) == (False, True)
