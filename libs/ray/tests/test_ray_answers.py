"""What each answer means, whatever is on the way to Ray."""

import json
from typing import Any

import pytest

from raybus.ray.answers import (
    Answer,
    JobInfo,
    NotFound,
    read_health,
    read_job,
    read_stopped,
    read_submitted,
)
from raybus.ray.errors import DashboardRefused, DashboardUnreachable

URL = "http://head:8265"
TRACEBACK = 'Traceback (most recent call last):\n  File "x", line 1\nRuntimeError: Request failed: {}\n'


def answer(status: int, body: Any) -> Answer:
    return Answer(status, body.encode() if isinstance(body, str) else json.dumps(body).encode())


def kubernetes(code: int, message: str) -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return answer(code, {"metadata": {}, **status})


def test_a_job_with_all_it_says() -> None:
    body = {"status": "FAILED", "message": "m", "start_time": 5, "end_time": 9, "driver_exit_code": 3, "other": {}}
    job = read_job(URL, answer(200, body))
    assert job == JobInfo(status="FAILED", message="m", start_time=5, end_time=9, driver_exit_code=3)
    assert isinstance(job, JobInfo) and job.ended


def test_a_job_that_has_just_begun_has_nulls() -> None:
    body = {"status": "PENDING", "message": None, "start_time": 5, "end_time": None, "driver_exit_code": None}
    assert read_job(URL, answer(200, body)) == JobInfo(status="PENDING", start_time=5)


@pytest.mark.parametrize("body", ["Job x does not exist", {"error": "not found"}])
def test_an_unknown_job_is_a_result(body: Any) -> None:
    assert read_job(URL, answer(404, body)) == NotFound()
    assert read_stopped(URL, answer(404, body)) == NotFound()


NOT_RAY = {
    "the proxy's 404 for a missing Service is not Ray's": (kubernetes(404, 'services "a" not found'), 'services "a"'),
    "a Status object is no job, even with HTTP 200": (
        Answer(200, kubernetes(503, "no endpoints").body),
        "no endpoints",
    ),
    "the proxy cannot reach the head": (kubernetes(500, "error trying to reach service: dial tcp"), "dial tcp"),
    "a dashboard without job API": (answer(404, "404: Not Found"), "404"),
    "a gateway": (answer(502, "<html><p>Bad gateway</p></html>"), "Bad gateway"),
    "no JSON": (answer(200, "<html>hello</html>"), "something else than asked"),
    "JSON that is no object": (answer(200, ["RUNNING"]), "something else than asked"),
    "an object without status": (answer(200, {"message": "hm"}), "something else than asked"),
    "a status that is no text": (answer(200, {"status": 1}), "something else than asked"),
    "bytes that are no text": (Answer(200, b'{"status": "\xff"}'), "something else than asked"),
    "an empty body": (answer(200, ""), "something else than asked"),
    "too many requests": (answer(429, "slow down"), "slow down"),
}


@pytest.mark.parametrize(("got", "text"), NOT_RAY.values(), ids=NOT_RAY)
def test_no_answer_of_ray(got: Answer, text: str) -> None:
    with pytest.raises(DashboardUnreachable, match="the Ray dashboard at http://head:8265 is unreachable") as caught:
        read_job(URL, got)
    assert text in caught.value.reason


REFUSED = {
    "a wrong token": (answer(403, "Forbidden: Invalid authentication token"), 403, "Forbidden: Invalid"),
    "the proxy's RBAC": (kubernetes(403, "services/proxy is forbidden"), 403, "services/proxy is forbidden"),
    "an error of the dashboard, with the last line of its traceback": (
        answer(500, TRACEBACK.format("boom") + ".\n"),
        500,
        "RuntimeError: Request failed: boom",
    ),
    "an error object is not a job (KubeRay takes it for one)": (answer(500, {"error": "boom"}), 500, "boom"),
    "a redirect": (answer(302, ""), 302, "no text"),
}


@pytest.mark.parametrize(("got", "status", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(got: Answer, status: int, text: str) -> None:
    with pytest.raises(DashboardRefused) as caught:
        read_job(URL, got)
    assert caught.value.status == status
    assert text in caught.value.body


def test_error_texts_are_short() -> None:
    with pytest.raises(DashboardRefused) as caught:
        read_submitted(URL, answer(400, "x" * 10_000))
    assert len(caught.value.body) == 500


def test_submitting() -> None:
    assert read_submitted(URL, answer(200, {"job_id": "x", "submission_id": "x"})) == "submitted"
    known = TRACEBACK.format("Job with submission_id x already exists. Please use a different submission_id.")
    assert read_submitted(URL, answer(500, known)) == "known"
    with pytest.raises(DashboardRefused):
        read_submitted(URL, answer(400, TRACEBACK.format("entrypoint must be a string")))


def test_stopping() -> None:
    assert read_stopped(URL, answer(200, {"stopped": True})) is True
    assert read_stopped(URL, answer(200, {"stopped": False})) is False
    with pytest.raises(DashboardUnreachable):
        read_stopped(URL, answer(200, "stopped"))


def test_health() -> None:
    read_health(URL, answer(200, "success"))
    for bad in (answer(200, "hello"), answer(503, "Health check failed"), kubernetes(404, "no success")):
        with pytest.raises(DashboardUnreachable):
            read_health(URL, bad)
