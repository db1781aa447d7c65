"""Objects that cannot be carried out: each is said once where its user looks, and nothing else suffers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bare_world import BareWorld, Json, cluster_spec, ray_cluster, ray_job
from processes import process
from test_explain import explained

from raybus.dev.kubectl import Kubectl
from raybus.dev.stack import Stack

Raybus = Callable[..., str]
BIG = 1_400_000
"""Bytes; the API server takes at most 1.5 MiB."""


def warnings(world: BareWorld, kind: str, name: str) -> list[Json]:
    """The Warning events about an object."""
    events = world.list("events.events.k8s.io")
    return [
        e for e in events if e["type"] == "Warning" and (e["regarding"]["kind"], e["regarding"]["name"]) == (kind, name)
    ]


def warned(world: BareWorld, kind: str, name: str, reason: str, says: str) -> None:
    """Wait for exactly one Warning of that reason, whose note holds `says`."""

    def found() -> list[Json] | None:
        return [e for e in warnings(world, kind, name) if e["reason"] == reason] or None

    events = world.wait(f"a Warning {reason} about {kind} {name}", found, seconds=40)
    assert says in events[0]["note"], events[0]["note"]
    assert len(events) == 1, f"said {len(events)} times"


def still_works(world: BareWorld, name: str) -> None:
    """Another object of the same kind gets its head."""
    world.apply(ray_cluster(name, workers=0))
    world.wait(
        "another cluster's head",
        lambda: any(p["metadata"]["name"].startswith(f"{name}-head") for p in world.list("pods")) or None,
    )


# ------------------------------------------------------------------ specs that are refused
def bad_group(**fields: Any) -> Json:
    """A RayCluster `bad` whose group has these fields."""
    cluster = ray_cluster("bad")
    cluster["spec"]["workerGroupSpecs"][0] |= fields
    return cluster


@pytest.mark.parametrize(
    ("cluster", "reason", "says"),
    [
        (bad_group(minReplicas=5, maxReplicas=1), "InvalidRayClusterSpec", "minReplicas 5 greater than maxReplicas 1"),
        (ray_cluster("b" * 54), "InvalidRayClusterMetadata", "no more than 53 characters"),
    ],
    ids=["bounds the wrong way round", "a name too long"],
)
def test_an_invalid_raycluster_has_a_warning_and_a_reason_and_no_pods(
    world: BareWorld, raybus: Raybus, cluster: Json, reason: str, says: str
) -> None:
    name = cluster["metadata"]["name"]
    world.apply(cluster)
    warned(world, "RayCluster", name, reason, says)
    world.wait("the reason in its status", lambda: says in world.status("raycluster", name).get("reason", "") or None)
    explained(world, raybus, f"raycluster/{name}", reason, says, "next:")
    still_works(world, "fine")
    assert not [pod for pod in world.list("pods") if pod["metadata"]["name"].startswith(name)]


@pytest.mark.parametrize(
    ("job", "reason", "says"),
    [
        (ray_job("bad", backoffLimit=-1), "InvalidRayJobSpec", "backoffLimit must be a positive integer"),
        (ray_job("bad", submissionMode="ByPigeon"), "NotSupported", "submissionMode ByPigeon is unknown"),
        (ray_job("j" * 48), "InvalidRayJobMetadata", "no more than 47 characters"),
    ],
    ids=["a negative limit", "an unknown submission mode", "a name too long"],
)
def test_an_invalid_rayjob_is_validation_failed_with_a_warning_and_no_cluster(
    world: BareWorld, raybus: Raybus, job: Json, reason: str, says: str
) -> None:
    name = job["metadata"]["name"]
    world.apply(job)
    warned(world, "RayJob", name, reason, says)
    world.wait(
        "its phase", lambda: world.status("rayjob", name).get("jobDeploymentStatus") == "ValidationFailed" or None
    )
    assert says in world.status("rayjob", name)["message"]
    explained(world, raybus, f"rayjob/{name}", "ValidationFailed", says, "kubectl edit rayjob")
    assert world.list("rayclusters") == []


# ------------------------------------------------------------------ what the world around lacks
def test_a_missing_secret_is_named_with_the_pod_that_wants_it(world: BareWorld, raybus: Raybus) -> None:
    reference = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "nowhere", "key": "token"}}}
    world.apply(ray_job("secretive", rayClusterSpec=cluster_spec(0, pod(env=[reference]))))
    (head,) = world.wait("the head", lambda: world.list("pods") or None)
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "nowhere" not found'}
    container = {"name": "ray", "image": "rayproject/ray:2.55.0", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Pending", "containerStatuses": [container | {"state": {"waiting": waiting}}]}
    world.set_status("pod", head["metadata"]["name"], status)
    parts = ("ContainerFailing", head["metadata"]["name"], 'secret "nowhere" not found', "next:")
    explained(world, raybus, "rayjob/secretive", *parts)


Rules = list[dict[str, list[str]]]


class Rights:
    """A role of the test's own, held by a service account; no other applier is touched."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self.kubectl, self.namespace, self.name = kubectl, namespace, f"applier-{namespace}"
        self.full: Rules = kubectl.json("get", "clusterrole", "raybus-applier")["rules"]

    def give(self, rules: Rules) -> None:
        """Let the account have these rules and no others."""
        head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": self.name}}
        account = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.name}
        for item in (
            {"kind": "ClusterRole", **head, "rules": rules},
            {"kind": "ClusterRoleBinding", **head, "roleRef": reference, "subjects": [account]},
        ):
            self.kubectl("apply", "-f", "-", stdin=json.dumps(item))

    def without_pods(self) -> Rules:
        """Everything but to create pods."""
        less: Rules = json.loads(json.dumps(self.full))
        for rule in less:
            if "create" in rule["verbs"]:
                rule["resources"] = [name for name in rule["resources"] if name != "pods"]
        return less

    def kubeconfig(self, server: str, file: Path) -> Path:
        """Credentials of the account."""
        self.kubectl("create", "serviceaccount", self.name, "-n", self.namespace)
        token = self.kubectl("create", "token", self.name, "-n", self.namespace).strip()
        config = {
            **{"apiVersion": "v1", "kind": "Config", "current-context": "c"},
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
        file.write_text(json.dumps(config))
        return file

    def forget(self) -> None:
        """Remove role and binding."""
        self.kubectl("delete", f"clusterrole/{self.name}", f"clusterrolebinding/{self.name}")


@pytest.fixture
def rights(stack: Stack, kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[Rights]:
    """The stack's applier makes way for one whose rights are the test's to change; it may not create pods yet."""
    found = Rights(kubectl, namespace)
    found.give(found.without_pods())
    own = {
        "RAYBUS_NATS_URL": stack.nats_url,
        "RAYBUS_NATS_PASSWORD": stack.passwords["applier"],
        "RAYBUS_KUBECONFIG": str(found.kubeconfig(stack.cluster.api_server_url, tmp_path / "applier.yaml")),
    }
    ours = stack.procs.pop("applier")
    ours.popen.terminate()
    assert ours.popen.wait(15) == 0
    try:
        with process("applier", tmp_path, own) as running:
            running.wait_ready()
            yield found
    finally:
        found.forget()
        stack.start_service("applier")
        stack.wait_ready()


def test_a_forbidden_create_is_said_and_made_up_for_when_the_right_is_given(
    rights: Rights, world: BareWorld, raybus: Raybus
) -> None:
    says = f'User "system:serviceaccount:{world.namespace}:{rights.name}" cannot create resource "pods"'
    world.apply(ray_cluster("locked", workers=1))
    warned(world, "RayCluster", "locked", "FailedToCreateHeadPod", says)
    explained(world, raybus, "raycluster/locked", "Forbidden", "Pod locked-head-", says, "next:", "Grant the applier")
    assert world.get("service", "locked-head-svc") is not None, "the head Service does not wait for the pod"
    assert world.list("pods") == []

    def told() -> list[Json]:
        return [e for e in warnings(world, "RayCluster", "locked") if e["reason"] == "FailedToCreateHeadPod"]

    world.wait("the second attempt", lambda: told()[0].get("series", {}).get("count", 0) > 1 or None, seconds=60)
    rights.give(rights.full)
    world.wait("head and worker", lambda: len(world.list("pods")) == 2 or None, seconds=60)
    assert len(told()) == 1, "each attempt is counted, not said anew"


# ------------------------------------------------------------------ large objects
def pod(**fields: Any) -> Json:
    """A pod of Ray with more in its container."""
    return {"containers": [{"name": "ray", "image": "rayproject/ray:2.55.0", **fields}]}


def test_a_raycluster_of_one_and_a_half_megabytes_gets_its_head(world: BareWorld, raybus: Raybus, stack: Stack) -> None:
    world.apply(ray_cluster("large", workers=0, pod=pod(env=[{"name": "BIG", "value": "x" * BIG}])))
    (head,) = world.wait("the head", lambda: world.list("pods") or None)
    env = {item["name"]: item.get("value") for item in head["spec"]["containers"][0]["env"]}
    assert len(env["BIG"] or "") == BIG
    world.pods_ready(1)
    world.wait("ready", lambda: world.status("raycluster", "large").get("state") == "ready" or None)
    told = raybus("timeline", "raycluster/large", "-n", world.namespace)
    assert "create Pod large-head-" in told and len(told) < 20_000
    assert stack.ended() == []


def test_a_rayjob_of_that_size_gets_its_cluster_and_head(world: BareWorld, raybus: Raybus) -> None:
    spec = cluster_spec(0, pod(env=[{"name": "BIG", "value": "x" * BIG}]))
    world.apply(ray_job("large", rayClusterSpec=spec))
    world.wait("the head", lambda: world.list("pods") or None)
    world.pods_ready(1)
    cluster = world.status("rayjob", "large")["rayClusterName"]
    world.wait("ready", lambda: world.status("raycluster", cluster).get("state") == "ready" or None)
    world.wait("Running", lambda: world.status("rayjob", "large").get("jobDeploymentStatus") == "Running" or None)
    assert len(raybus("timeline", "rayjob/large", "-n", world.namespace)) < 20_000
