"""Which family an answer of the API server belongs to: transient, rejected or a bug; pure (design §5, style §2.8)."""

import msgspec
from msgspec import Struct

from raybus.kube.port import Bug, KubeError, Rejected, Request, Transient

MAX_TEXT = 400
"""Characters of the server's words that an error repeats (a quota or schema message may be many kilobytes)."""

_REJECTED = frozenset({400, 401, 403, 404, 409, 410, 413, 422})


class _Details(Struct):
    retry_after_seconds: float = msgspec.field(default=0.0, name="retryAfterSeconds")


class _Status(Struct):
    """The parts of a `metav1.Status` that are read."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


def shorten(text: str) -> str:
    """At most `MAX_TEXT` characters on one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


def of_answer(request: Request, code: int, body: bytes, retry_after: str = "") -> KubeError:
    """The error of an answer outside 2xx. `retry_after`: the header of that name, "" without one.

    429 is refused before anything is done; 5xx may have taken effect. A 409 says AlreadyExists or, for a request that
    names a version, Conflict: both are final. Any other 409 (a create that met a busy quota) may work the next time.
    """
    status = _read_status(body)
    what = f"{request.method} {request.path}: "
    text = what + shorten(status.message or body[: MAX_TEXT * 4].decode(errors="replace") or f"HTTP {code}")
    if code == 429 or code == 408 or code >= 500:
        wait = _seconds(retry_after) or (status.details.retry_after_seconds if status.details else 0.0)
        return Transient(f"{text} (HTTP {code})", status=code, retry_after=wait, sent=code != 429)
    if code == 409 and status.reason != "AlreadyExists" and not _is_versioned(request):
        return Transient(f"{text} (HTTP 409)", status=409, sent=False)
    if code in _REJECTED:
        return Rejected(code, status.reason or f"HTTP{code}", text)
    return Bug(f"{text} (HTTP {code}, which this request should never get)")


def of_watch(path: str, body: bytes | msgspec.Raw) -> KubeError:
    """The error of an ERROR event, whose object is a `metav1.Status`, in the watch of `path`."""
    status = _read_status(body)
    code = status.code or 500
    return of_answer(Request(method="GET", path=path), code, bytes(body))


def _read_status(body: bytes | msgspec.Raw) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        return _Status()


def _is_versioned(request: Request) -> bool:
    return request.method in ("PUT", "DELETE") or (request.method == "PATCH" and b"resourceVersion" in request.body)


def _seconds(text: str) -> float:
    return float(text) if text.isdigit() else 0.0
