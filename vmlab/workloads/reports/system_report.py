"""What the program ``system`` printed: the seconds of each test, and whether it computed what is published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmlab.model.errors import WorkloadError
from vmlab.workloads.programs import figures_by_name, number_of
from vmlab.workloads.verification import demand_equal

SLICES = 10
BLOCKS = 2000
"""Blocks of a file that is copied: as many as UnixBench's files of 500, 2000 and 8000 KiB have."""
_LEAST_SECONDS = 0.001
"""Of a whole test; reading the clock takes less than a microsecond."""
_OWN_BYTES = 4096
"""What the program reads and writes beside the copied files: its counters, and a line for each slice."""

DHRYSTONE_NAMES = (
    *("Int_Glob", "Bool_Glob", "Ch_1_Glob", "Ch_2_Glob", "Arr_1_Glob[8]", "Arr_2_Glob[8][7]"),
    *("Ptr_Glob->Discr", "Ptr_Glob->Enum_Comp", "Ptr_Glob->Int_Comp", "Ptr_Glob->Str_Comp"),
    *("Next_Ptr_Glob->Discr", "Next_Ptr_Glob->Enum_Comp", "Next_Ptr_Glob->Int_Comp", "Next_Ptr_Glob->Str_Comp"),
    *("Int_1_Loc", "Int_2_Loc", "Int_3_Loc", "Enum_Loc", "Str_1_Loc", "Str_2_Loc"),
)
_SOME, _FIRST, _SECOND = (f"DHRYSTONE PROGRAM, {word} STRING" for word in ("SOME", "1'ST", "2'ND"))

WHETSTONE_VALUES = (
    "0 0 0 1.0000e+00 -1.0000e+00 -1.0000e+00 -1.0000e+00",
    "120 140 120 -6.8342e-02 -4.6264e-01 -7.2972e-01 -1.1240e+00",
    "140 120 120 -5.5336e-02 -4.4744e-01 -7.1097e-01 -1.1031e+00",
    "3450 1 1 1.0000e+00 -1.0000e+00 -1.0000e+00 -1.0000e+00",
    "2100 1 2 6.0000e+00 6.0000e+00 -7.1097e-01 -1.1031e+00",
    "320 1 2 4.9041e-01 4.9041e-01 4.9039e-01 4.9039e-01",
    "8990 1 2 1.0000e+00 1.0000e+00 9.9994e-01 9.9994e-01",
    "6160 1 2 3.0000e+00 2.0000e+00 3.0000e+00 -1.1031e+00",
    "0 2 3 1.0000e+00 -1.0000e+00 -1.0000e+00 -1.0000e+00",
    "930 2 3 8.3467e-01 8.3467e-01 8.3467e-01 8.3467e-01",
)
"""N, J, K, X1 to X4 as Whetstone prints them with LOOP = 10, at the end of its modules 1 to 4 and 6 to 11."""


def dhrystone_values(runs: int) -> tuple[int | str, ...]:
    """The final values that version 2.1 of Dhrystone says its variables should have, in the order of the names."""
    whole = (5, 1, "A", "B", 7, runs + 10)
    return (*whole, 0, 2, 17, _SOME, 0, 1, 18, _SOME, 5, 13, 7, 1, _FIRST, _SECOND)


def parse_system(text: str) -> dict[str, dict[str, Any]]:
    """The line of figures of each test, by its name. Raises WorkloadError where one stands twice."""
    return figures_by_name(text, "system", "test", "times")


def seconds_of(said: Mapping[str, Any], amount: int) -> float:
    """The seconds of a test, which did as much as was asked of it, in its slices. Raises WorkloadError."""
    name = said["test"]
    demand_equal(f"amount of system's {name}", number(said, "amount"), amount)
    times = said["times"]
    if not isinstance(times, list) or not all(isinstance(one, float) and one >= 0 for one in times):
        raise WorkloadError(f"system printed no times of {name}")
    demand_equal(f"slices of system's {name}", len(times), min(amount, SLICES))
    if sum(times) < _LEAST_SECONDS:
        raise WorkloadError(f"system's {name} took {sum(times):.6f} s, too quick to be measured; ask for more of it")
    return float(sum(times))


def demand_dhrystone(said: Mapping[str, Any], runs: int) -> None:
    """Raises WorkloadError, naming the first variable whose final value is not the published one."""
    found, right = said.get("values"), dhrystone_values(runs)
    if not isinstance(found, list) or len(found) != len(right):
        raise WorkloadError("system printed no values of dhrystone")
    for name, one, other in zip(DHRYSTONE_NAMES, found, right, strict=True):
        if one != other:
            raise WorkloadError(f"dhrystone computed {name} = {one!r}, and should {other!r}")


def demand_whetstone(said: Mapping[str, Any], cycles: int) -> None:
    """Raises WorkloadError, naming the first module whose values are not the published ones, or were not always so."""
    found = said.get("values")
    if not isinstance(found, list) or len(found) != len(WHETSTONE_VALUES):
        raise WorkloadError("system printed no values of whetstone")
    for row, right in zip(found, WHETSTONE_VALUES, strict=True):
        if not isinstance(row, list) or not all(isinstance(one, int | float) for one in row):
            raise WorkloadError("system printed no values of whetstone")
        written = " ".join([*(f"{one:.0f}" for one in row[:3]), *(f"{one:.4e}" for one in row[3:])])
        if written != right:
            raise WorkloadError(f"whetstone computed {written}, and should {right}")
    demand_equal("cycles of whetstone with the values of its first", number(said, "equal"), cycles)


def demand_copy(said: Mapping[str, Any], block: int, passes: int) -> None:
    """Raises WorkloadError where the kernel counted other reads and writes than copying the file takes."""
    name = said["test"]
    demand_equal(f"blocks of system's {name}", number(said, "blocks"), BLOCKS)
    demand_equal(f"writes of system's {name}, as the kernel counted them", number(said, "writes"), passes * BLOCKS)
    moved = passes * BLOCKS * block
    for word in ("read", "written"):
        counted = number(said, word)
        if not moved <= counted <= moved + _OWN_BYTES:
            raise WorkloadError(f"the kernel counted {counted:.0f} B {word} by system's {name}, and should {moved} B")


def number(said: Mapping[str, Any], name: str) -> float:
    """A number of a test's figures. Raises WorkloadError where there is none."""
    return number_of(said, name, "system", said["test"])
