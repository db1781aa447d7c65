"""Results that follow from one frozen object alone, remembered while it is decided about again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Concatenate, Generic, TypeVar

SIZE = 128
"""Results kept: the roots that are being decided about at the same time, not all that there are."""

T = TypeVar("T")
R = TypeVar("R")


class _Same(Generic[T]):
    """Stands for one object: equal to nothing but itself, whatever it contains."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it


def remembered(function: Callable[Concatenate[T, ...], R]) -> Callable[Concatenate[T, ...], R]:
    """`function` of a frozen object and of hashable values, computed once for each of the last SIZE objects.

    Objects of a view are decoded once, when they arrive, so one that is the same is the same one.
    """

    @lru_cache(maxsize=SIZE)
    def once(key: _Same[T], *more: Hashable) -> R:
        return function(key.it, *more)

    def wrapped(it: T, /, *more: Hashable) -> R:
        return once(_Same(it), *more)

    return wrapped
