"""The one error of this package."""


class DevError(Exception):
    """What went wrong and what to do, in one sentence for the person at the terminal."""
