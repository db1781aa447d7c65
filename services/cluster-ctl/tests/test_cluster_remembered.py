"""What follows from one object is computed once for it, and never taken for that of another."""

from raybus.cluster_ctl.remembered import SIZE, remembered


def test_the_same_object_is_looked_at_once_and_an_equal_one_again() -> None:
    looked: list[list[int]] = []

    @remembered
    def total(numbers: list[int], factor: int = 1) -> int:
        looked.append(numbers)
        return sum(numbers) * factor

    first, equal = [1, 2], [1, 2]
    assert [total(first), total(first), total(equal), total(first, 3)] == [3, 3, 3, 9]
    assert len(looked) == 3


def test_only_the_last_ones_are_remembered() -> None:
    looked: list[object] = []

    @remembered
    def look(it: object) -> int:
        looked.append(it)
        return len(looked)

    first = object()
    look(first)
    for _ in range(SIZE):
        look(object())
    assert look(first) == SIZE + 2
