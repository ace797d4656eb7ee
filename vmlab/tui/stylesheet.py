"""The console's style sheet, which parses each of its sources once."""

from __future__ import annotations

from textual.css.stylesheet import Stylesheet


class ParsedOnce(Stylesheet):
    """Textual parses all sources anew when a screen is opened for the first time, and a second time where it brings its
    own; most of the time to such a screen went there.
    """

    def __init__(self, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._known = variables

    def set_variables(self, variables: dict[str, str]) -> None:
        """Forget what is parsed only where the variables are others, as after a change of the theme."""
        if variables != self._known:
            self._known = variables
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse what was not parsed with these variables yet."""
        self.parse()
