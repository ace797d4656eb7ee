"""Energy of the CPU packages, where RAPL is readable (Documentation/power/powercap/powercap.rst)."""

from __future__ import annotations

from vmlab.telemetry.host.counter import NAN
from vmlab.telemetry.host.group import FigureSource, GroupMaker
from vmlab.telemetry.source import KernelFile, Roots


class Power:
    """Watts of each package and of all together, from ``energy_uj``, which wraps at ``max_energy_range_uj``."""

    title = "power (RAPL)"

    def __init__(self, roots: Roots) -> None:
        # intel-rapl:0 is a package; intel-rapl:0:1 is a part that the package's counter includes.
        zones = sorted((roots.sys / "class/powercap").glob("intel-rapl:[0-9]*"))
        packages = [zone for zone in zones if zone.name.count(":") == 1]
        if not packages:
            raise FileNotFoundError("no RAPL package")
        self._files = [KernelFile(zone / "energy_uj") for zone in packages]
        self._ranges = [int((zone / "max_energy_range_uj").read_text()) for zone in packages]
        self.names = (
            "power_watts",
            *(f"power_watts[{(zone / 'name').read_text().strip()}]" for zone in packages),
        )
        self._before: list[int] | None = None

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        now = [file.number() for file in self._files]
        before, self._before = self._before, now
        if before is None:
            return [NAN] * len(self.names)
        each = [
            (new - old if new >= old else new - old + span) / length / 1e6
            for new, old, span in zip(now, before, self._ranges, strict=True)
        ]
        return [sum(each), *each]


SOURCE = FigureSource((GroupMaker(Power.title, lambda watched: Power(watched.roots), usual=False),), place=10)
