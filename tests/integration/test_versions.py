"""Versions beside each other: each service in turn one release behind the others, and one ahead of them, while
RayClusters and RayJobs keep coming on one bus (ADR 0105)."""

import asyncio
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from bare_world import Dashboard
from processes import http_get
from release_trees import Trees, make_trees, search_path, version_of
from small_load import Load
from stacks import OUTSIDE, running_stack

from raybus.api.schema import H_SCHEMA
from raybus.bus import BusSettings, connect
from raybus.dev.cluster import Cluster
from raybus.dev.stack import SERVICES, Stack
from raybus.kube.client import connect as connect_kube
from raybus.kube.config import Access

EVERY = 3.0
"""Seconds between two new roots."""
MORE = 3
"""Roots that come while a mixture of releases is at work; they and all earlier ones must get through."""
UNREAD = re.compile(r"^raybus_(?:bad|newer)_messages_total\{.*\} [1-9].*$", re.M)
SEEN_IN = {
    "watcher": ("VIEW", "view.*.*.{}.*.pod.*"),
    "cluster-ctl": ("TIMELINE", "timeline.raycluster.{}.*"),
    "job-ctl": ("TIMELINE", "timeline.rayjob.{}.*"),
    "applier": ("TIMELINE", "timeline.*.{}.*"),
    "prober": ("TIMELINE", "timeline.*.{}.*"),
}
"""Where a service that has work writes messages: stream and subjects, for a namespace."""


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Trees:
    return make_trees(tmp_path_factory.mktemp("releases"))


def release(tree: Path) -> Mapping[str, str]:
    """Settings of a service of that release."""
    return {**OUTSIDE, "PYTHONPATH": search_path(tree)}


async def replace(stack: Stack, service: str, tree: Path) -> None:
    """As an upgrade in Kubernetes does: start a replica of another release, then stop the present one in order."""
    (present,) = (name for name, proc in stack.procs.items() if proc.service == service)
    stack.settings = release(tree)
    stack.start_service(service, 1 if present == service else 0)
    await asyncio.to_thread(stack.wait_ready)
    stack.signal(present, signal.SIGTERM)
    assert await asyncio.to_thread(stack.procs[present].popen.wait, 30) == 0
    del stack.procs[present]


async def versions_written(stack: Stack, service: str, namespace: str) -> set[str]:
    """The versions of what a service has written about that namespace."""
    bus = await connect(BusSettings(url=stack.nats_url, user="cli", password=stack.passwords["cli"]))
    stream, subjects = SEEN_IN[service]
    messages = await bus.history("VIEW" if stream == "VIEW" else "TIMELINE", subjects.format(namespace))
    await bus.close()
    its = [m for m in messages if stream == "VIEW" or msgspec.json.decode(m.data)["service"] == service]
    return {message.headers[H_SCHEMA] for message in its}


def left_unread(stack: Stack) -> list[str]:
    """What any service counts as a message that it could not read."""
    services = [proc for proc in stack.procs.values() if proc.health_port]
    pages = {proc.name: http_get(proc.health_port, "/metrics")[1] for proc in services}
    return [f"{name}: {line}" for name, page in pages.items() for line in UNREAD.findall(page)]


def test_the_two_releases_are_what_they_should_be(trees: Trees) -> None:
    old, new = version_of(trees.old), version_of(trees.new)
    assert old != new and old.split(".")[0] == new.split(".")[0]


@pytest.mark.parametrize("turn", ["behind", "ahead"])
async def test_each_service_in_turn_is_of_another_release(
    bare_cluster: Cluster, dashboard_address: str, namespace: str, trees: Trees, tmp_path: Path, turn: str
) -> None:
    one, others = (trees.old, trees.new) if turn == "behind" else (trees.new, trees.old)
    dashboard = Dashboard()
    dashboard.first = {"status": "SUCCEEDED", "message": "done", "start_time": 1, "end_time": 2}
    access = Access(kubeconfig=str(bare_cluster.kubeconfig))
    with (
        dashboard.serve(dashboard_address) as port,
        running_stack(bare_cluster, tmp_path / "run", release(others)) as stack,
    ):
        async with await connect_kube(access, "raybus-test") as client:
            load = Load(client, namespace, (dashboard_address, port), EVERY)
            coming = asyncio.create_task(load.run())
            await load.through(MORE)
            for service in SERVICES:
                await replace(stack, service, one)
                await load.through(MORE)
                assert left_unread(stack) == [], service
                if service in SEEN_IN:
                    assert version_of(one) in await versions_written(stack, service, namespace), service
                await replace(stack, service, others)
            await load.through(MORE)
            assert not coming.done(), coming.result()
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await coming
        assert left_unread(stack) == [] and stack.ended() == []
        assert not [log.name for log in stack.folder.glob("*.log") if "Traceback" in log.read_text()]
