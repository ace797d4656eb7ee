"""The terminal of the console's tests."""

from tests.tui.conftest import no_run_begins as no_run_begins
from tests.tui.conftest import parsed_once as parsed_once
from tests.tui.conftest import terminal as terminal
