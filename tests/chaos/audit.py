"""The API server's audit log, and what a thawed applier wrote that was not its own any more."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from history import Seen
from judge import Thaw, Write, partition
from leases import Lease, holder

AFTER = 3.0
"""Seconds after a thaw in which a write may be one that the process had in mind before."""
SERVICE_SUFFIX = "-head-svc"
GONE_WITHIN = 5.0


def read(path: Path, namespace: str, clusters: Mapping[str, str]) -> Iterator[Write]:
    """Writes to objects of a namespace. `clusters`: RayCluster by name of the pod."""
    for line in path.read_text().splitlines():
        event = json.loads(line)
        ref = event.get("objectRef") or {}
        if ref.get("namespace") != namespace:
            continue
        body = event.get("requestObject") or {}
        name = ref.get("name") or (body.get("metadata") or {}).get("name", "")
        kind = ref["resource"] + (f"/{ref['subresource']}" if "subresource" in ref else "")
        at = datetime.fromisoformat(event["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp()
        code = (event.get("responseStatus") or {}).get("code", 0)
        roots = tuple(_roots(ref["resource"], name, body, clusters))
        yield Write(at, event.get("userAgent", ""), event["verb"], kind, name, code, roots)


def _roots(resource: str, name: str, body: Mapping[str, Any], clusters: Mapping[str, str]) -> Iterator[str]:
    """A RayCluster may be written for its own sake or for its RayJob's, whose name begins its own."""
    yield name.partition(".")[0] if resource == "events" else name
    yield from (owner["name"] for owner in (body.get("metadata") or {}).get("ownerReferences", ()))
    about = body.get("involvedObject") or body.get("regarding") or {}
    if "name" in about:
        yield about["name"]
    if resource == "pods" and name in clusters:
        yield clusters[name]
    if resource == "services":
        yield name.removesuffix(SERVICE_SUFFIX)
    if resource == "rayclusters":
        yield name.rpartition("-")[0]


class Stale(NamedTuple):
    """What was written without the lease. `late`: creations that were on their way when the process froze and that
    left no trace; `applied`: all others, a sentence each."""

    late: list[Write]
    applied: list[str]


def stale_writes(
    writes: Iterable[Write], thaws: Sequence[Thaw], leases: Sequence[Lease], namespace: str, history: Sequence[Seen]
) -> Stale:
    """Applied writes of an applier just thawed, whose partition was another's at that moment."""
    result = Stale([], [])
    for write in writes:
        thaw = next((t for t in thaws if t.by == write.by and t.at <= write.at <= t.at + AFTER), None)
        if thaw is None or not write.applied:
            continue
        holders = {holder(leases, "applier", partition(namespace, root), write.at) for root in write.roots if root}
        if write.by in holders or holders == {""}:
            continue
        if write.verb == "create" and _left_no_trace(write, history):
            result.late.append(write)
        else:
            after = f"{(write.at - thaw.at) * 1000:.0f} ms after its thaw"
            owners = ", ".join(sorted(filter(None, holders)))
            result.applied.append(f"{write.by}: {write.verb} {write.resource} {write.name} {after}; held by {owners}")
    return result


def _left_no_trace(write: Write, history: Sequence[Seen]) -> bool:
    """Whether the object was gone again in time."""
    return any(
        seen.name == write.name and seen.held is None and write.at <= seen.at <= write.at + GONE_WITHIN
        for seen in history
    )
