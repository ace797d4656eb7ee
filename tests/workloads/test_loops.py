"""What each workload that can be looped does between two rounds, so that the next one is verified by itself."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from tests.fakes.shell import FakeShell, says
from vmlab.workloads.kinds import smtp
from vmlab.workloads.kinds.filecopy import Filecopy, FilecopyParams
from vmlab.workloads.kinds.http import Http, HttpParams
from vmlab.workloads.kinds.oltp import Oltp, OltpParams
from vmlab.workloads.kinds.smtp import Smtp, SmtpParams
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import WorkloadContext


def test_later_rounds_have_tags_of_their_own_and_the_first_keeps_its_one(context: WorkloadContext) -> None:
    second = replace(context, round=2)
    assert second.tag == f"{context.tag}+2" and "+" not in context.tag


def test_a_metric_that_a_loop_shows_is_one_of_the_kind() -> None:
    assert kinds()
    for kind in kinds().values():
        assert {kind.latency, kind.throughput} <= set(kind.metrics)
        assert kind.metrics[kind.latency].unit == "s"


async def test_http_counts_its_queries_from_the_next_round_on(
    context: WorkloadContext, source: FakeShell, target: FakeShell
) -> None:
    page = '{"status": 200, "complete": true, "generator": "WordPress 6"}'
    source.answers["page_fetch"] = says(page)
    target.answers["Com_select"] = says("Com_select\t700\nQcache_hits\t11\n")
    await Http(HttpParams(requests=10)).renew(replace(context, round=2))
    assert target.files[f"/srv/{context.workload}/queries"] == b"711\n"
    assert any("page_fetch" in command for command in source.commands)


async def test_oltp_counts_its_commits_from_the_next_round_on(context: WorkloadContext, target: FakeShell) -> None:
    target.answers["xact_commit"] = says("0\n4321|1|2|3|4\n")
    await Oltp(OltpParams(transactions=10)).renew(replace(context, round=2))
    assert target.files[f"/srv/{context.workload}/counters"] == b"4321|1|2|3|4\n"


async def test_filecopy_removes_both_copies(context: WorkloadContext, source: FakeShell) -> None:
    params = FilecopyParams.model_validate({"files": 10, "bytes": "1 MB"})
    await Filecopy(params).renew(replace(context, round=2))
    name = context.workload
    assert source.commands == [f"rm -rf /mnt/{name}/{name}/tree /srv/{name}/back"]


async def test_smtp_removes_the_mail_of_the_round_before_and_no_other(
    context: WorkloadContext, target: FakeShell
) -> None:
    await Smtp(SmtpParams(batches=1, messages=1, size=10)).renew(replace(context, round=3))
    assert f"Subject: {context.tag}+2 " in target.commands[0]


def test_mail_of_one_subject_is_removed_however_often(tmp_path: Path) -> None:
    for name, subject in (("a", "tag+2"), ("b", "tag+22"), ("c", "tag"), ("d", "Re: tag+2")):
        (tmp_path / name).write_text(f"From: x\nSubject: {subject}\n\nXXX\n")
    remove = ["sh", "-c", smtp._REMOVE, "Subject: tag+2", str(tmp_path)]
    for _ in range(2):
        # The second time there is none, which is no error.
        subprocess.run(remove, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c", "d"]
