"""What programs begin: a recording of the host, which needs no root, and the rest of a run that was cut off."""

from __future__ import annotations

from vmlab.api.opened_run import Run, named
from vmlab.lab.commands.stopping import run_meant
from vmlab.lab.process.host_recording import RecordingRequest, start_recording
from vmlab.lab.process.waiting_runs import demand_one_way

_AS_USUAL = RecordingRequest(None)


def record_host(
    seconds: float | None = None,
    *,
    interval: float = _AS_USUAL.interval,
    keep_seconds: float = _AS_USUAL.keep_seconds,
    keep_bytes: int = _AS_USUAL.keep_bytes,
) -> str:
    """Begin to record this host and its own guests, as ``vmlab record --detach`` does; the run's id.

    It ends after `seconds`, or with `stop_run`. A sample is taken every `interval` seconds; the newest `keep_seconds`
    are kept, of at most `keep_bytes` on the disk. Raises VmlabError, with one line, for what makes no sense, and where
    the state folder cannot be written.
    """
    return start_recording(RecordingRequest(seconds, interval, keep_seconds, keep_bytes)).id


def resume_run(run: str | Run, *, wait: bool = False, concurrent: bool = False) -> str:
    """Have a run go on that was stopped or killed, or a fleet's whose controller was, as ``vmlab resume`` does; its id.

    It goes on in the background; a run on this host needs root. With `wait` it begins, and this returns, when its turn
    on this host has come; with `concurrent` it measures beside others. Raises VmlabError, with one line, for a run that
    has measured all cells or is under way, for one that did not begin here, where the host is another by now, and
    without both where another run measures or waits.
    """
    demand_one_way(wait=wait, concurrent=concurrent)
    # Imported late: it loads SSH, which nothing else here needs.
    from vmlab.fleet.starting import resume

    folder = run_meant(named(run))
    resume(folder, concurrent=concurrent, tell=(lambda standing: None) if wait else None)
    return folder.id
