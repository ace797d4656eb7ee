"""How long the lab waits for what; in one place, so that a test can replace all of it by fractions of a second."""

from __future__ import annotations

from dataclasses import dataclass

from vmlab.hypervisor.protocols import CAUSE_SECONDS
from vmlab.store.outbox import HANG_SECONDS, PATIENCE_SECONDS
from vmlab.workloads.workload_steps import Client


@dataclass(frozen=True, slots=True)
class Timing:
    """Spans in seconds. All but the last nine are deadlines; exceeding one is a failure.

    Calls to a shell or to the hypervisor have their own deadlines, given by the caller.
    """

    boot: float = 90.0
    """Until a guest's agent answers, and `boot_a_guest` more for each guest of the cell."""
    boot_a_guest: float = 45.0
    boot_template: float = 240.0
    """As `boot`, for a guest that is about to be frozen and has a processor to itself; see `template_of`."""
    identify: float = 120.0
    """For a guest's identity, and once more for its SSH."""
    helper: float = 30.0
    """For the resident helper of a restored guest to answer; after that its programs are started over SSH."""
    helper_start: float = 60.0
    """For a helper that was started just now."""
    services: float = 300.0
    """For the servers of a guest's roles to start; see `services_of`."""
    hold: float = 180.0
    """Until a client waits behind its start line."""
    clock: float = 20.0
    """For the exchange that measures the clock of a client's place."""
    close_client: float = 15.0
    clean_up: float = 120.0
    """For closing all clients of one cell, and once more for destroying its guests."""
    statistics: float = 10.0
    """For one reading of all guests' figures."""
    reading: float = 5.0
    """For the counters of all guests, where a cell's workloads start and where they have ended."""
    cause: float = CAUSE_SECONDS + 0.5
    """After a step failed: the wait for a report that the death of a guest was the cause."""
    drain: float = 30.0
    """For the host to write the dirty pages of guests' disks before their cache mode is switched."""
    store: float = PATIENCE_SECONDS
    """For an event that cannot be written, as on a full disk."""
    store_hang: float = HANG_SECONDS
    """For one attempt to write that does not return."""
    recorder: float = 30.0
    """For the recorder to hand its last ticks over."""
    lost_disk: float = 120.0
    """For an answer of a guest's disk that reads or writes wait for."""
    client_share: float = 1.0
    """The factor by which a client's deadline is multiplied."""
    lead: float = 0.3
    """From the broadcast of the start to the start, and `lead_a_client` more for each client."""
    lead_a_client: float = 0.05
    quiet: float = 30.0
    """For a quiet second before the workloads of a cell start; after that they start all the same."""
    tick: float = 1.0
    """Between two samples of the recorder."""
    latency: float = 10.0
    """Between two readings of the latency of guests' disks."""
    disk_look: float = 5.0
    """Between two looks at whether guests' disks answer."""
    silent_disk: float = 30.0
    """From which on it is said that a guest's disk answers nothing while requests are under way."""

    def boot_of(self, guests: int) -> float:
        """For each of `guests` guests that boot side by side."""
        return self.boot + self.boot_a_guest * guests

    def template_of(self, guests: int, cpus: int) -> float:
        """For each of `guests` guests that are made ready to be frozen side by side, on a host of `cpus` processors."""
        return self.boot_template * max(1.0, guests / cpus)

    def services_of(self, guests: int, cpus: int) -> float:
        """For each of `guests` guests that start their servers side by side, on a host of `cpus` processors."""
        return self.services * max(1.0, guests / cpus)

    def lead_of(self, clients: int) -> float:
        """How far ahead of it the start of `clients` clients is broadcast."""
        return self.lead + self.lead_a_client * clients

    def of_client(self, client: Client) -> float:
        """For a client's work."""
        return client.deadline * self.client_share


USUAL = Timing()
"""What a run waits for."""
