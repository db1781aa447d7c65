"""Intents that make a child, and that set one right which has changed (ADR 0110)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from raybus.api.decision import Create, Json, Note, Patch, Ref
from raybus.api.reasons import Reason
from raybus.cluster_ctl.children import Child


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


def replace_parts(child: Child, body: Json, parts: Sequence[str], words: Words, text: str = "") -> Patch:
    """Give `child` the `parts` (`spec`, `labels`, `annotations`) of `body` as a whole; `text`: of the Event."""
    place = place_of(body)
    done, failed = words.updated, words.not_updated
    return Patch(
        ref=ref_of(body),
        uid=child.uid,
        resource_version=child.version,
        operations=tuple(_replace(part, body) for part in parts),
        done=_note("Normal", done, text or f"Updated {words.noun} {place}", words),
        failed=_note("Warning", failed, f"Failed to update {words.noun} {place}", words),
    )


def differing_parts(child: Child, body: Json) -> list[str]:
    """Which of labels, annotations and spec of `child` are not those of `body`."""
    meta = body["metadata"]
    pairs = {
        "labels": (child.labels, meta.get("labels", {})),
        "annotations": (child.annotations, meta.get("annotations", {})),
        "spec": (child.spec, body["spec"]),
    }
    return [part for part, (found, wanted) in pairs.items() if found != wanted]


def ref_of(body: Json) -> Ref:
    """The reference of an object that is to be made."""
    return Ref(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])


def place_of(body: Json) -> str:
    """`namespace/name`."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def _replace(part: str, body: Json) -> Json:
    if part == "spec":
        return {"op": "add", "path": "/spec", "value": body["spec"]}
    return {"op": "add", "path": f"/metadata/{part}", "value": body["metadata"].get(part, {})}


def _note(kind: Literal["Normal", "Warning"], reason: Reason | None, text: str, words: Words) -> Note | None:
    if reason is None:
        return None
    return Note(type=kind, reason=reason, action="Update", text=text, reporter=words.reporter)
