"""The base of widgets that draw their own lines: painted once when something changed, and then only handed out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import ClassVar, Generic, Self, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from vmlab.model.visible import visible_line
from vmlab.system.text_width import width_of, wrapped
from vmlab.tui.widgets.glyphs import Glyphs, glyphs_for, tones_on

Piece = tuple[str, str]
"""A text and the name of its tone."""
Line = Sequence[Piece]
Picture = TypeVar("Picture")
_MOST_PIECES = 2000


def filtered(style: Style, widget: Widget) -> Style:
    """`style` as the user's terminal has it: in its colours, or without any, as ``NO_COLOR`` asks for."""
    segments = [Segment(" ", style)]
    for each in widget.get_line_filters():
        segments = each.apply(segments, widget.background_colors[1])
    return segments[0].style or style


class Painted(ScrollView, inherit_bindings=False):
    """Lines of pieces, each in one of the `tones`.

    A subclass says in `lines` what to draw for a width; `repaint` draws it again. Tones are filtered once, when they
    are read, so that lines are handed out as they were painted: Textual's own way over borders, paddings and filters
    costs more for each line than it takes to paint it.
    """

    can_focus = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1, 'line')", "Line up", show=False, tooltip="Go up by a line"),
        Binding("down,j", "scroll(1, 'line')", "Line down", show=False, tooltip="Go down by a line"),
        Binding("pageup", "scroll(-1, 'page')", "Page up", show=False, tooltip="Go up by a page"),
        Binding("pagedown", "scroll(1, 'page')", "Page down", show=False, tooltip="Go down by a page"),
        Binding("home,g", "scroll(-1, 'all')", "First line", show=False, tooltip="Go to the first line"),
        Binding("end,G", "scroll(1, 'all')", "Last line", show=False, tooltip="Go to the last line"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.glyphs: Glyphs = glyphs_for()
        self._painted: list[Strip] = []
        self._kept: dict[tuple[Piece, ...], Strip] = {}
        self._kept_width = 0
        self._pieces: dict[Piece, tuple[Segment, int]] = {}
        self._tones: dict[str, Style] = {}
        self._ground: Style | None = None
        self._above: int | None = None
        """Rows of the edge over the lines, where nothing else lies around them; -1 where something does."""
        self._edge: list[Strip] = []
        self._edge_key: tuple[object, ...] = ()
        self._painted_for: Size | None = None

    def action_scroll(self, step: int, by: str) -> None:
        """Up or down by a line or a page, or to an end; where nothing lies further on, that is said."""
        ways: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "line": (self.scroll_up, self.scroll_down),
            "page": (self.scroll_page_up, self.scroll_page_down),
            # Down at once: what glides there would arrive where the end was.
            "all": (self.scroll_home, partial(self.scroll_end, animate=False, immediate=True)),
        }
        most = self.max_scroll_y
        if most <= 0:
            self.notify("all of it is in sight")
        elif step < 0 and self.scroll_target_y <= 0:
            self.notify("this is the beginning")
        elif step > 0 and self.scroll_target_y >= most:
            self.notify("this is the end")
        else:
            ways[by][step > 0]()

    def titled(self, title: str) -> Self:
        """The widget with `title` in an edge above it, where the screen is high enough for that."""
        self.border_title = title
        # Nothing is styled before it is on a screen.
        return self.add_class("titled", update=False)

    def retitle(self, title: str) -> None:
        """Another title in the edge. Textual draws the whole widget anew for a title, even for the same one."""
        if title != self.border_title:
            self.border_title = title

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
        before, self._kept, painted = self._kept, {}, list[Strip]()
        for line in self.lines(width, height):
            key = tuple(line)
            strip = self._kept[key] = before.get(key) or self._kept.get(key) or self._strip(key, width)
            painted.append(strip)
        if len(painted) != self.virtual_size.height or self.virtual_size.width != width:
            self.virtual_size = Size(width, len(painted))
        self.put(painted)

    def put(self, painted: list[Strip]) -> None:
        """Have `painted` on the screen; only lines that are others than before are sent to the terminal."""
        before, self._painted = self._painted, painted
        self._painted_for = self.size
        if len(before) != len(painted):
            self.refresh()
            return
        changed = [row for row, strip in enumerate(painted) if strip is not before[row] and strip != before[row]]
        if changed:
            top, width = round(self.scroll_offset.y), self.size.width
            self.refresh(*(Region(0, first - top, width, count) for first, count in _runs(changed)))

    def text(self) -> str:
        """What is drawn, as plain text, for the clipboard and for tests."""
        return "\n".join(strip.text.rstrip() for strip in self._painted)

    def tone(self, name: str) -> Style:
        """The style of a tone on this widget."""
        if not self._tones:
            sixteen = self.app.console.color_system == "standard"
            known = tones_on(self.rich_style, self.app.theme_variables, sixteen=sixteen)
            self._tones = {name: filtered(style, self) for name, style in known.items()}
        return self._tones[name]

    @property
    def has_signs(self) -> bool:
        """Whether signs tell apart what colours do elsewhere: there are none, or nothing finer to draw with."""
        return self.glyphs.plain or self.app.no_color

    @property
    def ground(self) -> Style:
        """The widget's own style; kept, as working it out costs more than drawing a line."""
        if self._ground is None:
            self._ground = filtered(self.rich_style, self)
        return self._ground

    def _strip(self, line: Line, width: int) -> Strip:
        return Strip(self._segments(line, width), width)

    def _segments(self, line: Line, width: int) -> list[Segment]:
        """A line on exactly `width` columns. A strip of Textual's takes longer to make than all of its segments."""
        pieces = [self._pieces.get(piece) or self._piece(piece) for piece in line if piece[0]]
        segments, spare = [segment for segment, _ in pieces], width - sum([cells for _, cells in pieces])
        if spare > 0:
            segments.append(Segment(" " * spare, self.ground))
        return segments if spare >= 0 else Segment.adjust_line_length(segments, width, self.ground)

    def _piece(self, piece: Piece) -> tuple[Segment, int]:
        """A piece as it is drawn, and its columns; kept, as most of a line's pieces are those of other lines."""
        text, tone = piece
        segment = Segment(self._harmless(text), self.tone(tone))
        if len(self._pieces) >= _MOST_PIECES:
            self._pieces = {}
        found = self._pieces[piece] = segment, segment.cell_length
        return found

    def _harmless(self, text: str) -> str:
        """A text for one line of the screen, with control characters made visible."""
        shown = visible_line(text)
        return self.glyphs.ascii(shown) if self.glyphs.plain else shown

    def render_lines(self, crop: Region) -> list[Strip]:
        """The painted lines themselves under their edge, where nothing else lies around or over them."""
        # The first picture does not wait for `on_resize`, which comes after it.
        if self._painted_for != self.size:
            self.repaint()
        if self._above is None:
            styles, (top, *others) = self.styles, self.styles.gutter
            self._above = -1 if any(others) or styles.outline or styles.tint.a or self.opacity < 1 else top
        above = self._above
        if above < 0:
            return super().render_lines(crop)
        edge = self._edge_above(crop.right, above)[crop.y :] if crop.y < above else []
        first = max(0, crop.y - above) + round(self.scroll_offset.y)
        lines = self._painted[first : first + crop.height - len(edge)]
        lines += [Strip.blank(crop.right, self.ground)] * (crop.height - len(edge) - len(lines))
        return [
            line
            if crop.x == 0 and line.cell_length == crop.right
            else line.adjust_cell_length(crop.right, self.ground).crop(crop.x, crop.right)
            for line in (*edge, *lines)
        ]

    def _edge_above(self, width: int, rows: int) -> list[Strip]:
        """The edge over the lines; kept, as working out its style costs more than drawing the lines that changed."""
        key = (self._border_title, self._border_subtitle, width, rows)
        if key != self._edge_key:
            self._edge_key, self._edge = key, super().render_lines(Region(0, 0, width, rows))
        return self._edge

    def render_line(self, y: int) -> Strip:
        """One line; Textual asks for it where something lies around the lines."""
        row = y + round(self.scroll_offset.y)
        if row < len(self._painted):
            return self._painted[row]
        return Strip.blank(self.size.width, self.ground)

    def on_resize(self) -> None:
        """A new size is a new picture."""
        if self._painted_for != self.size:
            self.repaint()

    def notify_style_update(self) -> None:
        """A new theme has new colours."""
        super().notify_style_update()
        self._tones, self._ground, self._kept, self._pieces, self._above = {}, None, {}, {}, None
        self._edge_key = ()
        if self._painted:
            self.call_after_refresh(self.repaint)


class Shown(Painted, Generic[Picture]):
    """Draws one value, which is all that it is given; a subclass has the one that is `shown` before there is any."""

    shown: Picture

    def show(self, shown: Picture) -> None:
        """Draw `shown`; nothing happens when that is what is there already."""
        if shown != self.shown:
            self.shown = shown
            self.repaint()


class TextBoard(Shown[Sequence[Line]]):
    """Lines that a screen makes itself."""

    shown = ()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """What was given."""
        return self.shown


def line_width(line: Line) -> int:
    """The columns that its pieces take."""
    return sum([width_of(text) for text, _ in line])


def hint_lines(hint: Iterable[str], width: int) -> Iterable[Line]:
    """The sentences that stand where there is nothing to show, on as many lines as they take."""
    for text in hint:
        yield from ([(line, "quiet")] for line in wrapped(text, max(20, width)) or [""])


def _runs(rows: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Rows in order as runs of neighbours: the first of each, and how many there are."""
    # Neighbours are equally far from their places.
    for _, run in groupby(enumerate(rows), key=lambda numbered: numbered[1] - numbered[0]):
        neighbours = [row for _, row in run]
        yield neighbours[0], len(neighbours)
