"""What the launcher hands to the runner through the run's folder: the request, the plan to run and the image to boot.

The runner makes the plan again from the scenario's kept text and the request; the same text, overrides, seed and
host facts give the same plan. The request in a run that was imported is anybody's text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from vmlab.guests.image import added, catalog
from vmlab.guests.image.added import AddedImage
from vmlab.guests.image.catalog import Image
from vmlab.guests.image.layers import require_layer
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import Lacking
from vmlab.model.asset import Asset
from vmlab.model.checked import made
from vmlab.model.errors import StoreError, UsageError
from vmlab.model.event import Notice, RunStarted
from vmlab.model.jsonable import jsonable
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import ScenarioFile, load_kept
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.store.writer import RunWriter
from vmlab.system.given_file import read_given
from vmlab.system.held_folder import opened, write_text_in
from vmlab.system.removal import named
from vmlab.telemetry.domains.neighbours import Neighbour

_MOST_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for a run. `source` is the scenario's path; its text is stored beside it.

    A run that is `held` begins each cell when that is released, and ends where none was for so many seconds.
    """

    run: str
    source: str
    overrides: Overrides
    seed: int
    held: float | None = None

    def to_json(self) -> str:
        """For `request.json` in the run's folder."""
        return json.dumps(jsonable(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> RunRequest:
        """The inverse of `to_json`. Raises ValueError, with one line, for anything else."""
        try:
            body = json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
        if not isinstance(body, dict) or not isinstance(body.get("overrides"), dict):
            raise ValueError("it is no request for a run")
        return made(cls, body)

    @classmethod
    def of(cls, folder: RunFolder) -> RunRequest:
        """The one that is kept in `folder`. Raises UsageError, with one line, where it is none, StoreError where the
        disk does not give it.
        """
        try:
            return cls.from_json(read_given(folder.request, _MOST_BYTES).decode("utf-8"))
        except UsageError as error:
            if isinstance(error.__cause__, OSError):
                raise StoreError(str(error)) from error
            raise
        except ValueError as error:
            raise UsageError(f"run {folder.id}: its {folder.request.name} cannot be read: {error}") from error


_IMAGE = "image.json"
_HOST = "host.json"


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to be run."""

    request: RunRequest
    plan: Plan
    image: BootImage
    added: Mapping[str, AddedImage]
    """The images that users have added and the plan needs, by name; the launcher holds them."""
    layers: Mapping[tuple[str, ...], Image] = field(default_factory=dict)
    """The layers on the image that the plan needs, by their packages; the launcher holds them, too."""

    @property
    def more_images(self) -> tuple[Image | AddedImage, ...]:
        """All but vmlab's own."""
        return tuple(self.layers.values()) + tuple(self.added.values())


def host_of(folder: RunFolder) -> HostFacts:
    """The host's facts as they were when the run was asked for.

    Raises UsageError where it was asked for on another host, as a run that was imported.
    """
    file = folder.path / _HOST
    if not file.exists():
        raise UsageError(f"run {folder.id} is none that began to measure here")
    try:
        return _host_facts(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise UsageError(f"run {folder.id}: its {file.name} cannot be read: {error!r}") from error


def _host_facts(facts: dict[str, Any]) -> HostFacts:
    if facts.get("assets") is not None:
        facts["assets"] = {name: Asset(**said) for name, said in facts["assets"].items()}
    facts["neighbours"] = tuple(Neighbour(*said) for said in facts["neighbours"])
    if facts.get("cores") is not None:
        facts["cores"] = tuple(map(tuple, facts["cores"]))
    return HostFacts(**facts)


def kept_overrides(file: ScenarioFile, overrides: Overrides, plan: Plan) -> Overrides:
    """The overrides with all that the plan was made of beside the scenario's text: seed, variables and files."""
    return replace(overrides, seed=plan.seed, variables=file.variables, files=file.files or None)


def scenario_of(folder: RunFolder, request: RunRequest) -> ScenarioFile:
    """The scenario as the run in `folder` was asked for. Raises ScenarioError and UsageError."""
    return load_kept(folder.scenario, request.overrides.variables, request.overrides.files)


def plan_of(folder: RunFolder, request: RunRequest | None = None) -> Plan:
    """The plan of the run in `folder`, from what is kept there, or for another `request`."""
    request = RunRequest.of(folder) if request is None else request
    return make_plan(scenario_of(folder, request), request.overrides, host_of(folder))


def write_request(folder: RunFolder, request: RunRequest, scenario_text: str, host: HostFacts) -> None:
    """Store the request and the host's facts before anything starts. Raises OSError."""
    _keep(folder.scenario, scenario_text)
    keep_request(folder, request)
    _keep(folder.path / _HOST, json.dumps(_host_document(host)))


def keep_request(folder: RunFolder, request: RunRequest) -> None:
    """Store the request alone. Raises OSError."""
    _keep(folder.request, request.to_json())


def _host_document(host: HostFacts) -> dict[str, Any]:
    # What no guest of this plan needs is not tried out for it.
    known = host.lacking.found if isinstance(host.lacking, Lacking) else dict(host.lacking)
    return asdict(replace(host, lacking=known))


def write_beginning(writer: RunWriter, folder: RunFolder, plan: Plan, seconds: float) -> None:
    """Begin the record of a run: what will run, for about so many `seconds`, what was asked for, and what is to be
    known before. Raises StoreError.
    """
    writer.append(
        RunStarted(
            run=folder.id,
            scenario=plan.scenario.name,
            size=plan.size,
            seed=plan.seed,
            cells=len(plan.cells),
            expected_seconds=seconds,
            order=plan.scenario.order,
            control=plan.control,
            targets_decide=plan.targets_decide,
            assets={name: asset.sha256 for name, asset in plan.assets.items()},
        )
    )
    writer.document("scenario", plan.scenario.model_dump_json(by_alias=True))
    writer.document("scenario.yaml", folder.scenario.read_text(encoding="utf-8"))
    writer.document("request", folder.request.read_text(encoding="utf-8"))
    for note in plan.notes:
        writer.append(Notice(level="warning", text=note))
    for absent in plan.absent:
        writer.append(Notice(level="info", text=str(absent)))


def boot_image(image: Image) -> BootImage:
    """What guests of `image` boot from."""
    return BootImage(image.disk, image.kernel, image.initrd, image.command_line)


def write_image(folder: RunFolder, image: BootImage) -> None:
    """Keep the paths of the image for the runner. Raises OSError."""
    _keep(folder.path / _IMAGE, json.dumps({name: str(value) for name, value in asdict(image).items()}))


def _keep(file: Path, text: str) -> None:
    with named(file), opened(file.parent) as folder:
        write_text_in(folder, file.name, text)


def read_prepared(folder: RunFolder) -> PreparedRun:
    """All that the runner needs."""
    image = json.loads((folder.path / _IMAGE).read_text())
    disk, kernel, initrd = (Path(image[name]) for name in ("disk", "kernel", "initrd"))
    plan = plan_of(folder)
    base = catalog.load(disk.parent) if plan.layers else None
    return PreparedRun(
        request=RunRequest.of(folder),
        plan=plan,
        image=BootImage(disk, kernel, initrd, image["command_line"]),
        added={name: added.require(name) for name in plan.added_images},
        layers={} if base is None else {packages: require_layer(base, packages) for packages in plan.layers},
    )
