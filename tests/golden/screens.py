"""What the console's screens show of runs, as text, when nothing is under way any more."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.tui.pictures import SIZES, screen_text, settled
from tests.tui.screens.test_screens import StillConsole, previewed, replayed
from tests.waiting import until
from vmlab.tui.console_requests import Pick
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.results_screen import ResultsScreen
from vmlab.tui.widgets.tables.event_log import EventLog
from vmlab.tui.widgets.tables.result_board import _READING, ResultBoard

_PATIENCE_SECONDS = 20.0
_SCROLL_BAR = re.compile(r" +[▁▂▃▄▅▆▇]$", re.MULTILINE)
"""Left out: how long Textual draws it depends on whether it was laid out before or after its widget was scrolled."""


async def _runs(app: StillConsole, _stores: Sequence[Path]) -> None:
    await app.switch_mode("runs")
    await previewed(app)


async def _results(app: StillConsole, stores: Sequence[Path]) -> None:
    await app.push_screen(ResultsScreen(stores[0]))
    board = app.screen.query_one(ResultBoard)
    await until(lambda: board.text() not in ("", _READING), "the results")


async def _compare(app: StillConsole, stores: Sequence[Path]) -> None:
    await app.switch_mode("compare")
    assert isinstance(app.screen, CompareScreen)
    app.screen.compare([Pick(store) for store in stores])


async def _replay(app: StillConsole, stores: Sequence[Path]) -> None:
    screen = await replayed(app, stores[0])
    assert screen.playback is not None
    position = 0.6 * screen.playback.recording.length
    screen.seek_to(position)
    words = (f" {int(position) // 60}:{int(position) % 60:02} ", "RECORDING paused")
    await until(lambda: all(word in screen_text(app) for word in words), "the moment")
    await settled(app)


OF_ONE: dict[str, Callable[[StillConsole, Sequence[Path]], Awaitable[None]]] = {
    "runs": _runs,
    "results": _results,
    "replay": _replay,
}
"""Screens with one run."""
OF_SEVERAL = {"compare": _compare}
"""Screens with one run or several."""


async def pictures(screen: str, stores: Sequence[Path], kept: str | None) -> str:
    """The screen in each size, one below the other. What is not in `kept` is given a while to become so."""
    shown = []
    for width, height in SIZES:
        app = StillConsole()
        async with app.run_test(size=(width, height)):
            await (OF_ONE | OF_SEVERAL)[screen](app, stores)
            end = time.monotonic() + _PATIENCE_SECONDS
            picture = ""
            while not picture or (kept is not None and picture not in kept and time.monotonic() < end):
                # It stays at its beginning where the moment was left before it was laid out.
                for log in app.screen.query(EventLog):
                    log.scroll_end(animate=False, immediate=True, force=True)
                picture = f"--- {width}x{height}\n{_SCROLL_BAR.sub('', await settled(app))}"
        shown.append(picture)
    return "".join(shown)
