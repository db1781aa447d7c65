"""From what `fleet.py` measured to the few figures that are compared: pure."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

OURS = {"pods": ("POST", "DELETE", "GET", "PATCH", "PUT"), "services": ("POST", "GET", "PATCH", "PUT", "DELETE")}
"""Requests for these resources that only a control plane sends in the simulated cluster."""


class Figures(NamedTuple):
    """Times in seconds. `cpu_ms_per_cluster`: all processes of the control plane, the bus included; `rss_mb`: the peak
    of their sum; `requests_per_cluster`: what the control plane asked of the API server until all were ready."""

    clusters_per_s: float
    ready_p50: float
    ready_p99: float
    lag_p50: float
    lag_p99: float
    cpu_ms_per_cluster: float
    rss_mb: float
    requests_per_cluster: float
    delete_s: float


RATIOS = {
    "ratio_clusters_per_s": "clusters_per_s",
    "ratio_ready_p50": "ready_p50",
    "ratio_cpu": "cpu_ms_per_cluster",
    "ratio_delete": "delete_s",
}


def figures(result: Mapping[str, Any]) -> Figures:
    """Figures of one run. Raises ValueError when not every cluster became ready."""
    n = result["n"]
    if result["ready"] < n:
        raise ValueError(f"{result['label']}: only {result['ready']} of {n} clusters became ready")
    ready, lag = result["created_to_ready"], result["lastpodready_to_clusterready"] or {"p50": 0.0, "p99": 0.0}
    return Figures(
        clusters_per_s=result["clusters_per_s"],
        ready_p50=ready["p50"],
        ready_p99=ready["p99"],
        lag_p50=lag["p50"],
        lag_p99=lag["p99"],
        cpu_ms_per_cluster=round(sum(result["cpu_s"]) / n * 1000, 1),
        rss_mb=result["rss_mb_peak"],
        requests_per_cluster=round(requests(result["requests"], n) / n, 2),
        delete_s=result.get("delete_s", 0.0),
    )


def requests(counted: Mapping[str, int], submitted: int) -> int:
    """How many of the API server's requests (by `VERB resource[/sub] code`) the control plane sent: those for Ray's
    kinds, but for the creates of the benchmark itself, those for children, and Events, but for the scheduler's one for
    each pod. kwok's and the scheduler's own writes go to `pods/status`, `pods/binding` and `leases`."""
    total, pods = 0, 0
    for key, count in counted.items():
        verb, resource, code = key.split(" ")
        kind = resource.partition("/")[0]
        if kind.startswith("ray") or kind == "events" or (resource in OURS and verb in OURS[resource]):
            total += count
        if (verb, resource, code) == ("POST", "pods", "201"):
            pods = count
    return total - submitted - pods


def medians(runs: Sequence[Figures]) -> Figures:
    """The median of each figure."""
    return Figures(*(round(median(values), 3) for values in zip(*runs, strict=True)))


def ratios(ours: Figures, theirs: Figures) -> dict[str, float]:
    """Ours divided by theirs, for the figures that are compared."""
    return {
        name: round(getattr(ours, field) / getattr(theirs, field), 3)
        for name, field in RATIOS.items()
        if getattr(theirs, field)
    }


def last_line(found: Figures, more: Mapping[str, float]) -> str:
    """`bench: name=value …`."""
    shown = {name: value for name, value in found._asdict().items() if name != "delete_s"} | dict(more)
    if found.delete_s:
        shown["delete_s"] = found.delete_s
    return "bench: " + " ".join(f"{name}={value:g}" for name, value in shown.items())
