"""What head and workers ask for together: `status.desiredCPU` and its kin (contract reconcile §14.1)."""

from __future__ import annotations

import re
from typing import NamedTuple

from raybus.api.decision import Json
from raybus.api.v1 import RayClusterSpec
from raybus.cluster_ctl.quantity import ZERO, Quantity, parse

_GPU = re.compile(r"gpu$|^nvidia\.com/mig-\d+g\.\d+gb$")
_TPU = "google.com/tpu"


class Desired(NamedTuple):
    """Sums over all pods that the spec asks for, each in the API server's notation."""

    cpu: Quantity = ZERO
    memory: Quantity = ZERO
    gpu: Quantity = ZERO
    tpu: Quantity = ZERO


def desired_resources(spec: RayClusterSpec) -> Desired:
    """Head plus groups; suspended groups are left out, and `replicas` counts as written, outside its bounds too."""
    total = _of_template(spec.head_group_spec.template)
    for group in spec.worker_group_specs:
        if not group.suspend:
            total = _add(total, _of_template(group.template), (group.replicas or 0) * group.num_of_hosts)
    return total


def _of_template(template: Json) -> Desired:
    """One pod: of each container the requests, and the limits where it requests nothing of that name."""
    total = Desired()
    for container in (template.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, text in sorted(amounts.items()):
            total = _add(total, _of_one(name, text), 1)
    return total


def _of_one(name: str, text: str) -> Desired:
    try:
        amount = parse(text)
    except ValueError:
        return Desired()  # the API server refuses pods with such an amount and says so
    if name == "cpu":
        return Desired(cpu=amount)
    if name == "memory":
        return Desired(memory=amount)
    if name == _TPU:
        return Desired(tpu=amount)
    return Desired(gpu=amount) if _GPU.search(name) else Desired()


def _add(total: Desired, more: Desired, times: int) -> Desired:
    return Desired(*(a + b.times(times) for a, b in zip(total, more, strict=True)))
