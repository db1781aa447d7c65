"""What head and workers ask for together: `status.desiredCPU` and its kin (contract reconcile §14.1)."""

from __future__ import annotations

import re
from typing import NamedTuple

from raybus.api.decision import Json
from raybus.api.v1 import RayClusterSpec
from raybus.cluster_ctl.quantity import ZERO, Quantity, parse
from raybus.cluster_ctl.remembered import remembered

_GPU = re.compile(r"gpu$|^nvidia\.com/mig-\d+g\.\d+gb$")
_TPU = "google.com/tpu"


class Desired(NamedTuple):
    """Sums over all pods that the spec asks for, each in the API server's notation."""

    cpu: Quantity = ZERO
    memory: Quantity = ZERO
    gpu: Quantity = ZERO
    tpu: Quantity = ZERO


@remembered
def desired_resources(spec: RayClusterSpec) -> Desired:
    """Head plus groups; suspended groups are left out, and `replicas` counts as written, outside its bounds too."""
    total = _of_template(spec.head_group_spec.template)
    for group in spec.worker_group_specs:
        if not group.suspend:
            total = _add(total, _of_template(group.template), (group.replicas or 0) * group.num_of_hosts)
    return total


def gang_resources(spec: RayClusterSpec, least: bool) -> dict[str, str]:
    """Everything that head and workers ask for, by resource name; `least`: with the groups' lower bounds."""
    total = dict(requests_of(spec.head_group_spec.template))
    for group in spec.worker_group_specs:
        if not group.suspend:
            replicas = (group.min_replicas if least else group.replicas) or 0
            for name, amount in requests_of(group.template).items():
                total[name] = total.get(name, ZERO) + amount.times(replicas * group.num_of_hosts)
    return {name: str(amount) for name, amount in sorted(total.items())}


def requests_of(template: Json) -> dict[str, Quantity]:
    """One pod, by resource name: of each container the requests, and the limits where it requests nothing of it."""
    total: dict[str, Quantity] = {}
    for container in (template.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        for name, text in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            try:
                total[name] = total.get(name, ZERO) + parse(text)
            except ValueError:
                continue  # the API server refuses pods with such an amount and says so
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
