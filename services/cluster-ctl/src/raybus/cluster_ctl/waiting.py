"""Why pods are not ready yet: the sentences of `raybus explain` (object, cause, next step)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

from raybus.api.decision import Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.pods import ContainerStatus, Pod
from raybus.cluster_ctl.view import ClusterView

MAX_SENTENCES = 8
"""A cluster with a thousand broken pods is explained by the first few."""
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_BROKEN = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")


def explain_waiting(view: ClusterView) -> tuple[Why, ...]:
    """What pods wait for, head first; empty when all are ready."""
    return tuple(islice(_sentences(view), MAX_SENTENCES))


def _sentences(view: ClusterView) -> Iterator[Why]:
    """Pods that will not start by waiting alone, then those in the ordinary course of starting."""
    waiting = [pod for pod in (*view.heads, *view.workers) if not pod.deleting and not pod.running_and_ready]
    plain = []
    for pod in waiting:
        if (trouble := _trouble(view, pod)) is not None:
            yield trouble
        else:
            plain.append(pod)
    for pod in plain:
        if pod.node_type == labels.HEAD:
            yield _head_starts(view, pod)
    workers = sorted((pod for pod in plain if pod.node_type == labels.WORKER), key=lambda pod: pod.group)
    for group, pods in groupby(workers, key=lambda pod: pod.group):
        yield _group_starts(view, group, tuple(pods))


def _trouble(view: ClusterView, pod: Pod) -> Why | None:
    about, place = view.pod_ref(pod.name), f"{pod.node_type} pod {pod.name}"
    for container in (*pod.init_containers, *pod.containers):
        if (found := _container(container)) is not None:
            reason, cause, step = found
            text = f"The {place} cannot start: container {container.name}: {cause}."
            return Why(reason=reason, text=text, about=about, next_step=step)
    if pod.scheduled is not None and pod.scheduled.status == "False":
        text = f"No node has room for the {place}: {pod.scheduled.message.rstrip('.') or 'no reason given'}."
        step = "Add nodes, or lower the requests, selectors or affinities of its template."
        return Why(reason=Reason.UNSCHEDULABLE, text=text, about=about, next_step=step)
    return None


def _head_starts(view: ClusterView, pod: Pod) -> Why:
    said = f": {pod.ready.message.rstrip('.')}" if pod.ready is not None and pod.ready.message else ""
    text = f"The head pod {pod.name} is {pod.phase or 'Pending'} and not ready yet{said}."
    place = f"{pod.name} -n {view.ref.namespace}"
    step = f"See Ray's start with `kubectl logs {place}`." if pod.running else f"See `kubectl describe pod {place}`."
    return Why(reason=Reason.HEAD_NOT_READY, text=text, about=view.pod_ref(pod.name), next_step=step)


def _group_starts(view: ClusterView, group: str, pods: Sequence[Pod]) -> Why:
    """One sentence a group; without numbers, which would make it news with each pod (the status has them)."""
    others = " and others" if len(pods) > 1 else ""
    text = f"Workers of group {group} are not ready yet: {pods[0].name}{others}."
    step = f"See `kubectl describe pod {pods[0].name} -n {view.ref.namespace}`."
    return Why(reason=Reason.WORKERS_NOT_READY, text=text, about=view.pod_ref(pods[0].name), next_step=step)


def _container(container: ContainerStatus) -> tuple[Reason, str, str] | None:
    """(reason, cause, next step) of a container that will not start by waiting alone."""
    waiting, last = container.state.waiting, container.last_state.terminated or container.state.terminated
    if waiting is not None and waiting.reason in _IMAGE:
        cause = f"its image cannot be pulled ({waiting.reason}): {waiting.message}".rstrip(". :")
        return Reason.IMAGE_PULL_FAILED, cause, "Check the image's name and tag, and imagePullSecrets of the template."
    if waiting is not None and waiting.reason in _BROKEN:
        cause = f"{waiting.reason}: {waiting.message}".rstrip(". :")
        return Reason.CONTAINER_FAILING, cause, "Check the ConfigMaps, Secrets and command that the template names."
    failing = (waiting is not None and waiting.reason == "CrashLoopBackOff") or container.state.terminated is not None
    if failing and last is not None and (last.exit_code or waiting is not None):
        why = f" ({last.reason})" if last.reason else ""
        cause = f"it ended with exit code {last.exit_code}{why} and was started {container.restart_count + 1} times"
        return Reason.CONTAINER_FAILING, cause, "Read its last words with `kubectl logs --previous`."
    return None
