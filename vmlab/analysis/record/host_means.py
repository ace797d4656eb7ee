"""The host's figures while a cell's workloads ran."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable

from vmlab.model.results import Summary
from vmlab.model.sample import OWN_NAMES, Sample
from vmlab.store.reader import RunReader
from vmlab.store.samples import read_samples
from vmlab.telemetry.host.host_figures import headlines
from vmlab.telemetry.sample_summary import summarise


def host_during(reader: RunReader, since: float, until: float) -> dict[str, Summary]:
    """Mean, maximum, 95th percentile and area of every host figure from `since` to `until`; {} without samples.

    The headlines come first, in their order; others follow by name, the recorder's own apart.
    Both moments are on the monotonic clock. See `telemetry.summary.summarise` for what each is. Raises StoreError for
    a damaged store.
    """
    return host_of(read_samples(reader, since, until), since, until)


def host_of(
    samples: Iterable[Sample], since: float, until: float, names: Container[str] | None = None
) -> dict[str, Summary]:
    """As `host_during`, of samples that were read already; only of the figures called `names`, if given."""
    found = summarise(samples, since, until, names=names)
    # Damaged bytes may be read as infinity, which is not a figure.
    found = {
        name: one for name, one in found.items() if all(map(math.isfinite, (one.mean, one.max, one.p95, one.area)))
    }
    first = [figure.name for figure in headlines() if figure.name in found]
    ordered = [*first, *sorted(found.keys() - {*first, *OWN_NAMES})]
    return {name: found[name] for name in ordered}
