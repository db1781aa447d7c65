"""Least privilege, proven: `docs/permissions.md` is what the servers enforce, and what design §2 does not list fails
when it is tried. The rows of `test_bus_permissions.py` try single calls in a service's own words; here every service
tries everything."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
import yaml
from permission_dump import KUBERNETES, dump

from raybus.bus import NatsBus
from raybus.bus import jetstream as js
from raybus.bus.connection import Link
from raybus.bus.server_config import ROLES
from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl
from raybus.kube.client import connect
from raybus.kube.config import Access
from raybus.kube.port import KubeError, Rejected, Request
from raybus.testkit.fake_store import matches
from raybus.testkit.nats_server import NatsServer

BusOf = Callable[[str], Awaitable[NatsBus]]
ROOT = Path(__file__).resolve().parents[2]
CONTROLLERS = ("cluster-ctl", "job-ctl", "serve-ctl")

WRITES: dict[str, set[str]] = {
    "view.cluster.1.ns.r.pod.p": {"watcher", "applier"},
    "view.job.1.ns.r.rayjob.r": {"watcher", "applier"},
    "view.job.1.ns.r.fact.a": {"watcher", "prober"},
    "view.job.1.ns.r.result.applier": {"watcher", "applier"},
    "view.job.1.ns.r.presence.Secret=2fx": {"watcher"},
    "view.cluster.1.=.=.marker.fill": {"watcher"},
    "intent.cluster.1.ns.r": {"cluster-ctl"},
    "intent.job.1.ns.r": {"job-ctl"},
    "intent.cron.1.ns.r": {"job-ctl"},
    "intent.serve.1.ns.r": {"serve-ctl"},
    "ask.cluster.1.ns.r": {"cluster-ctl"},
    "ask.job.1.ns.r": {"job-ctl"},
    "ask.serve.1.ns.r": {"serve-ctl"},
    "timeline.raycluster.ns.r": {"cluster-ctl", "applier", "prober"},
    "timeline.rayjob.ns.r": {"job-ctl", "applier", "prober"},
    "timeline.rayservice.ns.r": {"serve-ctl", "applier", "prober"},
    **{f"$KV.ctl.lease.{name}.1": {name} for name in ROLES if name != "cli"},
    **{f"heartbeat.{name}.a": {name} for name in ROLES if name != "cli"},
    "$KV.ctl.anything": set(),
    "$JS.ACK.INTENT.applier-job-1.1.1.1.1.0": {"applier"},
    "$SYS.REQ.SERVER.PING": set(),
    "anything": set(),
}
"""Subject -> who may publish on it (design §2, and facts, results and presence from §3)."""

READS: dict[tuple[str, str], set[str]] = {
    ("VIEW", "view.cluster.1.>"): {"watcher", "cluster-ctl", "cli"},
    ("VIEW", "view.job.1.>"): {"watcher", "job-ctl", "cli"},
    ("VIEW", "view.cron.1.>"): {"watcher", "job-ctl", "cli"},
    ("VIEW", "view.serve.1.>"): {"watcher", "serve-ctl", "cli"},
    ("VIEW", "view.>"): {"watcher", "cli"},
    ("INTENT", "intent.cluster.1.>"): {"applier"},
    ("INTENT", "intent.>"): {"applier"},
    ("ASK", "ask.cluster.1.>"): {"watcher", "prober"},
    ("ASK", "ask.>"): {"watcher", "prober"},
    ("TIMELINE", "timeline.>"): {"cli"},
    **{
        ("KV_ctl", f"$KV.ctl.lease.{name}.*"): {name} | ({"applier", "prober"} if name in CONTROLLERS else set())
        for name in ROLES
        if name != "cli"
    },
    ("KV_ctl", "$KV.ctl.>"): set(),
}
"""(stream, filter) -> who may follow it."""

STREAM_OF = {"view": "VIEW", "intent": "INTENT", "ask": "ASK", "timeline": "TIMELINE", "$KV": "KV_ctl"}
MAKES_STREAMS = ("STREAM.CREATE", "STREAM.UPDATE")
UNFILTERED = [
    f"{verb}.{stream}"
    for stream in ("VIEW", "INTENT", "ASK", "TIMELINE", "KV_ctl")
    for verb in (
        "STREAM.CREATE",
        "STREAM.UPDATE",
        "STREAM.DELETE",
        "STREAM.PURGE",
        "STREAM.MSG.GET",
        "STREAM.MSG.DELETE",
        "STREAM.SNAPSHOT",
        "DIRECT.GET",
        "CONSUMER.CREATE",
        "CONSUMER.NAMES",
        "CONSUMER.LIST",
    )
]

PODS, JOBS = "/api/v1/namespaces/default/pods", "/apis/batch/v1/namespaces/default/jobs"
RAY = "/apis/ray.io/v1/namespaces/default"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
REFUSED: list[tuple[str, Method, str]] = [
    ("watcher", "POST", PODS),
    ("watcher", "DELETE", f"{PODS}/p"),
    ("watcher", "PATCH", f"{PODS}/p"),
    ("watcher", "POST", f"{RAY}/rayclusters"),
    ("watcher", "PUT", f"{RAY}/rayclusters/c"),
    ("watcher", "PUT", f"{RAY}/rayjobs/j/status"),
    ("watcher", "DELETE", f"{RAY}/rayjobs/j"),
    ("watcher", "POST", JOBS),
    ("watcher", "POST", "/apis/events.k8s.io/v1/namespaces/default/events"),
    ("watcher", "GET", "/api/v1/secrets"),
    ("watcher", "GET", "/api/v1/namespaces/default/secrets"),
    ("watcher", "GET", "/api/v1/namespaces/default/configmaps"),
    ("watcher", "GET", f"{PODS}/p/log"),
    ("watcher", "POST", f"{PODS}/p/exec"),
    ("watcher", "GET", "/api/v1/nodes"),
    ("applier", "GET", f"{RAY}/rayclusters"),
    ("applier", "GET", f"{RAY}/rayjobs"),
    ("applier", "GET", "/apis/ray.io/v1/rayjobs"),
    ("applier", "GET", JOBS),
    ("applier", "GET", "/api/v1/namespaces/default/services"),
    ("applier", "GET", "/api/v1/namespaces/default/secrets"),
    ("applier", "DELETE", PODS),
    ("applier", "DELETE", f"{RAY}/rayclusters"),
    ("applier", "POST", f"{PODS}/p/exec"),
    ("applier", "GET", f"{PODS}/p/log"),
    ("applier", "PUT", f"{PODS}/p/status"),
    ("applier", "POST", "/api/v1/namespaces"),
    ("applier", "POST", "/api/v1/namespaces/default/configmaps"),
    ("applier", "POST", "/apis/apps/v1/namespaces/default/deployments"),
    ("applier", "POST", f"{RIGHTS}/clusterroles"),
    ("applier", "POST", f"{RIGHTS}/clusterrolebindings"),
    ("applier", "GET", "/api/v1/nodes"),
    ("prober", "GET", PODS),
    ("prober", "GET", f"{PODS}/p"),
    ("prober", "POST", PODS),
    ("prober", "GET", f"{RAY}/rayclusters/c"),
    ("prober", "GET", f"{RAY}/rayjobs"),
    ("prober", "PUT", f"{RAY}/rayjobs/j/status"),
    ("prober", "GET", "/api/v1/namespaces/default/secrets"),
    ("prober", "GET", "/api/v1/namespaces/default/services/s"),
    ("prober", "POST", f"{PODS}/p/exec"),
]
"""(service, method, path) of what the API server must refuse."""

EVERYTHING = "*"


@pytest_asyncio.fixture
async def linked(nats_server: NatsServer) -> AsyncIterator[Callable[[str], Awaitable[Link]]]:
    """A bare connection as one of the bus's users, below all that the services' own code would refuse by itself."""
    opened: list[Link] = []

    async def open_link(user: str) -> Link:
        link = Link(user)
        opened.append(link)
        await link.open(nats_server.settings(user), None)
        return link

    yield open_link
    for link in opened:
        link.close()


async def test_the_page_says_what_the_servers_enforce(bare_cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> None:
    page, found = ROOT / "docs" / "permissions.md", await dump(bare_cluster, kubectl)
    fresh = tmp_path / "permissions.md"
    fresh.write_text(found)
    said = page.read_text() if page.exists() else ""
    assert said == found, f"permissions have changed: if that is meant, copy {fresh} to docs/permissions.md"


def test_only_three_services_have_a_role_and_none_has_a_wildcard() -> None:
    folder = ROOT / "charts" / "raybus" / "rbac"
    assert sorted(path.stem for path in folder.glob("*.yaml")) == sorted(KUBERNETES)
    for path in folder.glob("*.yaml"):
        for rule in yaml.safe_load(path.read_text())["rules"]:
            assert EVERYTHING not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"]), f"{path.name}: {rule}"
            assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(rule["verbs"])


@pytest.mark.parametrize("service", KUBERNETES)
async def test_the_api_server_refuses_what_is_not_a_services_work(bare_cluster: Cluster, service: str) -> None:
    access = Access(kubeconfig=str(bare_cluster.kubeconfig_for(service)))
    passed = []
    async with await connect(access, "raybus-test") as client:
        for _, method, path in (row for row in REFUSED if row[0] == service):
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            body = b"" if method == "GET" else b"{}"
            request = Request(method=method, path=path, body=body, content_type=kind)
            try:
                await client.send(request)
                answer = "done"
            except Rejected as error:
                answer = str(error.code)
            except KubeError as error:
                answer = str(error)
            if answer != "403":
                passed.append(f"{method} {path}: {answer}")
    assert not passed


@pytest.mark.parametrize("service", ROLES)
async def test_a_service_publishes_and_follows_exactly_what_design_lists(
    bus_of: BusOf, linked: Callable[[str], Awaitable[Link]], service: str
) -> None:
    await bus_of("watcher")
    link = await linked(service)
    writes = {subject for subject in WRITES if await _may(link, subject, b"x")}
    assert writes == {subject for subject, services in WRITES.items() if service in services}
    # Empty bodies make no consumer: all that counts is whether the server lets the request through.
    follows = {row for row in READS if await _may(link, f"{js.API}.CONSUMER.CREATE.{row[0]}.mine.{row[1]}", b"")}
    assert follows == {row for row, services in READS.items() if service in services}


@pytest.mark.parametrize("service", ROLES)
async def test_a_service_gets_only_what_it_follows_or_writes(
    bus_of: BusOf, linked: Callable[[str], Awaitable[Link]], service: str
) -> None:
    """One's own writes may be read back one by one: a lost acknowledgement is cleared up by it (ADR 0034)."""
    await bus_of("watcher")
    link = await linked(service)
    subjects = [subject for subject in WRITES if subject.split(".")[0] in STREAM_OF]
    gets = {s for s in subjects if await _may(link, f"{js.API}.DIRECT.GET.{STREAM_OF[s.split('.')[0]]}.{s}", b"")}
    writes = {s for s in subjects if service in WRITES[s] or (service == "applier" and s.startswith("view."))}
    reads = {s for s in subjects for row, services in READS.items() if service in services and matches(row[1], s)}
    assert gets == writes | reads


@pytest.mark.parametrize("service", ROLES)
async def test_no_service_reads_without_a_filter_or_manages_streams(
    bus_of: BusOf, linked: Callable[[str], Awaitable[Link]], service: str
) -> None:
    await bus_of("watcher")
    link = await linked(service)
    may = {call for call in UNFILTERED if await _may(link, f"{js.API}.{call}", b"")}
    makes = {call for call in UNFILTERED if call.startswith(MAKES_STREAMS)}
    assert may == (makes if service == "watcher" else set())


async def _may(link: Link, subject: str, body: bytes) -> bool:
    """Whether the server takes a message for `subject` from this user; what it answers does not matter."""
    link.refusal = ""
    link.publish(subject, body, link.new_inbox())
    await link.round_trip(5)
    return "Permissions Violation" not in link.refusal
