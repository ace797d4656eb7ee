# What type checkers see in place of `__getattr__`.
from vmlab.api import *  # noqa: F403

__version__: str
