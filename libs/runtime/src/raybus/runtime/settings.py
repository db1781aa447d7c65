"""Settings of a service: one frozen dataclass, read by one loader from flags, environment and a YAML file.

Precedence is flags, then environment, then file, then default. A field `metrics_addr` is the flag `--metrics-addr`,
the variable `RAYBUS_METRICS_ADDR` and the key `metricsAddr`; `setting()` adds KubeRay's own names where they have a
meaning here (contract platform §1-§3). Go-style flags (`-flag`, `--flag=false`, a bare `--flag` for true) are read.
"""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec
import yaml

S = TypeVar("S")


class SettingsError(Exception):
    """A setting that cannot be used; `str()` names it, its source and what is allowed."""


class Found(NamedTuple):
    """Where a setting's value comes from, for `raybus settings`."""

    name: str
    value: Any
    source: str
    default: Any
    doc: str
    secret: bool


def setting(
    default: Any,
    doc: str,
    *,
    flags: Sequence[str] = (),
    env: Sequence[str] = (),
    keys: Sequence[str] = (),
    secret: bool = False,
) -> Any:
    """A dataclass field with its meaning and its further names; a `secret` value is never printed."""
    names = {"doc": doc, "flags": tuple(flags), "env": tuple(env), "keys": tuple(keys), "secret": secret}
    return dataclasses.field(default=default, metadata=names)


def load(kind: type[S], arguments: Sequence[str], environment: Mapping[str, str]) -> S:
    """The settings of dataclass `kind`. Raises SettingsError."""
    found = explain(kind, arguments, environment)
    return kind(**{item.name: item.value for item in found})


def explain(kind: type[Any], arguments: Sequence[str], environment: Mapping[str, str]) -> list[Found]:
    """Every setting of `kind` with value, source and default. Raises SettingsError."""
    fields = dataclasses.fields(kind)
    hints = get_type_hints(kind)
    flags = _read_flags(fields, hints, arguments)
    file_name = flags.get("config") or environment.get("RAYBUS_CONFIG", "")
    document = _read_file(file_name) if file_name else {}
    result = []
    for field in fields:
        raw, source = _pick(field, flags, environment, document, file_name)
        value = field.default if source == "default" else _convert(raw, hints[field.name], f"{field.name} ({source})")
        result.append(Found(field.name, value, source, field.default, field.metadata["doc"], field.metadata["secret"]))
    return result


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


def _flag_names(field: "dataclasses.Field[Any]") -> tuple[str, ...]:
    return (field.name.replace("_", "-"), *field.metadata["flags"])


def _read_flags(
    fields: Sequence["dataclasses.Field[Any]"], hints: Mapping[str, Any], arguments: Sequence[str]
) -> dict[str, str]:
    known = {name: field.name for field in fields for name in _flag_names(field)} | {"config": "config"}
    result: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        match = re.fullmatch(r"--?([a-zA-Z][\w-]*)(?:=(.*))?", word, re.DOTALL)
        if match is None:
            raise SettingsError(f"unexpected argument {word!r}: settings are given as --name=value")
        if match[1] not in known:
            raise SettingsError(f"unknown flag --{match[1]}; known are: {', '.join('--' + n for n in sorted(known))}")
        name = known[match[1]]
        if match[2] is not None:
            result[name] = match[2]
        elif hints.get(name) is bool:
            result[name] = "true"
        elif rest:
            result[name] = rest.pop(0)
        else:
            raise SettingsError(f"flag --{match[1]} needs a value")
    return result


def _read_file(name: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"settings file {name} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"settings file {name} is not YAML: {' '.join(str(error).split())}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsError(f"settings file {name} must hold a mapping of setting names to values")
    head = document.get("apiVersion"), document.get("kind")
    if head not in ((None, None), ("config.ray.io/v1alpha1", "Configuration")):
        raise SettingsError(
            f"settings file {name}: apiVersion/kind are {head[0]}/{head[1]}, known is "
            "config.ray.io/v1alpha1/Configuration (or leave both out)"
        )
    return document


def _pick(
    field: "dataclasses.Field[Any]",
    flags: Mapping[str, str],
    environment: Mapping[str, str],
    document: Mapping[str, Any],
    file_name: str,
) -> tuple[Any, str]:
    if field.name in flags:
        return flags[field.name], f"flag --{_flag_names(field)[0]}"
    for variable in ("RAYBUS_" + field.name.upper(), *field.metadata["env"]):
        if variable in environment:
            return environment[variable], f"environment {variable}"
    for key in (_camel(field.name), *field.metadata["keys"]):
        if key in document:
            return document[key], f"file {file_name}"
    return None, "default"


def _convert(raw: Any, hint: Any, what: str) -> Any:
    """Text to the field's type; booleans as Go and KubeRay write them, lists comma separated."""
    if hint is bool and isinstance(raw, str):
        lowered = raw.lower()
        if lowered in ("true", "1", "t", "yes", "on"):
            return True
        if lowered in ("false", "0", "f", "no", "off", ""):
            return False
        raise SettingsError(f"{what}: {raw!r} is not true or false")
    if isinstance(raw, str) and getattr(hint, "__origin__", None) is tuple:
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    try:
        return msgspec.convert(raw, hint, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{what}: {error}") from error


def environment() -> Mapping[str, str]:
    """The process's environment: read here only, so that settings have one source."""
    return os.environ
