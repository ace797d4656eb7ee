"""What iperf3 told on both sides, and what is not believed of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell, says
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.iperf3 import Iperf3, Iperf3Params
from vmlab.workloads.reports.iperf3_report import parse_iperf3
from vmlab.workloads.workload_steps import Finished, WorkloadContext

TCP = Iperf3Params.model_validate({"time": "2 s", "streams": 2})
REVERSE = Iperf3Params.model_validate({"time": "2 s", "omit": "1 s", "reverse": True})
LATE = Iperf3Params.model_validate({"time": "3 s", "omit": "1 s"})
UDP = Iperf3Params.model_validate({"time": "2 s", "protocol": "udp", "rate": "50 Mbit/s"})
ADDRESS = "127.0.0.1"


@pytest.fixture
def here(context: WorkloadContext) -> WorkloadContext:
    """Both places at the address at which the output was captured; kernels with usual buffers."""
    answers: dict[str, Any] = {"tcp_wmem": says("4096\t16384\t4194304\n"), "tcp_rmem": says("4096\t131072\t6291456\n")}
    source, target = FakeShell("near", ADDRESS, dict(answers)), FakeShell("far", ADDRESS, dict(answers))
    return replace(context, source=source, target=target, position=3)


class Pair:
    """What both sides printed."""

    def __init__(self, captured: Path, name: str, seconds: float = 4.2) -> None:
        self.seconds = seconds
        self.client = (captured / f"iperf3-{name}-client.json").read_text()
        self.server = (captured / f"iperf3-{name}-server.json").read_text()

    async def figures(self, params: Iperf3Params, context: WorkloadContext) -> dict[str, float]:
        assert isinstance(context.peer, FakeShell)
        context.peer.answers["cat /run/vmlab/iperf3/iperf3-20003.json"] = says(self.server)
        load = Iperf3(params)
        collected = await load.collect(context, Finished(0, self.seconds, self.client, ""))
        assert collected.raw["iperf3 server"] == self.server
        return {reading.metric: reading.value for reading in load.readings(collected)}


async def test_tcp_gives_the_receivers_figures_exactly(captured: Path, here: WorkloadContext) -> None:
    figures = await Pair(captured, "tcp").figures(TCP, here)
    assert figures == {
        "run_time": 2.003406,
        "throughput": 1149501440 / 2.003406,
        "bytes": 1149501440,
        "retransmits": 9,
        "source_cpu": pytest.approx(0.2012, abs=1e-4),
        "target_cpu": pytest.approx(0.1401, abs=1e-4),
    }


async def test_in_reverse_the_server_sends(captured: Path, here: WorkloadContext) -> None:
    figures = await Pair(captured, "reverse").figures(REVERSE, here)
    assert (figures["bytes"], figures["run_time"], figures["retransmits"]) == (1753874432, 1.996794, 0)


async def test_udp_has_jitter_and_loss(captured: Path, here: WorkloadContext) -> None:
    figures = await Pair(captured, "udp").figures(UDP, here)
    assert (figures["packets"], figures["packets_lost"], figures["loss"]) == (382, 7, 7 / 382)
    assert figures["jitter"] == pytest.approx(0.0030585, abs=1e-7)
    assert figures["rate_reached"] == pytest.approx(0.9969, abs=1e-4)
    assert "retransmits" not in figures


async def test_udp_that_was_not_sent_at_its_rate_fails(captured: Path, here: WorkloadContext) -> None:
    """The client was stopped from 0.5 s to 2.7 s (SIGSTOP): nothing was lost, as hardly anything was sent."""
    with pytest.raises(WorkloadError, match=r"the sender sent 8\.909 Mbit/s, 18% of the 50 Mbit/s that were asked for"):
        await Pair(captured, "starved").figures(UDP, here)


async def test_udp_that_made_up_for_what_it_had_not_sent_fails(captured: Path, here: WorkloadContext) -> None:
    with pytest.raises(WorkloadError, match=r"the sender sent 49\.85 Mbit/s, 125% of the 40 Mbit/s"):
        pair = Pair(captured, "udp")
        pair.client = pair.client.replace('"target_bitrate":\t50000000', '"target_bitrate":\t40000000')
        await pair.figures(UDP.model_copy(update={"rate": 40_000_000}), here)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"duration":\t2', '"duration":\t1', "seconds of iperf3: 1, but 2"),
        ('"sock_bufsize":\t0', '"sock_bufsize":\t4096', "window of iperf3: 4096, but 0"),
        ('"target_bitrate":\t0', '"target_bitrate":\t1000', "rate of iperf3's streams: 1000, but 0"),
        ('"num_streams":\t2', '"num_streams":\t1', "streams of iperf3: 1, but 2"),
        ('"blksize":\t131072', '"blksize":\t1024', "bytes of iperf3's blocks: 1024, but 131072"),
        ('"protocol":\t"TCP"', '"protocol":\t"UDP"', "iperf3 ran UDP, but tcp"),
        ('"remote_host":\t"127.0.0.1"', '"remote_host":\t"10.0.0.1"', r"connected 127\.0\.0\.1 to 10\.0\.0\.1, not"),
        ('"seconds":\t2.001708', '"seconds":\t1.901708', "the sender worked for 1.902 s, not 2 s"),
        ('"bytes":\t1152122880', '"bytes":\t1252122880', "sender counted 1152122880 bytes in its intervals, but 12521"),
        ('"bytes":\t608174080', '"bytes":\t628174080', "1172122880 bytes were sent and 1149501440 arrived; at most"),
        ('"bytes":\t608174080', '"bytes":\t605552639', "1149501440 bytes arrived, but 1149501439 were sent"),
        ('"retransmits":\t9,\n\t\t\t"sender"', '"sender"', "did not count retransmits"),
        ('"sum_sent"', '"sum"', "iperf3's client's account cannot be read at end.sum_sent: Field required"),
    ],
)
async def test_what_is_not_as_it_was_asked_for_fails(
    captured: Path, here: WorkloadContext, old: str, new: str, reason: str
) -> None:
    pair = Pair(captured, "tcp")
    assert old in pair.client
    pair.client = pair.client.replace(old, new)
    with pytest.raises(WorkloadError, match=reason):
        await pair.figures(TCP, here)


async def test_a_server_may_begin_a_quarter_of_a_second_late(captured: Path, here: WorkloadContext) -> None:
    pair, seconds = Pair(captured, "tcp"), '"seconds":\t2.003406'
    whole = pair.client
    pair.client = whole.replace(seconds, '"seconds":\t1.803406')
    assert (await pair.figures(TCP, here))["run_time"] == 1.803406
    pair.client = whole.replace(seconds, '"seconds":\t1.703406')
    with pytest.raises(WorkloadError, match=r"the receiver worked for 1\.703 s, not 2 s"):
        await pair.figures(TCP, here)


async def test_a_server_that_counted_otherwise_fails(captured: Path, here: WorkloadContext) -> None:
    pair = Pair(captured, "tcp")
    pair.server = pair.server.replace('"bytes":\t1149501440', '"bytes":\t1149501441')
    with pytest.raises(WorkloadError, match="the client was told: 1149501441, but 1149501440"):
        await pair.figures(TCP, here)


async def test_nothing_that_arrived_fails(captured: Path, here: WorkloadContext) -> None:
    pair = Pair(captured, "udp")
    pair.client = pair.client.replace('"bytes":\t12288000', '"bytes":\t0')
    pair.server = pair.server.replace('"bytes":\t12288000', '"bytes":\t0')
    with pytest.raises(WorkloadError, match="nothing that iperf3 sent arrived"):
        await pair.figures(UDP, here)


async def test_more_than_was_sent_fails(captured: Path, here: WorkloadContext) -> None:
    pair = Pair(captured, "udp")
    pair.client = pair.client.replace('"bytes":\t6258688', '"bytes":\t6143999')
    with pytest.raises(WorkloadError, match="12288000 bytes arrived, but 12287998 were sent"):
        await pair.figures(UDP, here)


async def test_a_side_that_began_to_count_late_is_true_of_what_it_counted(
    captured: Path, here: WorkloadContext
) -> None:
    """The server was stopped from 0.9 s to 1.7 s (SIGSTOP), so that its timer for what is omitted came late."""
    figures = await Pair(captured, "late").figures(LATE, here)
    assert (figures["bytes"], figures["run_time"]) == (2565079040, 2.342849)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"bytes":\t714211328', '"bytes":\t690000000', "3279290368 bytes were sent and 3255079040 arrived; at most"),
        ('"bytes":\t714211328', '"bytes":\t716000000', "3281079040 bytes arrived, but 3279290368 were sent"),
        ('"bytes":\t347471872', '"bytes":\t347471873', "receiver counted 2565079041 bytes in its intervals, but 25650"),
        ('"seconds":\t1.662503957748413', '"seconds":\t1.3', "the receiver worked for 3.653 s, not 4 s"),
    ],
)
async def test_late_counting_hides_nothing(
    captured: Path, here: WorkloadContext, old: str, new: str, reason: str
) -> None:
    pair = Pair(captured, "late")
    assert old in pair.server
    pair.server = pair.server.replace(old, new)
    with pytest.raises(WorkloadError, match=reason):
        await pair.figures(LATE, here)


async def test_less_than_half_of_the_time_counted_fails(captured: Path, here: WorkloadContext) -> None:
    pair = Pair(captured, "late")
    pair.client = pair.client.replace('"seconds":\t2.342849', '"seconds":\t1.442849')
    with pytest.raises(WorkloadError, match=r"the receiver counted 1\.443 s, less than half of 3 s"):
        await pair.figures(LATE, here)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            '"seconds":\t2.342849',
            '"seconds":\t2.942849',
            r"receiver counted 2\.943 s, but its intervals took 2\.343",
        ),
        (
            '"seconds":\t3.003985',
            '"seconds":\t3.603985',
            r"sender counted 3\.604 s, but its intervals took 3\.004",
        ),
    ],
)
async def test_a_side_that_counted_for_longer_than_its_intervals_took_fails(
    captured: Path, here: WorkloadContext, old: str, new: str, reason: str
) -> None:
    """Its rate would be too low."""
    pair = Pair(captured, "late")
    assert old in pair.client
    pair.client = pair.client.replace(old, new)
    with pytest.raises(WorkloadError, match=reason):
        await pair.figures(LATE, here)


async def test_a_server_whose_intervals_took_longer_than_the_clients_fails(
    captured: Path, here: WorkloadContext
) -> None:
    pair = Pair(captured, "late")
    pair.server = pair.server.replace('"seconds":\t1.662503957748413', '"seconds":\t2.262503957748413')
    with pytest.raises(WorkloadError, match=r"one side of iperf3 worked for 4\.60\d s, and the other for 4\.00\d s"):
        await pair.figures(LATE, here)


async def test_a_client_that_ended_before_its_time_fails(captured: Path, here: WorkloadContext) -> None:
    with pytest.raises(WorkloadError, match=r"client ended after 3\.800 s, but 4 s were asked for"):
        await Pair(captured, "late", seconds=3.8).figures(LATE, here)


async def test_buffers_that_cannot_be_read_fail(captured: Path, here: WorkloadContext) -> None:
    assert isinstance(here.source, FakeShell)
    here.source.answers["tcp_wmem"] = says("4096\n")
    with pytest.raises(WorkloadError, match="tcp_wmem of near cannot be read"):
        await Pair(captured, "tcp").figures(TCP, here)


async def test_iperf3s_own_error_is_told(captured: Path, here: WorkloadContext) -> None:
    refused = (captured / "iperf3-refused.json").read_text()
    with pytest.raises(WorkloadError, match="iperf3's client: unable to connect to server: Connection refused"):
        await Iperf3(TCP).collect(here, Finished(0, 0.1, refused, ""))


@pytest.mark.parametrize(("text", "reason"), [("", "printed nothing"), ("iperf3: busy\n", "printed iperf3: busy")])
def test_what_is_no_document_fails(text: str, reason: str) -> None:
    with pytest.raises(WorkloadError, match=f"iperf3's server should print a JSON document, but {reason}"):
        parse_iperf3(text, "iperf3's server")


async def test_the_server_takes_one_test_at_a_port_and_an_address_of_its_own(here: WorkloadContext) -> None:
    await Iperf3(TCP).prepare(here)
    assert isinstance(here.peer, FakeShell)
    ended, removed, _, started, awaited = here.peer.commands
    assert ended == "pkill --pidfile /run/vmlab/iperf3/iperf3-20003.pid --exact iperf3"
    assert removed.startswith("rm -f /run/vmlab/iperf3/iperf3-20003.pid")
    assert {"--one-off", "--daemon", "20003", ADDRESS} <= set(started.split())
    assert awaited.endswith(" 20003")


def test_the_client_is_bound_to_its_address(here: WorkloadContext) -> None:
    params = Iperf3Params.model_validate({"time": "3 s", "reverse": True, "window": "64 KiB"})
    words = " ".join(Iperf3(params).client(here).argv)
    assert "--client 127.0.0.1 --port 20003 --bind 127.0.0.1 --json" in words
    assert words.endswith("--time 3 --omit 0 --parallel 1 --reverse --window 65536")
    assert "--udp --bitrate 25000000" in " ".join(Iperf3(UDP.model_copy(update={"streams": 2})).client(here).argv)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"time": "1.5 s"}, "must be whole seconds"),
        ({"protocol": "udp"}, "rate belongs to protocol udp, which needs it"),
        ({"rate": "1 Mbit/s"}, "rate belongs to protocol udp"),
        ({"protocol": "udp", "rate": "1 MB/s"}, "unknown unit 'MB/s'; use one of bit/s, kbit/s, Mbit/s, Gbit/s"),
        ({"protocol": "udp", "rate": "2 bit/s", "streams": 3}, "at least 1 bit/s for each stream"),
    ],
)
def test_amounts_that_cannot_be(params: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Iperf3Params.model_validate(params)
