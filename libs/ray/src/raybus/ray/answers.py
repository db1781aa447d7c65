"""HTTP answer -> what Ray said. Pure.

KubeRay takes any JSON object for the state of a job, whatever the HTTP status (contract rayjob §5.3 names what follows
from that). Here a status outside 2xx is an error, and a Kubernetes Status object, which the API server's proxy answers
when it cannot get through, is never Ray's word (ADR 0028).
"""

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from raybus.ray.errors import DashboardRefused, DashboardUnreachable

MAX_TEXT = 500
_KNOWN_ID = b"Please use a different submission_id"
# aiohttp's own answer for a path without a handler: this dashboard has no job API (yet).
_NO_ROUTE = b"404: Not Found"
_AUTHORISATION = frozenset({401, 403})
_LATER = frozenset({408, 429})


class JobInfo(Struct, frozen=True, kw_only=True):
    """What Ray says of a job (contract rayjob §5.3). Times are milliseconds since the epoch, 0 = not said."""

    status: str
    message: str = ""
    start_time: int = 0
    end_time: int = 0
    driver_exit_code: int | None = None

    @property
    def ended(self) -> bool:
        return self.status in ("SUCCEEDED", "FAILED", "STOPPED")


class NotFound(Struct, frozen=True):
    """Ray does not know the job."""


class Answer(Struct, frozen=True):
    """status: HTTP status; body: the whole body."""

    status: int
    body: bytes


class _JobDetails(Struct):
    """As on the wire: what is not known yet is null there."""

    status: str
    message: str | None = None
    start_time: int | None = None
    end_time: int | None = None
    driver_exit_code: int | None = None


class _Submitted(Struct):
    job_id: str = ""
    submission_id: str = ""


class _Stopped(Struct):
    stopped: bool


class _KubernetesStatus(Struct, tag="Status", tag_field="kind"):
    message: str = ""


def read_job(url: str, answer: Answer) -> JobInfo | NotFound:
    """The answer to `GET /api/jobs/<id>`. Raises DashboardUnreachable, DashboardRefused."""
    if is_unknown_job(answer):
        return NotFound()
    details = _decode(url, check(url, answer), _JobDetails)
    return JobInfo(
        status=details.status,
        message=details.message or "",
        start_time=details.start_time or 0,
        end_time=details.end_time or 0,
        driver_exit_code=details.driver_exit_code,
    )


def read_submitted(url: str, answer: Answer) -> Literal["submitted", "known"]:
    """The answer to `POST /api/jobs/`: "known" if Ray has a job of this id already. Raises as above."""
    if answer.status == 500 and _KNOWN_ID in answer.body:
        return "known"
    _decode(url, check(url, answer), _Submitted)
    return "submitted"


def read_stopped(url: str, answer: Answer) -> bool | NotFound:
    """The answer to `POST /api/jobs/<id>/stop`: whether there was something to stop. Raises as above."""
    if is_unknown_job(answer):
        return NotFound()
    return _decode(url, check(url, answer), _Stopped).stopped


def read_health(url: str, answer: Answer) -> None:
    """The answer to `GET /api/gcs_healthz`. Raises DashboardUnreachable unless the cluster is healthy."""
    if answer.status != 200 or b"success" not in answer.body:
        raise DashboardUnreachable(url, f"its health check says HTTP {answer.status}: {_text(answer.body)}")


def is_unknown_job(answer: Answer) -> bool:
    """Whether this 404 is Ray's: not the proxy's, whose Service is missing, nor that of a dashboard without job API."""
    return answer.status == 404 and _status_object(answer.body) is None and answer.body.strip() != _NO_ROUTE


def check(url: str, answer: Answer) -> bytes:
    """The body of an answer that is Ray's and good. Raises DashboardUnreachable, DashboardRefused."""
    kubernetes = _status_object(answer.body)
    if answer.status in _AUTHORISATION:
        raise DashboardRefused(url, answer.status, kubernetes.message if kubernetes else _text(answer.body))
    if kubernetes is not None:
        raise DashboardUnreachable(url, f"the API server's proxy says: {_shorten(kubernetes.message)}")
    if answer.status in _LATER or answer.status == 404 or answer.status in (502, 503, 504):
        raise DashboardUnreachable(url, f"HTTP {answer.status}: {_text(answer.body)}")
    if not 200 <= answer.status < 300:
        raise DashboardRefused(url, answer.status, _text(answer.body))
    return answer.body


T = TypeVar("T")


def _decode(url: str, body: bytes, to: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=to)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DashboardUnreachable(url, f"it answered something else than asked ({error}): {_text(body)}") from error


def _status_object(body: bytes) -> _KubernetesStatus | None:
    """The body as a Kubernetes Status object, if it is one."""
    if body.lstrip()[:1] != b"{" or b'"Status"' not in body:
        return None
    try:
        fields: dict[str, Any] = msgspec.json.decode(body, type=dict)
        return msgspec.convert(fields, _KubernetesStatus) if fields.get("apiVersion") == "v1" else None
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
        return None


def _text(body: bytes) -> str:
    """What an error body says: of a traceback, with which Ray likes to answer, the last line in words."""
    lines = [line.strip() for line in body[-64_000:].decode(errors="replace").splitlines()]
    lines = [line for line in lines if any(map(str.isalpha, line))]
    if not lines:
        return "no text"
    return _shorten(lines[-1] if lines[0].startswith("Traceback") else " ".join(lines))


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
