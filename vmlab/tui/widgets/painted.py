"""The base of widgets that draw their own lines: painted once when something changed, and then only handed out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from vmlab.model.visible import visible_line
from vmlab.tui.widgets.glyphs import Glyphs, glyphs_for
from vmlab.tui.widgets.tones import tones_on

Piece = tuple[str, str]
"""A text and the name of its tone."""
Line = Sequence[Piece]


class Painted(ScrollView, inherit_bindings=False):
    """Lines of pieces, each in one of the `tones`.

    A subclass says in `lines` what to draw for a width; `repaint` draws it again.
    """

    can_focus = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Line up", show=False),
        Binding("down,j", "scroll_down", "Line down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home,g", "scroll_home", "First line", show=False),
        Binding("end,G", "scroll_end", "Last line", show=False),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.glyphs: Glyphs = glyphs_for()
        self._painted: list[Strip] = []
        self._kept: dict[tuple[Piece, ...], Strip] = {}
        self._kept_width = 0
        self._tones: dict[str, Style] = {}
        self._ground: Style | None = None

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """What to draw on `width` columns, `height` of them in sight."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Draw everything anew."""
        width, height = self.size
        if not width:
            return
        if width != self._kept_width:
            self._kept, self._kept_width = {}, width
        # Most lines of a picture are those of the last one.
        before, self._kept, self._painted = self._kept, {}, []
        for line in self.lines(width, height):
            key = tuple(line)
            strip = self._kept[key] = before.get(key) or self._kept.get(key) or self._strip(key, width)
            self._painted.append(strip)
        if len(self._painted) != self.virtual_size.height or self.virtual_size.width != width:
            self.virtual_size = Size(width, len(self._painted))
        self.refresh()

    def text(self) -> str:
        """What is drawn, as plain text, for the clipboard and for tests."""
        return "\n".join(strip.text.rstrip() for strip in self._painted)

    def tone(self, name: str) -> Style:
        """The style of a tone on this widget."""
        if not self._tones:
            self._tones = tones_on(self.ground, self.app.theme_variables)
        return self._tones[name]

    @property
    def ground(self) -> Style:
        """The widget's own style; kept, as working it out costs more than drawing a line."""
        if self._ground is None:
            self._ground = self.rich_style
        return self._ground

    def _strip(self, line: Line, width: int) -> Strip:
        segments = [Segment(self._harmless(text), self.tone(tone)) for text, tone in line if text]
        return Strip(segments).adjust_cell_length(width, self.ground)

    def _harmless(self, text: str) -> str:
        """A text for one line of the screen, with control characters made visible."""
        shown = visible_line(text)
        return self.glyphs.ascii(shown) if self.glyphs.plain else shown

    def render_line(self, y: int) -> Strip:
        """Textual asks for one line at a time."""
        row = y + round(self.scroll_offset.y)
        if row < len(self._painted):
            return self._painted[row]
        return Strip.blank(self.size.width, self.ground)

    def on_resize(self) -> None:
        """A new size is a new picture."""
        self.repaint()

    def notify_style_update(self) -> None:
        """A new theme has new colours."""
        super().notify_style_update()
        self._tones, self._ground, self._kept = {}, None, {}
        if self._painted:
            self.call_after_refresh(self.repaint)
