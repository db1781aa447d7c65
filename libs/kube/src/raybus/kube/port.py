"""What the services need of an HTTP connection to the Kubernetes API: implemented by the real client and by the
simulator's API server alike. Requests are built by pure functions (`request.py`); this only sends them."""

from collections.abc import AsyncIterator, Mapping
from typing import Literal, Protocol

from msgspec import Struct


class Request(Struct, frozen=True, kw_only=True):
    """One HTTP request; `path` begins with `/`, `timeout` is in seconds for the whole exchange."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"
    timeout: float = 30.0


class Response(Struct, frozen=True, kw_only=True):
    """A successful answer (2xx)."""

    status: int
    body: bytes


class KubeError(Exception):
    """Base of the three families; `str()` is one sentence for people: what, which object, what the server said."""


class Transient(KubeError):
    """May work when tried again (no connection, time-out, 429, 5xx, 409 on a write without a version).

    `retry_after`: seconds the server asked to wait, 0.0 if it did not. `sent`: the request may have taken effect.
    `status`: HTTP status, 0 without an answer.
    """

    def __init__(self, message: str, *, status: int = 0, retry_after: float = 0.0, sent: bool = True) -> None:
        super().__init__(message)
        self.status, self.retry_after, self.sent = status, retry_after, sent


class Rejected(KubeError):
    """The server understood and will not: `code` (400, 401, 403, 404, 409, 410, 413, 422), `reason`, `message`."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


class Bug(KubeError):
    """An answer that cannot be read or a request that could not be built: our fault or the server's, never retried."""


class Sender(Protocol):
    """Sends requests to one API server."""

    async def send(self, request: Request) -> Response:
        """Raises Transient, Rejected or Bug."""

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a GET in chunks as they arrive (for watches); ends when the server closes.

        Raises Transient, Rejected or Bug at the start or in the middle.
        """
