"""Following the log to the job's end, against scripted connections."""

import socket
import threading
from collections.abc import Iterator

import pytest

from raybus.submitter.dashboard import Job, Refused, Unreachable
from raybus.submitter.follow import follow
from raybus.submitter.options import Options, parse_options
from raybus.submitter.timing import Timing
from raybus.testkit.fake_dashboard import FakeDashboard, TailConnection

FAST = Timing(call=1, first_wait=0.01, longest_wait=0.05, give_up=0.4, quiet=0.1)


@pytest.fixture
def dashboard() -> Iterator[FakeDashboard]:
    with FakeDashboard().serving() as serving:
        serving.jobs["job-1"] = {"status": "RUNNING"}
        yield serving


def options(dashboard: FakeDashboard) -> Options:
    env = {"RAY_DASHBOARD_ADDRESS": dashboard.address, "RAY_JOB_SUBMISSION_ID": "job-1"}
    return parse_options(["--", "x"], env)


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def logged(dashboard: FakeDashboard) -> int:
    """How often the whole log was asked for."""
    return dashboard.requests.count("GET /api/jobs/job-1/logs")


def test_a_log_to_its_end(dashboard: FakeDashboard, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = "line 1\nliné 2\nno line end".encode()

    def tail(connection: TailConnection) -> None:
        connection.send(log[:3], final=False)
        connection.send(b"are you there?", opcode=9)
        assert connection.read()[:1] == b"\x8a"  # a pong
        connection.send(log[3:], opcode=0)
        dashboard.end("job-1", message="all good")
        dashboard.log = log.decode()
        connection.close()

    dashboard.tails = [tail]
    assert follow(options(dashboard), FAST) == Job("SUCCEEDED", "all good")
    captured = capfdbinary.readouterr()
    assert (captured.out, captured.err) == (log + b"\n", b"")


def test_lost_connections_print_nothing_twice(dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]) -> None:
    log = b"".join(b"line %d\n" % n for n in range(5000))

    def cut(at: int) -> None:
        def tail(connection: TailConnection) -> None:
            connection.send(log[:at])
            # An announced frame that never comes whole, then the connection is gone.
            connection.send_raw(b"\x81\x7e\xff\xff" + log[at : at + 10])

        dashboard.tails.append(tail)

    def whole(connection: TailConnection) -> None:
        for start in range(0, len(log), 777):
            connection.send(log[start : start + 777])
        dashboard.end("job-1", "FAILED", driver_exit_code=3)
        dashboard.log = log.decode()
        connection.close()

    for at in (5, 1000, 999, 30_000):
        cut(at)
    dashboard.tails.append(whole)
    job = follow(options(dashboard), FAST)
    assert (job.status, job.exit_code) == ("FAILED", 3)
    captured = capfd.readouterr()
    assert captured.out == log.decode()
    line = f"WARN -- lost the job's log at http://{dashboard.address}: the log connection was cut; trying again\n"
    assert captured.err == 4 * line


def test_a_message_too_big_for_ray_comes_with_the_whole_log(
    dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ray's own proxy breaks on a message above 4 MB and closes the connection as if all were well (ADR 0026)."""

    def tail(connection: TailConnection) -> None:
        connection.send(b"a\n")
        dashboard.end("job-1")
        connection.close()

    dashboard.tails = [tail]
    dashboard.log = "a\n" + "x" * 5_000_000 + "\nz\n"
    follow(options(dashboard), FAST)
    assert capfd.readouterr() == (dashboard.log, "")


def test_a_connection_that_ray_closes_while_the_job_runs_is_opened_again(
    dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]
) -> None:
    def early(connection: TailConnection) -> None:
        connection.send(b"a\n")
        connection.close()

    def late(connection: TailConnection) -> None:
        connection.send(b"a\nb\n")
        dashboard.end("job-1")
        connection.close()

    dashboard.tails = [early, early, late]
    dashboard.log = "a\nb\n"
    follow(options(dashboard), FAST)
    assert capfd.readouterr() == ("a\nb\n", "")


def test_a_complete_log_is_not_fetched_again(dashboard: FakeDashboard) -> None:
    release = threading.Event()

    def tail(connection: TailConnection) -> None:
        connection.send(b"a\n")
        release.wait(0.6)  # Ray looks twice, a second apart, before it closes
        dashboard.end("job-1")
        connection.close()

    dashboard.tails = [tail]
    follow(options(dashboard), FAST)
    assert logged(dashboard) == 0


def test_a_log_that_ray_cannot_read_is_said_to_be_incomplete(
    dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]
) -> None:
    def tail(connection: TailConnection) -> None:
        connection.send(b"a\n")
        dashboard.end("job-1")
        connection.close()

    dashboard.tails = [tail]
    dashboard.log = None
    assert follow(options(dashboard), FAST).status == "SUCCEEDED"
    captured = capfd.readouterr()
    assert captured.out == "a\n"
    assert captured.err == (
        "WARN -- the end of the job's log may be missing, Ray cannot deliver it: UnicodeDecodeError: 0xff\n"
    )


def test_a_quiet_connection_is_kept_while_the_job_runs(
    dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]
) -> None:
    def tail(connection: TailConnection) -> None:
        assert connection.read()[:1] == b"\x89"  # a ping after `quiet` seconds
        assert connection.read()[:1] == b"\x89"
        connection.send(b"a\n")
        dashboard.end("job-1")
        connection.close()

    dashboard.tails = [tail]
    dashboard.log = "a\n"
    follow(options(dashboard), FAST)
    assert capfd.readouterr() == ("a\n", "")


def test_a_dead_connection_of_an_ended_job_is_given_up(
    dashboard: FakeDashboard, capfd: pytest.CaptureFixture[str]
) -> None:
    def hang(connection: TailConnection) -> None:
        connection.send(b"a\n")
        dashboard.end("job-1")
        connection.wait_until_gone()

    dashboard.tails = [hang]
    dashboard.log = "a\nb\n"
    follow(options(dashboard), FAST)
    captured = capfd.readouterr()
    assert captured.out == "a\nb\n"
    assert "the job has ended, but its log has not; trying again" in captured.err


def test_a_job_that_ray_has_forgotten_is_an_error(dashboard: FakeDashboard) -> None:
    def forget(connection: TailConnection) -> None:
        connection.send(b"a\n")
        dashboard.jobs.clear()

    dashboard.tails = [forget]
    with pytest.raises(Refused, match="does not know job 'job-1' any more: its head was replaced"):
        follow(options(dashboard), FAST)


def test_a_dashboard_out_of_reach_is_given_up_in_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = address_of(server)
    env = {"RAY_DASHBOARD_ADDRESS": address, "RAY_JOB_SUBMISSION_ID": "job-1"}
    with pytest.raises(Unreachable, match=f"lost the Ray cluster at http://{address}: connection refused"):
        follow(parse_options(["--", "x"], env), FAST)
    assert "trying again" in capfd.readouterr().err


def test_a_head_that_accepts_and_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        env = {"RAY_DASHBOARD_ADDRESS": address_of(server), "RAY_JOB_SUBMISSION_ID": "job-1"}
        timing = Timing(call=0.1, first_wait=0.01, give_up=0.3)
        with pytest.raises(Unreachable, match="lost the Ray cluster"):
            follow(parse_options(["--", "x"], env), timing)


def test_a_head_that_drips_bytes_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()

        def drip(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\n")
                    while not stop.wait(0.01):
                        connection.sendall(b"x: y\r\n")
                except OSError:
                    return

        def accept() -> None:
            while not stop.is_set():
                try:
                    threading.Thread(target=drip, args=(server.accept()[0],)).start()
                except OSError:
                    return

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        env = {"RAY_DASHBOARD_ADDRESS": address_of(server), "RAY_JOB_SUBMISSION_ID": "job-1"}
        try:
            with pytest.raises(Unreachable, match="lost the Ray cluster"):
                follow(parse_options(["--", "x"], env), Timing(call=0.1, first_wait=0.01, give_up=0.3))
        finally:
            stop.set()
            server.shutdown(socket.SHUT_RDWR)
            acceptor.join()
