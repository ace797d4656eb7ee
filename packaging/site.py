"""A hook of mkdocs (`hooks` in mkdocs.yml): links to files outside of `docs/` become plain text.

They lead into the repository, which the site does not have.
"""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+(?:vmlab|scenarios|screenshots|bench|tests|CONTRIBUTING|CHANGELOG|packaging)[^)]*\)"
)


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """What mkdocs calls for each page."""
    return _OUTSIDE.sub(lambda match: match[1], markdown)
