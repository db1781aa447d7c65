"""The metrics of roots on the page of a real process."""

from pathlib import Path

import msgspec
import pytest
from processes import on_bus, process

from raybus.api import subjects
from raybus.api.kinds import BY_KIND, ROOTS
from raybus.api.messages import H_GONE, H_RV, H_SCHEMA, H_UID, SCHEMA
from raybus.api.names import PARTITIONS
from raybus.bus import connect
from raybus.bus.streams import ensure_streams
from raybus.testkit.nats_server import CLUSTER, NatsServer

LABELS = 'name="one",namespace="n",uid="u1"'


@pytest.mark.parametrize(
    ("controller", "status", "line"),
    [
        ("cluster", {}, f'kuberay_cluster_condition_provisioned{{condition="false",{LABELS}}} 1'),
        (
            "job",
            {"jobDeploymentStatus": "Running"},
            f'kuberay_job_deployment_status{{deployment_status="Running",{LABELS}}} 1',
        ),
    ],
)
async def test_a_root_is_on_the_page_until_it_is_gone(
    nats_server: NatsServer, tmp_path: Path, controller: str, status: dict[str, str], line: str
) -> None:
    watcher, kind = await connect(nats_server.settings("watcher")), ROOTS[controller]
    await ensure_streams(watcher, CLUSTER)
    meta = {"name": "one", "namespace": "n", "uid": "u1", "resourceVersion": "1", "generation": 1}
    body = {"metadata": meta, "spec": {"managedBy": "somebody.example/else"}, "status": status}
    headers = {H_RV: "1", H_UID: "u1", H_SCHEMA: SCHEMA}
    subject = subjects.view(controller, "n", "one", BY_KIND[kind].token, "one")
    await watcher.put("VIEW", subject, msgspec.json.encode(body), headers)
    created = (await watcher.stream_created("VIEW")).encode()
    for number in range(PARTITIONS):
        await watcher.put("VIEW", subjects.fill_marker(controller, number), created, {H_SCHEMA: SCHEMA})
    service = f"{controller}-ctl"
    with process(service, tmp_path, on_bus(nats_server, service)) as running:
        running.wait_ready()
        running.wait("the root is shown", lambda: line in running.get("/metrics")[1].splitlines())
        await watcher.put("VIEW", subject, b"", {**headers, H_GONE: "deleted"})
        running.wait("the root is no more shown", lambda: "kuberay_" not in running.get("/metrics")[1])
        assert f'controller_runtime_reconcile_total{{controller="{kind.lower()}"' in running.get("/metrics")[1]
        assert running.terminate() == 0
    await watcher.close()
