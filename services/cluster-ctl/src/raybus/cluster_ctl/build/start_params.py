"""`rayStartParams` as they reach `ray start`: group resources and labels, defaults, what the container offers.

The order of operations is that of contract objects §2.3 and §2.4: each step only sees what the steps before it made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from raybus.api.decision import Json
from raybus.cluster_ctl import quantity

AGENT_PORT, DASHBOARD_PORT, GCS_PORT, METRICS_PORT = 52365, 8265, 6379, 8080

_GPU = re.compile(r"gpu$|nvidia\.com/mig-\d+g\.\d+gb$")
_ACCELERATORS = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}
"""Container limit -> Ray's name for the resource."""

Params = dict[str, str]


def is_gpu(resource: str) -> bool:
    """Whether a Kubernetes resource counts as a GPU: it ends in `gpu`, or is a MIG slice."""
    return _GPU.search(resource) is not None


def head_params(given: Mapping[str, str], resources: Mapping[str, str], labels: Mapping[str, str]) -> Params:
    """Parameters of the head before its container is looked at."""
    params = _from_group(given, resources, labels)
    params.setdefault("dashboard-host", "0.0.0.0")
    return _for_all(params)


def worker_params(
    given: Mapping[str, str], resources: Mapping[str, str], labels: Mapping[str, str], address: str
) -> Params:
    """Parameters of a worker before its container is looked at; `address` is the head's `host:port`."""
    params = _from_group(given, resources, labels)
    params.setdefault("address", address)
    return _for_all(params)


def with_container(params: Mapping[str, str], container: Json) -> Params:
    """Add what the Ray container's limits and requests say and the parameters do not (contract objects §2.3 step 4)."""
    params = dict(params)
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if "num-cpus" not in params:
        cpus = _whole(limits, "cpu") or _whole(requests, "cpu")
        if cpus:
            params["num-cpus"] = str(cpus)
    if "memory" not in params and _whole(limits, "memory"):
        params["memory"] = str(_whole(limits, "memory"))
    _add_accelerators(params, limits)
    return params


def port(params: Mapping[str, str], name: str, default: int) -> int:
    """A port from the parameters; what is no number counts as missing."""
    text = params.get(name, "")
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else default


def _from_group(given: Mapping[str, str], resources: Mapping[str, str], labels: Mapping[str, str]) -> Params:
    params, custom = dict(given), {}
    for name, text in sorted(resources.items()):
        try:
            amount = quantity.parse(text)
        except ValueError:
            continue  # KubeRay skips what it cannot read (contract objects §2.3 step 1)
        lower = name.lower()
        if lower in ("cpu", "memory"):
            params["num-cpus" if lower == "cpu" else "memory"] = str(amount.ceiling())
        elif is_gpu(lower):
            params["num-gpus"] = str(amount.ceiling())
        else:
            custom[name] = float(amount.amount)
    if custom:
        params["resources"] = _quoted(custom)
    if labels:
        params["labels"] = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return params


def _for_all(params: Params) -> Params:
    params.setdefault("metrics-export-port", str(METRICS_PORT))
    params.setdefault("dashboard-agent-listen-port", str(AGENT_PORT))
    params["block"] = "true"
    return params


def _add_accelerators(params: Params, limits: Mapping[str, str]) -> None:
    """GPUs and at most one custom accelerator, from limits in name order; broken `resources` stop it all (§2.4)."""
    try:
        custom = _read_resources(params)
    except msgspec.DecodeError:
        return
    known = bool(custom.keys() & set(_ACCELERATORS.values()))
    for name in sorted(limits):
        amount = _whole(limits, name)
        if not amount:
            continue
        if is_gpu(name):
            params.setdefault("num-gpus", str(amount))
        elif name in _ACCELERATORS and not known:
            known = True
            params["resources"] = _quoted({**custom, _ACCELERATORS[name]: float(amount)})


def _read_resources(params: Mapping[str, str]) -> dict[str, float]:
    """The `resources` parameter. Raises msgspec.DecodeError when it is no JSON object of numbers."""
    text = params.get("resources")
    if text is None:
        return {}
    return msgspec.json.decode(text.strip("'\"` "), type=dict[str, float])


def _quoted(resources: Mapping[str, float]) -> str:
    """Compact JSON with sorted keys, whole numbers without a fraction, in single quotes."""
    plain = {name: int(value) if value.is_integer() else value for name, value in resources.items()}
    return "'" + msgspec.json.encode(plain, order="sorted").decode() + "'"


def _whole(amounts: Mapping[str, str], name: str) -> int:
    """One amount of a resource list, rounded up; 0 when it is missing or unreadable."""
    try:
        return quantity.parse(amounts.get(name, "0")).ceiling()
    except ValueError:
        return 0
