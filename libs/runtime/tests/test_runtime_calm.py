"""When a root is decided again while events about it pour in."""

import pytest

from raybus.runtime.calm import EACH, FREE, MOST, PATIENCE, Calm


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_with_little_to_do_nobody_notices_the_pause() -> None:
    clock = Clock()
    calm = Calm(clock)
    assert calm.pause(100.0, 100.0) == 0.0
    for _ in range(FREE):
        calm.decided()
    assert calm.pause(100.0, 100.0) == 0.0
    calm.decided()
    assert 0 < calm.pause(100.0, 100.0) < 2 * EACH


def test_the_pause_grows_with_the_work_and_has_an_end() -> None:
    clock = Clock()
    calm = Calm(clock)
    for _ in range(1000):
        calm.decided()
    assert calm.pause(100.0, 100.0) == pytest.approx(MOST)
    clock.now += MOST
    assert calm.pause(100.0, 100.0) == 0.0, "quiet for long enough"
    assert calm.pause(100.0, clock.now) > 0, "events go on"
    clock.now = 100.0 + PATIENCE * MOST
    assert calm.pause(100.0, clock.now) == 0.0, "but not for ever"


def test_only_the_last_second_counts() -> None:
    clock = Clock()
    calm = Calm(clock)
    for _ in range(1000):
        calm.decided()
    clock.now += 1.5
    assert calm.pause(clock.now, clock.now) == 0.0
