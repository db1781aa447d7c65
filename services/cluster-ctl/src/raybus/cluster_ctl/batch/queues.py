"""YuniKorn and KAI: everything stands on the pods (contract objects §6)."""

from __future__ import annotations

import msgspec

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.batch.scheduler import Scheduler, annotate, copy_label, no_objects, wants_gang
from raybus.cluster_ctl.resources import requests_of

_TASK_GROUPS, _TASK_GROUP = "yunikorn.apache.org/task-groups", "yunikorn.apache.org/task-group-name"


def _stamp_yunikorn(pod: Json, cluster: RayCluster, group: str) -> None:
    pod["spec"]["schedulerName"] = "yunikorn"
    copy_label(pod, cluster, "yunikorn.apache.org/app-id", "applicationId")
    copy_label(pod, cluster, "yunikorn.apache.org/queue", "queue")
    if wants_gang(cluster):
        own = cluster.metadata.annotations.get(_TASK_GROUPS)
        annotate(pod, **{_TASK_GROUPS: own or _task_groups(cluster), _TASK_GROUP: group})


def _task_groups(cluster: RayCluster) -> str:
    spec = cluster.spec
    found = [_task_group(spec.head_group_spec.template, labels.HEAD_GROUP, 1)]
    for group in spec.worker_group_specs:
        found.append(_task_group(group.template, group.group_name, (group.min_replicas or 0) * group.num_of_hosts))
    return msgspec.json.encode(found).decode()


def _task_group(template: Json, name: str, least: int) -> Json:
    pod = template.get("spec") or {}
    resources = {resource: str(amount) for resource, amount in sorted(requests_of(template).items())}
    place = {field: pod[field] for field in ("nodeSelector", "affinity") if pod.get(field)}
    tolerations = {"tolerations": pod["tolerations"]} if pod.get("tolerations") else {}
    return {"minResource": resources, **place, "name": name, **tolerations, "minMember": least}


def _stamp_kai(pod: Json, cluster: RayCluster, group: str) -> None:
    pod["spec"]["schedulerName"] = "kai-scheduler"
    copy_label(pod, cluster, "kai.scheduler/queue")


YUNIKORN = Scheduler(no_objects, _stamp_yunikorn)
KAI = Scheduler(no_objects, _stamp_kai)
