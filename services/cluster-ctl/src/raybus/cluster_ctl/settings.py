"""What the operator's settings say to a decision about a RayCluster (contract platform §2-§4, objects §8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raybus.runtime.gates import read_gates

VERSION = "raybus-v0.1.0"
"""Stamped on head pods and told to Ray's usage statistics, in the place of KubeRay's version."""


DEFAULT_GATES = frozenset(name for name, open_ in read_gates("").items() if open_)
"""Feature gates that are open unless the settings say otherwise."""


@dataclass(frozen=True, kw_only=True)
class ClusterKnobs:
    """Everything that changes what is built for all RayClusters; the defaults are KubeRay's.

    `cluster_domain`: DNS domain of Services. `login_shell`: Ray starts in a login shell. `deterministic_head_name`:
    the head pod is `<cluster>-head`. `init_container`: workers wait for the GCS first. `probes`: liveness and
    readiness probes are added. `head_cluster_ip`: the head Service gets an address instead of being headless.
    `redis_cleanup`: Redis is emptied behind deleted clusters. `status_conditions`: feature gate
    RayClusterStatusConditions. `multi_host_indexing`: feature gate RayMultiHostIndexing. `random_pod_delete`:
    surplus workers of autoscaling clusters are removed too. `openshift_route`: a Route is made instead of an
    Ingress. `batch_scheduler`: name of the batch scheduler, "" = none. `gates`: all feature gates that are open.
    `default_*`: added to pods and Ray containers where they are missing. `*_sidecars`: appended.
    """

    cluster_domain: str = "cluster.local"
    login_shell: bool = False
    deterministic_head_name: bool = False
    init_container: bool = True
    probes: bool = True
    head_cluster_ip: bool = False
    redis_cleanup: bool = True
    status_conditions: bool = True
    multi_host_indexing: bool = True
    random_pod_delete: bool = False
    openshift_route: bool = False
    batch_scheduler: str = ""
    gates: frozenset[str] = DEFAULT_GATES
    default_container_envs: tuple[dict[str, Any], ...] = ()
    default_pod_labels: tuple[tuple[str, str], ...] = ()
    default_pod_annotations: tuple[tuple[str, str], ...] = ()
    head_sidecars: tuple[dict[str, Any], ...] = ()
    worker_sidecars: tuple[dict[str, Any], ...] = ()
    version: str = VERSION
