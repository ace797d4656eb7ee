"""The console: it watches and commands, and owns no run."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import work
from textual.app import App, ScreenStackError, SystemCommand
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.driver import Driver
from textual.events import Event, InputEvent
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.scrollbar import ScrollBarRender
from textual.signal import Signal
from textual.timer import Timer
from textual.worker import WorkerFailed

from vmlab.model.errors import ExitCode, UsageError, VmlabError
from vmlab.model.places import state_folder
from vmlab.model.visible import visible, visible_line
from vmlab.system.processes import has_job_control
from vmlab.system.terminal import put_back, say
from vmlab.telemetry.recorder_clock import answer_first
from vmlab.tui.console_options import ConsoleOptions
from vmlab.tui.console_requests import Proposal, Said
from vmlab.tui.driver import ParsedOnce, WaitingDriver
from vmlab.tui.screens.base_screen import CHANGING, WATCHES, ConsoleScreen, SureTimers
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.widgets.glyphs import glyphs_for

if TYPE_CHECKING:
    from vmlab.report.demo.chapters import Demo
    from vmlab.tui.console_requests import Pick

_MASK_SECONDS = 0.005
_TONES: dict[SeverityLevel, str] = {"information": "accent", "warning": "warning", "error": "bad"}
_SAID_SECONDS: dict[SeverityLevel, float] = {"information": 5.0, "warning": 6.0, "error": 10.0}
COPIED = "copied.txt"
"""The file that also gets a copied table, for terminals without OSC 52."""
_SMOOTH = ScrollBarRender.VERTICAL_BARS
"""The characters at the ends of a scroll bar, where not only ASCII may be written."""
SCREENS = {
    "scenarios": "scenarios_screen.ScenariosScreen",
    "runs": "runs_screen.RunsScreen",
    "compare": "compare_screen.CompareScreen",
}
"""The screens beside Live, by mode; their modules of `tui.screens` are loaded when they are first opened."""


def _loaded(place: str, *about: Any) -> Screen[Any]:
    """The screen of this module and name, whose module is loaded now."""
    module, _, name = place.partition(".")
    return cast("Screen[Any]", getattr(import_module(f"vmlab.tui.screens.{module}"), name)(*about))


class Console(SureTimers, App[int], inherit_bindings=False):
    """One mode for each screen; Live is loaded at once, the others when they are first opened."""

    TITLE = "vmlab"
    # The first screen's styles are among them: a screen that brings its own has every style sheet parsed once more.
    CSS_PATH: ClassVar[list[str | PurePath]] = ["styles/app.tcss", "styles/watch.tcss"]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (150, "-wide")]  # noqa: RUF012 - Textual's own form
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "switch_mode('live')", "Live", tooltip="Watch the current run, or the host itself"),
        Binding("2", "switch_mode('scenarios')", "Scenarios", tooltip="Choose a scenario, change it, start it"),
        Binding("3", "switch_mode('runs')", "Runs", tooltip="List all runs, to watch, replay or compare"),
        Binding("4", "switch_mode('compare')", "Compare", tooltip="Show marked runs or cells side by side"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="Show all keys of this screen"),
        Binding("y", "copy_table", "Copy", show=False, tooltip="Copy the whole table to the clipboard and into a file"),
        Binding("colon", "command_palette", "Commands", key_display=":", show=False, tooltip="Find a command by name"),
        Binding("ctrl+s", "picture", "Picture", show=False, tooltip="Write this screen into an SVG file"),
        Binding("q", "quit", "Quit", tooltip="Leave the console; runs go on"),
        Binding("ctrl+q", "quit", "Quit", show=False, system=True, priority=True),
        Binding(
            "ctrl+z",
            "suspend_process",
            "Suspend",
            show=False,
            priority=True,
            tooltip="Go back to the shell; `fg` continues the console",
        ),
        Binding("ctrl+c", "help_quit", show=False, system=True),
    ]
    MODES = {name: partial(_loaded, place) for name, place in SCREENS.items()}  # noqa: RUF012 - Textual's own form
    DEFAULT_MODE = "live"

    def __init__(
        self, options: ConsoleOptions | None = None, recording: Path | None = None, demo: Demo | None = None
    ) -> None:
        super().__init__()
        self.stylesheet = ParsedOnce(self.get_css_variables())
        self.options = options or ConsoleOptions()
        self.recording = recording
        """The store of a run to play back at once."""
        self.demo = demo
        self.said: Said | None = None
        self.said_changed: Signal[Said | None] = Signal(self, "said")
        self._silence: Timer | None = None
        self.has_crashed = False

    def get_css_variables(self) -> dict[str, str]:
        """The theme's; where there are 16 colours, none of them is left for a ground between dark and light."""
        variables = super().get_css_variables()
        if self.console.color_system == "standard":
            variables |= dict.fromkeys(("surface", "panel", "boost"), variables["background"])
        return variables

    def get_driver_class(self) -> type[Driver]:
        """Textual's choice, except that its driver for Linux is one that sleeps until keys come."""
        chosen = super().get_driver_class()
        return WaitingDriver if issubclass(WaitingDriver, chosen) else chosen

    def get_default_screen(self) -> Screen[None]:
        """The first screen, Live. Were it among MODES, Textual would parse all style sheets again for it."""
        return LiveScreen()

    def on_mount(self) -> None:
        """Make Live a mode, to come back to, and set the theme that was asked for."""
        self.add_mode(self.DEFAULT_MODE, self.get_default_screen)
        if self.options.theme is not None:
            self.theme = self.options.theme
        ScrollBarRender.VERTICAL_BARS = [" "] if glyphs_for().plain else _SMOOTH
        if self.recording is not None:
            self.call_after_refresh(self._replay, self.recording)
        elif self.demo is not None:
            self.call_after_refresh(self.play_demo, self.demo)
        self.call_after_refresh(_collect_garbage)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Say `message` in the bottom lines, where it covers no chart; for `timeout` seconds.

        What has a title is news and stays, as errors do; all else is of this screen, such as why a key does nothing,
        and goes with it. There is no markup, and control characters are made visible.
        """
        words = ": ".join(filter(None, (visible_line(title), visible(message))))
        self.said = Said(words, _TONES[severity], of_screen=severity != "error" and not title)
        self.said_changed.publish(self.said)
        if self._silence is not None:
            self._silence.stop()
        self._silence = self.set_timer(timeout or _SAID_SECONDS[severity], self.say_nothing)

    async def on_event(self, event: Event) -> None:
        """Textual's own, except that keys which come behind the one that leaves find no screen any more."""
        if not (self.is_leaving and isinstance(event, InputEvent)):
            await super().on_event(event)

    @property
    def is_leaving(self) -> bool:
        """Whether the user has left: Textual mounts nothing from then on, and removes what is there."""
        return self._exit

    def _handle_exception(self, error: Exception) -> None:
        """Textual's own, which a key that leaves the console meanwhile would make exit code 0.

        A screen on its way in when the user leaves gets none of its panes, and what its handlers then miss is no error.
        """
        missed = error.error if isinstance(error, WorkerFailed) else error
        if not (self.is_leaving and isinstance(missed, NoMatches | ScreenStackError)):
            self.has_crashed = True
            super()._handle_exception(error)

    def say_nothing(self) -> None:
        """Take away what is said."""
        self.said = None
        self.said_changed.publish(None)

    def delay_update(self, delay: float = 0.05) -> None:
        """Textual delays updates for 50 ms at a change of mode; these screens are complete at once."""
        super().delay_update(min(delay, _MASK_SECONDS))

    async def action_switch_mode(self, mode: str) -> None:
        """Go to a screen; on the screen itself, leave what was opened over it, such as a recording."""
        if mode != self.current_mode:
            await self.switch_mode(mode)
        elif len(self.screen_stack) == 1:
            self.notify(f"this is the screen {mode.capitalize()} already")
        else:
            while len(self.screen_stack) > 1:
                await self.pop_screen()

    def action_help_quit(self) -> None:
        """What Ctrl+C does in other programs."""
        self.notify("press q to leave the console; runs go on")

    def action_suspend_process(self) -> None:
        """Textual's own, where there is a shell that `fg` can be said to."""
        if self._driver is not None and self._driver.can_suspend and has_job_control():
            super().action_suspend_process()
        else:
            self.notify("no shell is behind the console; q leaves it, and runs go on")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the command palette offers: what can be done on this screen now, with its keys, and the themes."""
        from vmlab.tui.screens.modals import listed_keys

        for one in listed_keys(screen):
            # What has no explanation moves a cursor.
            if one.tooltip and not one.why and one.action != "command_palette":
                name = f"{one.description.rstrip('…')}  ({one.keys})"
                yield SystemCommand(name, one.tooltip, partial(self.run_action, one.action, screen))
        yield SystemCommand("Theme", "Choose other colours", self.action_change_theme)

    async def _dispatch_action(self, namespace: DOMNode, action_name: str, params: Any) -> bool:
        """Textual's own, except that a screen says why an action of its own is not possible now."""
        if isinstance(namespace, ConsoleScreen) and namespace.is_refused(action_name):
            return True
        return await super()._dispatch_action(namespace, action_name, params)

    def open_run(self, folder: Path, *, live: bool) -> None:
        """Watch the run in `folder` when it lives, play it back when it is over."""
        if live:
            self._in_mode("live", lambda live: live.follow(folder) if isinstance(live, LiveScreen) else None)
        else:
            self._replay(folder / "run.sqlite")

    def _replay(self, store: Path) -> None:
        self.push_screen(_loaded("replay_screen.ReplayScreen", store))

    def open_results(self, store: Path) -> None:
        """Show the tables of the run at `store`."""
        self.push_screen(_loaded("results_screen.ResultsScreen", store))

    def compare(self, picks: Sequence[Pick]) -> None:
        """Set runs or cells side by side."""
        self._in_mode("compare", lambda screen: screen.compare(picks))

    def _in_mode(self, mode: str, do: Callable[[Any], object]) -> None:
        """Go to a screen, and have `do` done with it."""

        async def gone() -> None:
            await self.switch_mode(mode)
            do(self.screen)

        self.call_later(gone)

    def play_demo(self, demo: Demo) -> None:
        """Play a recording with its story."""
        self.push_screen(_loaded("demo_screen.DemoScreen", demo))

    def propose(self, proposal: Proposal) -> None:
        """Plan a run on the Scenarios screen, which starts nothing."""
        self._in_mode("scenarios", lambda screen: screen.propose(proposal))

    def forbids(self, action: str) -> str:
        """Why this console never does `action`, as a sentence; empty where it may."""
        return "" if self.options.control or action not in CHANGING else WATCHES

    def require_control(self) -> None:
        """Raise UsageError where this console only watches. Each command to a run asks here first."""
        if not self.options.control:
            raise UsageError(WATCHES)

    def ask_to_stop(self, folder: Path) -> None:
        """Ask the user, and then the run, to stop."""

        def answered(stop: bool | None) -> None:
            if stop:
                self._stop(folder)

        told = "Its guests are cleared away. What was measured is kept, marked aborted."
        question = f"Stop run {folder.name}?\n\n{told}"
        self.push_screen(_loaded("modals.QuestionModal", question, "Stop the run", "Let it run"), answered)

    @work(thread=True, group="commands")
    def _stop(self, folder: Path) -> None:
        from vmlab.tui.commands import RunCommands

        try:
            self.require_control()
            RunCommands(folder).stop()
        except VmlabError as error:
            self.call_from_thread(self.notify, str(error), title="Not stopped", severity="error")
            return
        self.call_from_thread(self.notify, "the guests are cleared away first", title="Stopping")

    def action_command_palette(self) -> None:
        """Everything by name."""
        from vmlab.tui.screens.modals import Palette

        # It may also be open below another screen, or in another mode.
        if not any(isinstance(one, Palette) for stack in self._screen_stacks.values() for one in stack):
            self.push_screen(Palette(id="--command-palette"))

    def action_help(self) -> None:
        """All keys of this screen."""
        self.push_screen(_loaded("modals.HelpModal", self.screen))

    def action_copy_table(self) -> None:
        """The whole table of this screen: to the terminal's clipboard (OSC 52), and into a file."""
        if not isinstance(self.screen, ConsoleScreen):
            self.notify("this screen has no table", severity="warning")
            return
        text = self.screen.table_text()
        self.copy_to_clipboard(text)
        message = f"{len(text.splitlines())} lines to the clipboard"
        if not self.options.control:
            self.notify(message, title="Copied")
            return
        try:
            path = state_folder() / COPIED
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            message += f", and to {path}"
        except OSError as error:
            message += f"; no file: {error.strerror}"
        self.notify(message, title="Copied")

    def action_picture(self) -> None:
        """This screen as an SVG file."""
        if why := self.forbids("picture"):
            self.notify(why, severity="warning")
            return
        folder = state_folder() / "pictures"
        name = f"vmlab-{time.strftime('%Y%m%d-%H%M%S')}.svg"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.say_nothing()
            path = self.save_screenshot(name, str(folder))
        except OSError as error:
            self.notify(f"no picture: {error.strerror}", severity="error")
            return
        self.notify(path, title="Picture")


def _collect_garbage() -> None:
    """From the first picture on; what start-up made stays for good. Until then `vmlab.__main__` has it off."""
    gc.freeze()
    gc.enable()


def main(options: ConsoleOptions, driver: type[Driver] | None = None) -> int:
    """Run the console to its end, on the terminal or by another `driver`; the exit code.

    That is never 0 after an error that nobody expected. One clear line where there is no such run to play back.
    """
    try:
        console = open_console(options)
    except VmlabError as error:
        say(f"vmlab: {visible_line(str(error))}")
        return int(error.exit_code)
    if driver is None:
        answer_first()
    else:
        console.driver_class = driver
    try:
        console.run(mouse=options.mouse)
    finally:
        # Textual's own end did it, unless that is what failed.
        put_back()
    return int(ExitCode.FAILED) if console.return_code is None or console.has_crashed else console.return_code


def open_console(options: ConsoleOptions) -> Console:
    """The console, which is yet to run. Raises UsageError where there is no such run, recording or theme."""
    recording = demo = None
    if options.replay is not None:
        from vmlab.store.runs import resolve_run

        recording = resolve_run(options.replay)
    elif options.demo:
        from vmlab.report.demo.chapters import load_demo

        demo = load_demo()
    console = Console(options, recording, demo)
    known = console.available_themes
    if options.theme is not None and options.theme not in known:
        raise UsageError(f"there is no theme {options.theme!r}; there are: {', '.join(sorted(known))}")
    return console
