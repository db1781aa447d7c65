"""An API server in a dictionary, with just what `compare.py` and the controllers' decisions need of one.

It offers the methods of `compare.Api` (list, create, patch, delete, call, path), so that the steps of the golden cases
and the dump run on it unchanged, and a second door for what the applier does. Written by the second door means "owned
by the operator" in `metadata.managedFields`. Unlike a real API server it validates nothing and fills in few defaults.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from raybus.api.times import Instant, format_micro_time, format_time

Json = dict[str, Any]
Key = tuple[str, str, str]
"""(kind, namespace, name)."""

OPERATOR, DRIVER = "raybus", "golden-driver"
RAY_KINDS = ("RayCluster", "RayJob", "RayService", "RayCronJob")


class World:
    """Objects by kind, namespace and name; `now` is the virtual time, `graves` the deleted objects, newest last."""

    def __init__(self, now: Instant) -> None:
        self.now = now
        self.objects: dict[Key, Json] = {}
        self.graves: list[Json] = []
        self.version = 0

    # -------------------------------------------------------------- what compare.Api offers
    def path(self, kind: str, ns: str | None = None, name: str | None = None, sub: str | None = None) -> str:
        """A path that `call` understands."""
        return json.dumps([kind, ns, name])

    def call(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        """Namespaces and default service accounts always exist; of the rest only a GET by `path` is known."""
        if path.startswith("/"):
            return 200, {}
        assert method == "GET", f"{method} {path}"
        found = self.objects.get(tuple(json.loads(path)))
        return (200, copy.deepcopy(found)) if found else (404, {"message": "not found"})

    def list(self, kind: str, ns: str | None = None) -> Sequence[Json]:
        """Copies of all objects of a kind (in one namespace)."""
        return [copy.deepcopy(o) for (k, n, _), o in sorted(self.objects.items()) if k == kind and ns in (None, n)]

    def create(self, kind: str, ns: str, body: Json, manager: str = DRIVER) -> tuple[int, Json]:
        """POST: 201, or 409 when the name is taken."""
        name = body["metadata"]["name"]
        if (kind, ns, name) in self.objects:
            return 409, {"message": f'{kind} "{name}" already exists'}
        if kind in PROBLEMS and (problem := PROBLEMS[kind](body)):
            return 422, {"message": f'{kind} "{name}" is invalid: {problem}'}
        made = copy.deepcopy(body)
        made["kind"] = kind
        made.pop("status", None)
        if kind in DEFAULTS:
            DEFAULTS[kind](made)
        made["metadata"].update(
            namespace=ns, uid=str(uuid.uuid4()), generation=1, creationTimestamp=format_time(self.now)
        )
        fields: Json = {f"f:{key}": {} for key in body if key not in ("apiVersion", "kind", "status")}
        made["metadata"]["managedFields"] = [{"manager": manager, "fieldsV1": fields}]
        self._store((kind, ns, name), made)
        return 201, copy.deepcopy(made)

    def apply(self, kind: str, ns: str, name: str, body: Json) -> tuple[int, Json]:
        """Server-side apply by the operator to an object that is there: a merge that leaves its name on the fields."""
        found = self.objects[kind, ns, name]
        entry = {"manager": OPERATOR, "fieldsV1": {f"f:{key}": fields(value) for key, value in body.items()}}
        found["metadata"].setdefault("managedFields", []).append(entry)
        return self.patch(kind, ns, name, body)

    def patch(self, kind: str, ns: str, name: str, patch: Any, sub: str | None = None) -> tuple[int, Json]:
        """PATCH by merge (a dict) or by JSON patch (a list); the generation grows when the spec changes."""
        old = self.objects.get((kind, ns, name))
        if old is None:
            return 404, {"message": "not found"}
        new = json_patch(old, patch) if isinstance(patch, list) else merge_patch(old, patch)
        if kind in DEFAULTS:
            DEFAULTS[kind](new)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        self._store((kind, ns, name), new)
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self._remove((kind, ns, name))
        return 200, copy.deepcopy(new)

    def delete(self, kind: str, ns: str, name: str, policy: str = "Background") -> tuple[int, Json]:
        """DELETE without grace: at once, or when the last finalizer goes; then what it owned."""
        found = self.objects.get((kind, ns, name))
        if found is None:
            return 404, {"message": "not found"}
        if found["metadata"].get("finalizers"):
            marked = copy.deepcopy(found)
            if "deletionTimestamp" not in marked["metadata"]:
                marked["metadata"]["deletionTimestamp"] = format_time(self.now)
                marked["metadata"]["generation"] += 1
                self._store((kind, ns, name), marked)
        else:
            self._remove((kind, ns, name))
        return 200, {}

    # -------------------------------------------------------------- what the applier does
    def write_status(self, key: Key, status: Json) -> None:
        """PUT of the whole status."""
        self._store(key, {**self.objects[key], "status": copy.deepcopy(status)})

    def set_finalizers(self, key: Key, finalizers: Sequence[str]) -> None:
        """The whole list of finalizers; an object that is being deleted goes with its last one."""
        changed = copy.deepcopy(self.objects[key])
        changed["metadata"]["finalizers"] = [*finalizers]
        owned: Json = {"f:metadata": {"f:finalizers": {f"v:{json.dumps(name)}": {} for name in finalizers}}}
        kept = [entry for entry in changed["metadata"]["managedFields"] if entry["manager"] != OPERATOR]
        changed["metadata"]["managedFields"] = [*kept, {"manager": OPERATOR, "fieldsV1": owned}]
        self._store(key, changed)
        if changed["metadata"].get("deletionTimestamp") and not finalizers:
            self._remove(key)

    def record_event(self, controller: str, root: Json, note: Json) -> None:
        """An events.k8s.io Event about `root`; `note` has type, reason, action and note."""
        name = f"event-{self.version}"
        event = {
            "kind": "Event",
            "metadata": {"name": name, "namespace": root["metadata"]["namespace"]},
            "regarding": {"kind": root["kind"], "name": root["metadata"]["name"]},
            "reportingController": controller,
            "eventTime": format_micro_time(self.now),
            **note,
        }
        self._store(("Event", root["metadata"]["namespace"], name), event)

    def _store(self, key: Key, value: Json) -> None:
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = value

    def _remove(self, key: Key) -> None:
        dead = self.objects.pop(key)
        self.version += 1
        self.graves.append(dead)
        uid = dead["metadata"].get("uid")
        for kind, ns, name in list(self.objects):
            owned = self.objects.get((kind, ns, name))
            if owned and any(r["uid"] == uid for r in owned["metadata"].get("ownerReferences", [])):
                self.delete(kind, ns, name)


# ------------------------------------------------------------------ patches
def fields(value: Any) -> Json:
    """What `managedFields` says of a value: the names in a mapping, anything else as a whole."""
    return {f"f:{key}": fields(inner) for key, inner in value.items()} if isinstance(value, dict) else {}


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386; the target stays as it is."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    out = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge_patch(out.get(key), value)
    return out


def json_patch(target: Any, operations: Sequence[Json]) -> Any:
    """RFC 6902 with add, replace, remove and test; the target stays as it is."""
    out = copy.deepcopy(target)
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        parent = out
        for part in way:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        if isinstance(parent, list):
            spot = len(parent) if last == "-" else int(last)
            if operation["op"] == "add":
                parent.insert(spot, copy.deepcopy(operation["value"]))
            elif operation["op"] == "remove":
                del parent[spot]
            else:
                parent[spot] = copy.deepcopy(operation["value"])
        elif operation["op"] == "remove":
            del parent[last]
        elif operation["op"] == "test":
            assert parent.get(last) == operation["value"], f"test failed: {operation}"
        else:
            parent[last] = copy.deepcopy(operation["value"])
    return out


# ------------------------------------------------------------------ defaults of the API server
def _default_cluster_spec(spec: Json) -> None:
    for group in spec.get("workerGroupSpecs") or ():
        for key, value in (("replicas", 0), ("minReplicas", 0), ("maxReplicas", 2147483647), ("numOfHosts", 1)):
            group.setdefault(key, value)


def _default_job(job: Json) -> None:
    spec = job["spec"]
    for key, value in (("submissionMode", "K8sJobMode"), ("backoffLimit", 0), ("ttlSecondsAfterFinished", 0)):
        spec.setdefault(key, value)
    _default_cluster_spec(spec.get("rayClusterSpec") or {})


def _default_pod(pod: Json) -> None:
    pod["spec"].setdefault("restartPolicy", "Always")
    pod.setdefault("status", {"phase": "Pending"})
    for container in [*pod["spec"].get("containers", ()), *pod["spec"].get("initContainers", ())]:
        resources = container.get("resources") or {}
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
        for port in container.get("ports", ()) if pod["spec"].get("hostNetwork") else ():
            port.setdefault("hostPort", port["containerPort"])
        for probe in filter(None, map(container.get, ("livenessProbe", "readinessProbe", "startupProbe"))):
            for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1)):
                probe.setdefault(key, value)
            probe.setdefault("failureThreshold", 3)
            if "grpc" in probe:
                probe["grpc"].setdefault("service", "")


def _default_service(service: Json) -> None:
    spec = service["spec"]
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("clusterIP", "10.0.0.10")
    for number, port in enumerate(spec.get("ports") or ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
        if spec["type"] in ("NodePort", "LoadBalancer"):
            port.setdefault("nodePort", 30000 + number)


# ------------------------------------------------------------------ what the API server does not accept
def _problem_of_pod(pod: Json) -> str:
    names = [container["name"] for container in pod["spec"].get("initContainers", ())]
    for number, name in enumerate(names):
        if name in names[:number]:
            return f'spec.initContainers[{number}].name: Duplicate value: "{name}"'
    return ""


def _problem_of_service(service: Json) -> str:
    names = [port.get("name") for port in service["spec"].get("ports", ())]
    for number, name in enumerate(names):
        if name in names[:number]:
            return f'spec.ports[{number}].name: Duplicate value: "{name}"'
    return ""


PROBLEMS: dict[str, Callable[[Json], str]] = {"Pod": _problem_of_pod, "Service": _problem_of_service}

DEFAULTS: dict[str, Callable[[Json], None]] = {
    "RayCluster": lambda cluster: _default_cluster_spec(cluster["spec"]),
    "RayJob": _default_job,
    "Pod": _default_pod,
    "Service": _default_service,
}


def owners(obj: Json) -> Iterator[Json]:
    """The owner references of an object."""
    yield from obj["metadata"].get("ownerReferences", ())
