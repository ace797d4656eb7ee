"""Files of guests that proofs of levers look at are read in each of them, and only where a lever asks for them."""

from __future__ import annotations

from pathlib import Path

from tests.lab.one_cell import working


async def test_a_guests_processor_is_looked_at_in_the_guest(tmp_path: Path) -> None:
    both = ("cpu_shares: 200}", "cpu_shares: 200, cpu: max}")
    async with working(tmp_path, lambda text: text.replace(*both)) as (lab, _):
        assert {name: [*files] for name, files in lab.hypervisor.inside.items()} == {
            "t1-quick": ["/proc/cpuinfo"],
            "t1-slow": ["/proc/cpuinfo"],
        }
        assert all(("cat", "/proc/cpuinfo") in guest.ran for guest in lab.guests)


async def test_nothing_is_read_for_a_lever_that_the_host_shows(tmp_path: Path) -> None:
    asked = ("cpu_shares: 200}", "cpu_shares: 200, pin: 0}")
    async with working(tmp_path, lambda text: text.replace(*asked)) as (lab, _):
        assert "prove_levers" in lab.hypervisor.calls
        assert not any(("cat", "/proc/cpuinfo") in guest.ran for guest in lab.guests)
        assert lab.hypervisor.inside == {}
