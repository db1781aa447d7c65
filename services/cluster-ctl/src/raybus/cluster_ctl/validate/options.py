"""Rules of the optional parts: fault tolerance, autoscaler, authentication (contract objects §7.2 rules 9-21)."""

from __future__ import annotations

from collections.abc import Callable

from raybus.api.cel import before, text
from raybus.api.rules import Cel, Each, Found, Rule
from raybus.api.v1 import AuthOptions, RayCluster
from raybus.cluster_ctl.build.probes import version_of
from raybus.cluster_ctl.labels import EXTERNAL_STORAGE_NAMESPACE, FT_ENABLED, is_true
from raybus.cluster_ctl.validate.paths import (
    AUTOSCALER,
    SPEC,
    V2_ENV,
    WHERE,
    Part,
    annotation,
    autoscaler_v2,
    head_env,
    head_param,
    in_head,
    in_head_env,
    parts,
    where,
)

_AUTH_SINCE, _K8S_AUTH_SINCE = (2, 52, 0), (2, 55, 0)
_RESERVED_ENV = "KUBERAY_GEN_AUTOSCALER_START_CMD"
_AUTH = f"{SPEC}.?authOptions"
_BY_KUBERNETES = f"{_AUTH}.?enableK8sTokenAuth.orValue(false)"
_TOKEN = f"{_AUTH}.?mode.orValue('') == 'token'"


def _has_options(breaks: Callable[[RayCluster], object]) -> Callable[[RayCluster], bool]:
    return lambda cluster: cluster.spec.gcs_fault_tolerance_options is not None and bool(breaks(cluster))


def _redis_without_ft(cluster: RayCluster) -> bool:
    enabled = cluster.spec.gcs_fault_tolerance_options is not None or is_true(
        cluster.metadata.annotations.get(FT_ENABLED, "")
    )
    return not enabled and "RAY_REDIS_ADDRESS" in head_env(cluster)


BEFORE_STORAGE: tuple[Rule[RayCluster], ...] = (
    Rule(
        f"{FT_ENABLED} annotation and gcsFaultToleranceOptions cannot both be set",
        _has_options(lambda cluster: cluster.metadata.annotations.get(FT_ENABLED)),
        Cel(f"variables.ftOptions && {annotation(FT_ENABLED)} != ''"),
    ),
    Rule(
        "RAY_REDIS_ADDRESS is set in the head's environment, which needs GCS fault tolerance",
        _redis_without_ft,
        Cel(
            f"!variables.ftOptions && {annotation(FT_ENABLED)}.lowerAscii() != 'true'"
            f" && {in_head_env('RAY_REDIS_ADDRESS')}"
        ),
    ),
    Rule(
        "cannot set redis-password in rayStartParams together with gcsFaultToleranceOptions",
        _has_options(lambda cluster: cluster.spec.head_group_spec.ray_start_params.get("redis-password")),
        Cel(f"variables.ftOptions && {head_param('redis-password')}"),
    ),
    *(
        Rule(
            f"cannot set {name} in the head's environment together with gcsFaultToleranceOptions",
            _has_options(in_head(name)),
            Cel(f"variables.ftOptions && {in_head_env(name)}"),
        )
        for name in ("REDIS_PASSWORD", "RAY_REDIS_ADDRESS")
    ),
    Rule(
        f"cannot set the {EXTERNAL_STORAGE_NAMESPACE} annotation together with gcsFaultToleranceOptions",
        _has_options(lambda cluster: cluster.metadata.annotations.get(EXTERNAL_STORAGE_NAMESPACE)),
        Cel(f"variables.ftOptions && {annotation(EXTERNAL_STORAGE_NAMESPACE)} != ''"),
    ),
)
"""Rules 9-11; even an annotation that says `false` counts as set."""


def _names_redis_user(cluster: RayCluster) -> bool:
    params = cluster.spec.head_group_spec.ray_start_params
    return bool(params.get("redis-username")) or "REDIS_USERNAME" in head_env(cluster)


def _v2_without_autoscaling(cluster: RayCluster) -> bool:
    return not cluster.spec.enable_in_tree_autoscaling and head_env(cluster).get(V2_ENV) in ("1", "true")


def _suspended_group(cluster: RayCluster) -> Found:
    if not cluster.spec.enable_in_tree_autoscaling:
        return False
    return next(((group.group_name,) for group in cluster.spec.worker_group_specs if group.suspend), False)


def _version_twice(cluster: RayCluster) -> bool:
    spec, options = cluster.spec, cluster.spec.autoscaler_options
    chosen = options is not None and bool(options.version)
    return bool(spec.enable_in_tree_autoscaling) and chosen and V2_ENV in head_env(cluster)


def _restarts_on_v2(part: Part) -> bool:
    if not part.cluster.spec.enable_in_tree_autoscaling or not autoscaler_v2(part.cluster):
        return False
    return (part.spec.template.get("spec") or {}).get("restartPolicy") not in (None, "", "Never")


def _negative_idle_timeout(cluster: RayCluster) -> Found:
    options = cluster.spec.autoscaler_options
    seconds = options.idle_timeout_seconds if options is not None else None
    return (str(seconds),) if seconds is not None and seconds < 0 else False


def _reserved_env(cluster: RayCluster) -> bool:
    options = cluster.spec.autoscaler_options
    return options is not None and any(entry.get("name") == _RESERVED_ENV for entry in options.env)


REDIS_USER: Rule[RayCluster] = Rule(
    "the Redis user name can only be set in gcsFaultToleranceOptions.redisUsername",
    _names_redis_user,
    Cel(f"{head_param('redis-username')} || {in_head_env('REDIS_USERNAME')}"),
)
"""Rule 14."""

_SUSPENDED = "variables.groups.filter(g, g.?suspend.orValue(false))"

AUTOSCALING: tuple[Rule[RayCluster] | Each[RayCluster, Part], ...] = (
    Rule(
        f"{V2_ENV} is set in the head's environment while enableInTreeAutoscaling is off",
        _v2_without_autoscaling,
        Cel(
            f"!variables.autoscaling && variables.headEnv.exists(e, e.name == {text(V2_ENV)}"
            " && e.?value.orValue('') in ['1', 'true'])"
        ),
    ),
    Rule(
        "worker group {} cannot be suspended with autoscaling enabled",
        _suspended_group,
        Cel(f"variables.autoscaling && size({_SUSPENDED}) > 0", (f"{_SUSPENDED}[0].groupName",)),
    ),
    Rule(
        f"both autoscalerOptions.version and {V2_ENV} are set: use one of them",
        _version_twice,
        Cel(f"variables.autoscaling && {AUTOSCALER}.?version.orValue('') != '' && {in_head_env(V2_ENV)}"),
    ),
    Each(
        "restartPolicies",
        parts,
        where,
        "variables.parts",
        WHERE,
        (
            Rule(
                "{where}: restartPolicy must be Never or unset with autoscaler version v2",
                _restarts_on_v2,
                Cel(
                    "variables.autoscaling && variables.autoscalerV2"
                    " && !(part.?template.?spec.?restartPolicy.orValue('') in ['', 'Never'])"
                ),
            ),
        ),
    ),
    Rule(
        "autoscalerOptions.idleTimeoutSeconds must not be negative, got {}",
        _negative_idle_timeout,
        Cel(
            f"{AUTOSCALER}.?idleTimeoutSeconds.orValue(0) < 0",
            (f"string({AUTOSCALER}.?idleTimeoutSeconds.orValue(0))",),
        ),
    ),
    Rule(
        f"autoscalerOptions.env must not contain {_RESERVED_ENV}",
        _reserved_env,
        Cel(f"{AUTOSCALER}.?env.orValue([]).exists(e, e.name == {text(_RESERVED_ENV)})"),
    ),
)
"""Rules 16-19."""


def _auth(breaks: Callable[[AuthOptions, tuple[int, int, int] | None], object]) -> Callable[[RayCluster], bool]:
    """A rule about authentication and the Ray version, None if that is unreadable."""

    def check(cluster: RayCluster) -> bool:
        options = cluster.spec.auth_options
        return options is not None and bool(breaks(options, version_of(cluster.spec.ray_version)))

    return check


def _token(breaks: Callable[[AuthOptions, tuple[int, int, int] | None], object]) -> Callable[[RayCluster], bool]:
    return _auth(lambda options, version: options.mode == "token" and breaks(options, version))


AUTH: tuple[Rule[RayCluster], ...] = (
    Rule(
        "authOptions.enableK8sTokenAuth needs mode token",
        _auth(lambda options, _: options.mode != "token" and options.enable_k8s_token_auth),
        Cel(f"{_BY_KUBERNETES} && !({_TOKEN})"),
    ),
    Rule(
        "authOptions.mode token needs rayVersion 2.52.0 or later",
        _token(lambda _, version: version is None or version < _AUTH_SINCE),
        Cel(f"{_TOKEN} && {before(2, 52)}"),
    ),
    Rule(
        "authOptions.enableK8sTokenAuth needs rayVersion 2.55.0 or later",
        _token(lambda options, version: options.enable_k8s_token_auth and (version or ()) < _K8S_AUTH_SINCE),
        Cel(f"{_TOKEN} && {_BY_KUBERNETES} && {before(2, 55)}"),
    ),
    Rule(
        "authOptions.enableK8sTokenAuth and secretName cannot both be set",
        _token(lambda options, _: options.enable_k8s_token_auth and options.secret_name),
        Cel(f"{_TOKEN} && {_BY_KUBERNETES} && {_AUTH}.?secretName.orValue('') != ''"),
    ),
)
"""Rule 21."""
