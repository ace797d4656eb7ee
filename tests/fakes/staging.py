"""Staging of both sides of a site, as the engine does it."""

from vmlab.workloads.contract import AnyWorkload, Post, Site


async def stage_both(workload: AnyWorkload, site: Site) -> None:
    """The source, then the target."""
    await workload.stage(Post(site.workload, "source", site.seed, site.source))
    if site.target is not None:
        await workload.stage(Post(site.workload, "target", site.seed, site.target))
