"""Rendezvous hashing: who should own a partition, computed by every replica alike; pure."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache


def best(partition: int, replicas: Iterable[str]) -> str:
    """The replica with the highest hash for this partition, "" when there is none.

    When a replica comes or goes, only partitions that it takes or leaves change their owner.
    """
    return _best(partition, tuple(replicas))


@lru_cache(maxsize=1024)
def _best(partition: int, replicas: tuple[str, ...]) -> str:
    """Every replica asks this four times a second, and the answer changes when one comes or goes."""
    return max(replicas, key=lambda replica: (_weight(partition, replica), replica), default="")


def _weight(partition: int, replica: str) -> bytes:
    return hashlib.blake2s(f"{partition}/{replica}".encode(), digest_size=8).digest()
