"""Settings of the cluster-ctl process, under KubeRay's names where it has one (contract platform §1-§4)."""

from dataclasses import dataclass
from typing import Any

from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.runtime.common import CommonSettings
from raybus.runtime.gates import read_gates
from raybus.runtime.schedulers import chosen_scheduler
from raybus.runtime.settings import setting


@dataclass(frozen=True, kw_only=True)
class ClusterSettings(CommonSettings):
    """What changes how RayClusters are built."""

    cluster_domain: str = setting("cluster.local", "DNS domain of Services.", env=("CLUSTER_DOMAIN",))
    enable_init_container_injection: bool = setting(
        True, "Workers wait for the head's GCS in an init container.", env=("ENABLE_INIT_CONTAINER_INJECTION",)
    )
    enable_probes_injection: bool = setting(
        True, "Ray containers get liveness and readiness probes.", env=("ENABLE_PROBES_INJECTION",)
    )
    enable_ray_head_cluster_ip_service: bool = setting(
        False, "Head Services get an address instead of being headless.", env=("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE",)
    )
    enable_login_shell: bool = setting(False, "Ray starts in a login shell.", env=("ENABLE_LOGIN_SHELL",))
    enable_deterministic_head_pod_name: bool = setting(
        False, "The head pod is called <cluster>-head.", env=("ENABLE_DETERMINISTIC_HEAD_POD_NAME",)
    )
    enable_gcs_ft_redis_cleanup: bool = setting(
        True, "Redis is emptied behind deleted clusters that used it.", env=("ENABLE_GCS_FT_REDIS_CLEANUP",)
    )
    enable_random_pod_delete: bool = setting(
        False, "Surplus workers of autoscaling clusters are removed too.", env=("ENABLE_RANDOM_POD_DELETE",)
    )
    openshift_routes: bool = setting(
        False, "enableIngress makes OpenShift Routes (KubeRay finds out by itself, unless USE_INGRESS_ON_OPENSHIFT)."
    )
    default_container_envs: tuple[dict[str, Any], ...] = setting(
        (), "Environment added to every Ray container where the user has none of that name (file only)."
    )
    default_pod_labels: dict[str, str] | None = setting(None, "Labels added to every Ray pod (file only).")
    default_pod_annotations: dict[str, str] | None = setting(None, "Annotations added to every Ray pod (file only).")
    head_sidecar_containers: tuple[dict[str, Any], ...] = setting((), "Containers added to head pods (file only).")
    worker_sidecar_containers: tuple[dict[str, Any], ...] = setting((), "Containers added to worker pods (file only).")


def knobs(settings: ClusterSettings) -> ClusterKnobs:
    """What decisions need of the settings. Raises SettingsError for feature gates that cannot be honoured."""
    gates = read_gates(settings.feature_gates)
    return ClusterKnobs(
        cluster_domain=settings.cluster_domain,
        login_shell=settings.enable_login_shell,
        deterministic_head_name=settings.enable_deterministic_head_pod_name,
        init_container=settings.enable_init_container_injection,
        probes=settings.enable_probes_injection,
        head_cluster_ip=settings.enable_ray_head_cluster_ip_service,
        redis_cleanup=settings.enable_gcs_ft_redis_cleanup,
        status_conditions=gates["RayClusterStatusConditions"],
        multi_host_indexing=gates["RayMultiHostIndexing"],
        random_pod_delete=settings.enable_random_pod_delete,
        openshift_route=settings.openshift_routes,
        batch_scheduler=chosen_scheduler(settings.batch_scheduler, settings.enable_batch_scheduler, gates),
        gates=frozenset(name for name, open_ in gates.items() if open_),
        default_container_envs=settings.default_container_envs,
        default_pod_labels=tuple(sorted((settings.default_pod_labels or {}).items())),
        default_pod_annotations=tuple(sorted((settings.default_pod_annotations or {}).items())),
        head_sidecars=settings.head_sidecar_containers,
        worker_sidecars=settings.worker_sidecar_containers,
    )
