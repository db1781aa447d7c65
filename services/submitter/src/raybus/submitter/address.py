"""Where the dashboard is."""

from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """host without brackets; prefix is the path before `/api/...`, without a final slash."""

    tls: bool
    host: str
    port: int
    prefix: str = ""

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        """As in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """`host:port`, `http://host:port[/prefix]` or `https://...` -> Address.

    The controller gives `host:port` (contract rayjob §4); https is Raybus's own (ADR 0025). Raises ValueError, whose
    text is for people.
    """
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme not in _PORTS:
        raise ValueError(f"{text!r} is neither an http:// nor an https:// address")
    try:
        port = parts.port or _PORTS[parts.scheme]
    except ValueError as error:
        raise ValueError(f"{text!r} has no valid port") from error
    if not parts.hostname:
        raise ValueError(f"{text!r} names no host")
    return Address(parts.scheme == "https", parts.hostname, port, parts.path.rstrip("/"))
