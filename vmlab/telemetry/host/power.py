"""Energy of the CPU packages, where RAPL is readable (Documentation/power/powercap/powercap.rst)."""

from __future__ import annotations

from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker
from vmlab.telemetry.source import NAN, KernelFile, Roots, most_seconds

_MOST_WATTS = 2000.0
"""More than one package draws."""


class Power:
    """Watts of each package and of all together, from ``energy_uj``, which wraps at ``max_energy_range_uj``.

    A counter that would have grown by more than a package can draw began anew, as after a suspension.
    """

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
        joules = [
            (new - old if new >= old else new - old + span) / 1e6
            for new, old, span in zip(now, before, self._ranges, strict=True)
        ]
        most = _MOST_WATTS * most_seconds(length)
        each = [one / length if 0 <= one <= most else NAN for one in joules]
        return [sum(each), *each]


SOURCE = FigureSource((GroupMaker(Power.title, lambda watched: Power(watched.roots), usual=False),), place=10)
