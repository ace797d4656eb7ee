"""The suite of Java programs: what it printed, the results that are known, and some by other implementations."""

import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterator
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers, RSAPublicNumbers
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from pydantic import ValidationError

from tests.fakes.shell import FakeShell, says
from tests.workloads.spoiling import Change, put, spoil
from vmlab.guests.image.recipe import PAYLOAD
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.jvm import MEMBERS, Jvm, JvmParams, score_name
from vmlab.workloads.workload_steps import Finished, WorkloadContext

ASKED = JvmParams(operations=4, warmup=1, threads=2, heap=2**28)
SOURCES = PAYLOAD / "root/usr/lib/vmlab/jvm/source/members"


@pytest.fixture
def text(captured: Path) -> str:
    """Of the image's Java and libraries, on the host."""
    return (captured / "jvm.txt").read_text()


async def test_scores_are_operations_a_minute(source: FakeShell, text: str) -> None:
    alone = WorkloadContext(workload="suite", tile=1, cell=1, seed=1, source=source)
    values = (await Jvm(ASKED).collect(alone, Finished(0, 600.0, text, ""))).values
    took = {said["member"]: said["seconds"] for line in text.splitlines() if "seconds" in (said := json.loads(line))}
    assert sorted(took) == sorted(MEMBERS)
    assert values["xml_score"] == pytest.approx(4 / (took["xml"] / 60))
    assert values["run_time"] == pytest.approx(sum(took.values()))
    logs = [math.log(values[score_name(name)]) for name in took]
    assert math.log(values["score"]) == pytest.approx(sum(logs) / len(MEMBERS))
    assert values["operations"] == 4 * len(MEMBERS)
    assert set(values) == set(Jvm.metrics)


@pytest.mark.parametrize(
    ("member", "change", "reason"),
    [
        (
            "crypto",
            put("checksums", {"f50f2439": 5, "bad": 1}),
            "crypto gave a wrong result: its checksum is bad, and should be f50f2439$",
        ),
        ("crypto", put("checksums", {"f50f2439": 5}), "results of crypto: 5, but 6 were asked for"),
        ("crypto", put("checksums", {}), "results of crypto: 0, but 6 were asked for"),
        ("serial", put("times", [0.1] * 3), "operations of serial: 3, but 4 were asked for"),
        ("serial", put("times", [9.0] * 4), "the operations of serial do not fit into its"),
        ("serial", put("times", "none"), "printed no times of serial"),
        ("sunflow", put("threads", 1), "threads of sunflow: 1, but 2 were asked for"),
        ("sunflow", put("heap", 2**27), "heap of sunflow in bytes: 134217728, but 268435456"),
        ("xml", put("seconds", 0.0001), "xml took 0.000100 s, too quick to be measured"),
        ("xml", put("member", "serial"), "the suite printed values of serial twice"),
        ("xml", put("member", "mtrt"), "the suite ran compiler, .*, sunflow, mtrt, not compiler"),
    ],
)
def test_work_that_is_not_whole_or_not_right_fails(text: str, member: str, change: Change, reason: str) -> None:
    with pytest.raises(WorkloadError, match=reason):
        Jvm(ASKED).figures({"suite": spoil(text, "member", member, "seconds", change)}, 600.0)


async def test_a_member_that_failed_is_named(source: FakeShell) -> None:
    alone = WorkloadContext(workload="suite", tile=1, cell=1, seed=1, source=source)
    said = "member serial: java.lang.OutOfMemoryError: Java heap space\n"
    with pytest.raises(WorkloadError, match=r"^java exited with 1: member serial: java\.lang\.OutOfMemoryError: Java"):
        await Jvm(ASKED).collect(alone, Finished(1, 3.0, "", said))


@pytest.mark.parametrize(("machine", "settings"), [("qemu", "-XX:TieredStopAtLevel=1\n"), ("kvm", ""), ("none", "")])
async def test_java_compiles_code_once_where_the_machine_is_emulated(
    source: FakeShell, machine: str, settings: str
) -> None:
    source.answers["systemd-detect-virt"] = says(f"{machine}\n", status=1 if machine == "none" else 0)
    alone = WorkloadContext(workload="suite", tile=1, cell=1, seed=1, source=source)
    await Jvm(ASKED).prepare(alone)
    assert source.files == {"/run/vmlab-java": settings.encode()}
    assert source.commands[-1] == "java @/run/vmlab-java -version"
    assert Jvm(ASKED).client(alone).argv[:2] == ("java", "@/run/vmlab-java")


def test_progress_is_told_by_operation(text: str) -> None:
    steps = [step for line in text.splitlines() if (step := Jvm(ASKED).progress(line))]
    assert [(step.stage, step.done, step.total) for step in steps][:4] == [
        ("compiler", done, 4) for done in range(1, 5)
    ]
    assert len(steps) == 4 * len(MEMBERS)


@pytest.mark.parametrize(
    "wrong",
    [{"members": ["xml", "xml"]}, {"members": ["mtrt"]}, {"heap": 2**28 + 1}, {"operations": 1, "threads": 2}],
)
def test_amounts_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        JvmParams.model_validate(wrong)


def test_the_suite_has_each_member_and_no_other() -> None:
    assert set(re.findall(r'case "([\w.]+)" ->', (SOURCES / "Suite.java").read_text())) == set(MEMBERS)


def _numbers(seed: int) -> Iterator[int]:
    """SplitMix64's upper 31 bits."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        mixed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        yield (mixed ^ mixed >> 31) >> 33


def _text(seed: int, size: int) -> bytes:
    """What the class Text makes."""
    numbers = _numbers(seed)
    words = ["".join(chr(97 + next(numbers) % 26) for _ in range(2 + next(numbers) % 8)) for _ in range(2000)]
    parts: list[str] = []
    length = 0
    while length < size:
        bound = 1 + next(numbers) % 2000
        parts.append(words[next(numbers) % bound] + " ")
        length += len(parts[-1])
    return "".join(parts)[:size].encode()


def test_compress_gives_what_another_implementation_gives() -> None:
    held = _text(1, 2**20)
    table = {bytes([letter]): letter for letter in range(256)}
    codes, prefix = [], b""
    for letter in held:
        longer = prefix + bytes([letter])
        if longer in table:
            prefix = longer
            continue
        if len(table) < 2**16:
            table[longer] = len(table)
        codes.append(table[prefix])
        prefix = longer[-1:]
    codes.append(table[prefix])
    assert f"{zlib.crc32(b''.join(code.to_bytes(2, 'big') for code in codes)):x}" == MEMBERS["compress"].checksum


def test_crypto_gives_what_another_implementation_gives() -> None:
    held = _text(2, 2**18)
    made = [_encrypted(AES(held[:16]), held[16:32], held), _encrypted(TripleDES(held[:24]), held[24:32], held)]
    made += [hashlib.new(name, held).digest() for name in ("md5", "sha1", "sha256", "sha512")]
    p, q, e = 2**521 - 1, 2**607 - 1, 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    key = RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), RSAPublicNumbers(e, p * q)).private_key()
    made += [key.sign(held[at * 1024 : (at + 1) * 1024], PKCS1v15(), hashes.SHA256()) for at in range(20)]
    assert f"{zlib.crc32(b''.join(made)):x}" == MEMBERS["crypto"].checksum


def test_derby_gives_what_another_implementation_gives() -> None:
    numbers = _numbers(14)

    def below(bound: int) -> int:
        return next(numbers) % bound

    for _ in range(100):
        # The customers' names.
        for _ in range(2 + below(8)):
            below(26)
    with localcontext(prec=50):
        rates = [
            (Decimal(below(10**9) * 10**9 + below(10**9)).scaleb(-15), Decimal(below(3000)).scaleb(-4))
            for _ in range(20)
        ]
        calls = [(below(100), below(20), 1 + below(10_000)) for _ in range(1000)]
        bills = [Decimal(0)] * 100
        for customer, kind, seconds in calls:
            price, tax = rates[kind]
            cost = (seconds * price).quantize(Decimal("1e-6"), ROUND_HALF_EVEN)
            bills[customer] += cost + (cost * tax).quantize(Decimal("1e-6"), ROUND_DOWN)
        lines = [f"{customer} {bill:f}\n" for customer, bill in enumerate(bills)]
        for kind, (price, _) in enumerate(rates):
            lasted = [seconds for _, called, seconds in calls if called == kind]
            lines.append(f"{kind} {len(lasted)} {sum(lasted) * price:f}\n")
    assert f"{zlib.crc32(''.join(lines).encode()):x}" == MEMBERS["derby"].checksum


def test_startup_gives_what_its_members_give() -> None:
    total = 0
    for member in ("compress", "crypto", "serial"):
        total = total * 31 + int(MEMBERS[member].checksum, 16)
    assert f"{total:x}" == MEMBERS["startup"].checksum


def _encrypted(algorithm: Any, first: bytes, held: bytes) -> bytes:
    padder = padding.PKCS7(algorithm.block_size).padder()
    cipher = Cipher(algorithm, modes.CBC(first)).encryptor()
    return cipher.update(padder.update(held) + padder.finalize()) + cipher.finalize()
