"""Names: subject tokens, partitions and the deterministic suffixes of children (design §3, "Names")."""

import hashlib
import re

PARTITIONS = 16
"""Number of partitions of every controller's view; a constant of the subject layout."""

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet Kubernetes uses for generated names: no vowels, no look-alikes."""

_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
_CODED = re.compile(r"=([0-9a-f]{2})")


def encode_token(text: str) -> str:
    """One subject token for `text`: every byte outside `[A-Za-z0-9_-]` becomes `=xx`, so no token holds a dot."""
    return _PLAIN.sub(lambda m: "".join(f"={byte:02x}" for byte in m[0].encode()), text)


def decode_token(token: str) -> str:
    """The inverse of `encode_token`."""
    if "=" not in token:
        return token
    raw = _CODED.sub(lambda m: chr(int(m[1], 16)), token)
    return raw.encode("latin-1").decode()


def partition_of(namespace: str, root: str) -> int:
    """FNV-1a (32 bit) of `namespace/root` modulo 16: computed by every client alike (design §3)."""
    value = 0x811C9DC5
    for byte in f"{namespace}/{root}".encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value % PARTITIONS


def suffix(*parts: str) -> str:
    """Five characters of `ALPHABET` that depend on `parts` alone.

    Used for pods (cluster UID, group, slot) and attempts (UID, purpose, resourceVersion): two controllers that race
    choose the same name, so the API server turns a double creation into AlreadyExists (design §3).
    """
    number = int.from_bytes(hashlib.blake2s("\0".join(parts).encode(), digest_size=8).digest(), "big")
    letters = []
    for _ in range(5):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "".join(letters)
