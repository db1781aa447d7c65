"""The whole program as a process: last line, exit status, signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from raybus.testkit.fake_dashboard import FakeDashboard, TailConnection


@pytest.fixture
def dashboard() -> Iterator[FakeDashboard]:
    with FakeDashboard().serving() as serving:
        yield serving


def start(dashboard: FakeDashboard, *flags: str, **env: str) -> "subprocess.Popen[str]":
    given = {"RAY_DASHBOARD_ADDRESS": dashboard.address, "RAY_JOB_SUBMISSION_ID": "job-1", **env}
    command = [sys.executable, "-m", "raybus.submitter", *flags, "--", "python", "x.py"]
    return subprocess.Popen(command, env=os.environ | given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ending(dashboard: FakeDashboard, status: str, **more: object) -> None:
    def tail(connection: TailConnection) -> None:
        connection.send(b"hello\n")
        dashboard.end("job-1", status, **more)
        dashboard.log = "hello\n"
        connection.close()

    dashboard.tails = [tail]


RESULTS = {
    "success": ("SUCCEEDED", {}, 0, "SUCC -- Job 'job-1' succeeded"),
    "failure": (
        "FAILED",
        {"message": "command failed with exit code 7, last logs:\nboom", "driver_exit_code": 7},
        7,
        "FAIL -- Job 'job-1' failed: command failed with exit code 7, last logs",
    ),
    "killed": (
        "FAILED",
        {"message": "", "driver_exit_code": -9},
        137,
        "FAIL -- Job 'job-1' failed: Ray gives no reason",
    ),
    "never started": ("FAILED", {"message": "no env"}, 1, "FAIL -- Job 'job-1' failed: no env"),
    "stopped": ("STOPPED", {}, 1, "INFO -- Job 'job-1' was stopped"),
}


@pytest.mark.parametrize(("status", "more", "own", "last"), RESULTS.values(), ids=RESULTS)
def test_the_result_is_the_last_line_and_with_a_flag_the_exit_status(
    dashboard: FakeDashboard, status: str, more: dict[str, object], own: int, last: str
) -> None:
    ending(dashboard, status, **more)
    process = start(dashboard)
    out, err = process.communicate(timeout=20)
    assert out.splitlines() == [
        "SUCC -- Job 'job-1' submitted successfully",
        "INFO -- Tailing logs until the job finishes:",
        "hello",
        last,
    ]
    assert (process.returncode, err) == (0, "")

    process = start(dashboard, "--exit-code")
    out, _ = process.communicate(timeout=20)
    assert process.returncode == own
    assert out.splitlines()[0] == "INFO -- Job 'job-1' has already been submitted, tailing logs."
    assert out.splitlines()[-2:] == ["hello", last]
    assert len(dashboard.bodies) == 1


def test_errors_are_one_line_and_a_status(dashboard: FakeDashboard) -> None:
    dashboard.submit_errors = [(400, "TypeError: entrypoint must be a string")]
    process = start(dashboard)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err == "ERROR -- the dashboard answered 400: TypeError: entrypoint must be a string\n"

    process = start(dashboard, "--no-such-flag")
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, "")
    assert err == "ERROR -- unrecognized arguments: --no-such-flag (see /submitter --help)\n"

    process = start(dashboard, RAY_JOB_SUBMISSION_ID="")
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (1, "ERROR -- environment variable RAY_JOB_SUBMISSION_ID is not set\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_leaves_at_once_when_told_to(dashboard: FakeDashboard, number: signal.Signals) -> None:
    def tail(connection: TailConnection) -> None:
        connection.send(b"hello\n")
        connection.wait_until_gone()

    dashboard.tails = [tail]
    process = start(dashboard)
    assert process.stdout is not None
    while process.stdout.readline() != "hello\n":
        pass
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 128 + number
    assert err == f"ERROR -- stopped by {number.name}; the Ray job is not\n"


WAITS = {"no name yet": ("no-head.invalid:8265", "its name does not resolve (yet)"), "no port yet": ("", "refused")}


@pytest.mark.parametrize(("address", "why"), WAITS.values(), ids=WAITS)
def test_it_says_what_it_waits_for_and_leaves_at_once_when_told_to(address: str, why: str) -> None:
    with FakeDashboard().serving() as gone:
        pass
    process = start(gone, RAY_DASHBOARD_ADDRESS=address or gone.address)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(f"INFO -- Waiting for the Ray cluster at http://{address or gone.address}: ")
    assert why in line
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == 143
