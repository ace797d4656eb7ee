"""A run that is stopped before its first cell: while libvirt opens, or while KVM is probed."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.store import FillableWriter
from tests.lab.provision.test_full_disk import SOON, Run
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.errors import ExitCode
from vmlab.model.run import Accelerator, Outcome

STOP = 60.0


class SlowHypervisor(FakeHypervisor):
    """Opens when it is let, and probes for ever; `busy` once it does the one or the other."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = asyncio.Event()
        self.may_open = asyncio.Event()

    async def open(self) -> None:
        self.busy.set()
        await self.may_open.wait()
        await super().open()

    async def accelerator(self) -> Accelerator:
        self.busy.set()
        await asyncio.sleep(3600)
        return "tcg"


async def ended(running: asyncio.Task[Verdict]) -> Verdict:
    """The verdict, without a cancellation by a deadline: that would stop the run, too."""
    done, _ = await asyncio.wait([running], timeout=STOP)
    if not done:
        running.cancel()
        pytest.fail("the stop was not heard")
    return running.result()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("VMLAB_RUNTIME_DIR", "run")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    return Run(tmp_path, SOON, FillableWriter)


async def test_a_stop_is_heard_while_kvm_is_probed(run: Run) -> None:
    run.hypervisor = hypervisor = SlowHypervisor()
    hypervisor.may_open.set()
    runner = run.runner()
    running = asyncio.ensure_future(runner.run())
    await hypervisor.busy.wait()
    await asyncio.sleep(0.05)
    runner.stop(ExitCode.TERMINATED, "SIGTERM")
    verdict = await ended(running)
    assert (verdict.outcome, verdict.exit_code, verdict.reason) == (Outcome.ABORTED, ExitCode.TERMINATED, "stopped")
    assert hypervisor.calls == ["open", "close"]
    run.outbox.close()
    run.writer.close()


async def test_a_stop_while_libvirt_opens_takes_effect_once_it_is_open(run: Run) -> None:
    run.hypervisor = hypervisor = SlowHypervisor()
    runner = run.runner()
    running = asyncio.ensure_future(runner.run())
    await hypervisor.busy.wait()
    runner.stop(ExitCode.INTERRUPTED, "SIGINT")
    await asyncio.sleep(0.05)
    assert hypervisor.calls == [] and not running.done(), "what is half open cannot be closed"
    hypervisor.may_open.set()
    verdict = await ended(running)
    assert (verdict.outcome, verdict.exit_code) == (Outcome.ABORTED, ExitCode.INTERRUPTED)
    assert hypervisor.calls == ["open", "close"]
    run.outbox.close()
    run.writer.close()
