"""Other commands during a live run: a second lab, and whatever removes."""

from __future__ import annotations

from tests.faults.row import Act, Rows
from tests.faults.world import STRUCK, World

ROWS = Rows()


@ROWS.add(
    "second-lab",
    "a second run is started while the first one measures",
    "exit code 3 with the first one's name; the first passes",
)
def second_lab(world: World) -> str:
    running = world.run()
    world.wait_for("WorkloadStarted", cell=STRUCK)
    world.strike()
    second = world.command("run", str(world.folder / "struck.yaml"), "--size", "full")
    words = world.end_of(second, 60)
    world.end_of(running, 120)
    world.is_over()
    assert (second.returncode, running.returncode) == (3, 0), (second.returncode, running.returncode, words)
    return words.strip().splitlines()[0]


@ROWS.add(
    "two-labs", "two runs are started at the same moment, both with `--wait`", "one waits for the other, both pass", 150
)
def two_labs(world: World) -> str:
    file = world.write_scenario()
    world.strike()
    both = [world.command("run", str(file), "--size", "full", "--wait") for _ in range(2)]
    for one in both:
        world.end_of(one, 300)
    world.is_over()
    assert [one.returncode for one in both] == [0, 0], [one.returncode for one in both]
    runs = world.runs()
    assert [run["outcome"] for run in runs] == ["passed", "passed"], runs
    return "both passed, one after the other"


def _beside(command: tuple[str, ...], code: int) -> Act:
    """A command that removes, while guests run from what it would remove."""

    def act(world: World) -> str:
        running = world.run()
        world.wait_for("WorkloadStarted", cell=STRUCK)
        names = [path.name for path in (world.cache / f"{command[0]}s").glob("*") if path.is_dir()]
        named = [name for name in names if "." not in name][:1] if command[0] != "clean" else []
        if command[0] == "snapshot":
            named = [name for name in names if name.startswith("plain-")]
        world.strike()
        done = world.home.vmlab(*command, *named, timeout=60)
        words = world.end_of(running, 120)
        world.is_over()
        assert done.returncode == code, (done.returncode, done.stderr)
        assert running.returncode == 0, (running.returncode, words)
        assert world.ended()["outcome"] == "passed"
        return f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()}; the run passed"

    return act


ROWS.add("clean-live", "`vmlab clean` during a live run", "it leaves the run alone, which passes")(
    _beside(("clean",), 0)
)
ROWS.add("image-rm-live", "`vmlab image rm` of the image that a live run uses", "refused; the run passes")(
    _beside(("image", "rm"), 3)
)
ROWS.add("snapshot-rm-live", "`vmlab snapshot rm` of the snapshot that a live run uses", "refused; the run passes")(
    _beside(("snapshot", "rm"), 3)
)
