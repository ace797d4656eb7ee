"""The command line, called in this process."""

from vmlab.cli.main import command_line


def ended(*words: str) -> int:
    """The exit code of a command in this process."""
    try:
        return command_line([*words])
    except SystemExit as end:
        return int(end.code or 0)
