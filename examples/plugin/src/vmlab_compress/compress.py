"""gzip on a file of words, and another program that reads the result back."""

from __future__ import annotations

import json

from pydantic import Field

from vmlab.plugin.v1.workload import (
    RUN_TIME,
    Bytes,
    Client,
    Collected,
    Finished,
    Footprint,
    Metric,
    Workload,
    WorkloadContext,
    WorkloadError,
    WorkloadParams,
    demand_equal,
    demand_success,
    read_from_a_guest,
    with_run_time,
)

_BYTES_PER_SECOND = {"kvm": 20e6, "tcg": 2e6}
"""At the best level: a guess, for the plan."""

_MAKE = """
import hashlib, random, sys
path, size, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
words = random.Random(seed)
text = " ".join(words.choice(("host", "guest", "disk", "cache", "tile")) for _ in range(size // 4)).encode()[:size]
open(path, "wb").write(text)
print(hashlib.sha256(text).hexdigest())
"""
_READ_BACK = """
import gzip, hashlib, json, os, sys
whole = gzip.open(sys.argv[1], "rb").read()
packed = os.path.getsize(sys.argv[1])
print(json.dumps({"sha256": hashlib.sha256(whole).hexdigest(), "bytes": len(whole), "packed": packed}))
"""


class CompressParams(WorkloadParams):
    """Amounts of the ``compress`` workload."""

    bytes: Bytes = Field(ge=1000, le=10**9)
    """Size of the file that is compressed."""
    level: int = Field(default=6, ge=1, le=9)
    """gzip's level: 1 is the fastest, 9 the best."""


class Compress(Workload[CompressParams]):
    """``gzip``."""

    kind = "compress"
    sides = 1
    Params = CompressParams
    summary = "gzip compresses a file of words."
    metrics = with_run_time(
        compressed_per_second=Metric("B/s", "more", "bytes compressed per second"),
        packed_share=Metric("%", "less", "size after compression"),
        bytes=Metric("B", None, "bytes"),
    )
    throughput = "compressed_per_second"
    tools = (("gzip",), ())

    def __init__(self, params: CompressParams) -> None:
        super().__init__(params)
        self._sha256 = ""

    def footprint(self, accelerator: str) -> Footprint:
        """The file and the compressed one."""
        seconds = self.params.bytes / _BYTES_PER_SECOND[accelerator]
        return Footprint(disk_bytes=2 * self.params.bytes, seconds=2 + 2 * seconds)

    def _path(self, context: WorkloadContext) -> str:
        return f"/var/tmp/{context.tag}.txt"

    async def prepare(self, context: WorkloadContext) -> None:
        """Write the file, the same in both sides of a comparison."""
        size, seed = str(self.params.bytes), f"{context.seed}-{context.tile}-{context.workload}"
        made = await context.source.run(["python3", "-c", _MAKE, self._path(context), size, seed])
        self._sha256 = made.stdout.strip()

    def client(self, context: WorkloadContext) -> Client:
        """gzip itself, with nothing around it."""
        argv = ("gzip", "-k", "-f", f"-{self.params.level}", self._path(context))
        return Client(argv=argv, deadline=60 + 60 * self.footprint("tcg").seconds)

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Python reads the compressed file back: all bytes are there, and none is another."""
        demand_success(finished, "gzip")
        answer = await context.source.run(["python3", "-c", _READ_BACK, f"{self._path(context)}.gz"])
        with read_from_a_guest("the compressed file"):
            read = json.loads(answer.stdout)
            packed = int(read["packed"])
            demand_equal("bytes read back", read["bytes"], self.params.bytes)
            if read["sha256"] != self._sha256:
                raise WorkloadError("what was read back is not what was compressed")
        values = {
            RUN_TIME: finished.seconds,
            "compressed_per_second": self.params.bytes / finished.seconds,
            "packed_share": packed / self.params.bytes * 100,
            "bytes": self.params.bytes,
        }
        return Collected(values, {"read back": answer.stdout})
