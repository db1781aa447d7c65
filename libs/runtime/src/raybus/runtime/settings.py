"""Settings of a service: one frozen dataclass, read by one loader from flags, environment and a YAML file.

Precedence is flags, then environment, then file, then default. A field `metrics_addr` is the flag `--metrics-addr`,
the variable `RAYBUS_METRICS_ADDR` and the key `metricsAddr`; `setting()` adds KubeRay's own names where they have a
meaning here (contract platform §1-§3); `kuberay.FOREIGN` says what becomes of the others. Go-style flags (`-flag`,
`--flag=false`, a bare `--flag` for true) are read. An empty variable counts as not set. What a value must be beyond its
type, the dataclass checks itself (`__post_init__`).
"""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec
import yaml

from raybus.runtime import kuberay

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
    """Every setting of `kind` with value, source and default; all of them are fit to be used. Raises SettingsError."""
    fields = dataclasses.fields(kind)
    hints = get_type_hints(kind)
    flags = _read_flags(fields, hints, arguments)
    file_name = flags.get("config") or environment.get("RAYBUS_CONFIG", "")
    document = _read_file(file_name) if file_name else {}
    _check_foreign(environment, document, file_name)
    result = []
    for field in fields:
        raw, source = _pick(field, flags, environment, document, file_name)
        value = field.default if source == "default" else _convert(raw, hints[field.name], f"{field.name} ({source})")
        result.append(Found(field.name, value, source, field.default, field.metadata["doc"], field.metadata["secret"]))
    kind(**{item.name: item.value for item in result})
    return result


def known_names(kind: type[Any]) -> frozenset[str]:
    """Every flag (with its dashes), variable and key that sets a field of `kind`."""
    found: set[str] = set()
    for field in dataclasses.fields(kind):
        found |= {f"--{flag}" for flag in _flag_names(field)}
        found |= {*_variables(field), *_keys(field)}
    return frozenset(found)


def _check_foreign(environment: Mapping[str, str], document: Mapping[str, Any], file_name: str) -> None:
    """Raise SettingsError for what KubeRay would do and Raybus would have to ignore."""
    for item in kuberay.FOREIGN:
        if item.variable and item.forbids(environment.get(item.variable, "")):
            value = environment[item.variable]
            raise SettingsError(f"environment {item.variable}={value} is not supported: {item.why}")
        if item.key and item.forbids(document.get(item.key, "")):
            raise SettingsError(f"file {file_name}: {item.key}: {document[item.key]} is not supported: {item.why}")


def at_least_one(settings: Any, *names: str) -> None:
    """Raises SettingsError for a number below 1."""
    for name in names:
        number = getattr(settings, name)
        if number < 1:
            raise SettingsError(f"{name.replace('_', '-')}: {number} is too small, it must be at least 1")


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


def _flag_names(field: "dataclasses.Field[Any]") -> tuple[str, ...]:
    return (field.name.replace("_", "-"), *field.metadata["flags"])


def _variables(field: "dataclasses.Field[Any]") -> tuple[str, ...]:
    return ("RAYBUS_" + field.name.upper(), *field.metadata["env"])


def _keys(field: "dataclasses.Field[Any]") -> tuple[str, ...]:
    return (_camel(field.name), *field.metadata["keys"])


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
        flag = match[1]
        if flag not in known and flag not in kuberay.FLAGS:
            raise SettingsError(f"unknown flag --{flag}; known are: {', '.join('--' + n for n in sorted(known))}")
        if match[2] is not None:
            value = match[2]
        elif hints.get(known.get(flag, "")) is bool or (flag not in known and kuberay.is_switch(flag)):
            value = "true"
        elif rest:
            value = rest.pop(0)
        else:
            raise SettingsError(f"flag --{flag} needs a value")
        foreign = kuberay.FLAGS.get(flag)
        if flag in known:
            result[known[flag]] = value
        elif foreign is not None and foreign.forbids(value):
            raise SettingsError(f"flag --{flag}={value} is not supported: {foreign.why}")
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
    for variable in _variables(field):
        if environment.get(variable):
            return environment[variable], f"environment {variable}"
    for key in _keys(field):
        if key in document:
            return document[key], f"file {file_name}"
    return None, "default"


def _convert(raw: Any, hint: Any, what: str) -> Any:
    """Text to the field's type; booleans as Go and KubeRay write them, lists comma separated."""
    if hint is bool and isinstance(raw, str):
        lowered = raw.lower()
        if lowered in ("true", "1", "t", "yes", "on"):
            return True
        if lowered in ("false", "0", "f", "no", "off"):
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
