"""Network policies and mutual TLS."""

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raybus.api.decision import Apply, Create, CreatePods, Decision, Delete, Patch, Ref
from raybus.api.messages import Presence
from raybus.api.reasons import Reason
from raybus.api.times import Instant, format_time
from raybus.cluster_ctl.build.tls import put_wait_first
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.gather import DECODERS
from raybus.cluster_ctl.settings import DEFAULT_GATES, ClusterKnobs
from raybus.testkit import rayclusters as kit

GATES = DEFAULT_GATES | {"RayClusterNetworkPolicy", "RayClusterMTLS", "RayClusterHistoryServer"}
CONTROLLER = controller(ClusterKnobs(gates=GATES))
NOW = Instant(1_800_000_000.0)
KEYS = ("ca.crt", "tls.crt", "tls.key")


def decide(cluster: kit.Json, *children: kit.Json, **view: Any) -> Decision:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children, **view))
    assert value is not None
    return CONTROLLER.decide(value, NOW, CONTROLLER.knobs)


def policies(decision: Decision) -> dict[str, kit.Json]:
    made = (i for i in decision.intents if isinstance(i, Create) and i.ref.kind == "NetworkPolicy")
    return {intent.ref.name: intent.body["spec"] for intent in made}


def stored(decision: Decision, *kinds: str) -> list[kit.Json]:
    """What the decision makes, as the API server would store it."""
    bodies = [i.body for i in decision.intents if isinstance(i, Create) and i.ref.kind in kinds]
    return [
        {**b, "metadata": {**b["metadata"], "uid": b["metadata"]["name"], "resourceVersion": "3", "generation": 1}}
        for b in bodies
    ]


def isolated(config: kit.Json, *groups: str) -> kit.Json:
    return kit.raycluster("c", *(kit.group(name, 0) for name in groups), spec={"networkPolicy": config})


def test_one_policy_for_the_head_and_one_for_each_group() -> None:
    found = policies(decide(isolated({}, "a", "b")))
    assert list(found) == ["c-head", "c-workers-a", "c-workers-b"]
    assert found["c-head"]["policyTypes"] == ["Ingress", "Egress"]


def test_the_entry_of_a_group_takes_the_place_of_the_common_rules_in_both_directions() -> None:
    config = {
        "worker": {"ingressRules": [{"ports": [{"port": 1}]}], "egressRules": [{}]},
        "workerGroups": [{"groupName": "a", "egressRules": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}],
    }
    found = policies(decide(isolated(config, "a", "b")))
    assert len(found["c-workers-a"]["ingress"]) == 1 and len(found["c-workers-a"]["egress"]) == 2
    assert found["c-workers-b"]["ingress"][1] == {"ports": [{"port": 1, "protocol": "TCP"}]}


def test_the_submitter_of_a_rayjob_reaches_the_dashboard() -> None:
    labels = {"ray.io/job-submission-mode": "K8sJobMode"}
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "j", "uid": "j", "controller": True}
    cluster = kit.raycluster("c", spec={"networkPolicy": {}}, labels=labels, ownerReferences=[owner])
    rule = policies(decide(cluster))["c-head"]["ingress"][1]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8265}]
    assert rule["from"][0]["podSelector"]["matchLabels"]["ray.io/originated-from-cr-name"] == "j"


def test_policies_follow_the_spec_and_go_with_it() -> None:
    there = stored(decide(isolated({}, "a")), "NetworkPolicy")
    assert not [i for i in decide(isolated({}, "a"), *there).intents if isinstance(i, (Patch, Delete))]
    changed = decide(isolated({"mode": "DenyAllIngress"}), *there).intents
    assert [i.ref.name for i in changed if isinstance(i, Patch)] == ["c-head"]
    assert [i.ref.name for i in changed if isinstance(i, Delete)] == ["c-workers-a"]
    gone = decide(kit.raycluster("c"), *there).intents
    assert [i.ref.name for i in gone if isinstance(i, Delete)] == ["c-head", "c-workers-a"]


def test_what_the_api_server_leaves_out_is_no_difference() -> None:
    cluster = isolated(
        {"head": {"egressRules": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": []}}], "ports": []}]}}
    )
    (there,) = stored(decide(cluster), "NetworkPolicy")
    there["spec"]["egress"][1] = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    assert not [i for i in decide(cluster, there).intents if isinstance(i, Patch)]


def test_a_policy_of_somebody_else_is_not_ours_to_delete() -> None:
    foreign = stored(decide(isolated({})), "NetworkPolicy")[0]
    foreign["metadata"]["ownerReferences"] = []
    assert not [i for i in decide(kit.raycluster("c"), foreign).intents if isinstance(i, Delete)]


WRONG: dict[str, tuple[kit.Json, str]] = {
    "an unknown group": ({"workerGroups": [{"groupName": "x"}]}, "unknown group: x"),
    "rules without effect": ({"mode": "DenyAllEgress", "worker": {"ingressRules": [{}]}}, "worker.ingressRules"),
    "an unknown mode": ({"mode": "AllowAll"}, "AllowAll"),
}


@pytest.mark.parametrize(("config", "says"), WRONG.values(), ids=WRONG)
def test_a_network_policy_that_cannot_be(config: kit.Json, says: str) -> None:
    (note,) = decide(isolated(config, "a")).notes
    assert note.reason == Reason.INVALID_RAY_CLUSTER_SPEC and says in note.text


# ------------------------------------------------------------------ mutual TLS
SECURE = kit.raycluster("c", kit.group("w", 1), spec={"tlsOptions": {"enabled": True}})
SECRETS = [
    Presence(ref=Ref("Secret", kit.NAMESPACE, name), exists=True, keys=KEYS)
    for name in ("c-ca-secret-11111111", "ray-head-secret-c", "ray-worker-secret-c")
]
WAITING = "Waiting for cert-manager to issue mTLS certificates"


def issued(obj: kit.Json, generation: int = 1, ends: float = NOW + 90 * 86400.0) -> kit.Json:
    """The object as cert-manager leaves it."""
    ready = {"type": "Ready", "status": "True", "observedGeneration": generation}
    return {**obj, "status": {"conditions": [ready], "notAfter": format_time(Instant(ends))}}


def pki(**more: Any) -> list[kit.Json]:
    return [issued(obj, **more) for obj in stored(decide(SECURE), "Issuer", "Certificate")]


def pods_of(decision: Decision) -> int:
    return sum(isinstance(intent, CreatePods) for intent in decision.intents)


def test_no_pod_before_its_certificate_and_the_status_says_why() -> None:
    first = decide(SECURE)
    kinds = [i.ref.kind for i in first.intents if isinstance(i, Create)]
    assert kinds.count("Issuer") == 2 and kinds.count("Certificate") == 3 and not pods_of(first)
    assert first.status is not None and WAITING in first.status["reason"]
    assert [note.reporter for note in first.notes] == ["raycluster-mtls-controller"]
    assert not pods_of(decide(SECURE, *pki())), "the Secrets are not known yet"
    assert not pods_of(decide(SECURE, *pki(generation=0), known=SECRETS)), "issued for what it was before"


def test_pods_follow_once_everything_is_issued_and_secrets_get_their_owners() -> None:
    waiting = {**SECURE, "status": {"reason": WAITING}}
    decision = decide(waiting, *pki(), known=SECRETS)
    assert pods_of(decision) == 2 and Reason.MTLS_PKI_READY in [note.reason for note in decision.notes]
    owners = [i.body["metadata"]["ownerReferences"][0]["kind"] for i in decision.intents if isinstance(i, Apply)]
    assert owners == ["Certificate"] * 3
    assert decision.status is not None and "reason" not in decision.status


def test_new_addresses_go_into_the_certificate_and_old_ones_out() -> None:
    children = [
        *pki(),
        kit.head(SECURE, "h", **kit.READY),
        kit.worker(SECURE, "w", "w", phase="Failed", podIP="10.9.9.9"),
    ]
    patches = [i for i in decide(SECURE, *children, known=SECRETS).intents if isinstance(i, Patch)]
    assert [(i.ref.name, i.operations[0]["value"]) for i in patches] == [("ray-head-cert-c", ["10.1.0.7", "127.0.0.1"])]


def test_while_certificates_are_issued_anew_failed_pods_go_and_none_comes() -> None:
    children = [*pki(generation=0), kit.head(SECURE, "h", **kit.READY), kit.worker(SECURE, "w", "w", phase="Failed")]
    decision = decide(SECURE, *children, known=SECRETS)
    assert [i.ref.name for i in decision.intents if isinstance(i, Delete)] == ["w"] and not pods_of(decision)


def test_a_certificate_that_ends_soon_is_said_in_time() -> None:
    far = decide(SECURE, *pki(ends=NOW + 3 * 86400), known=SECRETS)
    assert far.wake_at == NOW + 2 * 86400
    near = decide(SECURE, *pki(ends=NOW + 3600), known=SECRETS)
    assert Reason.MTLS_CERTIFICATE_EXPIRING_SOON in [note.reason for note in near.notes]


def test_the_users_own_certificates_are_refused_by_name() -> None:
    template = kit.template(env=[{"name": "RAY_USE_TLS", "value": "1"}])
    spec = {"tlsOptions": {"enabled": True}, "headGroupSpec": {"template": template}}
    (note,) = decide(kit.raycluster("c", spec=spec)).notes
    assert note.reason == Reason.INVALID_RAY_CLUSTER_SPEC and "RAY_USE_TLS" in note.text


def test_a_pod_waits_until_the_certificate_names_exactly_its_address(tmp_path: Path) -> None:
    """Twice the certificate names others only (one of them longer than ours), then us."""
    spec: kit.Json = {}
    put_wait_first(spec, {"name": "ray", "image": "x"}, DECODERS["raycluster"](msgspec.json.encode(SECURE)), "head")
    answers = ["IP Address:10.0.0.11", "IP Address:10.0.0.1.2", "IP Address:10.0.0.11, IP Address:10.0.0.1, DNS:x"]
    for number, text in enumerate(answers):
        (tmp_path / f"answer{number}").write_text(text)
    _tool(tmp_path, "openssl", f"n=$(cat {tmp_path}/turn); cat {tmp_path}/answer$n; echo $((n+1)) > {tmp_path}/turn")
    _tool(tmp_path, "sleep", f"echo slept >> {tmp_path}/log")
    (tmp_path / "turn").write_text("0")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "POD_IP": "10.0.0.1"}
    command = [*spec["initContainers"][0]["command"], *spec["initContainers"][0]["args"]]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=True, text=True)
    assert (tmp_path / "log").read_text().count("slept") == 2 and "names 10.0.0.1." in done.stdout


def _tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
