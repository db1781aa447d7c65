"""How many requests the API server is given at once."""

from raybus.applier.window import FIRST, LEAST, Window


def busy(window: Window, seconds: float, times: int) -> None:
    for _ in range(times):
        window.ended(seconds, window.size)


def test_it_grows_while_the_server_does_not_become_slower() -> None:
    window = Window(16)
    assert window.size == FIRST
    busy(window, 0.01, 300)
    assert window.size == 16


def test_it_does_not_grow_while_it_is_not_used() -> None:
    window = Window(16)
    for _ in range(300):
        window.ended(0.01, 1)
    assert window.size == FIRST


def test_it_shrinks_when_requests_take_much_longer_but_not_to_nothing() -> None:
    window = Window(16)
    busy(window, 0.01, 300)
    busy(window, 0.05, 300)
    assert window.size == LEAST
    busy(window, 0.01, 300)
    assert window.size == 16


def test_a_server_that_has_become_slower_for_good_is_used_fully_in_the_end() -> None:
    window = Window(16)
    busy(window, 0.01, 300)
    busy(window, 0.03, 20_000)
    assert window.size == 16


def test_a_smaller_limit_is_kept() -> None:
    window = Window(2)
    busy(window, 0.01, 300)
    assert window.size == 2
