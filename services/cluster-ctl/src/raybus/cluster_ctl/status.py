"""The whole next status of a RayCluster (contract reconcile §14-§17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from raybus.api.decision import Json
from raybus.api.messages import Refusal
from raybus.api.reasons import Reason
from raybus.api.times import Instant, format_time
from raybus.api.v1 import ClusterConditionType, ClusterState, ConditionStatus, HeadInfo, RayClusterStatus
from raybus.cluster_ctl import conditions
from raybus.cluster_ctl.head import head_of
from raybus.cluster_ctl.resources import desired_resources
from raybus.cluster_ctl.services import Service, ServicePort
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.sizes import desired_workers, least_workers, most_workers
from raybus.cluster_ctl.view import ClusterView


class Trouble(NamedTuple):
    """What keeps this pass from being clean. `refusal`: of a pod, with the marker of condition ReplicaFailure;
    `any`: some child was refused or has to be replaced, so the cluster cannot become ready in this pass;
    `warning`: what is wrong with a child that the cluster lives on without, for `status.reason`."""

    refusal: tuple[Refusal, Reason] | None = None
    any: bool = False
    warning: str = ""


class NextStatus(NamedTuple):
    """`body` as it goes on the wire; `progress`: it only counts progress and may wait for a second of quiet."""

    body: Json
    progress: bool


def next_status(view: ClusterView, trouble: Trouble, now: Instant, knobs: ClusterKnobs) -> NextStatus:
    """The status after this decision's observations. When nothing but times would differ it is the stored one."""
    stored = view.cluster.status
    found = _observed(view, trouble, knobs)
    timed = replace(found, conditions=conditions.with_times(found.conditions, stored.conditions, now))
    if timed.state != stored.state:
        since = {**stored.state_transition_times, timed.state: format_time(now)}
        timed = replace(timed, state_transition_times=since)
    return settle(stored, timed, now)


def settle(stored: RayClusterStatus, wanted: RayClusterStatus, now: Instant) -> NextStatus:
    """`wanted` with the time of its last change: now, or the stored one when nothing else differs."""
    same = replace(wanted, last_update_time=stored.last_update_time) == stored and stored.last_update_time is not None
    final = replace(wanted, last_update_time=stored.last_update_time if same else format_time(now))
    body: Json = msgspec.json.decode(msgspec.json.encode(final))  # lists and plain strings, as the API server has them
    return NextStatus(body, not same and _only_progress(stored, wanted))


def _observed(view: ClusterView, trouble: Trouble, knobs: ClusterKnobs) -> RayClusterStatus:
    """Everything but times."""
    cluster, stored = view.cluster, view.cluster.status
    pods, workers, head = (*view.heads, *view.workers), view.workers, head_of(view)
    service = view.head_services[0] if view.head_services else None
    desired, resources = desired_workers(cluster.spec), desired_resources(cluster.spec)
    all_ready = bool(pods) and len(pods) == desired + 1 and all(pod.running_and_not_unready for pod in pods)
    found = (
        conditions.build(stored.conditions, head, pods, trouble.refusal, cluster.spec.suspend)
        if knobs.status_conditions
        else stored.conditions
    )
    state = ClusterState.READY if all_ready and not trouble.any else stored.state
    return RayClusterStatus(
        state=ClusterState.SUSPENDED if cluster.spec.suspend and not pods else state,
        reason=trouble.warning,
        desired_worker_replicas=desired,
        available_worker_replicas=sum(pod.running for pod in workers),
        ready_worker_replicas=sum(pod.running_and_ready for pod in workers),
        min_worker_replicas=least_workers(cluster.spec),
        max_worker_replicas=most_workers(cluster.spec),
        desired_cpu=str(resources.cpu),
        desired_memory=str(resources.memory),
        desired_gpu=str(resources.gpu),
        desired_tpu=str(resources.tpu),
        endpoints={**stored.endpoints, **_endpoints(service)},
        head=HeadInfo(
            pod_name=head.name if head else "",
            pod_ip=head.ip if head else "",
            service_name=service.name if service else "",
            service_ip=_service_ip(service, head.ip if head else ""),
        ),
        conditions=found,
        state_transition_times=stored.state_transition_times,
        observed_generation=cluster.metadata.generation,
    )


def _service_ip(service: Service | None, head_ip: str) -> str:
    """The Service's address; a headless Service leads straight to the head pod."""
    if service is None:
        return ""
    return head_ip if service.cluster_ip == "None" else service.cluster_ip


def _endpoints(service: Service | None) -> Mapping[str, str]:
    """Named ports of the head Service as text (contract reconcile §14.2)."""
    if service is None:
        return {}
    ports = {port.name: _number(port) for port in service.ports if port.name}
    return {name: number for name, number in ports.items() if number}


def _number(port: ServicePort) -> str:
    return str(port.node_port or port.target_port or "")


def _only_progress(stored: RayClusterStatus, wanted: RayClusterStatus) -> bool:
    """Whether nobody has to hear of the change at once.

    At once: another state or reason for it, each step of a suspension, ReplicaFailure coming or going, a first complete
    provisioning, a head that stops being ready or says another cause of it. Everything else (counts, addresses, a head
    that is ready before its workers) waits for company: each write costs the API server as much as two pods.
    """
    if (stored.state, stored.reason) != (wanted.state, wanted.reason):
        return False
    return _alarms(stored) == _alarms(wanted)


def _alarms(status: RayClusterStatus) -> tuple[str | None, bool, bool, bool, str | None]:
    """The part of the conditions that is urgent."""
    known = conditions.by_type(status.conditions)
    failure, head = known.get(ClusterConditionType.REPLICA_FAILURE), known.get(ClusterConditionType.HEAD_POD_READY)
    provisioned = known.get(ClusterConditionType.PROVISIONED)
    done = provisioned is not None and provisioned.status == ConditionStatus.TRUE
    going = conditions.holds(status.conditions, ClusterConditionType.SUSPENDING)
    gone = conditions.holds(status.conditions, ClusterConditionType.SUSPENDED)
    head_cause = head.reason if head is not None and head.status == ConditionStatus.FALSE else ""
    starting = head_cause in ("", Reason.UNKNOWN, Reason.HEAD_POD_NOT_FOUND, *_NORMAL_WAITS)
    return failure.message if failure else None, going, gone, done, None if starting and not done else head_cause


_NORMAL_WAITS = ("ContainersNotReady", "ContainersNotInitialized", "ContainerCreating", "PodInitializing")
"""Causes of an unready head that every start goes through."""
