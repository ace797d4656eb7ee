"""vmlab: a test lab for Linux hypervisors, in a terminal; for programs, what docs/reference/api.md lists."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The names of `vmlab.api`, which is loaded when the first of them is used: the program itself needs none."""
    from importlib import import_module

    # Python itself asks for names such as `__main__`.
    api = None if name.startswith("_") else import_module("vmlab.api")
    if api is None or name not in api.__all__:
        raise AttributeError(f"module 'vmlab' has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    from importlib import import_module

    return sorted({*globals(), *import_module("vmlab.api").__all__})
