"""`raybus settings`: every setting of a service with its value, where that comes from, and its default."""

import dataclasses
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from raybus.cli.place import UsageError
from raybus.runtime.settings import explain

CLASSES: Mapping[str, str] = {
    "watcher": "raybus.watcher.settings:WatcherSettings",
    "cluster-ctl": "raybus.cluster_ctl.service_settings:ClusterSettings",
    "job-ctl": "raybus.job_ctl.service_settings:JobSettings",
    "serve-ctl": "raybus.runtime.common:CommonSettings",
    "applier": "raybus.applier.settings:ApplierSettings",
    "prober": "raybus.prober.settings:ProberSettings",
}
"""Service -> its dataclass of settings, imported only when asked for."""


def settings_class(service: str) -> type[Any]:
    """The dataclass of a service's settings. Raises UsageError for an unknown service."""
    if service not in CLASSES:
        raise UsageError(f'There is no service "{service}"; there are {", ".join(CLASSES)}.')
    module, _, name = CLASSES[service].partition(":")
    kind: type[Any] = getattr(importlib.import_module(module), name)
    return kind


def rows(service: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """(name, value, source, default, meaning) of each setting. Raises SettingsError, UsageError."""
    for found in explain(settings_class(service), arguments, environment):
        hidden = found.secret and found.value
        value = "***" if hidden else _text(found.value)
        yield found.name.replace("_", "-"), value, found.source, _text(found.default), found.doc


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return (
        str(dataclasses.asdict(value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else str(value)
    )
