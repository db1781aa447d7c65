"""Versions of the messages on the bus, and who reads which (ADR 0105); pure.

`major.minor`. A minor version adds: optional fields, kinds of intents and asks, reasons. Readers ignore fields that
they do not know, so versions of one major live beside each other. A major version changes what is there: its messages
are left alone, and waited for, by readers of an earlier one.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

T = TypeVar("T")

H_SCHEMA = "Schema"
"""Header that names the version of a message."""


class Version(NamedTuple):
    """A version, in order."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OURS = Version(1, 0)
SCHEMA = str(OURS)
"""The version that this release writes."""


class Newer(Exception):
    """A message that only a later release can read: it stays where it is until one does. `str()` says so."""


class Unreadable(Exception):
    """A message that no later release will read either: dropped, with an error in the log. `str()` says why."""


def read(headers: Mapping[str, str], data: bytes, decode: Callable[[bytes], T]) -> T:
    """What a message says. `decode` raises msgspec's errors or ValueError. Raises Newer, Unreadable."""
    version = admit(headers)
    try:
        return decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        if version > OURS:
            raise Newer(f"it is of version {version}, which this release ({OURS}) cannot read: {error}") from error
        raise Unreadable(str(error)) from error


def admit(headers: Mapping[str, str]) -> Version:
    """The version of a message that may be read. Raises Newer (a later major), Unreadable (an earlier one, or none)."""
    text = headers.get(H_SCHEMA, "")
    if text == SCHEMA:
        return OURS
    found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", text)
    if found is None:
        raise Unreadable(f"it has no message version ({H_SCHEMA}: {text!r})")
    version = Version(int(found[1]), int(found[2]))
    if version.major > OURS.major:
        raise Newer(f"it is of version {version}, this release reads {OURS.major}.x: upgrade this service")
    if version.major < OURS.major:
        raise Unreadable(f"it is of version {version}, this release reads {OURS.major}.x: upgrade who wrote it")
    return version
