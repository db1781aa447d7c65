"""Every byte of the log is printed once, however often and wherever the connection breaks."""

import random

from hypothesis import given
from hypothesis import strategies as st

from raybus.submitter.transcript import Transcript

LINES = st.lists(st.sampled_from([b"a\n", b"bb", b"\n", b"\n\n", b"long line " * 9 + b"\n"]), max_size=40).map(b"".join)


def feed(transcript: Transcript, log: bytes, seed: int, most: int) -> bytes:
    """One connection that brings `log` in pieces."""
    cut = random.Random(seed)
    printed = b""
    transcript.restart()
    while log:
        size = cut.randint(1, most)
        printed += transcript.feed(log[:size]).data
        log = log[size:]
    return printed


@given(LINES, st.lists(st.tuples(st.integers(0, 500), st.integers(0, 9), st.integers(1, 60)), max_size=5))
def test_connections_that_break_anywhere(log: bytes, connections: list[tuple[int, int, int]]) -> None:
    transcript = Transcript()
    printed = b"".join(feed(transcript, log[:upto], seed, most) for upto, seed, most in connections)
    printed += feed(transcript, log, 0, 7)
    new = transcript.finish()
    assert printed == log
    assert (new.data, new.replaced) == (b"", False)
    assert transcript.at_line_start == (log.endswith(b"\n") or not log)


def test_a_log_of_many_blocks() -> None:
    log = random.Random(1).randbytes(1_000_000)
    transcript = Transcript()
    printed = b"".join(feed(transcript, log[:upto], upto, 9000) for upto in (70_000, 65_536, 400_000, 131_072))
    assert printed + feed(transcript, log, 3, 20_000) == log


@given(LINES, st.integers(0, 200))
def test_a_line_end_that_ray_doubled_in_one_connection_only(log: bytes, at: int) -> None:
    """Ray reads `\\r` at the end of the file as a line end of its own, and in the next connection `\\r\\n` as one."""
    text = b"x" + log + b"end"
    at = text.find(b"\n", at)
    first = text[: at + 1] + b"\n" if at >= 0 else text
    transcript = Transcript()
    printed = feed(transcript, first, 1, 9)
    again = feed(transcript, text, 2, 9)
    assert (printed + again).replace(b"\n", b"") == text.replace(b"\n", b"")
    assert len(printed + again) - len(text) in (0, 1)


def test_line_ends_at_the_break_are_neither_lost_nor_doubled() -> None:
    for upto in range(7):
        transcript = Transcript()
        log = b"a\n\n\nb\n"
        assert feed(transcript, log[:upto], 0, 9) + feed(transcript, log, upto, 2) == log


def test_another_log_is_printed_from_the_block_that_differs() -> None:
    transcript = Transcript()
    old = b"s" * 65_536 + b"old line\n" * 10
    new = b"s" * 65_536 + b"new line\n" * 20
    assert feed(transcript, old, 0, 5000) == old
    assert feed(transcript, new, 1, 5000) == b"new line\n" * 20
    assert feed(transcript, new + b"more\n", 2, 5000) == b"more\n"


def test_another_log_says_that_it_is_another() -> None:
    transcript = Transcript()
    transcript.feed(b"aaaa\n")
    transcript.restart()
    first, second = transcript.feed(b"bb"), transcript.feed(b"bbb\n")
    assert (first.data, first.replaced) == (b"", False)
    assert (second.data, second.replaced) == (b"bbbbb\n", True)


def test_another_log_that_is_shorter_shows_at_its_end() -> None:
    transcript = Transcript()
    transcript.feed(b"a long first log\n")
    transcript.restart()
    assert transcript.feed(b"short\n").data == b""
    new = transcript.finish()
    assert (new.data, new.replaced) == (b"short\n", True)
    assert transcript.at_line_start
