"""`spec.runtimeEnvYAML` and the JSON texts made of it and of the metadata (contract rayjob §3.2, §5.3)."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import count
from typing import Any

import yaml

MAX_VALUES = 20_000
"""Values in one runtime environment, aliases counted as often as they are used: a few lines of YAML can stand for
millions."""


class _Loader(yaml.CSafeLoader):
    """YAML as JSON knows it: a date stays the text that it is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}

_FILES = (".txt", ".in", ".toml", ".yml", ".yaml", ".lock")


@lru_cache(maxsize=256)
def parse(text: str) -> Mapping[str, Any]:
    """The runtime environment as a JSON object, not to be changed; empty text or an empty document is an empty one.

    Raises ValueError, with a sentence for the user, when `text` is not a YAML mapping.
    """
    try:
        value = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"runtimeEnvYAML is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ValueError("runtimeEnvYAML is nested too deeply") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"runtimeEnvYAML must be a YAML mapping, but it is {_a(value)}")
    seen = count()
    try:
        return {_key(key): _jsonable(item, seen) for key, item in value.items()}
    except RecursionError as error:
        raise ValueError("runtimeEnvYAML is nested too deeply, or holds itself") from error


def _a(value: object) -> str:
    names = {str: "a text", list: "a list", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


def _jsonable(value: Any, seen: Iterator[int]) -> Any:
    """JSON has only text as keys and no sets, binaries or infinite numbers. Raises ValueError."""
    if next(seen) > MAX_VALUES:
        raise ValueError(f"runtimeEnvYAML holds more than {MAX_VALUES} values")
    if isinstance(value, dict):
        return {_key(key): _jsonable(item, seen) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item, seen) for item in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return value
    raise ValueError(f"runtimeEnvYAML holds {value!r}, which JSON cannot express")


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def compact_json(value: Mapping[str, Any]) -> str:
    """JSON without spaces, keys sorted, and `<`, `>`, `&` escaped as KubeRay does (contract rayjob §3.2)."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def needs_local_files(env: Mapping[str, Any]) -> bool:
    """Whether some part names a file or folder beside the program that submits, which Ray's command line uploads or
    reads: only the head's image can have it (ADR 0064)."""
    sources = [env.get("working_dir"), *_list(env.get("py_modules"))]
    if any(isinstance(source, str) and source and "://" not in source for source in sources):
        return True
    packages = [env.get("pip"), env.get("uv"), env.get("conda")]
    return any(isinstance(source, str) and source.endswith(_FILES) for source in packages)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
