"""What an applier remembers of the roots of one partition: nothing that a restart could not lose (design §3).

Kept while the partition is ours and forgotten with it: another applier may have written in between.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import count

from raybus.api.messages import Result
from raybus.applier.job import RootKey

CAPACITY = 20_000
"""Roots remembered per partition; beyond that the one that was quiet for longest is forgotten."""

_order = count()


@dataclass
class RootMemory:
    """`effect`: VIEW sequence of our last effect. `result`: what the view holds of us, valid once `result_read`.
    `failures`: deliveries in a row that ended in a transient error. `age`: order in which roots were first seen."""

    effect: int = 0
    result: Result | None = None
    result_seq: int = 0
    result_read: bool = False
    failures: int = 0
    age: int = field(default_factory=lambda: next(_order))


class Memory:
    """The roots of one partition. `life`: creation time of the VIEW stream that the sequences belong to."""

    def __init__(self, life: str) -> None:
        self.life = life
        self._roots: OrderedDict[RootKey, RootMemory] = OrderedDict()

    def of(self, key: RootKey) -> RootMemory:
        """What is remembered of a root, made when first asked for."""
        found = self._roots.get(key)
        if found is None:
            found = self._roots[key] = RootMemory()
            if len(self._roots) > CAPACITY:
                self._roots.popitem(last=False)
        self._roots.move_to_end(key)
        return found

    def begin(self, life: str) -> None:
        """The VIEW stream was made anew: sequences start again, so remembered ones would fence off everything."""
        self.life = life
        for root in self._roots.values():
            root.effect, root.result_read = 0, False
