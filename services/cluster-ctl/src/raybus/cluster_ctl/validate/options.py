"""Checks of the optional parts: fault tolerance, autoscaler, authentication, gated features (contract objects §7.2
rules 9-23)."""

from __future__ import annotations

from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.build.probes import version_of
from raybus.cluster_ctl.labels import EXTERNAL_STORAGE_NAMESPACE, FT_ENABLED, is_true
from raybus.cluster_ctl.validate.groups import autoscaler_v2, head_env

_V2_ENV = "RAY_enable_autoscaler_v2"
_AUTH_SINCE, _K8S_AUTH_SINCE = (2, 52, 0), (2, 55, 0)
_RESERVED_ENV = "KUBERAY_GEN_AUTOSCALER_START_CMD"


def ft_annotation_or_options(cluster: RayCluster) -> str | None:
    """Rule 9: even `false` counts as set."""
    if cluster.metadata.annotations.get(FT_ENABLED) and cluster.spec.gcs_fault_tolerance_options is not None:
        return f"{FT_ENABLED} annotation and gcsFaultToleranceOptions cannot both be set"
    return None


def redis_address_needs_ft(cluster: RayCluster) -> str | None:
    """Rule 10."""
    enabled = cluster.spec.gcs_fault_tolerance_options is not None or is_true(
        cluster.metadata.annotations.get(FT_ENABLED, "")
    )
    if not enabled and "RAY_REDIS_ADDRESS" in head_env(cluster):
        return "RAY_REDIS_ADDRESS is set in the head's environment, which needs GCS fault tolerance"
    return None


def redis_credentials_once(cluster: RayCluster) -> str | None:
    """Rule 11."""
    options, env = cluster.spec.gcs_fault_tolerance_options, head_env(cluster)
    if options is None:
        return None
    if cluster.spec.head_group_spec.ray_start_params.get("redis-password"):
        return "cannot set redis-password in rayStartParams together with gcsFaultToleranceOptions"
    for name in ("REDIS_PASSWORD", "RAY_REDIS_ADDRESS"):
        if name in env:
            return f"cannot set {name} in the head's environment together with gcsFaultToleranceOptions"
    if cluster.metadata.annotations.get(EXTERNAL_STORAGE_NAMESPACE):
        return f"cannot set the {EXTERNAL_STORAGE_NAMESPACE} annotation together with gcsFaultToleranceOptions"
    return None


def redis_username_by_options(cluster: RayCluster) -> str | None:
    """Rule 14."""
    params, env = cluster.spec.head_group_spec.ray_start_params, head_env(cluster)
    if params.get("redis-username") or "REDIS_USERNAME" in env:
        return "the Redis user name can only be set in gcsFaultToleranceOptions.redisUsername"
    return None


def autoscaler_env_needs_autoscaling(cluster: RayCluster) -> str | None:
    """Rule 16."""
    if not cluster.spec.enable_in_tree_autoscaling and head_env(cluster).get(_V2_ENV) in ("1", "true"):
        return f"{_V2_ENV} is set in the head's environment while enableInTreeAutoscaling is off"
    return None


def autoscaler_without_suspended_groups(cluster: RayCluster) -> str | None:
    """Rule 17, first part."""
    if not cluster.spec.enable_in_tree_autoscaling:
        return None
    suspended = [group.group_name for group in cluster.spec.worker_group_specs if group.suspend]
    return f"worker group {suspended[0]} cannot be suspended with autoscaling enabled" if suspended else None


def autoscaler_version_once(cluster: RayCluster) -> str | None:
    """Rule 17, second part."""
    spec = cluster.spec
    options = spec.autoscaler_options
    if spec.enable_in_tree_autoscaling and options is not None and options.version and _V2_ENV in head_env(cluster):
        return f"both autoscalerOptions.version and {_V2_ENV} are set: use one of them"
    return None


def autoscaler_v2_restart_policy(cluster: RayCluster) -> str | None:
    """Rule 17, third part."""
    spec = cluster.spec
    if not spec.enable_in_tree_autoscaling or not autoscaler_v2(cluster):
        return None
    templates = {"headGroupSpec": spec.head_group_spec.template} | {
        f"worker group {group.group_name}": group.template for group in spec.worker_group_specs
    }
    for where, template in templates.items():
        if (template.get("spec") or {}).get("restartPolicy") not in (None, "", "Never"):
            return f"{where}: restartPolicy must be Never or unset with autoscaler version v2"
    return None


def autoscaler_idle_timeout(cluster: RayCluster) -> str | None:
    """Rule 18."""
    options = cluster.spec.autoscaler_options
    if options is not None and options.idle_timeout_seconds is not None and options.idle_timeout_seconds < 0:
        return f"autoscalerOptions.idleTimeoutSeconds must not be negative, got {options.idle_timeout_seconds}"
    return None


def autoscaler_reserved_env(cluster: RayCluster) -> str | None:
    """Rule 19."""
    options = cluster.spec.autoscaler_options
    if options is not None and any(entry.get("name") == _RESERVED_ENV for entry in options.env):
        return f"autoscalerOptions.env must not contain {_RESERVED_ENV}"
    return None


def auth_versions(cluster: RayCluster) -> str | None:
    """Rule 21."""
    options, version = cluster.spec.auth_options, version_of(cluster.spec.ray_version)
    if options is None:
        return None
    by_kubernetes = bool(options.enable_k8s_token_auth)
    if options.mode != "token":
        return "authOptions.enableK8sTokenAuth needs mode token" if by_kubernetes else None
    if version is None or version < _AUTH_SINCE:
        return "authOptions.mode token needs rayVersion 2.52.0 or later"
    if by_kubernetes and version < _K8S_AUTH_SINCE:
        return "authOptions.enableK8sTokenAuth needs rayVersion 2.55.0 or later"
    if by_kubernetes and options.secret_name:
        return "authOptions.enableK8sTokenAuth and secretName cannot both be set"
    return None
