"""The submitter's own lines: progress on stdout, one line per trouble on stderr. Unbuffered, so that a kill loses none.

The words of the lines that KubeRay's submitter prints too are kept (contract rayjob §4).
"""

import os

_STDOUT, _STDERR = 1, 2


def write(data: bytes) -> None:
    """All of it to stdout, as it is."""
    _write(_STDOUT, data)


def info(text: str) -> None:
    _line(_STDOUT, f"INFO -- {text}")


def success(text: str) -> None:
    _line(_STDOUT, f"SUCC -- {text}")


def failure(text: str) -> None:
    """The job's failure, which is a result and no trouble of ours."""
    _line(_STDOUT, f"FAIL -- {text}")


def warn(text: str) -> None:
    _line(_STDERR, f"WARN -- {text}")


def error(text: str) -> None:
    _line(_STDERR, f"ERROR -- {text}")


def _line(stream: int, text: str) -> None:
    _write(stream, " ".join(text.splitlines()).encode(errors="replace") + b"\n")


def _write(stream: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]
