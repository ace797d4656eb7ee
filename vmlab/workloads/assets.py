"""Assets: suites that users have their own copies of, given on the command line as ``--asset NAME=PATH``.

A scenario never names a path, so that it means the same on every host. A copy is read twice: before anything starts,
for its digest, and when a guest gets it; a copy that has changed in between is not used.
"""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from vmlab.model.asset import Asset, AssetForm
from vmlab.model.errors import RefusedError, UsageError, WorkloadError, in_one_line
from vmlab.model.names import DATA_FOLDER, HOST_PLACE
from vmlab.system.given_file import demand_given, open_given
from vmlab.workloads.registry import kinds
from vmlab.workloads.shell import Shell
from vmlab.workloads.workload_steps import StagingContext

MOST_BYTES = 2**30
_UNPACK_SECONDS = 900.0
_GUEST_FOLDER = "/var/lib/vmlab/assets"


def asset_forms() -> dict[str, AssetForm]:
    """Every asset that a kind of workload needs, by its name."""
    return {kind.asset.name: kind.asset for kind in kinds().values() if kind.asset is not None}


def read_assets(given: Sequence[str]) -> dict[str, Asset]:
    """The assets of the command line, each ``NAME=PATH``, by their names.

    Raises UsageError for words that are not so, and RefusedError where a copy is not there or is something else.
    """
    assets: dict[str, Asset] = {}
    forms = asset_forms()
    for words in given:
        name, sign, path = words.partition("=")
        if not sign or not path or name not in forms:
            raise UsageError(f"--asset {words[:80]!r} is not NAME=PATH; names are {', '.join(forms)}")
        if name in assets:
            raise UsageError(f"--asset {name} is given twice")
        assets[name] = _read(forms[name], Path(path).absolute())
    return assets


def _read(form: AssetForm, path: Path) -> Asset:
    digest = _Digest()
    try:
        _demand_form(form, path)
        _pack(form, path, digest)
    except UsageError as error:
        raise RefusedError(f"asset {form.name}: {error}") from error
    except OSError as error:
        raise RefusedError(f"asset {form.name} cannot be read: {in_one_line(error)}") from error
    return Asset(form.name, str(path), digest.sha256.hexdigest(), digest.size)


def packed(asset: Asset) -> bytes:
    """The archive of a copy: a tar whose one folder has the asset's name.

    Raises WorkloadError where the copy is not what it was when its digest was taken.
    """
    content = io.BytesIO()
    try:
        _pack(asset_forms()[asset.name], Path(asset.path), content)
    except (OSError, UsageError, RefusedError) as error:
        raise WorkloadError(f"asset {asset.name} cannot be read any more: {in_one_line(error)}") from error
    if hashlib.sha256(content.getvalue()).hexdigest() != asset.sha256:
        raise WorkloadError(f"asset {asset.name} at {asset.path} is not what it was when the run began")
    return content.getvalue()


def asset_of(context: StagingContext) -> Asset:
    """The asset that a workload is staged with. Raises WorkloadError where it has none."""
    if context.asset is None:
        raise WorkloadError(f"workload {context.workload} has no asset to work with")
    return context.asset


def asset_folder(shell: Shell, workload: str) -> str:
    """Where a workload has its copy: outside of /data in a guest, as its data disk comes after staging."""
    if shell.name == HOST_PLACE:
        return f"{DATA_FOLDER}/vmlab-{workload}-asset"
    return f"{_GUEST_FOLDER}/{workload}"


async def unpack(shell: Shell, archive: bytes, folder: str) -> None:
    """Put an archive's content into `folder`, which is made. Raises GuestError and DeadlineExceeded."""
    packed_there = f"{folder}.tar"
    await shell.write(packed_there, archive)
    await shell.run(["mkdir", "-p", folder])
    await shell.run(["tar", "-xf", packed_there, "--no-same-owner", "-C", folder], deadline=_UNPACK_SECONDS)
    await shell.run(["truncate", "--size=0", packed_there])


def _demand_form(form: AssetForm, path: Path) -> None:
    name = form.name
    if form.suffix and path.is_file():
        if path.suffix != form.suffix or not zipfile.is_zipfile(path):
            raise RefusedError(f"asset {name}: {path} is not a {form.suffix} file; it should be {form.what}")
        return
    if path.exists() and not path.is_dir():
        demand_given(path)
    if not path.exists():
        raise RefusedError(f"asset {name}: there is no {path}; it should be {form.what}")
    place = _place(form, path)
    missing = [file for file in form.files if not (place / file).exists()]
    if missing:
        raise RefusedError(f"asset {name}: {path} has no {missing[0]}; it should be {form.what}")


def _place(form: AssetForm, path: Path) -> Path:
    """The folder of the suite itself: a checkout may have it one folder further down."""
    return path / form.within if form.within and (path / form.within).is_dir() else path


def _pack(form: AssetForm, path: Path, target: IO[bytes] | _Digest) -> None:
    """Write the archive, which is the same for equal copies: no times, no owners, names in order."""
    name, size = form.name, 0
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for file, inner in _files(name, form, path):
            said = file.lstat()
            entry = tarfile.TarInfo(str(PurePosixPath(name, inner)))
            entry.mode = 0o755 if said.st_mode & stat.S_IXUSR else 0o644
            entry.size = said.st_size
            size += said.st_size
            if size > MOST_BYTES:
                raise RefusedError(f"asset {name}: {path} has more than {MOST_BYTES // 2**20} MiB")
            with open_given(file) as content:
                archive.addfile(entry, content)


def _files(name: str, form: AssetForm, path: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    if path.is_file():
        yield path, PurePosixPath(path.name)
        return
    place = _place(form, path)
    for file in sorted(place.rglob("*")):
        inner = file.relative_to(place)
        if inner.parts[0] in form.left_out or (file.is_dir() and not file.is_symlink()):
            continue
        if file.is_symlink() or not file.is_file():
            raise RefusedError(f"asset {name}: {file} is not a plain file; a copy has plain files and folders alone")
        yield file, PurePosixPath(*inner.parts)


class _Digest:
    """A file to write to that keeps the digest alone."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.size += len(data)
        return len(data)
