"""What the API server in memory knows of single kinds: defaults, validation and what cannot be changed later.

Far less than the real one knows, but what is here is equal (tests/integration/test_fake_api_conformance.py).
"""

import re
from collections.abc import Callable, Mapping

from raybus.api.decision import Json
from raybus.api.kinds import KINDS, Kind

CUSTOM = frozenset(kind.kind for kind in KINDS if kind.group == "ray.io")
"""Custom resources: a DELETE is answered with a Status, deleting bumps the generation."""
WITH_STATUS = CUSTOM | {"Pod", "Job", "Service", "Ingress"}
"""Kinds whose status is written by `/status` alone."""
WITH_GENERATION = CUSTOM | {"Pod", "Job", "Ingress", "NetworkPolicy"}
ANSWER_OBJECT = frozenset({"Pod", "Service", "ServiceAccount", "PersistentVolumeClaim"})
"""Kinds whose DELETE is answered with the object; of the others with a Status, unless the object lives on."""

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def default(kind: Kind, obj: Json) -> Json:
    """The object with the defaults that Raybus reads; shares what is unchanged with `obj`."""
    fill = _DEFAULTS.get(kind.kind)
    return obj if fill is None else {**obj, "spec": fill(obj.get("spec") or {})}


def problem(kind: Kind, obj: Json) -> str:
    """Why the object is invalid (422), "" if it is not."""
    name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
    if kind.kind == "Service":
        if len(name) > 63 or not _LABEL.fullmatch(name):
            return f"metadata.name: Invalid value: {name!r}: a lowercase RFC 1123 label is needed"
        if not spec.get("ports") and spec.get("clusterIP") != "None":
            return "spec.ports: Required value"
    elif len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        return f"metadata.name: Invalid value: {name!r}: a lowercase RFC 1123 subdomain is needed"
    if kind.kind == "Pod" and not spec.get("containers"):
        return "spec.containers: Required value"
    if kind.kind in CUSTOM and "spec" in obj and not isinstance(obj["spec"], dict):
        return "spec: Invalid value: must be of type object"
    return ""


def frozen(kind: Kind, before: Json, after: Json) -> str:
    """What of an existing object was changed and cannot be (422), "" if nothing was."""
    old, new = before.get("spec") or {}, after.get("spec") or {}
    if kind.kind == "Pod" and old != new:
        free = {"activeDeadlineSeconds": None, "tolerations": None, "nodeName": None}
        if {**old, **free} != {**new, **free}:
            return "spec: Forbidden: pod updates may not change fields other than a few"
    if kind.kind == "Job" and any(old.get(field) != new.get(field) for field in ("template", "selector")):
        return "spec.template: Invalid value: field is immutable"
    if kind.kind == "Service" and old.get("clusterIP") and old["clusterIP"] != new.get("clusterIP"):
        return "spec.clusterIP: Invalid value: may not be changed once set"
    return ""


def _cluster(spec: Json) -> Json:
    groups = [
        {"replicas": 0, "minReplicas": 0, "maxReplicas": 2147483647, "numOfHosts": 1, **group}
        for group in spec.get("workerGroupSpecs") or ()
    ]
    return {**spec, "workerGroupSpecs": groups} if groups else spec


def _ray_job(spec: Json) -> Json:
    filled = {"submissionMode": "K8sJobMode", "backoffLimit": 0, "ttlSecondsAfterFinished": 0, **spec}
    if spec.get("rayClusterSpec"):
        filled["rayClusterSpec"] = _cluster(spec["rayClusterSpec"])
    return filled


def _pod(spec: Json) -> Json:
    return {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, **spec}


def _service(spec: Json) -> Json:
    ports = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in spec.get("ports") or ()]
    return {"type": "ClusterIP", "clusterIP": "10.0.0.10", **spec, "ports": ports}


def _job(spec: Json) -> Json:
    return {"backoffLimit": 6, "completions": 1, "parallelism": 1, "suspend": False, **spec}


_DEFAULTS: Mapping[str, Callable[[Json], Json]] = {
    "RayCluster": _cluster,
    "RayJob": _ray_job,
    "Pod": _pod,
    "Service": _service,
    "Job": _job,
}
