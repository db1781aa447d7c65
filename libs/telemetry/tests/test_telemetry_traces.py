"""Traces: off without an endpoint, and then free; the trace of a root is the same everywhere."""

import subprocess
import sys

import pytest

from raybus.telemetry import traces


@pytest.mark.parametrize("service", ["watcher", "cluster_ctl", "job_ctl", "serve_ctl", "applier", "prober"])
def test_a_service_that_exports_nothing_does_not_even_load_opentelemetry(service: str) -> None:
    look = "print(sorted(m for m in sys.modules if m.startswith('opentelemetry')))"
    program = (
        f"import sys, raybus.{service}.__main__\n"
        "from raybus.telemetry.traces import configure_traces, span\n"
        f"assert not configure_traces('x')\nwith span('s') as headers:\n    assert headers == {{}}\n{look}"
    )
    done = subprocess.run([sys.executable, "-c", program], env={}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_an_endpoint_there_is_nothing_to_hand_on() -> None:
    assert traces.root_parent("uid") == {} and not traces.enabled()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}, "a" * 32), ({}, ""), ({"traceparent": "x"}, "")],
    ids=["W3C", "none", "no such thing"],
)
def test_the_trace_id_of_headers(headers: dict[str, str], expected: str) -> None:
    assert traces.trace_id(headers) == expected
