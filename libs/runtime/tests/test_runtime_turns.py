"""Turns of roots as dashboards made for KubeRay count them (contract platform §7.2), on virtual time."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest
from prometheus_client import REGISTRY

from raybus.api import subjects
from raybus.api.decision import NOTHING, Decision
from raybus.api.messages import H_RV, H_SCHEMA, H_UID, SCHEMA, Epoch
from raybus.api.names import partition_of
from raybus.api.times import Instant
from raybus.api.view import View
from raybus.runtime.calm import Calm
from raybus.runtime.controller import Controller
from raybus.runtime.partition import Partition
from raybus.telemetry import metrics
from raybus.testkit.fake_bus import BusServer
from raybus.testkit.virtual_time import run_virtual

NS, NAME = "default", "one"
PARTITION = partition_of(NS, NAME)
Decide = Callable[[View, Instant, None], Decision]


def _raises(view: View, now: Instant, knobs: None) -> Decision:
    raise RuntimeError("a bug")


def total(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, {"controller": "rayjob", **labels}) or 0.0


@pytest.mark.parametrize(
    ("decide", "result", "errors"),
    [
        pytest.param(lambda view, now, knobs: NOTHING, "success", 0.0, id="nothing to wait for"),
        pytest.param(
            lambda view, now, knobs: Decision(wake_at=Instant(now + 60)), "requeue_after", 0.0, id="looked at again"
        ),
        pytest.param(_raises, "error", 1.0, id="a bug"),
    ],
)
def test_each_turn_is_counted_by_what_came_of_it(decide: Decide, result: str, errors: float) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()

        def now() -> Instant:
            return Instant(1e9 + loop.time())

        server = BusServer(now)
        bus = server.connect()
        created = (await bus.stream_created("VIEW")).encode()
        await bus.put("VIEW", subjects.fill_marker("job", PARTITION), created, {H_SCHEMA: SCHEMA})
        meta = {"name": NAME, "namespace": NS, "uid": "u", "resourceVersion": "1", "generation": 1}
        headers = {H_RV: "1", H_UID: "u", H_SCHEMA: SCHEMA}
        subject = subjects.view("job", NS, NAME, "rayjob", NAME)
        await bus.put("VIEW", subject, msgspec.json.encode({"metadata": meta}), headers)
        controller = Controller("job", {"rayjob": msgspec.json.decode}, lambda view: view, decide, None)
        partition = Partition(controller, PARTITION, Epoch(1, 7), server.connect(), now, Calm(loop.time))
        task = asyncio.create_task(partition.run())
        await asyncio.sleep(1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    names = ("controller_runtime_reconcile_time_seconds_count", "controller_runtime_reconcile_errors_total")
    before = total("controller_runtime_reconcile_total", result=result), *(total(name) for name in names)
    run_virtual(story())
    after = total("controller_runtime_reconcile_total", result=result), *(total(name) for name in names)
    assert tuple(b - a for a, b in zip(before, after, strict=True)) == (1.0, 1.0, errors)


def test_buckets_are_those_of_controller_runtime() -> None:
    metrics.RECONCILE_SECONDS.labels("rayjob")
    bounds = [
        sample.labels["le"]
        for family in REGISTRY.collect()
        if family.name == "controller_runtime_reconcile_time_seconds"
        for sample in family.samples
        if sample.name.endswith("_bucket") and sample.labels["controller"] == "rayjob"
    ]
    assert bounds[:4] == ["0.005", "0.01", "0.025", "0.05"] and bounds[-3:] == ["50.0", "60.0", "+Inf"]
    assert len(bounds) == 41
