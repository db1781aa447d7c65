"""The running services as the kernel shows them: who holds a credential and whom each one talks to; and what becomes of
a Decision or an ask that bears an epoch nobody has."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from bare_world import POD, BareWorld, Json, ray_cluster

from raybus.api import subjects
from raybus.api.decision import Create, Delete, Head, ProbeJob, Ref
from raybus.api.messages import (
    H_EPOCH,
    H_SCHEMA,
    H_VIEW_SEQ,
    SCHEMA,
    AskMessage,
    Epoch,
    IntentMessage,
    Result,
    Root,
)
from raybus.bus import BusSettings, NatsBus, connect
from raybus.dev.stack import SERVICES, Stack

CONTROLLERS = [service for service, has_credential in SERVICES.items() if not has_credential]
CREDENTIALS = re.compile(rb"^(KUBECONFIG|KUBERNETES_SERVICE_HOST|KUBERNETES_SERVICE_PORT|RAYBUS_KUBECONFIG)=", re.M)
REACHES_OUT = ("kubernetes", "httpx", "httpx_aiohttp", "aiohttp", "requests", "urllib3", "raybus.kube", "raybus.ray")
ESTABLISHED, LISTENING = "01", "0A"


def environment(pid: int) -> bytes:
    """The environment that a process was started with, one variable a line."""
    return Path(f"/proc/{pid}/environ").read_bytes().replace(b"\0", b"\n")


def sockets(pid: int) -> list[tuple[str, int, int]]:
    """(state, local port, remote port) of a process's TCP sockets."""
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    mine = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    rows = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in mine:
                local, remote = (int(field.rpartition(":")[2], 16) for field in fields[1:3])
                rows.append((fields[3], local, remote))
    return rows


def open_files(pid: int) -> list[str]:
    return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]


@pytest.mark.parametrize("service", SERVICES)
def test_only_watcher_applier_and_prober_are_given_a_credential(stack: Stack, service: str) -> None:
    found = {match.decode() for match in CREDENTIALS.findall(environment(stack.procs[service].popen.pid))}
    assert found == ({"KUBECONFIG"} if SERVICES[service] else set())


@pytest.mark.parametrize("service", CONTROLLERS)
def test_a_controller_talks_to_the_bus_and_to_nobody_else(stack: Stack, service: str) -> None:
    proc = stack.procs[service]
    rows = sockets(proc.popen.pid)
    assert {local for state, local, _ in rows if state == LISTENING} == {proc.health_port}
    talks = {(local, remote) for state, local, remote in rows if state == ESTABLISHED}
    assert {remote for local, remote in talks if local != proc.health_port} == {
        int(port) for port in re.findall(r":(\d+)", stack.nats_url)
    }
    assert not [name for name in open_files(proc.popen.pid) if "kubeconfig" in name or "serviceaccount" in name]


@pytest.mark.parametrize("service", CONTROLLERS)
def test_a_controller_runs_where_nothing_is_installed_that_could_reach_kubernetes_or_ray(service: str) -> None:
    """As in its image: its dependency list leads to none of these (`tests/contract/test_dependency_lists.py`)."""
    module = f"raybus.{service.replace('-', '_')}.__main__"
    program = f"import sys; sys.modules.update(dict.fromkeys({REACHES_OUT})); import {module}"
    subprocess.run([sys.executable, "-c", program], check=True)


def as_service(stack: Stack, service: str) -> BusSettings:
    return BusSettings(url=stack.nats_url, user=service, password=stack.passwords[service], name="forger")


async def forge(stack: Stack, root: Root, epoch: Epoch, pod: Json) -> None:
    """Write a status, create a pod and delete `pod`, as somebody who has cluster-ctl's password but holds no lease."""
    bus = await connect(as_service(stack, "cluster-ctl"))
    new, meta = Ref("Pod", root.namespace, f"forged-{epoch.revision}"), pod["metadata"]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": new.name}, "spec": POD}
    doomed = Delete(ref=Ref("Pod", root.namespace, meta["name"]), uid=meta["uid"])
    message = IntentMessage(root=root, status={"state": "forged"}, intents=(Create(ref=new, body=body), doomed))
    headers = {H_EPOCH: str(epoch), H_VIEW_SEQ: str(2**40), H_SCHEMA: SCHEMA}
    subject = subjects.intent("cluster", root.namespace, root.name)
    await bus.put("INTENT", subject, msgspec.json.encode(message), headers)
    await bus.close()


async def last_result(bus: NatsBus, root: Root) -> Result | None:
    message = await bus.last("VIEW", subjects.view("cluster", root.namespace, root.name, subjects.RESULT, "applier"))
    return msgspec.json.decode(message.data, type=Result) if message is not None and message.data else None


@pytest.mark.parametrize("change", [-1, 1000], ids=["of a former owner", "of nobody"])
async def test_a_forged_epoch_has_no_effect_and_is_said(stack: Stack, world: BareWorld, change: int) -> None:
    world.apply(ray_cluster("c"))
    pods = world.pods_ready(2)
    item = world.wait("a ready status", lambda: i if (i := world.get("rayclusters", "c")) and i.get("status") else None)
    meta = item["metadata"]
    root = Root(
        kind="RayCluster",
        namespace=world.namespace,
        name="c",
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        generation=meta["generation"],
    )
    reader = await connect(as_service(stack, "cli"))
    before = {pod["metadata"]["uid"] for pod in world.list("pods")}
    forged_at = time.time()
    created = await reader.bucket_created()
    await forge(stack, root, Epoch(created + (change if change < 0 else 0), max(change, 1)), pods[0])
    async with asyncio.timeout(20):
        while (found := await last_result(reader, root)) is None or found.drop is None or found.drop.at < forged_at:
            await asyncio.sleep(0.1)
    await reader.close()
    assert found.drop.cause == "epoch"
    assert {pod["metadata"]["uid"] for pod in world.list("pods")} == before
    assert world.status("rayclusters", "c").get("state") != "forged"


async def test_an_ask_with_a_forged_epoch_makes_no_call(
    stack: Stack, world: BareWorld, until_logged: Callable[[str, str], None]
) -> None:
    bus = await connect(as_service(stack, "job-ctl"))
    root = Root(kind="RayJob", namespace=world.namespace, name="j", uid="u", resource_version="1")
    head = Head(cluster="c", pod_uid="p", service="s", url="http://127.0.0.1:9")
    message = AskMessage(root=root, asks=(ProbeJob(id="job", head=head, job_id="x"),))
    headers = {H_EPOCH: str(Epoch(await bus.bucket_created(), 10**9)), H_SCHEMA: SCHEMA}
    subject = subjects.ask("job", world.namespace, "j")
    await bus.put("ASK", subject, msgspec.json.encode(message), headers)
    until_logged("prober", subject)
    assert await bus.last("VIEW", subjects.view("job", world.namespace, "j", subjects.FACT, "job")) is None
    await bus.close()


@pytest.fixture
def until_logged(stack: Stack) -> Callable[[str, str], None]:
    """Waits until a service has said that it skipped an ask on a subject."""

    def wait(service: str, subject: str) -> None:
        deadline = time.monotonic() + 20
        while not any("ask skipped" in line and subject in line for line in stack.procs[service].log.open()):
            assert time.monotonic() < deadline, f"{service} never spoke of {subject}"
            time.sleep(0.1)

    return wait
