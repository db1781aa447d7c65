"""The dashboard's REST calls that a submitter needs (contract rayjob §5.3)."""

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from raybus.submitter.address import Address
from raybus.submitter.connect import connect, reason
from raybus.submitter.options import Options
from raybus.submitter.timing import bounded

TERMINAL = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
_KNOWN_ID = "Please use a different submission_id"
# Ray's head passes the refusal of its job agent on as a 500 with this text: asking again would not help.
_REFUSED_BY_AGENT = "Request failed with status code 4"
_MAX_BODY = 64 << 20


class Unreachable(Exception):
    """No usable answer now; may get better by itself. The text says why."""


class NoSuchName(Unreachable):
    """The name server says that there is no such name: the cluster's Service is not there (any more)."""


class Refused(Exception):
    """An answer that will not get better by itself. The text says why."""


@dataclass(frozen=True)
class Job:
    """What Ray says of a job. exit_code: of the entrypoint's process, None if it never ended."""

    status: str
    message: str = ""
    exit_code: int | None = None

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes

    def text(self) -> str:
        """The last line that says something, shortened: Ray answers errors with tracebacks."""
        lines = [line.strip() for line in self.body.decode(errors="replace").splitlines()]
        lines = [line for line in lines if any(map(str.isalpha, line))]
        return lines[-1][:500] if lines else "no text"


def auth_headers(options: Options) -> dict[str, str]:
    """The token's header; a token file is read anew each time, since the kubelet renews it. Raises Refused."""
    token = options.token
    if options.token_file:
        try:
            with open(options.token_file, encoding="utf-8") as file:
                token = file.read().strip()
        except OSError as error:
            raise Refused(f"cannot read the token file {options.token_file}: {reason(error)}") from error
    return {"X-Ray-Authorization": f"Bearer {token}"} if token else {}


def job_path(job_id: str) -> str:
    return f"/api/jobs/{quote(job_id, safe='')}"


def check_health(address: Address, timeout: float) -> None:
    """Return if the cluster's control store is alive, else raise Unreachable. Needs no token."""
    answer = _call(address, "GET", "/api/gcs_healthz", {}, timeout=timeout)
    if answer.status != 200 or b"success" not in answer.body:
        raise Unreachable(f"its health check says {answer.status}")


def get_job(options: Options, timeout: float) -> Job | None:
    """The job, or None if Ray does not know it. Raises Unreachable or Refused."""
    answer = _call(options.address, "GET", job_path(options.job_id), auth_headers(options), timeout=timeout)
    if answer.status == 404 and b"does not exist" in answer.body:
        return None
    _check(answer)
    info = _json_object(answer)
    status, message, code = info.get("status"), info.get("message"), info.get("driver_exit_code")
    if not isinstance(status, str):
        raise Unreachable("its answer about the job has no status")
    return Job(status, message if isinstance(message, str) else "", code if isinstance(code, int) else None)


def submit(options: Options, timeout: float) -> bool:
    """Submit the job; False if Ray knows its id already. Raises Unreachable (it may have been taken!) or Refused."""
    headers = {**auth_headers(options), "Content-Type": "application/json"}
    body = json.dumps(options.request).encode()
    answer = _call(options.address, "POST", "/api/jobs/", headers, body=body, timeout=timeout)
    if answer.status == 500 and _KNOWN_ID.encode() in answer.body:
        return False
    if answer.status == 500 and _REFUSED_BY_AGENT.encode() in answer.body:
        raise Refused(f"Ray refused the job: {answer.text()}")
    _check(answer)
    return True


def get_log(options: Options, timeout: float) -> str:
    """The whole log at once. Raises Unreachable or Refused."""
    path = job_path(options.job_id) + "/logs"
    answer = _call(options.address, "GET", path, auth_headers(options), timeout=timeout)
    if answer.status == 500:
        raise Refused(answer.text())
    _check(answer)
    log = _json_object(answer).get("logs")
    return log if isinstance(log, str) else ""


def _check(answer: _Answer) -> None:
    if answer.status in (401, 403):
        raise Refused(
            f"the dashboard does not accept the token ({answer.status} {answer.text()}): check RAY_AUTH_TOKEN"
        )
    if answer.status >= 500 or answer.status in (404, 408, 429):
        raise Unreachable(f"it answered {answer.status}: {answer.text()}")
    if not 200 <= answer.status < 300:
        raise Refused(f"the dashboard answered {answer.status}: {answer.text()}")


def _json_object(answer: _Answer) -> dict[str, Any]:
    try:
        value = json.loads(answer.body)
    except ValueError as error:
        raise Unreachable("its answer is not JSON") from error
    if not isinstance(value, dict):
        raise Unreachable("its answer is not a JSON object")
    return value


def _call(
    address: Address, method: str, path: str, headers: Mapping[str, str], *, timeout: float, body: bytes | None = None
) -> _Answer:
    """One request on a connection of its own, within `timeout` seconds in all. Raises Unreachable, Refused."""
    try:
        with bounded(timeout), connect(address, timeout) as sock:
            connection = http.client.HTTPConnection(address.host, address.port)
            connection.sock = sock
            connection.request(method, address.prefix + path, body, {"Host": address.authority, **headers})
            answer = connection.getresponse()
            content = answer.read(_MAX_BODY + 1)
    except socket.gaierror as error:
        raise (NoSuchName if error.errno == socket.EAI_NONAME else Unreachable)(reason(error)) from error
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(reason(error)) from error
    if len(content) > _MAX_BODY:
        raise Refused(f"its answer is longer than {_MAX_BODY >> 20} MiB")
    return _Answer(answer.status, content)
