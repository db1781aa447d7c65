"""What keeps a pod from running, for people."""

from raybus.api.decision import Ref, Why
from raybus.api.reasons import Reason
from raybus.job_ctl.seen import ContainerStatus, PodSeen

_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")


def pod_trouble(pod: PodSeen) -> Why | None:
    """The first thing that is wrong with `pod`; None while it merely starts, runs, or has done its work."""
    about = Ref("Pod", pod.metadata.namespace, pod.metadata.name)
    describe = f"see `kubectl describe pod {about.name} -n {about.namespace}`"
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable":
            text = f"pod {about.name} cannot be scheduled: {condition.message}"
            step = "add nodes that fit, or ask for less in its resources, node selector or tolerations"
            return Why(reason=Reason.UNSCHEDULABLE, text=text, about=about, next_step=step)
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        why = _container(container, about, describe)
        if why is not None:
            return why
    return None


def _container(container: ContainerStatus, about: Ref, describe: str) -> Why | None:
    waiting = container.state.waiting
    where = f"container {container.name} of pod {about.name}"
    if waiting is not None and waiting.reason in _IMAGE:
        text = f"image {container.image} of {where} cannot be pulled: {waiting.reason}: {waiting.message}"
        step = "correct the image's name, or give the pod an imagePullSecret for its registry"
        return Why(reason=Reason.IMAGE_PULL_FAILED, text=text.rstrip(": "), about=about, next_step=step)
    if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
        text = f"{where} waits: {waiting.reason}: {waiting.message}"
        return Why(reason=Reason.CONTAINER_FAILING, text=text.rstrip(": "), about=about, next_step=describe)
    ended = container.state.terminated or container.last_state.terminated
    if ended is not None and ended.exit_code:
        text = f"{where} ended with exit code {ended.exit_code}: {ended.reason} {ended.message}"
        step = f"read its log with `kubectl logs {about.name} -n {about.namespace} -c {container.name}`"
        return Why(reason=Reason.CONTAINER_FAILING, text=text.rstrip(": "), about=about, next_step=step)
    return None
