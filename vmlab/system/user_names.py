"""What the host calls its users."""

import contextlib
import pwd


def user_name(number: int) -> str:
    """The name of the user with this id; the id where it has none."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)
