"""Waiting for the cluster and submitting, against a dashboard on loopback."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from raybus.submitter.dashboard import Refused, Unreachable
from raybus.submitter.options import Options, parse_options
from raybus.submitter.start import ensure_submitted, wait_for_cluster
from raybus.submitter.timing import Timing
from raybus.testkit.fake_dashboard import FakeDashboard

FAST = Timing(call=2, first_wait=0.01, longest_wait=0.05, submit_for=0.3)
UNKNOWN_TO_AGENT = "Traceback:\nRuntimeError: No available agent to submit job, please try again later.\n."


@pytest.fixture
def dashboard() -> Iterator[FakeDashboard]:
    with FakeDashboard().serving() as serving:
        yield serving


def options(dashboard: FakeDashboard, **env: str) -> Options:
    given = {"RAY_DASHBOARD_ADDRESS": dashboard.address, "RAY_JOB_SUBMISSION_ID": "job-1"}
    return parse_options(["--entrypoint-num-cpus", "1", "--", "echo", "hi"], given | env)


class HealsAtThirdCheck(FakeDashboard):
    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str]:
        self.healthy = self.requests.count("GET /api/gcs_healthz") >= 3
        return super().answer(method, path, body)


def test_waits_until_the_cluster_is_healthy_and_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    with HealsAtThirdCheck().serving() as dashboard:
        wait_for_cluster(options(dashboard).address, FAST)
    out = capfd.readouterr().out
    assert out == f"INFO -- Waiting for the Ray cluster at http://{dashboard.address}: its health check says 503\n"


def resolving(results: list[int]) -> Callable[..., list[object]]:
    """A name server whose answers fail with these codes of getaddrinfo, the last one again and again."""

    def fail(*_: object) -> list[object]:
        raise socket.gaierror(results.pop(0) if len(results) > 1 else results[0], "no")

    return fail


def test_gives_up_a_cluster_whose_name_is_gone_for_long(
    dashboard: FakeDashboard, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    address = options(dashboard).address
    monkeypatch.setattr(socket, "getaddrinfo", resolving([socket.EAI_AGAIN, socket.EAI_NODATA, socket.EAI_NONAME]))
    with pytest.raises(Unreachable, match="is gone: its name does not resolve"):
        wait_for_cluster(address, Timing(first_wait=0.01, longest_wait=0.01, give_up=0.05))
    assert capfd.readouterr().out.count("Waiting for the Ray cluster") == 1


def test_a_name_server_in_trouble_is_waited_for(dashboard: FakeDashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    address, real = options(dashboard).address, socket.getaddrinfo
    troubled = iter([socket.EAI_NONAME] + [socket.EAI_AGAIN] * 20)

    def resolve(*arguments: Any, **named: Any) -> Any:
        if (code := next(troubled, None)) is not None:
            raise socket.gaierror(code, "no")
        return real(*arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    wait_for_cluster(address, Timing(first_wait=0.01, longest_wait=0.01, give_up=0.05))


def test_submits_what_was_asked(dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]) -> None:
    ensure_submitted(options(dashboard), FAST)
    assert dashboard.bodies == [{"entrypoint": "echo hi", "submission_id": "job-1", "entrypoint_num_cpus": 1}]
    assert capfd.readouterr().out == "SUCC -- Job 'job-1' submitted successfully\n"


def test_does_not_submit_a_known_job(dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]) -> None:
    dashboard.end("job-1")
    ensure_submitted(options(dashboard), FAST)
    assert dashboard.bodies == []
    assert capfd.readouterr().out == "INFO -- Job 'job-1' has already been submitted, tailing logs.\n"


def test_another_submitter_that_was_faster_is_no_error(
    dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]
) -> None:
    dashboard.submit_errors = [(500, "ValueError: ... Please use a different submission_id.")]
    ensure_submitted(options(dashboard), FAST)
    assert "has already been submitted" in capfd.readouterr().out
    assert len(dashboard.bodies) == 1


def test_tries_again_when_ray_takes_no_jobs_yet(dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]) -> None:
    dashboard.submit_errors = [(500, UNKNOWN_TO_AGENT)] * 2
    ensure_submitted(options(dashboard), FAST)
    assert len(dashboard.bodies) == 3
    captured = capfd.readouterr()
    assert captured.err.count("No available agent to submit job, please try again later.; trying again") == 2
    assert captured.out == "SUCC -- Job 'job-1' submitted successfully\n"


class LosesTheAnswer(FakeDashboard):
    """Takes a job, but something on the way breaks the answer."""

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str]:
        answer = super().answer(method, path, body)
        return (502, "gateway") if method == "POST" else answer


def test_a_submit_call_without_an_answer_is_not_repeated_blindly(capfd: pytest.CaptureFixture[str]) -> None:
    with LosesTheAnswer().serving() as dashboard:
        ensure_submitted(options(dashboard), FAST)
    assert len(dashboard.bodies) == 1
    assert "has already been submitted" in capfd.readouterr().out


def test_gives_up_in_the_end(dashboard: FakeDashboard) -> None:
    dashboard.submit_errors = [(500, UNKNOWN_TO_AGENT)] * 100
    with pytest.raises(Unreachable, match="No available agent"):
        ensure_submitted(options(dashboard), FAST)


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (400, "Traceback:\nTypeError: entrypoint must be a string", "answered 400: TypeError: entrypoint must be"),
        (500, "RuntimeError: Request failed with status code 400: no such label.", "Ray refused the job: Runtime"),
    ],
)
def test_a_refused_job_is_not_tried_again(dashboard: FakeDashboard, status: int, body: str, text: str) -> None:
    dashboard.submit_errors = [(status, body)]
    with pytest.raises(Refused, match=text):
        ensure_submitted(options(dashboard), FAST)
    assert len(dashboard.bodies) == 1


def test_tokens(dashboard: FakeDashboard) -> None:
    dashboard.token = "s3cret"
    with pytest.raises(Refused, match="does not accept the token.*check RAY_AUTH_TOKEN"):
        ensure_submitted(options(dashboard, RAY_AUTH_TOKEN="wrong"), FAST)
    ensure_submitted(options(dashboard, RAY_AUTH_TOKEN="s3cret"), FAST)
    assert len(dashboard.bodies) == 1


def test_a_missing_token_file_is_named(dashboard: FakeDashboard) -> None:
    with pytest.raises(Refused, match="cannot read the token file /var/run/secrets/ray.io/serviceaccount/token"):
        ensure_submitted(options(dashboard, RAY_ENABLE_K8S_TOKEN_AUTH="true"), FAST)
