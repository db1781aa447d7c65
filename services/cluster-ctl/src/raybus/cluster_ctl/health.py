"""Which pods have to be replaced, for head and workers alike (contract reconcile §10.1)."""

from __future__ import annotations

from raybus.cluster_ctl.pods import Pod

_ENDED = ("Failed", "Succeeded")


def failure(pod: Pod) -> str | None:
    """Why a pod has to be replaced, None while it has not.

    It has ended (evicted and lost pods are Failed too), whatever its restart policy; or it still runs but its Ray
    container has ended and the kubelet will not start it again. A pod that waits or is unschedulable is left alone.
    """
    ended = pod.ray_terminated
    if pod.phase in _ENDED:
        detail = f", {pod.reason}" if pod.reason else ""
        code = f", exit code {ended.exit_code}" if ended is not None else ""
        return f"it has phase {pod.phase}{detail}{code}"
    if pod.running and pod.restart_policy == "Never" and ended is not None:
        return f"its Ray container ended with exit code {ended.exit_code} and restartPolicy is Never"
    return None
