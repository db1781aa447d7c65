from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from raybus.bus.rendezvous import best

NAMES = st.lists(st.text(min_size=1), min_size=1, unique=True)


@given(st.integers(0, 15), NAMES, st.text(min_size=1))
def test_a_replica_that_goes_moves_only_its_own_partitions(partition: int, names: list[str], gone: str) -> None:
    before = best(partition, {*names, gone})
    if before != gone:
        assert best(partition, set(names) - {gone}) == before


@given(st.integers(0, 15), NAMES)
def test_the_order_in_which_replicas_are_known_does_not_matter(partition: int, names: list[str]) -> None:
    assert best(partition, names) == best(partition, reversed(names))


def test_nobody_is_best_of_nobody() -> None:
    assert best(3, []) == ""


def test_shares_are_even_on_the_whole() -> None:
    shares = Counter(best(p, [f"r{n}/{trial}" for n in range(4)])[:2] for trial in range(200) for p in range(16))
    assert all(700 < share < 900 for share in shares.values())
