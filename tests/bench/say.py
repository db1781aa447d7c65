"""What the benchmark tells its user."""

import sys


def say(text: str) -> None:
    """A result, on standard output."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """What goes on meanwhile, on standard error."""
    sys.stderr.write(f"{text}\n")
