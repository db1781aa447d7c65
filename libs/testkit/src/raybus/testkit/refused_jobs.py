"""RayJobs with the event reason for which each is refused (contract rayjob §9.1; the numbers are its scenarios)."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

HEAD_TEMPLATE: Json = {"spec": {"containers": [{"name": "ray", "image": "example.test/ray:2.52.0"}]}}
CLUSTER_SPEC: Json = {"rayVersion": "2.52.0", "headGroupSpec": {"template": HEAD_TEMPLATE}}

SPEC, TO_COME, OK = "InvalidRayJobSpec", "NotSupported", ""
SELECTOR = {"clusterSelector": {"ray.io/cluster": "c"}}


def rule(policy: str, ttl: int = 0, **condition: Any) -> Json:
    """A deletion rule, on success unless `condition` says otherwise."""
    return {"policy": policy, "condition": {"ttlSeconds": ttl, **(condition or {"jobStatus": "SUCCEEDED"})}}


def rules(*given: Json, **fields: Any) -> Json:
    """Deletion rules, and other fields."""
    return {"deletionStrategy": {"deletionRules": list(given)}, **fields}


def legacy(success: Any, failure: Any, **fields: Any) -> Json:
    """The deprecated policies, and other fields."""
    policies = {"onSuccess": success, "onFailure": failure}
    strategy = {k: {"policy": v} if isinstance(v, str) else v for k, v in policies.items() if v is not None}
    return {"deletionStrategy": strategy, **fields}


def cluster(**fields: Any) -> Json:
    """A cluster with other fields."""
    return {"rayClusterSpec": {**CLUSTER_SPEC, **fields}}


AUTOSCALING = cluster(enableInTreeAutoscaling=True)
BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])
FAILED: Json = {"jobDeploymentStatus": "Failed"}

CASES: list[tuple[str, Json, str]] = [
    ("a plain job is fine", {}, OK),
    ("1: no rayClusterSpec and no clusterSelector", {"rayClusterSpec": ...}, SPEC),
    ("2: suspend without shutdown", {"suspend": True}, SPEC),
    ("3: suspend with shutdown is valid, to come", {"suspend": True, "shutdownAfterJobFinishes": True}, TO_COME),
    ("4: suspend with clusterSelector", {"suspend": True, "shutdownAfterJobFinishes": True, **SELECTOR}, SPEC),
    ("5: runtimeEnvYAML a plain scalar", {"runtimeEnvYAML": "just text"}, SPEC),
    ("runtimeEnvYAML that is no YAML", {"runtimeEnvYAML": "a: [1"}, SPEC),
    ("runtimeEnvYAML with a value JSON lacks", {"runtimeEnvYAML": "a: .nan"}, SPEC),
    ("runtimeEnvYAML that stands for billions of values", {"runtimeEnvYAML": BOMB}, SPEC),
    ("runtimeEnvYAML that holds itself", {"runtimeEnvYAML": "a: &a [*a]"}, SPEC),
    ("runtimeEnvYAML nested without end", {"runtimeEnvYAML": "a: " + "[" * 5000 + "]" * 5000}, SPEC),
    ("6: backoffLimit -1", {"backoffLimit": -1}, SPEC),
    ("7: InteractiveMode, backoffLimit 1", {"submissionMode": "InteractiveMode", "backoffLimit": 1}, SPEC),
    ("8: InteractiveMode, backoffLimit 0, to come", {"submissionMode": "InteractiveMode", "backoffLimit": 0}, TO_COME),
    ("9: InteractiveMode, backoffLimit unset, to come", {"submissionMode": "InteractiveMode"}, TO_COME),
    ("10: TTL without shutdown", {"ttlSecondsAfterFinished": 5}, SPEC),
    ("11: TTL with shutdown", {"ttlSecondsAfterFinished": 5, "shutdownAfterJobFinishes": True}, OK),
    ("12: negative TTL with shutdown", {"ttlSecondsAfterFinished": -1, "shutdownAfterJobFinishes": True}, SPEC),
    ("13: plain SidecarMode, to come", {"submissionMode": "SidecarMode"}, TO_COME),
    ("14: SidecarMode, template", {"submissionMode": "SidecarMode", "submitterPodTemplate": HEAD_TEMPLATE}, SPEC),
    ("15: SidecarMode, submitterConfig", {"submissionMode": "SidecarMode", "submitterConfig": {}}, SPEC),
    (
        "16: SidecarMode, head restartPolicy Always",
        {
            "submissionMode": "SidecarMode",
            **cluster(headGroupSpec={"template": {"spec": {**HEAD_TEMPLATE["spec"], "restartPolicy": "Always"}}}),
        },
        SPEC,
    ),
    ("17: SidecarMode with clusterSelector", {"submissionMode": "SidecarMode", **SELECTOR}, SPEC),
    ("18: clusterSelector without the name", {"clusterSelector": {"x": "y"}}, SPEC),
    ("19: clusterSelector with an empty name", {"clusterSelector": {"ray.io/cluster": ""}}, SPEC),
    ("20: clusterSelector with a name, to come", SELECTOR, TO_COME),
    ("21: clusterSelector with backoffLimit 1", {**SELECTOR, "backoffLimit": 1}, SPEC),
    ("22: Kubernetes token auth", cluster(authOptions={"enableK8sTokenAuth": True}), SPEC),
    ("token auth, to come", cluster(authOptions={"mode": "token"}), TO_COME),
    ("29: legacy DeleteCluster with clusterSelector", legacy("DeleteCluster", "DeleteNone", **SELECTOR), SPEC),
    ("30: legacy DeleteWorkers with clusterSelector", legacy("DeleteNone", "DeleteWorkers", **SELECTOR), SPEC),
    ("31: legacy DeleteWorkers with autoscaling", legacy("DeleteWorkers", "DeleteNone", **AUTOSCALING), SPEC),
    (
        "32: legacy DeleteCluster with shutdown is valid, to come",
        legacy("DeleteCluster", "DeleteCluster", shutdownAfterJobFinishes=True),
        TO_COME,
    ),
    ("34: shutdown with legacy DeleteNone", legacy("DeleteNone", "DeleteNone", shutdownAfterJobFinishes=True), SPEC),
    ("35: onSuccess missing", legacy(None, "DeleteSelf"), SPEC),
    ("36: onSuccess without policy", legacy({}, "DeleteSelf"), SPEC),
    ("37: onFailure missing", legacy("DeleteSelf", None), SPEC),
    ("38: onFailure without policy", legacy("DeleteSelf", {}), SPEC),
    ("39: head group without containers", cluster(headGroupSpec={"template": {"spec": {"containers": []}}}), SPEC),
    ("head group without a pod spec", cluster(headGroupSpec={"template": {}}), SPEC),
    ("submitter template without containers", {"submitterPodTemplate": {"spec": {"containers": []}}}, SPEC),
    ("40: one DeleteSelf rule is valid, to come", rules(rule("DeleteSelf", 10)), TO_COME),
    ("41: rules with shutdown", rules(rule("DeleteSelf"), shutdownAfterJobFinishes=True), SPEC),
    (
        "42: rules with onSuccess",
        {"deletionStrategy": {"deletionRules": [rule("DeleteSelf")], "onSuccess": {"policy": "DeleteSelf"}}},
        SPEC,
    ),
    ("43: empty strategy", {"deletionStrategy": {}}, SPEC),
    ("44: empty rule list", rules(), SPEC),
    ("45: two rules with same status and policy", rules(rule("DeleteSelf"), rule("DeleteSelf", 5)), SPEC),
    ("46: negative ttlSeconds", rules(rule("DeleteSelf", -1)), SPEC),
    ("47: clusterSelector with DeleteWorkers rule", rules(rule("DeleteWorkers"), **SELECTOR), SPEC),
    ("48: clusterSelector with DeleteCluster rule", rules(rule("DeleteCluster"), **SELECTOR), SPEC),
    ("49: autoscaling with DeleteWorkers rule", rules(rule("DeleteWorkers"), **AUTOSCALING), SPEC),
    ("50: cluster TTL below workers TTL", rules(rule("DeleteWorkers", 9), rule("DeleteCluster", 5)), SPEC),
    ("51: self TTL below cluster TTL", rules(rule("DeleteCluster", 9), rule("DeleteSelf", 5)), SPEC),
    (
        "52: stages for success and failure are valid, to come",
        rules(rule("DeleteWorkers", 1), rule("DeleteSelf", 2), rule("DeleteCluster", 1, jobStatus="FAILED")),
        TO_COME,
    ),
    ("53: rules on jobDeploymentStatus Failed are valid, to come", rules(rule("DeleteSelf", **FAILED)), TO_COME),
    ("54: both condition fields", rules(rule("DeleteSelf", jobStatus="FAILED", **FAILED)), SPEC),
    ("55: no condition field", rules({"policy": "DeleteSelf", "condition": {}}), SPEC),
    ("56: duplicate Failed rule", rules(rule("DeleteSelf", **FAILED), rule("DeleteSelf", **FAILED)), SPEC),
    ("57: mixed conditions are valid, to come", rules(rule("DeleteSelf"), rule("DeleteSelf", **FAILED)), TO_COME),
    (
        "58: Failed TTLs out of order",
        rules(rule("DeleteCluster", 9, **FAILED), rule("DeleteSelf", 5, **FAILED)),
        SPEC,
    ),
    ("activeDeadlineSeconds 0", {"activeDeadlineSeconds": 0}, SPEC),
    ("preRunningDeadlineSeconds 0", {"preRunningDeadlineSeconds": 0}, SPEC),
    ("unknown submissionMode", {"submissionMode": "Telepathy"}, TO_COME),
    ("72: metadata with rayVersion that is none", {"metadata": {"a": "b"}, **cluster(rayVersion="nightly")}, SPEC),
    ("73: metadata with rayVersion 2.5.0", {"metadata": {"a": "b"}, **cluster(rayVersion="2.5.0")}, SPEC),
    ("74: metadata without rayVersion", {"metadata": {"a": "b"}, **cluster(rayVersion="")}, OK),
    ("metadata with a development version", {"metadata": {"a": "b"}, **cluster(rayVersion="3.0.0.dev0")}, OK),
    ("122: HTTPMode, text as resource", {"submissionMode": "HTTPMode", "entrypointResources": '{"a": "b"}'}, SPEC),
    ("K8sJobMode leaves resources to the submitter", {"entrypointResources": "nonsense"}, OK),
]
"""What it is, fields of the spec, reason."""

NAMES: dict[str, str] = {
    "26: 48 characters": "x" * 48,
    "27: 47 digits": "1" * 47,
    "60: dotted": "a.b",
}
"""Names that are refused."""


def spec(**fields: Any) -> Json:
    """A valid RayJob spec with other fields; `...` leaves one out."""
    base: Json = {"entrypoint": "python main.py", "rayClusterSpec": CLUSTER_SPEC, "submissionMode": "K8sJobMode"}
    return {key: value for key, value in {**base, **fields}.items() if value is not ...}


def body(name: str = "demo", **fields: Any) -> Json:
    """A RayJob as a user would write it."""
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": spec(**fields)}
