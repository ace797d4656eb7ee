"""A guest is made itself: entropy first, and a clock that is measured, stepped, and measured again."""

import base64
from typing import Any

import pytest

from vmlab.guests.agent import CLOSE_ENOUGH, ClockReading, Identity, identify, read_clock
from vmlab.model.errors import GuestError

WEB = Identity("web-1", "198.18.0.2", 15, b"private key", "ssh-ed25519 AAAA", "198.18.0.3 mail-1\n")


class HostClock:
    """In the place of the host's clock: it stands still but for what a guest's answers take."""

    now = 1_795_000_000_000_000_000

    def time_ns(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1e9

    def passes(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)


HOST = HostClock()


@pytest.fixture(autouse=True)
def host_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.guests.agent.time", HOST)


class Guest:
    """A guest with a clock of its own; `delays` are the seconds that its answers take, in turn, before and after it
    reads its clock; the last pair stays."""

    def __init__(self, offset: float = -23.0, delays: tuple[tuple[float, float], ...] = ((0, 0),), drift: float = 0.0):
        self.offset = offset
        self.programs: list[dict[str, str]] = []
        self.answer: dict[str, Any] = {"exited": True, "exitcode": 0, "out-data": base64.b64encode(b"ok\n").decode()}
        self._delays = list(delays)
        self._drift = drift

    async def __call__(self, command: str, arguments: Any, *, deadline: float) -> Any:
        if command == "guest-get-time":
            before, after = self._delays.pop(0) if len(self._delays) > 1 else self._delays[0]
            HOST.passes(before)
            now = HOST.now + int(self.offset * 1e9)
            HOST.passes(after)
            return now
        if command == "guest-exec":
            lines = base64.b64decode(arguments["input-data"]).decode().splitlines()
            self.programs.append(dict(line.split("=", 1) for line in lines))
            self.offset += int(self.programs[-1].get("clock", 0)) / 1e9 + self._drift
            self._drift = 0.0
            return {"pid": 7}
        return self.answer


async def test_one_program_gives_all_and_entropy_comes_first() -> None:
    guest = Guest()
    clock = await identify(guest, WEB, "run1", 10)
    (given,) = guest.programs
    assert next(iter(given)) == "entropy" and len(bytes.fromhex(given["entropy"])) == 64
    assert (given["hostname"], given["address"], given["grow"]) == ("web-1", "198.18.0.2/15", "1")
    assert bytes.fromhex(given["host_key"]) == WEB.host_key
    assert bytes.fromhex(given["hosts"]).decode() == WEB.hosts
    assert abs(guest.offset) < 0.01 and clock.close


async def test_no_two_programs_get_the_same_entropy_and_no_two_guests_one_machine_id() -> None:
    guest = Guest()
    for run in ("run1", "run1", "run2"):
        await identify(guest, WEB, run, 10)
    first, second, third = guest.programs
    assert first["entropy"] != second["entropy"]
    assert first["machine_id"] == second["machine_id"] != third["machine_id"]
    assert len(bytes.fromhex(first["machine_id"])) == 16


async def test_a_clock_that_does_not_land_is_stepped_again() -> None:
    guest = Guest(drift=0.2)
    clock = await identify(guest, WEB, "run1", 10)
    assert len(guest.programs) == 2 and "hostname" not in guest.programs[1]
    assert clock.close and abs(guest.offset) < 0.01


async def test_a_busy_guest_is_asked_again_rather_than_believed() -> None:
    slow = ((0.2, 0.0),) * 6
    guest = Guest(offset=5, delays=(*slow, *slow, (0.0, 0.0)))
    clock = await identify(guest, WEB, "run1", 10)
    assert clock.close and abs(guest.offset) * 1e9 <= CLOSE_ENOUGH


async def test_the_most_certain_reading_counts_and_its_bound_holds() -> None:
    guest = Guest(offset=1.0, delays=((0.05, 0.0), (0.0, 0.02), (0.03, 0.03), (0.05, 0.0), (0.05, 0.0), (0.05, 0.0)))
    reading = await read_clock(guest)
    assert reading.uncertainty < 0.025e9
    assert abs(reading.offset - 1e9) <= reading.uncertainty


@pytest.mark.parametrize("clock", ["noon", None, [], 2**63, -(10**400)], ids=range(5))
async def test_a_clock_that_is_none_is_a_guests_error(clock: object) -> None:
    async def told(command: str, arguments: object = None, *, deadline: float) -> object:
        return clock

    with pytest.raises(GuestError, match=r"^the guest told a clock that is none: "):
        await read_clock(told)


@pytest.mark.parametrize(
    ("offset", "uncertainty", "close", "off"),
    [(0, 1, True, False), (29, 1, True, False), (29, 2, False, False), (-32, 1, False, True), (40, 20, False, False)],
)
def test_close_and_off_are_certainties(offset: int, uncertainty: int, close: bool, off: bool) -> None:
    reading = ClockReading(offset * 10**6, uncertainty * 10**6)
    assert (reading.close, reading.certainly_off) == (close, off)


async def test_what_the_program_complains_of_is_told_with_the_guests_name() -> None:
    guest = Guest()
    complaint = base64.b64encode(b"identity: no network card within 10 s\n").decode()
    guest.answer = {"exited": True, "exitcode": 1, "err-data": complaint}
    with pytest.raises(GuestError, match="web-1: identity: exited with 1: identity: no network card"):
        await identify(guest, WEB, "run1", 10)
