"""The host's own guests over a recording: each with its means, and the host's disks below their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vmlab.analysis.shape import (
    DomainDiskDocument,
    DomainDocument,
    RecordingDocument,
)
from vmlab.model.domain import Domain
from vmlab.model.jsonable import carried
from vmlab.model.results import Summary
from vmlab.model.sample import Sample, split_name
from vmlab.telemetry.domains.domain_rates import METRICS, OF_DISK
from vmlab.telemetry.host.disk import METRICS as OF_HOST_DISK
from vmlab.telemetry.sample_summary import seconds_within, summarise

Found = Mapping[str, Summary]


def recording_document(
    samples: Sequence[Sample], domains: Iterable[Domain], since: float, until: float
) -> RecordingDocument:
    """Every domain that was seen from `since` to `until` on the monotonic clock, by name, and the host's disks.

    `seconds` are those of the samples that are there: the oldest of a long recording are dropped.
    """
    domains = list(domains)
    found = summarise(samples, since, until, instances=True, names=_Wanted(domains))
    return RecordingDocument(
        seconds=sum(seconds for one in samples if (seconds := seconds_within(one, since, until)) > 0),
        domains=[_domain(one, found) for one in sorted(domains, key=lambda one: one.name)],
        disks={below: _figures(found, OF_HOST_DISK, below) for below in _below(domains)},
    )


class _Wanted:
    """The names of values that are about domains, or about the host's disks below their files."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self._below = _below(domains)

    def __contains__(self, name: object) -> bool:
        metric, instance = split_name(str(name))
        return metric.startswith("domain_") or (metric in OF_HOST_DISK and instance in self._below)


def _below(domains: Iterable[Domain]) -> list[str]:
    return sorted({disk.below for domain in domains for disk in domain.disks if disk.below})


def _domain(domain: Domain, found: Found) -> DomainDocument:
    disks = [
        carried(DomainDiskDocument, disk, figures=_figures(found, OF_DISK, f"{domain.name}/{disk.target}"))
        for disk in domain.disks
    ]
    figures = _figures(found, METRICS, domain.name)
    return carried(DomainDocument, domain, shares=list(domain.shares), figures=figures, disks=disks)


def _figures(found: Found, metrics: Iterable[str], instance: str) -> dict[str, Summary]:
    """By metric without ``domain_``; what was never read is left out."""
    known = {metric: found[name] for metric in metrics if (name := f"{metric}[{instance}]") in found}
    return {metric.removeprefix("domain_"): one for metric, one in known.items()}
