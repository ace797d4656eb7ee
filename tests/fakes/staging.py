"""Staging of both sides of a site, as the engine does it."""

from vmlab.workloads.workload_steps import AnyWorkload, StagingContext, WorkloadContext


async def stage_both(workload: AnyWorkload, context: WorkloadContext) -> None:
    """The source, then the target."""
    await workload.stage(StagingContext(context.workload, "source", context.seed, context.source))
    if context.target is not None:
        await workload.stage(StagingContext(context.workload, "target", context.seed, context.target))
