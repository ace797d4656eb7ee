"""Grounds that other widgets lie on: Textual asks for their lines with each picture, and these keep them."""

from __future__ import annotations

from typing import Any, Self

from textual.containers import Container
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class KeptLines(Widget):
    """Renders its lines again only after it was refreshed, or for another size."""

    _lines: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of the last time, where nothing has changed."""
        if self._lines is None or self._lines[0] != crop:
            self._lines = crop, super().render_lines(crop)
        return self._lines[1]

    def refresh(self, *regions: Region, **how: Any) -> Self:
        """Textual's own; what was kept is no longer right."""
        self._lines = None
        return super().refresh(*regions, **how)

    def notify_style_update(self) -> None:
        """A new theme has new colours."""
        self._lines = None
        super().notify_style_update()


class KeptContainer(KeptLines, Container):
    """A container whose ground is kept."""
