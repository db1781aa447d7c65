"""Rules of embedded fault tolerance (contract objects §7.2 rules 12, 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from raybus.api.cel import named, text
from raybus.api.decision import Json
from raybus.api.rules import Cel, Found, Rule
from raybus.api.v1 import RayCluster
from raybus.api.v1.cluster_options import GcsFaultToleranceOptions
from raybus.cluster_ctl import fault_tolerance as ft
from raybus.cluster_ctl.build.fault_tolerance import STORAGE_PATH, STORAGE_VOLUME
from raybus.cluster_ctl.validate.paths import FT_OPTIONS, HEAD_POD, containers, in_head, in_head_env

_ENV = ("RAY_gcs_storage", "RAY_gcs_storage_path")
_STORAGE = f"{FT_OPTIONS}.?storage"

_OF_REDIS: tuple[tuple[str, Callable[[GcsFaultToleranceOptions], bool], str], ...] = (
    ("redisAddress", lambda options: bool(options.redis_address), ".orValue('') != ''"),
    ("redisUsername", lambda options: options.redis_username is not None, ".hasValue()"),
    ("redisPassword", lambda options: options.redis_password is not None, ".hasValue()"),
    ("externalStorageNamespace", lambda options: bool(options.external_storage_namespace), ".orValue('') != ''"),
)
"""Field, whether it is set, and the same in CEL."""


def _on_rocksdb(breaks: Callable[[RayCluster], bool]) -> Callable[[RayCluster], bool]:
    return lambda cluster: ft.backend(cluster) == ft.ROCKSDB and breaks(cluster)


def _option(given: Callable[[GcsFaultToleranceOptions], bool]) -> Callable[[RayCluster], bool]:
    def check(cluster: RayCluster) -> bool:
        options = cluster.spec.gcs_fault_tolerance_options
        return options is not None and given(options)

    return check


def _without_redis() -> Iterator[Rule[RayCluster]]:
    """Rule 12, first part."""
    for name, given, in_cel in _OF_REDIS:
        yield Rule(
            f"gcsFaultToleranceOptions.{name} cannot be set with backend rocksdb",
            _on_rocksdb(_option(given)),
            Cel(f"variables.rocksdb && {FT_OPTIONS}.?{name}{in_cel}"),
        )


def _claim_and_settings(cluster: RayCluster) -> Found:
    storage = ft.storage(cluster)
    own = {
        "size": storage.size is not None,
        "storageClassName": storage.storage_class_name is not None,
        "accessModes": bool(storage.access_modes),
    }
    wrong = [name for name, given in own.items() if given]
    return (", ".join(wrong),) if storage.claim_name and wrong else False


_SETTINGS = named(
    {
        "size": f"{_STORAGE}.?size.hasValue()",
        "storageClassName": f"{_STORAGE}.?storageClassName.hasValue()",
        "accessModes": f"size({_STORAGE}.?accessModes.orValue([])) > 0",
    }
)


def _mounts_ours(cluster: RayCluster) -> bool:
    mounts: list[Json] = containers(cluster.spec.head_group_spec.template)[0].get("volumeMounts") or []
    return any(mount.get("name") == STORAGE_VOLUME or mount.get("mountPath") == STORAGE_PATH for mount in mounts)


def _has_our_volume(cluster: RayCluster) -> bool:
    pod = cluster.spec.head_group_spec.template.get("spec") or {}
    return any(volume.get("name") == STORAGE_VOLUME for volume in pod.get("volumes") or ())


def _storage_without_rocksdb(cluster: RayCluster) -> bool:
    options = cluster.spec.gcs_fault_tolerance_options
    return options is not None and options.storage is not None and ft.backend(cluster) != ft.ROCKSDB


STORAGE: tuple[Rule[RayCluster], ...] = (
    *_without_redis(),
    Rule(
        "gcsFaultToleranceOptions.storage: {} cannot be set together with claimName",
        _claim_and_settings,
        Cel(
            f"{_STORAGE}.?claimName.orValue('') != '' && size({_SETTINGS}) > 0",
            (f"{_SETTINGS}.join(', ')",),
        ),
    ),
    *(
        Rule(
            f"{name} in the head's environment is reserved with backend rocksdb",
            _on_rocksdb(in_head(name)),
            Cel(f"variables.rocksdb && {in_head_env(name)}"),
        )
        for name in _ENV
    ),
    Rule(
        f"mounts named {STORAGE_VOLUME} or at {STORAGE_PATH} are reserved with backend rocksdb",
        _on_rocksdb(_mounts_ours),
        Cel(
            "variables.rocksdb && size(variables.headContainers) > 0"
            " && variables.headContainers[0].?volumeMounts.orValue([])"
            f".exists(m, m.name == {text(STORAGE_VOLUME)} || m.mountPath == {text(STORAGE_PATH)})"
        ),
    ),
    Rule(
        f"a volume named {STORAGE_VOLUME} in the head's template is reserved with backend rocksdb",
        _on_rocksdb(_has_our_volume),
        Cel(f"variables.rocksdb && {HEAD_POD}.?volumes.orValue([]).exists(v, v.name == {text(STORAGE_VOLUME)})"),
    ),
    Rule(
        "gcsFaultToleranceOptions.storage can only be set with backend rocksdb",
        _storage_without_rocksdb,
        Cel(f"!variables.rocksdb && {_STORAGE}.hasValue()"),
    ),
)
"""Names and paths that are ours, and options that contradict each other."""
