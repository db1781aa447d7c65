"""Rules of the history server's collector (contract objects §7.2 rule 20)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from raybus.api.cel import text, texts
from raybus.api.rules import Cel, Found, Rule
from raybus.api.v1 import RayCluster
from raybus.api.v1.cluster_options import CollectorOptions
from raybus.cluster_ctl.build.history import NAME
from raybus.cluster_ctl.validate.paths import PART_CONTAINERS, SPEC, containers, parts

_RESERVED = (
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
)
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "GCS": ("GCS_BUCKET",),
    "S3": ("S3_REGION",),
    "ALIYUNOSS": ("OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"),
}
"""Backend -> variables that it cannot do without; other backends are taken as they are."""
_BACKEND, _AZURE, _AZURE_MODE = "STORAGE_BACKEND", "AZUREBLOB", "AZURE_STORAGE_AUTH_MODE"
_AZURE_TEXT, _AZURE_URL = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"
_AZURE_NEEDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("connection_string",): (_AZURE_TEXT,),
    ("workload_identity", "default"): (_AZURE_URL,),
    (): (_AZURE_TEXT, _AZURE_URL),
}
"""Modes of authentication -> variables of which one is needed; (): all other modes."""
_WHERE = "historyServerOptions.collectorOptions"
_COLLECTOR = f"{SPEC}.?historyServerOptions.?collectorOptions"


def _collector(breaks: Callable[[CollectorOptions], Found]) -> Callable[[RayCluster], Found]:
    def check(cluster: RayCluster) -> Found:
        options = cluster.spec.history_server_options
        if options is None or options.collector_options is None:
            return False
        return breaks(options.collector_options)

    return check


def _value(collector: CollectorOptions, name: str) -> str:
    """A literal value, "" without one; of several the last, as the kubelet takes it."""
    values = [entry.get("value") or "" for entry in collector.env if entry.get("name") == name]
    return values[-1] if values else ""


def _is_set(collector: CollectorOptions, name: str) -> bool:
    return any(
        entry.get("name") == name and (entry.get("value") or entry.get("valueFrom") is not None)
        for entry in collector.env
    )


def _last_value(name: str) -> str:
    values = f"variables.collectorEnv.filter(e, e.name == {text(name)}).map(e, e.?value.orValue(''))"
    return f"[{values}].map(values, size(values) > 0 ? values[size(values) - 1] : '')[0]"


def _is_set_in_cel(name: str) -> str:
    return (
        f"variables.collectorEnv.exists(e, e.name == {text(name)} && (e.?value.orValue('') != '' || has(e.valueFrom)))"
    )


VARIABLES = {
    "collectorEnv": f"{_COLLECTOR}.?env.orValue([])",
    "storageBackend": _last_value(_BACKEND),
    "azureMode": _last_value(_AZURE_MODE),
}


def _reserved(name: str) -> Rule[RayCluster]:
    return Rule(
        f"{_WHERE}.env must not contain {name}",
        _collector(lambda collector: any(entry.get("name") == name for entry in collector.env)),
        Cel(f"variables.collectorEnv.exists(e, e.name == {text(name)})"),
    )


def _needed(backend: str, name: str) -> Rule[RayCluster]:
    def breaks(collector: CollectorOptions) -> Found:
        given = _value(collector, _BACKEND)
        return (given,) if given.upper() == backend and not _is_set(collector, name) else False

    return Rule(
        f"{_WHERE}.env must set {name} for STORAGE_BACKEND {{}}",
        _collector(breaks),
        Cel(
            f"variables.storageBackend.upperAscii() == {text(backend)} && !{_is_set_in_cel(name)}",
            ("variables.storageBackend",),
        ),
    )


def _azure(modes: tuple[str, ...], wanted: tuple[str, ...]) -> Rule[RayCluster]:
    special = [mode for some in _AZURE_NEEDS for mode in some]

    def breaks(collector: CollectorOptions) -> Found:
        mode = _value(collector, _AZURE_MODE)
        meant = mode in modes if modes else mode not in special
        on = _value(collector, _BACKEND).upper() == _AZURE
        return on and meant and not any(_is_set(collector, name) for name in wanted)

    meant = f"variables.azureMode in {texts(modes)}" if modes else f"!(variables.azureMode in {texts(special)})"
    unset = " && ".join(f"!{_is_set_in_cel(name)}" for name in wanted)
    return Rule(
        f"{_WHERE}.env must set {' or '.join(wanted)} for STORAGE_BACKEND {_AZURE}",
        _collector(breaks),
        Cel(f"variables.storageBackend.upperAscii() == {text(_AZURE)} && {meant} && {unset}"),
    )


def _lacks_collector(cluster: RayCluster) -> bool:
    options = cluster.spec.history_server_options
    return options is not None and options.collector_options is None


def _takes_name(cluster: RayCluster) -> bool:
    if cluster.spec.history_server_options is None:
        return False
    return any(c.get("name") == NAME for part in parts(cluster) for c in containers(part.spec.template))


def _rules() -> Iterator[Rule[RayCluster]]:
    yield Rule(
        f"{_WHERE} must be set when historyServerOptions is",
        _lacks_collector,
        Cel(f"{SPEC}.?historyServerOptions.hasValue() && !{_COLLECTOR}.hasValue()"),
    )
    yield Rule(
        f"{_WHERE}.image must be set",
        _collector(lambda collector: not collector.image),
        Cel(f"{_COLLECTOR}.hasValue() && {_COLLECTOR}.?image.orValue('') == ''"),
    )
    yield from (_reserved(name) for name in _RESERVED)
    yield Rule(
        f"{_WHERE}.env must set STORAGE_BACKEND to a literal value",
        _collector(lambda collector: not _value(collector, _BACKEND)),
        Cel(f"{_COLLECTOR}.hasValue() && variables.storageBackend == ''"),
    )
    yield from (_azure(modes, wanted) for modes, wanted in _AZURE_NEEDS.items())
    yield from (_needed(backend, name) for backend, names in _NEEDS.items() for name in names)
    yield Rule(
        f"no container may be called {NAME} when historyServerOptions is set",
        _takes_name,
        Cel(
            f"{SPEC}.?historyServerOptions.hasValue() && variables.parts.exists(part,"
            f" {PART_CONTAINERS}.exists(c, c.name == {text(NAME)}))"
        ),
    )


HISTORY: tuple[Rule[RayCluster], ...] = tuple(_rules())
"""What the collector is, what it must know, and what it must not be told."""
