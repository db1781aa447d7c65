"""The three patches of the API server in memory: JSON patch, merge patch, and a plain server-side apply. Pure: the
target stays as it is."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from raybus.api.decision import Json


class PatchFailed(Exception):
    """An operation that cannot be done (422)."""


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge_patch(out.get(key), value)
    return out


def json_patch(target: Json, operations: Sequence[Json]) -> Json:
    """RFC 6902 with add, replace, remove and test. Raises PatchFailed."""
    out = copy.deepcopy(target)
    for operation in operations:
        try:
            _operate(out, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise PatchFailed(f"{operation.get('op')} {operation.get('path')}: {error!r}") from error
    return out


def _operate(root: Json, operation: Json) -> None:
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    parent: Any = root
    for part in way:
        parent = parent[int(part)] if isinstance(parent, list) else parent[part]
    spot: Any = last
    if isinstance(parent, list):
        spot = len(parent) if last == "-" else int(last)
    match operation["op"]:
        case "add" if isinstance(parent, list):
            if spot > len(parent):
                raise IndexError(spot)
            parent.insert(spot, operation["value"])
        case "add" | "replace":
            # The real server replaces what is not there as well.
            parent[spot] = operation["value"]
        case "remove":
            del parent[spot]
        case "test":
            if parent[spot] != operation["value"]:
                raise ValueError(f"testing value {last} failed")
        case other:
            raise ValueError(f"unexpected kind: {other}")


LIST_KEYS: Mapping[str, tuple[str, ...]] = {
    "ports": ("port", "protocol"),
    "ownerReferences": ("uid",),
    "containers": ("name",),
    "conditions": ("type",),
}
"""Lists that apply merges by keys; every other list is replaced as a whole."""

_KEY_DEFAULTS = {"protocol": "TCP"}


def apply_patch(target: Any, wanted: Any, field: str = "") -> Any:
    """Server-side apply by the one and only manager: given fields are set, others stay. What an earlier apply gave
    and this one leaves out stays too (field ownership is not kept)."""
    if isinstance(wanted, dict):
        out = dict(target) if isinstance(target, dict) else {}
        for key, value in wanted.items():
            out[key] = apply_patch(out.get(key), value, key)
        return out
    if isinstance(wanted, list) and isinstance(target, list) and field in LIST_KEYS:
        return _merge_list(target, wanted, LIST_KEYS[field])
    return wanted


def _merge_list(target: list[Json], wanted: list[Json], keys: tuple[str, ...]) -> list[Json]:
    def key(item: Json) -> tuple[Any, ...]:
        return tuple(item.get(k, _KEY_DEFAULTS.get(k)) for k in keys)

    merged = {key(item): item for item in target}
    for item in wanted:
        merged[key(item)] = apply_patch(merged.get(key(item)), item)
    return list(merged.values())
