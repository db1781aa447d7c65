"""What of the log has been printed, so that after a lost connection only what is new gets printed. Pure.

Ray's tail endpoint knows no offset: each connection replays the log from its first byte, cut into pieces at other
places. Position is therefore counted in bytes. Two things make that less simple than it sounds (ADR 0026):

- Line ends do not count. Ray reads the log in text mode while it is being written, and a `\\r\\n` of which only the
  `\\r` had been written becomes `\\n\\n` in one connection and `\\n` in the next. All other bytes are the same each
  time.
- The replay may be another log (a head that came back under the same job id). Digests of what was printed, one per
  64 KiB, tell; then printing goes on from the first block that differs.
"""

import hashlib
from dataclasses import dataclass

_BLOCK = 64 << 10


@dataclass(frozen=True)
class New:
    """data: bytes to print; replaced: the log is not the one that was printed so far."""

    data: bytes = b""
    replaced: bool = False


class _Cursor:
    """A position in a log, and the digest of what precedes it. Line ends count only in `newlines`."""

    def __init__(self) -> None:
        self.size = 0
        self.newlines = 0  # line ends right before the position
        self.blocks: list[bytes] = []
        self._open = hashlib.sha1(usedforsecurity=False)

    def advance(self, data: bytes) -> None:
        text = data.replace(b"\n", b"")
        self.newlines = len(data) - len(data.rstrip(b"\n")) + (0 if text else self.newlines)
        while text:
            piece, text = text[: self.room], text[self.room :]
            self._open.update(piece)
            self.size += len(piece)
            if self.size % _BLOCK == 0:
                self.blocks.append(self._open.digest())
                self._open = hashlib.sha1(usedforsecurity=False)

    @property
    def room(self) -> int:
        """Bytes until the present block is full."""
        return _BLOCK - self.size % _BLOCK

    def agrees(self, printed: "_Cursor") -> bool:
        """False if what precedes this position is known to differ from what was printed."""
        if self.size == printed.size:
            return self._open.digest() == printed._open.digest() and self.blocks[-1:] == printed.blocks[-1:]
        return not self.blocks or self.blocks[-1] == printed.blocks[len(self.blocks) - 1]


class Transcript:
    """Call `restart` for each connection, `feed` for each piece, `finish` when the log is complete."""

    def __init__(self) -> None:
        self._printed = _Cursor()
        self.restart()

    @property
    def at_line_start(self) -> bool:
        """Whether the last thing printed was a line end (or nothing was printed)."""
        return self._printed.newlines > 0 or self._printed.size == 0

    def restart(self) -> None:
        """The log comes again from its first byte."""
        self._seen = _Cursor()
        self._held = bytearray()  # what was skipped of a block that has not been compared yet
        self._skip_newlines = self._printed.newlines
        self._live = False

    def feed(self, data: bytes) -> New:
        """What of the next piece of the log has not been printed yet."""
        while data and not self._live:
            missing = self._printed.size - self._seen.size
            if missing == 0:
                data = self._join(data)
                break
            piece, data = _split(data, min(missing, self._seen.room))
            self._seen.advance(piece)
            self._held += piece
            if not self._seen.agrees(self._printed):
                return New(self._adopt() + self._print(data), replaced=True)
            if self._seen.size % _BLOCK == 0:
                self._held.clear()
        return New(self._print(data))

    def finish(self) -> New:
        """The log has come to its end: if that is less than was printed, it is another log, and what was held back of
        it is new."""
        if self._live or self._seen.size == self._printed.size:
            return New()
        return New(self._adopt(), replaced=True)

    def _join(self, data: bytes) -> bytes:
        """All text that was printed has gone by; so have the line ends after it, as far as they come again."""
        rest = data.lstrip(b"\n")
        skipped = min(len(data) - len(rest), self._skip_newlines)
        self._skip_newlines -= skipped
        self._live = bool(data[skipped:])
        return data[skipped:]

    def _print(self, data: bytes) -> bytes:
        self._printed.advance(data)
        return data

    def _adopt(self) -> bytes:
        """Go on with the log seen now, from the block that differs."""
        self._printed, self._live = self._seen, True
        return bytes(self._held)


def _split(data: bytes, count: int) -> tuple[bytes, bytes]:
    """Cut after the `count`-th byte that is no line end."""
    at = count
    while at < len(data) and (lacking := count - at + data.count(b"\n", 0, at)):
        at += lacking
    return data[:at], data[at:]
