"""Rendezvous hashing: who should own a partition, computed by every replica alike; pure."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache


def best(partition: int, replicas: Iterable[str]) -> str:
    """The replica with the highest hash for this partition, "" when there is none.

    When a replica comes or goes, only partitions that it takes or leaves change their owner.
    """
    return max(replicas, key=lambda replica: (_weight(partition, replica), replica), default="")


@lru_cache(maxsize=4096)
def _weight(partition: int, replica: str) -> bytes:
    return hashlib.blake2s(f"{partition}/{replica}".encode(), digest_size=8).digest()
