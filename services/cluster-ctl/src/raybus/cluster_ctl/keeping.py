"""Intents that make a child, and that set one right which has changed (ADR 0110)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from raybus.api.decision import Create, Json, Note, Patch, Ref
from raybus.api.reasons import Reason
from raybus.cluster_ctl.children import Child

OUR_ANNOTATIONS = "raybus.io/annotations"
"""Names of the annotations that Raybus has given to an object."""


class Words(NamedTuple):
    """How Events speak of one kind of child. `noun`: `service account`; `reporter`: whose name the Events bear."""

    noun: str
    created: Reason
    not_created: Reason
    updated: Reason | None = None
    not_updated: Reason | None = None
    reporter: str = ""


def create_child(body: Json, words: Words, taken: Note | None = None) -> Create:
    """Make `body`; `taken`: the Event when another object has the name, instead of the general one."""
    ref, place = ref_of(body), place_of(body)
    done, failed = f"Created {words.noun} {place}", f"Failed to create {words.noun} {place}"
    return Create(
        ref=ref,
        body=body,
        done=Note(type="Normal", reason=words.created, action="Create", text=done, reporter=words.reporter),
        failed=Note(type="Warning", reason=words.not_created, action="Create", text=failed, reporter=words.reporter),
        taken=taken,
    )


def replace_parts(child: Child, body: Json, parts: Sequence[str], words: Words) -> Patch:
    """Set the `parts` (`spec`, `labels`, `annotations`) of `child` right; what others add to labels and annotations
    stays."""
    values = {"labels": {**child.labels, **_labels(body)}, "annotations": _annotations_after(child, body)}
    operations = [{"op": "add", "path": f"/metadata/{part}", "value": values[part]} for part in parts if part != "spec"]
    if "spec" in parts:
        operations.append({"op": "add", "path": "/spec", "value": body["spec"]})
    done, failed = f"Updated {words.noun} {place_of(body)}", f"Failed to update {words.noun} {place_of(body)}"
    return Patch(
        ref=ref_of(body),
        uid=child.uid,
        resource_version=child.version,
        operations=tuple(operations),
        done=_note("Normal", words.updated, done, words),
        failed=_note("Warning", words.not_updated, failed, words),
    )


def differing_parts(child: Child, body: Json) -> list[str]:
    """Which of labels, annotations and spec of `child` are not as `body` wants them.

    Labels and annotations of others are no difference: a cloud's Ingress controller writes its own, and taking them
    away at every sight would never end (ADR 0111).
    """
    spec = "spec" in body and _bare(child.spec) != _bare(body["spec"])
    differs = {
        "labels": not _labels(body).items() <= child.labels.items(),
        "annotations": _annotations_after(child, body) != child.annotations,
        "spec": spec,
    }
    return [part for part, is_so in differs.items() if is_so]


def listed(annotations: Mapping[str, str]) -> dict[str, str]:
    """Annotations with a list of their names, by which a later pass knows which of them are its to remove."""
    return {**annotations, OUR_ANNOTATIONS: ",".join(sorted(annotations))} if annotations else {}


def _labels(body: Json) -> dict[str, str]:
    found: dict[str, str] = body["metadata"].get("labels", {})
    return found


def _annotations_after(child: Child, body: Json) -> dict[str, str]:
    """Those of others, and the wanted ones; what was given earlier and is not wanted any more is gone."""
    ours = {*child.annotations.get(OUR_ANNOTATIONS, "").split(","), OUR_ANNOTATIONS}
    foreign = {key: value for key, value in child.annotations.items() if key not in ours}
    return {**foreign, **body["metadata"].get("annotations", {})}


def _bare(value: Any) -> Any:
    """A value as the API server stores it: without nulls, empty lists and empty `matchLabels`."""
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    stored = {key: _bare(item) for key, item in value.items()}
    return {k: v for k, v in stored.items() if v is not None and v != [] and not (k == "matchLabels" and v == {})}


def ref_of(body: Json) -> Ref:
    """The reference of an object that is to be made."""
    return Ref(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])


def place_of(body: Json) -> str:
    """`namespace/name`."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def _note(kind: Literal["Normal", "Warning"], reason: Reason | None, text: str, words: Words) -> Note | None:
    if reason is None:
        return None
    return Note(type=kind, reason=reason, action="Update", text=text, reporter=words.reporter)
