"""The types of ray.io/v1 read every recorded input and write every recorded status of KubeRay back as it was."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from raybus.api.v1 import (
    RayCluster,
    RayClusterStatus,
    RayCronJob,
    RayCronJobStatus,
    RayJob,
    RayJobStatus,
    RayService,
    RayServiceStatus,
)

GOLDEN = Path(__file__).parents[1] / "golden"
KINDS: dict[str, type[msgspec.Struct]] = {
    "RayCluster": RayCluster,
    "RayJob": RayJob,
    "RayService": RayService,
    "RayCronJob": RayCronJob,
}
STATUSES: dict[str, type[msgspec.Struct]] = {
    "RayCluster": RayClusterStatus,
    "RayJob": RayJobStatus,
    "RayService": RayServiceStatus,
    "RayCronJob": RayCronJobStatus,
}
EMPTY = json.loads(msgspec.json.encode(RayClusterStatus()))
MARKS = {"<copy>": EMPTY | {"state": "ready"}, "<empty>": EMPTY}


def inputs() -> list[tuple[str, dict[str, Any]]]:
    return [
        (path.name, document)
        for path in sorted((GOLDEN / "inputs").glob("*.yaml"))
        for document in yaml.load_all(path.read_text(), yaml.CSafeLoader)
        if isinstance(document, dict) and document.get("kind") in KINDS
    ]


def restored(value: Any) -> Any:
    """A recorded status with what the recordings replaced by a mark put back in its type."""
    if isinstance(value, dict):
        return {key: 3 if key == "observedGeneration" else restored(child) for key, child in value.items()}
    if isinstance(value, list):
        return [restored(child) for child in value]
    return MARKS.get(value, value) if isinstance(value, str) else value


def with_copies(kind: str, status: dict[str, Any]) -> dict[str, Any]:
    """Puts the copied cluster statuses back, which the recordings leave out where there is no cluster."""
    if kind == "RayJob":
        return {"rayClusterStatus": EMPTY} | status
    if kind == "RayService":
        both = ("activeServiceStatus", "pendingServiceStatus")
        return status | {key: {"rayClusterStatus": EMPTY} | status.get(key, {}) for key in both}
    return status


def statuses() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path.stem, kind, with_copies(kind, restored(status)))
        for path in sorted((GOLDEN / "expected").glob("*.json"))
        for name, status in json.loads(path.read_text()).get("status", {}).items()
        if (kind := name.partition("/")[0]) in STATUSES and status
    ]


def without_empty(value: Any) -> Any:
    """`value` without what Go's `omitempty` leaves out."""
    if isinstance(value, dict):
        kept = {key: without_empty(child) for key, child in value.items()}
        return {key: child for key, child in kept.items() if child not in (None, "", {}, [], 0, False)}
    return [without_empty(child) for child in value] if isinstance(value, list) else value


def test_every_recorded_input_survives_reading_and_writing() -> None:
    found = inputs()
    assert len(found) > 150
    for name, document in found:
        try:
            read = msgspec.convert(document, KINDS[document["kind"]])
        except msgspec.ValidationError as error:
            pytest.fail(f"{name}: {error}")
        written = json.loads(msgspec.json.encode(read))
        assert without_empty(written["spec"]) == without_empty(document.get("spec", {})), name


def test_every_recorded_status_is_written_as_kuberay_wrote_it() -> None:
    found = statuses()
    assert len(found) > 100
    for name, kind, status in found:
        written = json.loads(msgspec.json.encode(msgspec.convert(status, STATUSES[kind])))
        assert written == status, f"{name} {kind}"
